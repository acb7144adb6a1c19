"""Gates: limits of means, and no worse than a baseline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from analysis.test_comparison import QUICK
from dialeval.analysis.comparison import compare
from dialeval.analysis.gates import check_baseline, check_limits
from dialeval.core.errors import SettingError
from dialeval.core.result import Run


def outside_limits(*given: Any) -> Iterator[str]:
    """What is wrong, of the gates that fail."""
    return (gate.failure for gate in check_limits(*given) if gate.failure is not None)


def worse_than_baseline(*given: Any) -> Iterator[str]:
    return (gate.failure for gate in check_baseline(*given) if gate.failure is not None)


BELOW_AND_ABOVE = [(True, False), (False, True)]


def test_means_below_their_limits(run: Run) -> None:
    means = {name: run[name]["distinct-1"].mean for name in run}
    limit = (means["narrow"] + min(means["a"], means["b"])) / 2
    (failure,) = outside_limits(run, {"distinct-1": limit}, {})
    assert failure.startswith(f"distinct-1 of narrow is {means['narrow']:.4f}, ")
    assert failure.endswith(f", limit {limit:g}")
    assert not list(outside_limits(run, {"distinct-1": means["narrow"]}, {})), "a mean may equal its limit"
    assert not list(outside_limits(run, {}, {}))


def test_means_above_their_limits(run: Run) -> None:
    means = {name: run[name]["length"].mean for name in run}
    limit = max(means.values())
    assert not list(outside_limits(run, {}, {"length": limit})), "a mean may equal its limit"
    failures = list(outside_limits(run, {}, {"length": limit - 1e-9}))
    assert len(failures) == sum(mean == limit for mean in means.values())
    assert f"{limit:.9f}" in failures[0], "with the digits that tell the mean from its limit"
    both = list(outside_limits(run, {"length": limit + 1}, {"length": 0.0}))
    assert len(both) == 2 * len(run)


def test_what_was_not_computed_fails(run: Run) -> None:
    skipped = {name: replace(result, skipped={"bleu-4": "needs references"}) for name, result in run.items()}
    for lowest, highest in BELOW_AND_ABOVE:
        assert list(outside_limits(skipped, {"bleu-4": 0.0} if lowest else {}, {"bleu-4": 0.0} if highest else {})) == [
            f"bleu-4 of {name} is not computed, limit 0" for name in ("a", "b", "narrow")
        ]
    length = replace(run["a"]["length"], mean=float("nan"))
    unscored = replace(run["a"], estimates={"length": length})
    assert list(outside_limits({"a": unscored}, {"length": 0.0}, {})) == ["length of a is nan, limit 0"]


@pytest.mark.parametrize(("key", "hint"), [("distinct1", "did you mean 'distinct-1'?"), ("x", "there are length, ")])
def test_a_key_that_nobody_has_is_an_error(run: Run, key: str, hint: str) -> None:
    for lowest, highest in BELOW_AND_ABOVE:
        with pytest.raises(SettingError, match=re.escape(f"no system has {key!r}")) as error:
            list(outside_limits(run, {key: 0.0} if lowest else {}, {key: 0.0} if highest else {}))
        assert hint in str(error.value)


def test_floors_and_ceilings_are_not_held_to_limits(run: Run) -> None:
    baselines = {"low": replace(run["a"], role="floor"), "high": replace(run["b"], role="ceiling")}
    assert not list(outside_limits(baselines, {"length": 1e9}, {"distinct-1": 0.0}))


def test_worse_than_the_baseline(run: Run) -> None:
    asked: dict[str, Any] = {"metrics": ["distinct", "length"], **QUICK}
    everything, alike = compare(run, **asked), compare(run, systems=["a", "b"], **asked)
    with pytest.raises(SettingError, match="name the metrics of the gate"):
        list(worse_than_baseline(compare(run, **QUICK), {}))
    lines = list(worse_than_baseline(everything, {}))
    assert [line.split()[2] for line in lines] == ["narrow", "narrow"]
    assert "significantly worse" in lines[0]
    for line in lines:
        assert max(len(number) for number in re.findall(r"\d\.(\d+)", line)) <= 4, f"raw digits: {line}"
    assert not list(worse_than_baseline(alike, {}))
    wide = list(worse_than_baseline(alike, {"distinct-1": 0.0}))
    assert len(wide) == 1
    assert "may be worse by" in wide[0]
    assert not list(worse_than_baseline(alike, {"distinct-1": 0.5}))
    for wrong in ({"length": 1.0}, {"distinct-9": 1.0}, {"distinct-1": -1.0}):
        with pytest.raises(SettingError):
            list(worse_than_baseline(everything, wrong))


def test_gates_that_hold_are_gates_too(run: Run) -> None:
    (gate,) = check_limits({"a": run["a"]}, {}, {"length": 1e9})
    assert (gate.system, gate.key, gate.asked, gate.failure) == ("a", "length", "at most 1e+09", None)
    alike = compare(run, systems=["a", "b"], metrics=["distinct", "length"], **QUICK)
    gates = list(check_baseline(alike, {"distinct-1": 0.5}))
    assert [gate.key for gate in gates] == [row.key for row in alike.differences if row.better is not None]
    asked = {gate.key: gate.asked for gate in gates}
    assert asked["distinct-1"] == "worse than a by at most 0.5"
    assert asked["distinct-2"] == "no worse than a"
    assert all(gate.difference is not None and gate.failure is None for gate in gates)


def test_what_cannot_be_compared_is_left_out_unless_it_was_named(run: Run) -> None:
    alike = compare(run, systems=["a", "b"], metrics=["distinct-1", "distinct-2"], **QUICK)
    gone = structs.replace(alike.differences[0], difference=float("nan"), reason="references differ")
    some = structs.replace(alike, differences=[gone, alike.differences[1]])
    assert [gate.key for gate in check_baseline(some, {})] == ["distinct-2"]
    message = "b cannot be compared with a on distinct-1: references differ"
    none = structs.replace(alike, differences=[gone])
    for found, margins, named in ((some, {}, True), (some, {"distinct-1": 1.0}, False), (none, {}, False)):
        with pytest.raises(SettingError) as info:
            list(check_baseline(found, margins, named))
        assert str(info.value) == message
    assert [gate.key for gate in check_baseline(some, {"distinct-2": 1.0})] == ["distinct-2"]
    untested = structs.replace(gone, difference=0.5)
    assert len(list(check_baseline(structs.replace(alike, differences=[untested]), {}))) == 1, "it has a value"
    for margins, message in (
        ({"distinct-2": -0.5}, "a margin is 0 or above, not -0.5"),
        ({"distinct-2": float("nan")}, "a margin is 0 or above, not nan"),
    ):
        with pytest.raises(SettingError, match=message):
            list(check_baseline(alike, margins))
    assert len(list(check_baseline(alike, {"distinct-2": 0.0}))) == 2
