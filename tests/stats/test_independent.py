"""Independent samples: spreads of means and of corpus values."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.arrays import Floats
from dialeval.stats.independent import ClusterSums, Spread, mix_p, permute, rank_first
from dialeval.stats.resampling import Influence

CLUSTERS = st.lists(st.tuples(st.integers(-4, 9), st.integers(1, 4)), min_size=2, max_size=4)


def test_degrees_of_freedom_are_those_of_equal_clusters() -> None:
    """Kish's effective number of clusters less one, whether units are clusters or groups of them."""
    weights = np.array([1.0, 1.0, 2.0, 4.0])
    influence = Influence(0.5, np.array([0.1, -0.2, 0.3, -0.2]), weights)
    effective = 8**2 / (1 + 1 + 4 + 16)
    assert Spread.of_influence(influence, 4).freedom == pytest.approx(effective - 1)
    assert Spread.of_influence(influence, 40).freedom == pytest.approx(10 * effective - 1)
    assert Spread.of_influence(influence, 4).variance == pytest.approx(influence.error**2)
    counts = np.array([1.0, 1.0, 2.0, 4.0])
    assert Spread.of(np.array([0.1, -0.2, 0.3, -0.2]), counts).freedom == pytest.approx(effective - 1)


@given(CLUSTERS)
def test_the_spread_of_a_mean_is_that_of_the_means_without_one_cluster(made: list[tuple[int, int]]) -> None:
    sums, counts = np.array(made, np.float64).T
    found = ClusterSums(sums, counts)
    without = [np.delete(sums, k).sum() / np.delete(counts, k).sum() for k in range(len(sums))]
    assert found.changes == pytest.approx(found.mean - np.array(without), abs=1e-12)
    clusters = len(sums)
    assert found.spread.variance == pytest.approx(
        (clusters - 1) / clusters * sum((value - found.mean) ** 2 for value in without), abs=1e-12
    )
    assert found.spread.freedom == pytest.approx(max(1, counts.sum() ** 2 / (counts**2).sum() - 1))
    assert (found.spread.clusters, found.spread.few) == (clusters, True)


def studentized(sums: Floats, counts: Floats, chosen: tuple[int, ...]) -> float:
    """The difference of two ratios over its linearized error, written out."""
    rest = [k for k in range(len(sums)) if k not in chosen]
    means, variance = [], 0.0
    for here in (rest, list(chosen)):
        mean = sums[here].sum() / counts[here].sum()
        squares = sum((sums[k] - mean * counts[k]) ** 2 for k in here)
        variance += squares * len(here) / (len(here) - 1) / counts[here].sum() ** 2
        means.append(mean)
    difference = means[1] - means[0]
    if abs(difference) < 1e-9:
        return 0.0
    return float(difference / math.sqrt(variance)) if variance > 1e-18 else math.copysign(math.inf, difference)


@given(CLUSTERS, CLUSTERS)
def test_the_permutation_test_of_few_clusters_is_exact(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    (left, left_counts), (right, right_counts) = (np.array(made, np.float64).T for made in (one, two))
    sums, counts = np.concatenate([left, right]), np.concatenate([left_counts, right_counts])
    own = tuple(range(len(left), len(sums)))
    observed = abs(studentized(sums, counts, own))
    every = [abs(studentized(sums, counts, chosen)) for chosen in combinations(range(len(sums)), len(own))]
    expected = np.mean([value >= observed * (1 - 1e-9) for value in every])
    first, second = ClusterSums(left, left_counts), ClusterSums(right, right_counts)
    assert rank_first(permute(first, second, 100, 1)) == pytest.approx(expected)
    assert rank_first(permute(second, first, 100, 1)) == pytest.approx(expected)


def test_the_permutation_test_of_many_clusters_is_drawn() -> None:
    random = np.random.default_rng(5)
    left = ClusterSums(random.normal(0, 1, 30), np.ones(30))
    right = ClusterSums(random.normal(0.4, 1, 35), np.ones(35))
    found = rank_first(permute(left, right, 4000, 1))
    assert found == rank_first(permute(left, right, 4000, 1)) != rank_first(permute(left, right, 4000, 2))
    difference = right.mean - left.mean
    error = math.sqrt(left.spread.variance + right.spread.variance)
    assert found == pytest.approx(2 * (1 - 0.5 * (1 + math.erf(difference / error / math.sqrt(2)))), abs=0.03)
    far = ClusterSums(right.sums + 9, right.counts)
    assert rank_first(permute(left, far, 400, 1)) == 1 / 401


def test_the_permutation_test_of_two_constants_is_exact() -> None:
    """What is left of squares that cancel is no spread: both ways to tell the systems apart are as extreme."""
    random = np.random.default_rng(1)
    for _ in range(60):
        rows = np.full(4, float(random.integers(1, 6)))
        left, right = (ClusterSums(value * rows, rows) for value in 10 * random.normal(size=2))
        assert rank_first(permute(left, right, 100, 1)) == pytest.approx(2 / 70)


def test_one_cluster_has_no_permutation_test() -> None:
    one, two = ClusterSums(np.array([1.0]), np.ones(1)), ClusterSums(np.array([1.0, 2.0]), np.ones(2))
    with np.errstate(divide="ignore", invalid="ignore"):
        assert math.isnan(rank_first(permute(one, two, 10, 1)))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), min_size=3, max_size=7),
    st.integers(1, 2),
)
def test_the_test_of_a_mix_of_labels_is_exact(made: list[tuple[int, int, int]], first: int) -> None:
    counts = np.array(made, np.float64)

    def distance(chosen: tuple[int, ...]) -> float:
        second = counts[list(chosen)].sum(axis=0)
        rest = counts.sum(axis=0) - second
        if not second.sum() or not rest.sum():
            return 0.0
        return float(np.abs(second / second.sum() - rest / rest.sum()).sum() / 2)

    size = len(counts) - first
    every = [distance(chosen) for chosen in combinations(range(len(counts)), size)]
    observed = distance(tuple(range(first, len(counts))))
    assert mix_p(counts, first, 100, 1) == pytest.approx(np.mean([value >= observed - 1e-12 for value in every]))
