"""Tool calls against expected ones: hand-computed cases, slow twins, assertions, and the logs of real agents."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Sequence
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import dialeval
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.metrics.calls import Rule, compare_calls, find_best_pairs
from dialeval.metrics.checks import load_checks
from laws import calls as world

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def value(metric: str, made: Any, expected: Any, **more: Any) -> float:
    """The value of one conversation; NaN where it is not scored."""
    row = {"response": "done", "tool_calls": made, "expected_calls": expected, **more}
    return dialeval.evaluate([row], metrics=[metric])["system"][metric].mean


NAN = float("nan")
A, B, C = call("a"), call("b"), call("c")
X1, X2, X12 = call("f", x=1), call("f", x=2), call("f", x=1, y=2)
BROKEN = {"name": "f", "arguments": "{x"}

CASES: list[tuple[str, str, list[Any], list[Any], float]] = [
    ("nothing made, one missing", "call-recall", [], [A], 0),
    ("nothing made: no precision", "call-precision", [], [A], NAN),
    ("nothing expected: no recall", "call-recall", [A], [], NAN),
    ("an extra call where none is expected", "call-precision", [A], [], 0),
    ("an extra call is not ignored", "call-f1", [A, B], [A], 2 / 3),
    ("neither made nor expected: no F1", "call-f1", [], [], NAN),
    ("neither made nor expected is exact", "call-exact", [], [], 1),
    ("a repeated call counts once against one expected", "call-precision", [A, A], [A], 1 / 2),
    ("a repeated call does not find two", "call-recall", [A], [A, A], 1 / 2),
    ("two made, two expected", "call-f1", [A, A], [A, A], 1),
    ("three made, two expected", "call-f1", [A, A, A], [A, A], 4 / 5),
    ("order does not matter to F1", "call-f1", [B, A], [A, B], 1),
    ("order matters to call-order", "call-order", [B, A], [A, B], 1 / 2),
    ("order matters to call-exact", "call-exact", [B, A], [A, B], 0),
    ("a gap does not break the order", "call-order", [A, C, B], [A, B], 4 / 5),
    ("a gap is not exact", "call-exact", [A, C, B], [A, B], 0),
    ("reversed, three calls", "call-order", [C, B, A], [A, B, C], 1 / 3),
    ("the order of repeats", "call-order", [A, B, A], [A, A, B], 2 / 3),
    ("another argument is another call", "call-f1", [X1], [X2], 0),
    ("another argument, the same tool", "tool-f1", [X1], [X2], 1),
    ("an argument too many", "call-f1", [X12], [X1], 0),
    ("an argument too many is allowed if asked for", "call-match(arguments=expected)", [X12], [X1], 1),
    ("an argument too few is never allowed", "call-match(arguments=expected)", [X1], [X12], 0),
    ("no arguments are not any arguments", "call-f1", [X1], [call("f")], 0),
    ("arguments that are not given match any", "call-f1", [X1], [{"name": "f"}], 1),
    ("arguments that are null match any", "call-f1", [X1], [{"name": "f", "arguments": None}], 1),
    ("true is not 1", "call-f1", [call("f", x=True)], [X1], 0),
    ("false is not 0", "call-f1", [call("f", x=0)], [call("f", x=False)], 0),
    ("null is not missing", "call-f1", [call("f")], [call("f", x=None)], 0),
    ("null is not false", "call-f1", [call("f", x=None)], [call("f", x=False)], 0),
    ("a text is not a number", "call-f1", [call("f", x="1")], [X1], 0),
    ("1 is 1.0", "call-f1", [call("f", x=1.0)], [X1], 1),
    ("1 is not 1.0000001", "call-f1", [call("f", x=1.0000001)], [X1], 0),
    ("unless a tolerance says so", "call-match(tolerance=0.001)", [call("f", x=1.0000001)], [X1], 1),
    ("a tolerance is relative", "call-match(tolerance=0.1)", [call("f", x=1000)], [call("f", x=1090)], 1),
    ("of the larger number", "call-match(tolerance=0.1)", [call("f", x=90)], [call("f", x=100)], 1),
    ("whichever that is", "call-match(tolerance=0.1)", [call("f", x=-100)], [call("f", x=-90)], 1),
    ("and not of a sum", "call-match(tolerance=0.9)", [call("f", x=-1)], [call("f", x=1)], 0),
    ("and has an end", "call-match(tolerance=0.1)", [call("f", x=1000)], [call("f", x=1200)], 0),
    ("zero is only zero", "call-match(tolerance=0.5)", [call("f", x=0)], [call("f", x=0.001)], 0),
    ("no tolerance between types", "call-match(tolerance=0.5)", [call("f", x=True)], [X1], 0),
    ("case matters", "call-f1", [call("f", x="Rome")], [call("f", x="rome")], 0),
    ("unless texts are folded", "call-match(text=folded)", [call("f", x=" ROME  city")], [call("f", x="Rome City")], 1),
    ("names are not folded", "call-match(text=folded)", [call("F")], [call("f")], 0),
    ("keys are not folded", "call-match(text=folded)", [call("f", X=1)], [X1], 0),
    ("an ignored argument", "call-match(ignore=y)", [X12], [X1], 1),
    ("two ignored arguments", "call-match(ignore=x+y)", [X12], [X2], 1),
    ("nested, in any order", "call-f1", [call("f", x={"b": 2, "a": 1})], [call("f", x={"a": 1, "b": 2})], 1),
    ("nested objects differ inside", "call-f1", [call("f", x={"a": {"b": 1}})], [call("f", x={"a": {"b": 2}})], 0),
    ("lists have an order", "call-f1", [call("f", x=[1, 2])], [call("f", x=[2, 1])], 0),
    ("lists have a length", "call-f1", [call("f", x=[1])], [call("f", x=[1, 1])], 0),
    ("an empty list is not an empty object", "call-f1", [call("f", x=[])], [call("f", x={})], 0),
    ("arguments as JSON", "call-f1", [{"name": "f", "arguments": '{"x": 1.0}'}], [X1], 1),
    ("arguments that are no JSON", "call-f1", [{"name": "f", "arguments": "{x: 1"}], [X1], 0),
    ("no JSON on both sides", "call-f1", [{"name": "f", "arguments": "{x"}], [{"name": "f", "arguments": "{x"}], 1),
    ("empty arguments are none", "call-f1", [{"name": "f", "arguments": ""}], [call("f")], 1),
    ("only some arguments are compared", "call-f1", [X12], [X1 | {"compare_args": ["x"]}], 1),
    ("and these must agree", "call-f1", [X12], [X2 | {"compare_args": ["x"]}], 0),
    ("nothing is compared", "call-f1", [X12], [X2 | {"compare_args": []}], 1),
    ("a wildcard does not steal a call", "call-recall", [X1, X2], [{"name": "f"}, X1], 1),
    ("nor in the other order", "call-recall", [X2, X1], [X1, {"name": "f"}], 1),
    ("a call of the user is not expected", "call-recall", [A], [A, B | {"requestor": "user"}], 1),
    ("half of the arguments", "call-arguments", [call("f", x=1, y=3)], [X12], 1 / 2),
    ("nested ones", "call-arguments", [call("f", x={"a": 1, "b": 2})], [call("f", x={"a": 1, "b": 3})], 1 / 2),
    ("a missing argument", "call-arguments", [X1], [X12], 2 / 3),
    ("calls that agree are paired", "call-arguments", [X2, X1], [X1, X2], 1),
    ("the best pair of three", "call-arguments", [call("f", x=9), X12], [X12], 1),
    ("other tools are no pair", "call-arguments", [call("g", x=1)], [X1], NAN),
    ("calls without arguments have none to compare", "call-arguments", [A], [A], NAN),
    ("no arguments that were not expected", "call-arguments(arguments=expected)", [X12], [X1], 1),
    ("but those that were", "call-arguments(arguments=expected)", [X1], [X12], 2 / 3),
    ("names have no arguments to compare", "call-arguments(match=name)", [X12], [X1], NAN),
    ("nor have arguments that match any", "call-arguments", [X12], [{"name": "f"}], NAN),
    ("of equal pairs that with fewer arguments", "call-arguments", [X12, X1], [X1], 1),
    ("in either order", "call-arguments", [X1, X12], [X1], 1),
    ("no pair without arguments", "call-arguments(arguments=expected)", [X1], [call("f"), X1], 1),
    ("wherever that is", "call-arguments(arguments=expected)", [X1], [X1, call("f")], 1),
    ("an equal argument counts more than few others", "call-arguments", [call("f", x=9), X12], [X1], 2 / 3),
    ("two tools", "call-arguments", [X1, call("g", x=1, y=2)], [X2, call("g", x=1, y=2)], 2 / 3),
    ("an empty list is a value", "call-arguments", [call("f", x=[], y=1)], [call("f", x=[], y=2)], 1 / 2),
    ("an empty object is a value", "call-arguments", [call("f", x={}, y=1)], [call("f", x={}, y=2)], 1 / 2),
    ("values of lists", "call-arguments", [call("f", x=[1, 2, 3])], [call("f", x=[1, 3])], 2 / 5),
    ("ignored arguments", "call-arguments(ignore=y)", [call("f", x=1, y=3)], [X12], 1),
    ("no JSON is a single value", "call-arguments", [BROKEN], [BROKEN], 1),
    ("no JSON has no arguments", "call-arguments", [BROKEN], [X12], 0),
    ("other texts stay others", "call-match(text=folded)", [call("f", x="Rome")], [call("f", x="Bonn")], 0),
    ("words stay apart", "call-match(text=folded)", [call("f", x="a b")], [call("f", x="ab")], 0),
    ("missing calls", "missing-calls", [A], [A, A, B], 2),
    ("extra calls", "extra-calls", [A, A, B], [A], 2),
    ("repeated without change", "repeated-calls", [X1, X1, X2, X1], [], 1 / 2),
    ("with a change it is no repetition", "repeated-calls", [X1, X2], [], 0),
    ("1.0 repeats 1, and true does not", "repeated-calls", [X1, call("f", x=1.0), call("f", x=True)], [], 1 / 3),
    ("errors among calls with a result", "call-errors", [A | {"error": True}, A | {"error": False}, B], [], 1 / 2),
    ("no result is no error", "call-errors", [A, B], [], NAN),
]  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "made", "expected", "result"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_hand_computed(metric: str, made: list[Any], expected: list[Any], result: float) -> None:
    assert value(metric, made, expected) == pytest.approx(result, rel=1e-12, nan_ok=True)


def test_fractions_are_of_all_conversations_together() -> None:
    rows = [
        {"response": "a", "dialog_id": "1", "tool_calls": [A, B, C], "expected_calls": [A]},
        {"response": "b", "dialog_id": "2", "tool_calls": [A], "expected_calls": [A]},
        {"response": "c", "dialog_id": "3", "tool_calls": [A]},
    ]
    run = dialeval.evaluate(rows, metrics=["call-precision", "call-match(per=response,of=precision)", "call-exact"])
    system = run["system"]
    assert system["call-precision"].mean == 2 / 4
    assert system["call-match(per=response,of=precision)"].mean == pytest.approx((1 / 3 + 1) / 2)
    assert (system["call-exact"].units, system["call-exact"].scored) == (3, 2), "no expected calls, no score"
    assert system["call-precision"].scores is not None
    np.testing.assert_allclose(system["call-precision"].scores, [1 / 3, 1, np.nan])


def test_a_row_that_makes_no_call_misses_all() -> None:
    run = dialeval.evaluate([{"response": "a", "expected_calls": [A]}, {"response": "b"}], metrics="call-recall")
    assert (run["system"]["call-recall"].mean, run["system"]["call-recall"].scored) == (0, 1)


def test_without_expected_calls_the_message_says_what_to_give() -> None:
    with pytest.raises(NeedError, match="call-f1 needs a field expected_calls in responses"):
        dialeval.evaluate([{"response": "a", "tool_calls": [A]}], metrics="call-f1")


# Slow twins: every one-to-one matching, every subsequence, every assignment.


def largest_matching(equal: Sequence[Sequence[bool]], columns: int) -> int:
    rows = len(equal)
    ways = permutations(range(columns + rows), rows)  # numbers beyond the columns leave a row alone
    return max((sum(at < columns and equal[row][at] for row, at in enumerate(way)) for way in ways), default=0)


def longest_subsequence(equal: Sequence[Sequence[bool]], rows: int, columns: int) -> int:
    for length in range(min(rows, columns), 0, -1):
        for own in combinations(range(rows), length):
            for other in combinations(range(columns), length):
                if all(equal[row][column] for row, column in zip(own, other, strict=True)):
                    return length
    return 0


@given(st.lists(world.made, max_size=4), st.lists(world.expected, max_size=4), st.sampled_from([0.0, 0.5]))
def test_matching_and_order_have_slow_twins(made: list[Any], expected: list[Any], tolerance: float) -> None:
    rule = Rule(tolerance=tolerance, text="folded")
    compared = compare_calls(made, expected, rule)
    equal = [[rule.is_equal(one, other) for other in made] for one in expected]
    assert compared.matched == largest_matching(equal, len(made))
    assert compared.common == longest_subsequence(equal, len(expected), len(made))
    assert compared.common <= compared.matched <= min(len(made), len(expected))


@given(world.values, world.values)
def test_equality_is_that_of_canonical_json(one: Any, other: Any) -> None:
    def canonical(item: Any) -> str:
        if isinstance(item, float) and item.is_integer():
            return json.dumps(int(item))
        if isinstance(item, list):
            return f"[{','.join(map(canonical, item))}]"
        if isinstance(item, dict):
            return f"{{{','.join(f'{key}:{canonical(item[key])}' for key in sorted(item))}}}"
        return json.dumps(item)

    assert Rule().is_same(one, other) == (canonical(one) == canonical(other))
    assert Rule().is_same(one, one)
    if Rule().is_same(one, other):
        assert Rule(arguments="expected", tolerance=0.1, text="folded").is_same(one, other), "looser rules take more"


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(st.integers(-9, 9), min_size=n, max_size=n), min_size=1, max_size=4)
    )
)
def test_best_pairs_have_a_slow_twin(lines: list[tuple[int, ...]]) -> None:
    weights = np.array(lines)
    pairs = find_best_pairs(weights)
    assert len(pairs) == min(weights.shape)
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    wide = weights if weights.shape[0] <= weights.shape[1] else weights.T
    best = max(
        sum(wide[row, at] for row, at in enumerate(way)) for way in permutations(range(wide.shape[1]), len(wide))
    )
    assert sum(weights[pair] for pair in pairs) == best


def test_best_pairs_are_those_of_scipy() -> None:
    random = np.random.default_rng(3)
    for _ in range(150):
        weights = random.integers(-20, 20, random.integers(1, 8, 2))
        pairs = find_best_pairs(weights)
        assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == min(weights.shape)
        assert sum(weights[pair] for pair in pairs) == weights[linear_sum_assignment(weights, maximize=True)].sum()


@given(st.lists(world.made, max_size=5))
def test_what_is_made_as_expected_is_perfect(made: list[Any]) -> None:
    system = dialeval.evaluate(
        [{"response": "", "tool_calls": made, "expected_calls": [{**each} for each in made]}],
        metrics="call-f1,call-order,call-exact,missing-calls,extra-calls",
    )["system"]
    assert system["call-exact"].mean == 1
    assert system["missing-calls"].mean == system["extra-calls"].mean == 0
    if made:
        assert system["call-f1"].mean == system["call-order"].mean == 1


# Assertions.

RULES = """
[[check]]
rule = "must"
call = "verify"
arguments = { id = 7 }

