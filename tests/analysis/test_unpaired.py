"""Differences of independent systems, against SciPy and direct computations; `tools/simulate_designs.py` has rates."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dialeval
from dialeval.analysis import unpaired as module
from dialeval.analysis.comparison import compare
from dialeval.analysis.difference import Difference, Settings
from dialeval.core.arrays import Floats
from dialeval.core.fold import Estimate
from dialeval.core.result import Result
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.stats.independent import ClusterSums, Spread, welch


def result(values: Floats, sizes: list[int] | None = None, key: str = "length") -> Result:
    offsets = np.arange(len(values) + 1) if sizes is None else np.concatenate([[0], np.cumsum(sizes)])
    known = values[~np.isnan(values)]
    estimate = Estimate(float(known.mean()), 0.0, len(values), len(known), scores=values, signature=Signature.of(key))
    return Result({key: estimate}, table=RowTable(offsets.astype(np.int64)))


def compare_unpaired(*given: Any) -> list[Difference]:
    return [tested.row for tested in module.compare_unpaired(*given)]


def test_single_rows_are_welchs_t_test() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.normal(0, 1, 25), rng.normal(0.4, 3, 60)
    (row,) = compare_unpaired("a", "b", result(left), result(right), ["length"], Settings(trials=10))
    welch_test = stats.ttest_ind(right, left, equal_var=False)
    low, high = welch_test.confidence_interval(0.95)
    assert row.interval == pytest.approx((low, high), rel=1e-2)  # degrees of freedom are Kish's less one
    spreads = ClusterSums(left, np.ones(25)).spread, ClusterSums(right, np.ones(60)).spread
    assert math.sqrt(spreads[0].variance + spreads[1].variance) == pytest.approx(
        math.sqrt(left.var(ddof=1) / 25 + right.var(ddof=1) / 60)
    )
    assert welch(*spreads) == pytest.approx(welch_test.df)
    assert row.difference == pytest.approx(right.mean() - left.mean())
    deviation = math.sqrt((left.var(ddof=1) + right.var(ddof=1)) / 2)
    assert row.effect == pytest.approx((right.mean() - left.mean()) / deviation)  # Cohen's d, both systems equally


def test_few_clusters_are_reassigned_in_every_way() -> None:
    left, right = np.array([1.0, 2.0, 2.5]), np.array([2.2, 3.5, 4.0, 5.0])
    (row,) = compare_unpaired("a", "b", result(left), result(right), ["length"], Settings(trials=100))
    both = np.concatenate([left, right])

    def studentized(chosen: tuple[int, ...]) -> float:
        second = both[list(chosen)]
        first = np.delete(both, list(chosen))
        return float((second.mean() - first.mean()) / math.sqrt(second.var(ddof=1) / 4 + first.var(ddof=1) / 3))

    observed = abs(studentized((3, 4, 5, 6)))
    every = [abs(studentized(chosen)) for chosen in combinations(range(7), 4)]
    assert row.p == pytest.approx(np.mean([value >= observed - 1e-9 for value in every]))


def test_proportions_have_newcombes_interval() -> None:
    left, right = np.repeat([1.0, 0.0], [56, 14]), np.repeat([1.0, 0.0], [48, 32])
    (row,) = compare_unpaired(
        "a", "b", result(left, key="accuracy"), result(right, key="accuracy"), ["accuracy"], Settings(trials=200)
    )
    # Newcombe 1998, table II, example (a): 56/70 - 48/80 = 0.2 [0.0524, 0.3339]
    assert row.interval_by == "newcombe"
    assert row.interval == pytest.approx((-0.3339, -0.0524), abs=5e-5)


def texts(seed: int, rows: int, words: int = 30) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{n}" for n in rng.integers(0, words, 6)) for _ in range(rows)]


def test_distinct_is_compared_at_equal_numbers_of_rows() -> None:
    """The larger log has fewer distinct words per word by its size alone."""
    run = dialeval.evaluate({"a": texts(1, 200)}, metrics="distinct-1") + dialeval.evaluate(
        {"b": texts(2, 40)}, metrics="distinct-1"
    )
    (row,) = compare(run, design="unpaired").differences
    assert run["a"]["distinct-1"].mean < 0.5 * run["b"]["distinct-1"].mean
    assert row.baseline_mean == pytest.approx(row.mean, rel=0.1)
    assert not row.significant
    assert str(row.note).startswith("compared at 40 dialogues or rows of each system")


def test_corpus_values_are_resampled_independently() -> None:
    references = texts(3, 120)
    near = [text if at % 2 else f"{text} x" for at, text in enumerate(references)]
    runs = [
        dialeval.evaluate({name: said}, given, metrics="bleu(per=corpus)")
        for name, said, given in (("a", texts(4, 120), references), ("b", near, references))
    ]
    (row,) = compare(runs, design="unpaired").differences
    assert row.interval_by == "studentized"
    assert row.significant
    assert row.interval is not None
    assert row.interval[0] < row.difference < row.interval[1]
    same = compare([runs[0], dialeval.evaluate({"c": texts(5, 120)}, texts(6, 120), metrics="bleu(per=corpus)")])
    assert same.differences[0].p > 0.01


def test_post_stratification_weighs_strata_alike() -> None:
    left = result(np.array([1.0, 2.0, 3.0, 11.0, 13.0]))
    right = result(np.array([2.0, 4.0, 10.0, 12.0, 14.0, 16.0, 50.0]))
    strata = list("xxxyy"), [*"xxyyyy", "z"]
    (row,) = compare_unpaired("a", "b", left, right, ["length"], Settings(trials=50), strata)
    weights = {"x": 5 / 11, "y": 6 / 11}  # of the rows of both logs in the strata that both have
    first = weights["x"] * 2.0 + weights["y"] * 12.0
    second = weights["x"] * 3.0 + weights["y"] * 13.0
    assert (row.baseline_mean, row.mean, row.difference) == pytest.approx((first, second, 1.0))
    assert row.unadjusted == pytest.approx(108 / 7 - 6.0)
    assert "8% of the rows are in strata that only one log has" in str(row.note)


def test_the_only_cluster_of_a_stratum_has_the_variance_of_the_others() -> None:
    left, right = result(np.array([1.0, 3.0, 9.0])), result(np.array([2.0, 4.0, 12.0]))
    (row,) = compare_unpaired("a", "b", left, right, ["length"], Settings(trials=50), (list("xxy"), list("xxy")))
    assert row.difference == pytest.approx(2 / 3 * 1.0 + 1 / 3 * 3.0)
    # In both logs the jackknife's variance of the two rows, and the variance of these (2) for the third row.
    assert row.error == pytest.approx(math.sqrt(2 * (2 / 3 * 2 * (2 / 3) ** 2 + 2 * (1 / 3) ** 2)))
    (row,) = compare_unpaired("a", "b", left, right, ["length"], Settings(trials=50), (list("xyz"), list("xyz")))
    assert row.reason == "no stratum of both logs has two dialogues of each system"
    assert math.isnan(row.difference)


def test_one_cluster_has_no_error() -> None:
    (row,) = compare_unpaired("a", "b", result(np.ones(1)), result(np.ones(5)), ["length"], Settings())
    assert "at least two dialogues or rows of each" in str(row.reason)
    assert math.isnan(ClusterSums(np.ones(1), np.ones(1)).spread.variance)
    assert welch(Spread(0.0, 3.0, 4), Spread(0.0, 5.0, 6)) == 8.0
