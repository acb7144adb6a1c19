"""Intervals against scipy on the same resamples, and by how often they cover the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import dialeval
from dialeval.analysis.values import Values, with_intervals
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate, Resampling
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.stats.resampling import draw_resamples


def run_of(items: Floats, offsets: Ints | None = None) -> Run:
    known = items[~np.isnan(items)]
    estimate = Estimate(float(known.mean()), float(known.std()), len(items), len(known), scores=items)
    offsets = np.arange(len(items) + 1) if offsets is None else offsets
    table = RowTable(offsets, [f"d{at}" for at in range(len(offsets) - 1)])
    return Run({"a": Result({"x": estimate}, table=table)}, "0")


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_a_studentized_interval_of_rows_is_the_symmetric_bootstrap_t_of_textbooks(level: float) -> None:
    items = np.random.default_rng(1).exponential(size=30)
    found = with_intervals(run_of(items), confidence=level, resamples=500)["a"]["x"]
    items = Values.sort(run_of(items)["a"]).items["x"]
    error = items.std(ddof=1) / np.sqrt(30)
    ts = []
    for times in np.concatenate(list(draw_resamples(30, 500))):
        taken = np.repeat(items, times)
        ts.append(abs(taken.mean() - items.mean()) / (taken.std(ddof=1) / np.sqrt(30)))
    half = np.sort(ts)[int(np.ceil(level * 501)) - 1] * error
    assert found.interval == pytest.approx((items.mean() - half, items.mean() + half))
    assert found.interval_by == Resampling("studentized", level, 500, 12345, 30)


@dialeval.metric_of_rows("greets", bounds=(0.0, 1.0))
def greets(response: str) -> float:
    return float("hello" in response)


def test_yes_and_no_have_wilsons_interval_where_resamples_cannot_tell() -> None:
    """Ten rows, one or none of which is a yes: studentized intervals covered a rate of 5% in 40% of data sets."""
    for yes in (0, 1, 4):
        run = dialeval.evaluate(["hello"] * yes + ["bye"] * (10 - yes), metrics=[greets])
        found = with_intervals(run, confidence=0.9)["system"]["greets"]
        oracle = scipy.stats.binomtest(yes, 10).proportion_ci(0.9, "wilson")
        assert found.interval == pytest.approx((oracle.low, oracle.high))
        assert found.interval_by is not None
        assert found.interval_by.method == "wilson"
        assert not with_intervals(run).warnings


def test_yes_and_no_of_dialogues_have_the_interval_of_an_evaluation() -> None:
    random = np.random.default_rng(4)
    rows = [
        {"dialog_id": str(each), "response": "hello" if yes else "bye"}
        for each in range(12)
        for yes in random.random(5) < random.beta(9, 1)
    ]
    run = dialeval.evaluate(rows, metrics=[greets])
    assert with_intervals(run)["system"]["greets"].interval == run["system"]["greets"].interval


def test_repeated_trials_have_gaffkes_interval() -> None:
    rows = [
        {"dialog_id": str(task), "trial": trial, "reward": float(trial < 2), "response": "a"}
        for task in range(5)
        for trial in range(4)
    ]
    run = dialeval.evaluate(rows, metrics="pass-hat-1")
    found = with_intervals(run)["system"]["pass-hat-1"]
    assert found.interval == run["system"]["pass-hat-1"].interval
    assert found.interval_by is not None


def test_values_that_count_kinds_have_the_jackknife() -> None:
    rng = np.random.default_rng(3)
    rows = [" ".join(f"w{word}" for word in rng.zipf(1.5, 8) % 500) for _ in range(40)]
    run = dialeval.evaluate(rows, metrics="distinct-2")
    value = run["system"]["distinct-2"].mean
    without = [
        dialeval.evaluate(rows[:row] + rows[row + 1 :], metrics="distinct-2")["system"]["distinct-2"].mean
        for row in range(40)
    ]
    half = scipy.stats.t.ppf(0.975, 39) * np.sqrt(39 * np.var(without))
    found = with_intervals(run)["system"]["distinct-2"]
    assert found.interval == pytest.approx((value - half, value + half))
    assert found.interval_by == Resampling("jackknife", 0.95, 40, 12345, 40)


def test_where_no_dialogue_changes_a_value_its_interval_is_doubtful() -> None:
    found = with_intervals(dialeval.evaluate(["a b", "c d", "e f"], metrics="distinct-1,length"))
    for estimate in found["system"].values():
        assert estimate.interval == (estimate.mean, estimate.mean)
    (warning,) = found.warnings
    assert warning.startswith("system: length, distinct-1: the same in all dialogues, so the interval has no width")


def test_no_interval_goes_beyond_what_is_possible() -> None:
    texts = ["a b c", "d e f", "g h i", "j k l m", "n o", "p a", "q r"]
    run = dialeval.evaluate(texts, metrics="distinct-1,distinct-2")
    low, high = with_intervals(run)["system"]["distinct-1"].interval or (0, 0)
    assert low < run["system"]["distinct-1"].mean < high == 1.0


def test_where_too_many_resamples_do_not_vary_the_interval_is_the_jackknifes() -> None:
    found = with_intervals(run_of(np.array([0.0, 1.0])))["a"]["x"]
    assert found.interval == pytest.approx(scipy.stats.t.interval(0.95, 1, 0.5, 0.5))
    assert found.interval_by == Resampling("jackknife", 0.95, 2, 12345, 2)


def test_a_value_of_one_dialogue_has_no_interval() -> None:
    found = with_intervals(run_of(np.array([0.0, np.nan, np.nan])))
    assert found["a"]["x"].interval is None
    assert found.warnings == ("x has no resampled interval: too few dialogues could be scored",)


def test_values_of_all_rows_have_intervals_around_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [" ".join(f"w{word}" for word in rng.zipf(1.5, 4 + row % 5) % 500) for row in range(80)]
    run = dialeval.evaluate(rows, rows[1:] + rows[:1], metrics="distinct,bleu-1,length")
    found = with_intervals(run, resamples=300)
    for estimate in found["system"].values():
        assert estimate.interval is not None
        assert estimate.interval[0] <= estimate.mean <= estimate.interval[1]
    assert dialeval.load(found.save(tmp_path)) == found
    assert not found.warnings


def test_what_cannot_be_resampled_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    run = dialeval.evaluate(["a b", "b", "a b c d", "b c d"], metrics="distinct-1,length")
    bare = Run({"system": Result(dict(run["system"]), table=run["system"].table)}, "0")
    found = with_intervals(bare)
    assert found["system"]["distinct-1"].interval is None
    assert found["system"]["length"].interval_by is not None
    (warning,) = found.warnings
    assert warning.startswith("distinct-1 has no resampled interval: the run has no per-row statistics of it")
    (lone,) = with_intervals(dialeval.evaluate(["a b"], metrics="length")).warnings
    assert "only one dialogue" in lone


@pytest.mark.parametrize("wrong", [{"confidence": 1.0}, {"resamples": 0}])
def test_settings_that_make_no_interval_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        with_intervals(run_of(np.arange(3.0)), **wrong)
