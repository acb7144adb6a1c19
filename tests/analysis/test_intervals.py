"""Intervals against scipy on the same resamples, and by how often they cover the truth."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
import scipy.stats

import dialeval
from dialeval.analysis import intervals
from dialeval.analysis.draws import draws
from dialeval.analysis.intervals import interval, leaving_out, with_intervals
from dialeval.analysis.values import Values
from dialeval.core.arrays import Floats, Ints
from dialeval.core.contributions import ClusteredRows
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate, Resampling
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable


def run_of(items: Floats, offsets: Ints | None = None) -> Run:
    known = items[~np.isnan(items)]
    estimate = Estimate(float(known.mean()), float(known.std()), len(items), len(known), items=items)
    table = RowTable(np.arange(len(items) + 1) if offsets is None else offsets)
    return Run({"a": Result({"x": estimate}, rows=table)}, "0")


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_intervals_are_those_of_scipy(method: Any, level: float) -> None:
    items = np.random.default_rng(1).exponential(size=60)
    found = with_intervals(run_of(items), method, level, resamples=500)["a"]["x"]
    counts = np.concatenate(list(draws(60, 500)))  # scipy takes the resamples that we drew
    drawn = SimpleNamespace(bootstrap_distribution=counts @ items / 60)
    settings: dict[str, Any] = {"confidence_level": level, "n_resamples": 0, "bootstrap_result": drawn}
    oracle = scipy.stats.bootstrap((items,), np.mean, method=method, **settings).confidence_interval
    assert found.interval == pytest.approx(tuple(oracle), rel=1e-9)
    assert found.resampling == Resampling(method, level, 500, 12345, 60)


def test_dialogues_are_drawn_whole() -> None:
    items = np.repeat(np.random.default_rng(2).normal(size=40), 5)  # five equal turns each: worth one
    alone = with_intervals(run_of(items))["a"]["x"]
    whole = with_intervals(run_of(items, np.arange(41) * 5))["a"]["x"]
    by_dialogue = with_intervals(run_of(items[::5]))["a"]["x"]
    assert whole.interval == pytest.approx(by_dialogue.interval)
    assert alone.interval is not None
    assert whole.interval is not None
    assert whole.interval[1] - whole.interval[0] > 1.8 * (alone.interval[1] - alone.interval[0])


def test_rows_that_are_not_scored_do_not_count() -> None:
    items = np.array([1.0, np.nan, 2, 4, np.nan, 8])
    values = Values.of(run_of(items)["a"])
    counts = np.array([[1, 5, 0, 2, 0, 1], [0, 1, 0, 0, 1, 0]])
    np.testing.assert_array_equal(values.under([counts]), [[17 / 4], [np.nan]])


def test_values_of_all_rows_have_intervals_around_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [" ".join(f"w{word}" for word in rng.zipf(1.5, 8) % 500) for _ in range(80)]
    run = dialeval.evaluate(rows, rows, metrics="distinct,bleu-2,length")
    for method in get_args(intervals.Method):
        found = with_intervals(run, method, resamples=300)
        for estimate in found["system"].values():
            assert estimate.interval is not None
            assert estimate.interval[0] <= estimate.mean <= estimate.interval[1]
        assert found["system"]["distinct-2"].resampling == Resampling(method, 0.95, 300, 12345, 80, centred=True)
        assert dialeval.load(found.save(tmp_path)) == found
        assert not found.warnings


def test_the_seed_decides() -> None:
    run = run_of(np.arange(30.0))
    assert with_intervals(run) == with_intervals(run)
    assert with_intervals(run) != with_intervals(run, seed=1)


def test_what_cannot_be_resampled_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    run = dialeval.evaluate(["a b", "b"], metrics="distinct-1,length")
    bare = Run({"system": Result(dict(run["system"]), rows=run["system"].rows)}, "0")
    found = with_intervals(bare)
    assert found["system"]["distinct-1"].interval is None
    assert found["system"]["length"].resampling is not None
    (warning,) = found.warnings
    assert warning.startswith("distinct-1 has no resampled interval: the run did not keep what single rows add")
    (lone,) = with_intervals(dialeval.evaluate(["a b"], metrics="length")).warnings
    assert "only one dialogue" in lone


def test_equal_values_make_an_interval_of_that_value() -> None:
    assert with_intervals(run_of(np.full(9, 2.0)), "bca")["a"]["x"].interval == (2.0, 2.0)
    assert interval(np.full(4, np.nan), 1.0, 0.95) == pytest.approx((np.nan, np.nan), nan_ok=True)


@pytest.mark.parametrize("wrong", [{"method": "normal"}, {"level": 1.0}, {"resamples": 0}])
def test_settings_that_make_no_interval_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        with_intervals(run_of(np.arange(3.0)), **wrong)


def test_where_all_resampled_values_lie_on_one_side_bca_keeps_half_a_resample_away() -> None:
    drawn, without = np.arange(1.0, 11.0), np.array([0.0, 1.0])  # the two without a cluster lie evenly: no acceleration
    normal = scipy.stats.norm
    for value, share in ((0.0, 0.05), (20.0, 0.95)):
        bias = normal.ppf(share)
        ends = normal.cdf([2 * bias + normal.ppf(0.1), 2 * bias + normal.ppf(0.9)])
        assert interval(drawn, value, 0.8, without) == pytest.approx(tuple(np.quantile(drawn, ends)))


def test_resampled_values_that_equal_the_value_count_half() -> None:
    drawn, without = np.array([1.0, 2.0, 2.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0])
    bias = scipy.stats.norm.ppf((1 + 4) / 12)
    ends = scipy.stats.norm.cdf([2 * bias + scipy.stats.norm.ppf(0.1), 2 * bias + scipy.stats.norm.ppf(0.9)])
    assert interval(drawn, 2.0, 0.8, without) == pytest.approx(tuple(np.quantile(drawn, ends)))


def test_acceleration_and_jackknife_error_by_hand() -> None:
    without = np.array([1.0, 2.0, np.nan, 6.0])  # the mean is 3
    assert intervals.acceleration(without) == pytest.approx((8 + 1 - 27) / (6 * 14**1.5))
    assert intervals.jackknife_error(without) == pytest.approx(np.sqrt(2 / 3 * 14))
    nothing = np.array([np.nan])
    assert intervals.acceleration(nothing) == 0
    assert intervals.acceleration(np.full(3, 2.0)) == 0
    assert np.isnan(intervals.jackknife_error(nothing))


def test_recentred_values_have_the_value_as_mean_and_a_spread_between_both() -> None:
    drawn = np.array([0.1, 0.2, np.nan, 0.6])
    without = np.array([0.5, 0.7])
    moved = intervals.recentred(drawn, 0.9, without)
    known = moved[~np.isnan(moved)]
    assert np.isnan(moved).tolist() == [False, False, True, False]
    assert known.mean() == pytest.approx(0.9)
    assert known.std() == pytest.approx(np.sqrt(np.nanstd(drawn) * intervals.jackknife_error(without)))
    for flat in (np.array([0.5, 0.5]), np.array([np.nan])):
        np.testing.assert_allclose(intervals.recentred(drawn, 0.9, flat), drawn + 0.6)
    np.testing.assert_array_equal(intervals.recentred(np.full(2, 0.3), 0.9, without), [0.9, 0.9])
    assert np.isnan(intervals.recentred(np.full(2, np.nan), 0.9, without)).all()


def test_each_cluster_is_left_out_once_or_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    assert np.array_equal(np.concatenate(list(leaving_out(70))), 1 - np.eye(70))
    monkeypatch.setattr(intervals, "GROUPS", 4)
    counts = np.concatenate(list(leaving_out(10)))
    assert counts.shape == (4, 10)
    assert (counts.sum(axis=0) == 3).all()
    assert set(counts.sum(axis=1)) <= {7, 8}


def test_groups_leave_the_acceleration_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    items = np.random.default_rng(5).exponential(size=3000)
    values = Values(ClusteredRows({}, np.arange(3001)), {"x": items})
    grouped = intervals.acceleration(values.under(leaving_out(3000))[:, 0])
    monkeypatch.setattr(intervals, "GROUPS", 3000)
    assert intervals.acceleration(values.under(leaving_out(3000))[:, 0]) == pytest.approx(grouped, abs=0.003)


def covered(make: Any, truth: float, method: Any, data_sets: int, key: str = "x") -> float:
    """The share of simulated data sets whose 95% interval covers the truth."""
    hits = 0
    for seed in range(data_sets):
        run: Run = make(np.random.default_rng(seed))
        low, high = with_intervals(run, method, resamples=400, seed=10**6 + seed)[next(iter(run))][key].interval or (
            0,
            0,
        )
        hits += low <= truth <= high
    return hits / data_sets


def skewed(rng: np.random.Generator) -> Run:
    return run_of(rng.gamma(4.0, size=100))


def clustered(rng: np.random.Generator) -> Run:
    sizes = rng.integers(1, 9, size=200)
    own = np.repeat(rng.normal(size=200), sizes)  # what the turns of a dialogue share
    return run_of(own + rng.normal(size=len(own)), np.concatenate([[0], np.cumsum(sizes)]))


ZIPF = 1 / np.arange(1, 2001)


def worded(rng: np.random.Generator) -> Run:
    ids = rng.choice(2000, size=(150, 6), p=ZIPF / ZIPF.sum())
    return dialeval.evaluate([" ".join(map(str, row)) for row in ids], metrics="distinct-1", threads=1)


def distinct_words() -> float:
    """The expected share of different words among 900."""
    shares = ZIPF / ZIPF.sum()
    return float((1 - (1 - shares) ** 900).sum() / 900)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize(
    ("make", "truth", "key"),
    [(skewed, 4.0, "x"), (clustered, 0.0, "x"), (worded, distinct_words(), "distinct-1")],
    ids=["skewed", "clustered", "distinct"],
)
def test_coverage(make: Any, truth: float, key: str, method: str) -> None:
    assert 0.93 <= covered(make, truth, method, 1000, key) <= 0.97


def test_coverage_is_roughly_right() -> None:
    assert 0.85 <= covered(clustered, 0.0, "percentile", 60) <= 1.0


def test_rows_alone_would_cover_too_little() -> None:
    """The clusters matter: without them the same data misses the truth far too often."""

    def alone(rng: np.random.Generator) -> Run:
        result = clustered(rng)["a"]
        assert result["x"].items is not None
        return run_of(result["x"].items)

    assert covered(alone, 0.0, "percentile", 60) < 0.8
