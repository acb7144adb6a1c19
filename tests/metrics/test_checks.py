"""Checks of replies: rules as metrics, from fields of rows and from files, on replies as chatbots give them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import dialeval
from conftest import Dialeval
from dialeval.core.errors import DataError, DialevalError
from dialeval.metrics.checks import load_checks

REPLIES = [
    "Your refund of 20 EUR is on its way.",
    "I'm sorry, but I can't help with that.",
    '{"answer": 3}',
    "yes ",
    "Dear Ms. Groß, the refund (number 7) was sent.",
]


def values(metric: str, rows: list[Any]) -> list[float | None]:
    items = dialeval.evaluate(rows, metrics=metric)["system"][metric].scores
    assert items is not None
    return [None if value != value else float(value) for value in items]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("contains(text=refund)", [1, 0, 0, 0, 1]),
        ("contains(text=REFUND)", [0, 0, 0, 0, 0]),
        ("contains(text=REFUND,case=ignore)", [1, 0, 0, 0, 1]),
        ("contains(text=GROSS,case=ignore)", [0, 0, 0, 0, 1]),
        ("not-contains(text=refund)", [0, 1, 1, 1, 0]),
        ("starts-with(text=Dear)", [0, 0, 0, 0, 1]),
        ("equals(text=yes)", [0, 0, 0, 1, 0]),
        ("regex(pattern=[0-9]+ EUR)", [1, 0, 0, 0, 0]),
        ("regex(pattern=^dear,case=ignore)", [0, 0, 0, 0, 1]),
        ("max-words(words=2)", [0, 0, 1, 1, 0]),
        ("is-json", [0, 0, 1, 0, 0]),
        ("refusal", [0, 1, 0, 0, 0]),
    ],
)
def test_rules(metric: str, expected: list[float]) -> None:
    assert values(metric, [{"response": reply} for reply in REPLIES]) == expected


@pytest.mark.parametrize(
    ("reply", "is_refusal"),
    [
        ("I\u2019m not able to provide medical advice.", True),
        ("I am unable to assist with this request.", True),
        ("As an AI, I have no opinion.", True),
        ("I'm so sorry but that is against our rules.", True),
        ("I won't do that.", True),
        ("I can help with that!", False),
        ("You can't park here.", False),
        ("I can't believe how fast they were.", False),
        ("Sorry for the delay, here is your order.", False),
        ("x" * 400 + " I cannot help.", False),
    ],
)
def test_refusals_are_phrases(reply: str, is_refusal: bool) -> None:
    assert values("refusal", [{"response": reply}]) == [float(is_refusal)]


def test_fields_of_rows_hold_what_is_expected() -> None:
    rows = [
        {"response": "open at nine", "expected_contains": "nine"},
        {"response": "open at nine", "expected_contains": ["open", "ten"]},
        {"response": "open at nine", "expected_contains": None},
        {"response": "", "expected_contains": "nine"},
    ]
    run = dialeval.evaluate(rows, metrics="contains")
    assert (run["system"]["contains"].mean, run["system"]["contains"].scored) == (0.5, 2)
    assert run["system"]["contains"].missing == 1
    other = [{"response": "nine", "expected_equals": ["9", "nine"], "expected_max_words": 1, "expected_regex": "^n"}]
    for metric in ("equals", "max-words", "regex"):
        assert values(metric, other) == [1]
    for field, wrong in (("expected_regex", "("), ("expected_max_words", "two"), ("expected_contains", 7)):
        with pytest.raises(DialevalError):
            dialeval.evaluate(
                [{"response": "x", field: wrong}], metrics=field.removeprefix("expected_").replace("_", "-")
            )
    with pytest.raises(DialevalError, match="expected_contains"):
        dialeval.evaluate(["x"], metrics="contains")
    assert not {"refusal", "is-json"} & set(dialeval.evaluate(["x"], metrics="all")["system"])


def test_a_pattern_takes_linear_time() -> None:
    start = time.process_time()
    assert values("regex(pattern=^[a]*[a]*[a]*[a]*[a]*[a]*b$)", [{"response": "a" * 20_000}]) == [0]
    rules = [{"rule": "regex", "pattern": "^(a+)+$"}]
    reading = dialeval.Reading(checks=rules)
    assert dialeval.evaluate(["a" * 5_000 + "!"], metrics="checks", reading=reading)["system"]["checks"].mean == 0
    schema = {"type": "array", "items": {"pattern": "^(a+)+$"}}
    reading = dialeval.Reading(checks=[{"rule": "is-json", "schema": schema}])
    texts = [f'["{"a" * 5_000}"]', f'["{"a" * 5_000}!"]']
    assert dialeval.evaluate(texts, metrics="checks", reading=reading)["system"]["checks"].mean == 0.5
    assert time.process_time() - start < 5


RULES = """
[[check]]
rule = "not-refusal"