[[check]]
rule = "must-not"
call = "delete_all"

[[check]]
name = "verify-first"
rule = "before"
call = "verify"
before = "cancel"
"""


@pytest.mark.parametrize(
    ("made", "held"),
    [
        ([call("verify", id=7, more=1), call("cancel")], [1, 1, 1]),
        ([call("cancel"), call("verify", id=7)], [1, 1, 0]),
        ([call("verify", id=8), call("cancel")], [0, 1, 1]),
        ([call("verify", id="7")], [0, 1, NAN]),
        ([call("delete_all")], [0, 0, NAN]),
        ([call("cancel")], [0, 1, 0]),
        ([call("cancel"), call("verify", id=7), call("cancel")], [1, 1, 0]),
        ([], [0, 1, NAN]),
    ],
)
@pytest.mark.parametrize("shape", ["rows", "chats", "chunks"])
def test_assertions(made: list[Any], held: list[float], shape: str, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(RULES)
    chat = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "hm"},
        *({"role": "assistant", "content": None, "tool_calls": [each]} for each in made),
        {"role": "assistant", "content": "done"},
    ]
    row = {"response": "done", "tool_calls": made} if shape == "rows" else {"messages": chat}
    given: Any = [row]
    if shape == "chunks":
        given = tmp_path / "rows-*.jsonl"
        (tmp_path / "rows-1.jsonl").write_text(json.dumps(row) + "\n")
    run = dialeval.evaluate(given, metrics="call-assertions", reading=dialeval.Reading(checks=tmp_path / "rules.toml"))
    (system,) = run.values()
    keys = ("must-verify", "must-not-delete_all", "verify-first")
    values = [system[f"call-assertions/{key}"].mean for key in keys]
    np.testing.assert_equal(values, held)
    assert system["call-assertions"].mean == pytest.approx(np.nanmean(held))
    assert system["call-assertions"].scored == 1


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "array"),
        ("[[check]]\nrule = 'should'\ncall = 'f'", "should"),
        ("[[check]]\nrule = 'must'", "call"),
        ("[[check]]\nrule = 'must'\ncall = 'f'\nwhen = 3", "when"),
        ("[[check]]\nrule = 'before'\ncall = 'f'", "later call"),
        ("[[check]]\nrule = 'must'\ncall = 'f'\nbefore = 'g'", "later call"),
        ("[[check]]\nrule = 'must'\ncall = 'f'\n[[check]]\nrule = 'must'\ncall = 'f'", "two checks"),
        ("[[check]]\nrule = 'must'\ncall = 'f'\nname = 'a b'", "pattern|regex"),
        ("rule = ", "not TOML"),
    ],
)
def test_what_is_wrong_with_assertions(text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(text)
    with pytest.raises(DataError, match=what):
        load_checks(tmp_path / "rules.toml")


def test_assertions_are_signed() -> None:
    rows = [{"response": "a", "tool_calls": [A]}]

    def signature(name: str) -> str:
        rules = [{"rule": "must", "call": name}]
        return str(
            dialeval.evaluate(rows, metrics="call-assertions", reading=dialeval.Reading(checks=rules))["system"][
                "call-assertions"
            ].signature
        )

    assert signature("a") == signature("a") != signature("b")


# Real agents.


@pytest.mark.skipif(not LOGS.is_dir(), reason=f"no logs of other programs in {LOGS}")
@pytest.mark.parametrize("agent", ["context_agent", "retry_agent"])
def test_calls_of_real_agents_agree_with_the_checks_of_tau2_bench(agent: str) -> None:
    path = LOGS / "tau2-bench" / f"airline-10-tasks-2-trials-{agent}.json.gz"
    document = json.loads(gzip.decompress(path.read_bytes()))
    run = dialeval.evaluate(path, metrics="call-recall,missing-calls,call-errors")
    (system,) = run.values()
    simulations = document["simulations"]
    expected = sum(len(each["reward_info"]["action_checks"] or ()) for each in simulations)
    found = sum(check["action_match"] for each in simulations for check in each["reward_info"]["action_checks"] or ())
    assert system["call-recall"].mean == pytest.approx(found / expected, rel=1e-12)
    assert system["missing-calls"].mean * 20 == pytest.approx(expected - found)
    results = [message for each in simulations for message in each["messages"] if message["role"] == "tool"]
    assert system["call-errors"].mean == pytest.approx(np.mean([message["error"] for message in results]))
    assert next(iter(run)) == f"{agent}/gemini/gemini-2.5-flash"


def time_calls(metric: str, number: int, spread: int) -> float:
    """Return the seconds for one conversation of calls in reverse order."""
    calls = [{"name": "f", "arguments": {"x": at % spread, "text": f"call {at % spread}"}} for at in range(number)]
    row = {"context": ["a"], "response": "b", "tool_calls": calls[::-1], "expected_calls": calls}
    start = time.perf_counter()
    dialeval.evaluate([row], metrics=metric, execution=dialeval.Execution(threads=1))
    return time.perf_counter() - start


@pytest.mark.parametrize(
    "metric", ["call-match", "call-f1(text=folded)", "tool-f1", "call-order", "call-exact", "repeated-calls"]
)
def test_thousands_of_calls_take_little_time(metric: str) -> None:
    time_calls(metric, 10, 10)
    assert time_calls(metric, 4_000, 4_000) < 2


@pytest.mark.parametrize("metric", ["call-match(tolerance=0.1)", "call-f1(arguments=expected)", "call-arguments"])
def test_pairs_of_calls_that_are_compared_one_by_one_are_limited(metric: str) -> None:
    """The limit is reached within seconds."""
    assert time_calls(metric, 316, 316) < 30
    with pytest.raises(dialeval.DataError, match=r"317 calls and 317 expected ones are more than 100,000 pairs"):
        time_calls(metric, 317, 317)


@pytest.mark.parametrize("tolerance", ["1", "-0.1", "1.5"])
def test_a_tolerance_is_a_fraction(tolerance: str) -> None:
    with pytest.raises(SettingError, match=f"^tolerance is {tolerance}; it is a fraction from 0 up to 1$"):
        dialeval.evaluate([{"response": "a"}], metrics=f"call-match(tolerance={tolerance})")
