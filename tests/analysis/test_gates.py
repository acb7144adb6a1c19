"""Gates: limits of means, and no worse than a baseline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.test_comparison import QUICK, made, texts
from dialeval.analysis.comparison import compare
from dialeval.analysis.gates import below_limit, worse_than_baseline
from dialeval.core.errors import SettingError
from dialeval.core.result import Run


@pytest.fixture(scope="module")
def run() -> Run:
    return made({"a": texts(1), "b": texts(2), "narrow": texts(3, words=4)})


def test_means_below_their_limits(run: Run) -> None:
    means = {name: run[name]["distinct-1"].mean for name in run}
    limit = (means["narrow"] + min(means["a"], means["b"])) / 2
    assert list(below_limit(run, {"distinct-1": limit})) == [
        f"distinct-1 of narrow is {means['narrow']:.6g}, limit {limit:g}"
    ]
    assert not list(below_limit(run, {"distinct-1": means["narrow"]})), "a mean may equal its limit"
    assert not list(below_limit(run, {}))


def test_what_was_not_computed_fails(run: Run) -> None:
    assert list(below_limit(run, {"bleu-4": 0.0})) == [
        f"bleu-4 of {name} is not computed, limit 0" for name in ("a", "b", "narrow")
    ]
    length = replace(run["a"]["length"], mean=float("nan"))
    unscored = replace(run["a"], estimates={"length": length})
    assert list(below_limit({"a": unscored}, {"length": 0.0})) == ["length of a is nan, limit 0"]


def test_floors_and_ceilings_are_not_held_to_limits(run: Run) -> None:
    anchors = {"low": replace(run["a"], role="floor"), "high": replace(run["b"], role="ceiling")}
    assert not list(below_limit(anchors, {"length": 1e9, "bleu-4": 0.0}))


def test_worse_than_the_baseline(run: Run) -> None:
    everything, alike = compare(run, **QUICK), compare(run, systems=["a", "b"], **QUICK)
    lines = list(worse_than_baseline(everything, {}))
    assert [line.split()[2] for line in lines] == ["narrow", "narrow"]
    assert "significantly worse" in lines[0]
    assert not list(worse_than_baseline(alike, {}))
    wide = list(worse_than_baseline(alike, {"distinct-1": 0.0}))
    assert len(wide) == 1
    assert "may be worse by" in wide[0]
    assert not list(worse_than_baseline(alike, {"distinct-1": 0.5}))
    for wrong in ({"length": 1.0}, {"distinct-9": 1.0}, {"distinct-1": -1.0}):
        with pytest.raises(SettingError):
            list(worse_than_baseline(everything, wrong))