[[check]]
rule = "regex"
pattern = "(?i)refund (of|\\\\(number)"
name = "names-refund"

[[check]]
rule = "not-contains"
text = ["sorry", "answer"]

[[check]]
rule = "is-json"
schema = { type = "object", required = ["answer"] }

[[check]]
rule = "must"
call = "find_order"
"""


def test_a_file_of_checks_is_a_gate(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "checks.toml").write_text(RULES)
    rows = [{"response": reply, "dialog_id": str(number)} for number, reply in enumerate(REPLIES)]
    rows.append({"error": "timeout", "dialog_id": "crashed"})
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ("score", "rows.jsonl", "--checks", "checks.toml", "-m", "checks", "--allow-missing", "0.2")
    done = dialeval(*asked, "-f", "json", "--fail-under", "checks/names-refund=0.3")
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)["systems"]["rows"]["metrics"]
    means = {key: (value["mean"], value["scored"]) for key, value in metrics.items() if key.startswith("checks")}
    assert means == {
        "checks": (pytest.approx((3 + 0 + 2 + 2 + 3) / 20), 5),
        "checks/not-refusal": (0.8, 5),
        "checks/names-refund": (0.4, 5),
        "checks/not-contains-sorry-answer": (0.6, 5),
        "checks/is-json": (0.2, 5),
    }
    assert dialeval(*asked, "--fail-under", "checks/not-refusal=0.9").returncode == 1
    assert dialeval("score", "rows.jsonl", "-m", "checks").returncode == 2


def test_calls_and_texts_have_one_file(tmp_path: Path) -> None:
    (tmp_path / "checks.toml").write_text(RULES)
    calls = [{"function": {"name": "find_order", "arguments": "{}"}}]
    rows = [
        {"messages": [{"role": "user", "content": "where is it"}, {"role": "assistant", "tool_calls": calls}, *end]}
        for end in ([{"role": "assistant", "content": "The refund of 3 EUR is sent."}],) * 3
    ]
    reading = dialeval.Reading(checks=tmp_path / "checks.toml")
    system = dialeval.evaluate(rows, metrics="checks,call-assertions", reading=reading)["system"]
    assert system["call-assertions/must-find_order"].mean == 1
    assert system["checks/names-refund"].mean == 1
    one = dialeval.evaluate(rows, metrics="checks", reading=dialeval.Reading(checks=[{"rule": "refusal"}]))["system"]
    assert one["checks"].signature != system["checks"].signature


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": "contain", "text": "x"},
        {"rule": "contains"},
        {"rule": "contains", "text": ""},
        {"rule": "contains", "text": []},
        {"rule": "contains", "pattern": "x"},
        {"rule": "contains", "text": "x", "words": 3},
        {"rule": "regex", "pattern": "(?=x)"},
        {"rule": "regex", "text": "x"},
        {"rule": "max-words", "words": -1},
        {"rule": "refusal", "text": "x"},
        {"rule": "is-json", "schema": {"type": 7}},
        {"rule": "is-json", "schema": {"patternProperties": {"^(a+)+$": {}}}},
        {"rule": "must", "text": "x"},
        {"rule": "refusal", "call": "x"},
        {},
        7,
    ],
)
def test_rules_that_are_none_are_refused(rule: Any) -> None:
    with pytest.raises(DataError):
        load_checks([rule])


@pytest.mark.parametrize("metric", ["contains(text=a(b)", "regex(pattern=[)", "max-words(words=x)", "contains(case=x)"])
def test_settings_that_are_none_are_refused(metric: str) -> None:
    with pytest.raises(DialevalError):
        dialeval.evaluate([{"response": "x", "expected_contains": "x"}], metrics=metric)
