"""Independent samples: spreads of means and of corpus values."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.arrays import Floats
from dialeval.stats import independent as module
from dialeval.stats.independent import (
    ClusterSums,
    Resampled,
    Spread,
    is_rough,
    join_changes,
    mix_p,
    newcombe,
    permute,
    rank_first,
    reassign,
    spread_stratified,
    sum_by_stratum,
    welch,
)
from dialeval.stats.resampling import Influence, draw_resamples, studentize

CLUSTERS = st.lists(st.tuples(st.integers(-4, 9), st.integers(1, 4)), min_size=2, max_size=4)


def test_resamples_know_the_error_of_the_mean() -> None:
    """The influences of clusters of equal size have the jackknife's error, which is that of Student."""
    sums = np.random.default_rng(3).normal(5, 2, 12)
    clusters = ClusterSums(sums, np.ones(12))
    drawn = clusters.resample(50, 1)
    assert drawn.influence.error == pytest.approx(sums.std(ddof=1) / math.sqrt(12))
    assert drawn.influence.error**2 == pytest.approx(clusters.spread.variance)
    assert (len(drawn.values), drawn.influence.value) == (50, clusters.mean)


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


def test_sums_of_clusters() -> None:
    none, one = ClusterSums(np.zeros(0), np.zeros(0)), ClusterSums(np.array([6.0]), np.array([3.0]))
    assert (none.is_even, one.is_even) == (True, True)
    assert math.isnan(none.mean)
    assert one.mean == 2
    for clusters, size in ((none, 0), (one, 1)):
        spread = clusters.spread
        assert math.isnan(spread.variance)
        assert (spread.freedom, spread.clusters, spread.few) == (1.0, size, False)
    assert ClusterSums(np.arange(3.0), np.array([2.0, 2.0, 2.0])).is_even
    assert not ClusterSums(np.arange(3.0), np.array([2.0, 2.0, 3.0])).is_even


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


def test_resamples_of_unequal_clusters() -> None:
    sums, counts = np.array([1.0, 8.0, 3.0, -2.0, 6.0]), np.array([1.0, 4.0, 2.0, 1.0, 2.0])
    clusters = ClusterSums(sums, counts)
    found = clusters.resample(40, 7)
    (drawn,) = draw_resamples(5, 40, 7)
    values = (drawn @ sums) / (drawn @ counts)
    assert found.values == pytest.approx(values)
    changes = 4 * (clusters.mean - (sums.sum() - sums) / (counts.sum() - counts))
    influence = Influence(1.6, changes - changes.mean(), counts / 2)
    assert found.influence.value == 1.6
    assert found.influence.changes == pytest.approx(influence.changes)
    assert found.influence.weights.tolist() == [0.5, 2, 1, 0.5, 1]
    assert found.changes == pytest.approx(studentize({"": influence}, {"": values}, [drawn])[""])
    assert not np.array_equal(clusters.resample(40, 8).values, found.values)


def test_clusters_that_are_few_or_skewed_are_rough() -> None:
    flat = Influence(0.0, np.array([1.0, -1.0] * 10), np.ones(20))
    assert [is_rough(flat, clusters) for clusters in (19, 20)] == [True, False]
    for clusters, effective in ((20, 10), (21, 42 / 4.25)):
        changes = np.zeros(clusters)
        changes[:4] = 1, -1, 1, -1
        heavy = Influence(0.0, changes, np.ones(clusters))
        assert heavy.effective_clusters == pytest.approx(effective)
        assert not heavy.few
        assert is_rough(heavy, clusters) == (clusters == 21)
    skewed = Influence(0.0, np.append(np.full(39, -1.0), 39.0), np.ones(40))
    assert skewed.few
    assert is_rough(skewed, 40)


def test_degrees_of_freedom_of_welch() -> None:
    spreads = Spread(2.0, 4.0, 5), Spread(3.0, 9.0, 10)
    assert welch(*spreads) == pytest.approx(25 / (4 / 4 + 9 / 9))
    assert welch(spreads[0]) == 4
    assert welch(Spread(2.0, 0.5, 2)) == 1, "at least one"
    assert welch(Spread(0.0, 4.0, 5), Spread(0.0, 9.0, 10), Spread(0.0, 2.0, 3)) == 15
    assert welch(Spread(0.0, 4.0, 5), Spread(3.0, 9.0, 10)) == 9
    assert Spread.of_influence(Influence(0.0, np.array([1.0, -1.0]), np.array([1.0, 9.0])), 2).freedom == 1


def test_newcombes_interval_takes_the_nearer_sides() -> None:
    found = newcombe(10.0, 20.0, (10.0 - 5, 10.0 + 8), (20.0 - 6, 20.0 + 12))
    assert found == pytest.approx((10 - math.hypot(6, 8), 10 + math.hypot(12, 5)))


def test_changes_of_a_difference_have_both_errors() -> None:
    """A resample's own error of a difference is the root of the sum of the squares of both errors."""
    left = Resampled(
        Influence(1.0, np.array([3.0, -3.0]), np.ones(2)),  # error 3
        np.array([1.5, 0.0, 1.0, 1.0, 1.0, 2.0]),
        np.array([0.25, -4.0, 0.0, math.nan, 0.0, math.inf]),
    )
    right = Resampled(
        Influence(5.0, np.array([4.0, -4.0]), np.ones(2)),  # error 4
        np.array([6.0, 5.5, 5.0, 7.0, 8.0, 5.0]),
        np.array([0.5, 2.0, 0.0, 1.0, math.inf, -math.inf]),
    )
    found = join_changes(left, right, 10.0)
    assert found[0] == pytest.approx((1 - 0.5) * 10 / math.hypot(0.5 / 0.25 * 3, 1 / 0.5 * 4))
    assert found[1] == pytest.approx((0.5 + 1) * 10 / math.hypot(1 / 4 * 3, 0.5 / 2 * 4))
    assert found[2] == 0
    assert found[3] == pytest.approx((2 - 0) * 10 / math.hypot(3, 2 * 4)), "without a change, the error as it is"
    assert found[4] == pytest.approx((3 - 0) * 10 / 3), "no error on the other side"
    assert found[5] == -math.inf, "no error on either side"
    small = [
        each._replace(
            influence=Influence(each.influence.value / 100, each.influence.changes / 100, np.ones(2)),
            values=each.values / 100,
            changes=each.changes / 100,
        )
        for each in (left, right)
    ]
    assert join_changes(small[0], small[1], 10.0) == pytest.approx(found)
    same = join_changes(
        left._replace(values=np.array([2.0]), changes=np.array([math.inf])),
        right._replace(values=np.array([6.0]), changes=np.array([math.inf])),
        10.0,
    )
    assert same.tolist() == [0.0]


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


def test_the_permutation_test_does_not_depend_on_the_scale_of_values_and_counts() -> None:
    random = np.random.default_rng(4)
    sums, counts = random.normal(size=9), random.integers(1, 4, 9).astype(np.float64)

    def test_of(sums: Floats, counts: Floats) -> float:
        left, right = (ClusterSums(sums[part], counts[part]) for part in (slice(4), slice(4, None)))
        return rank_first(permute(left, right, 200, 1))

    expected = test_of(sums, counts)
    assert 0.1 < expected < 0.9
    assert test_of(1e6 * sums, 1e6 * counts) == expected, "many rows"
    assert test_of(1e-14 * sums, counts) == test_of(1e14 * sums, counts) == expected, "small and large values"
    assert test_of(sums + 1e8 * counts, counts) == expected, "far from 0"


def test_equal_means_have_the_largest_p() -> None:
    left, right = (
        ClusterSums(np.array([1.0, 3.0, 8.0]), np.ones(3)),
        ClusterSums(np.array([4.0, 4.0, 2.0, 6.0]), np.ones(4)),
    )
    assert rank_first(permute(left, right, 100, 1)) == rank_first(permute(right, left, 100, 1)) == 1


def test_one_cluster_has_no_permutation_test() -> None:
    one, two = ClusterSums(np.array([1.0]), np.ones(1)), ClusterSums(np.array([1.0, 2.0]), np.ones(2))
    with np.errstate(divide="ignore", invalid="ignore"):
        assert math.isnan(rank_first(permute(one, two, 10, 1)))


def test_every_reassignment_is_made_once_where_there_are_few() -> None:
    every = {tuple(np.isin(range(5), chosen).astype(float)) for chosen in combinations(range(5), 2)}
    (found,) = reassign(3, 2, 9, 1)
    assert found.shape == (9, 5)
    assert set(map(tuple, found.tolist())) == every - {(0, 0, 0, 1, 1)}, "all but the one observed"
    (drawn,) = reassign(3, 2, 8, 1)
    assert drawn.shape == (8, 5)
    assert (drawn.sum(axis=1) == 2).all()
    assert [len(each) for each in reassign(58, 1, 58, 1)] == [58]
    (all_of_them,) = reassign(58, 1, 58, 1)
    assert all_of_them[:, :58].tolist() == np.eye(58).tolist()
    (sixty,) = reassign(59, 1, 59, 1)
    assert len(np.unique(sixty, axis=0)) < 59, "sixty clusters and more are drawn"


def test_drawn_reassignments_do_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = reassign(20, 30, 500, 3)
    assert whole.shape == (500, 50)
    assert whole.mean(axis=0) == pytest.approx(np.full(50, 0.6), abs=0.1)
    monkeypatch.setattr(module, "_CHUNK_CELLS", 160)
    parts = list(reassign(20, 30, 500, 3))
    assert [len(part) for part in parts] == [3] * 166 + [2]
    assert np.array_equal(np.concatenate(parts), whole)
    monkeypatch.setattr(module, "_CHUNK_CELLS", 49)
    assert [len(part) for part in reassign(20, 30, 4, 3)] == [1] * 4
    monkeypatch.undo()
    (many,) = reassign(300, 200, 20, 3)
    assert (many.sum(axis=1) == 200).all()


def test_sums_by_stratum_leave_unscored_rows_out() -> None:
    items = np.array([1.0, 2.0, math.nan, 4.0, 5.0, math.nan])
    found = sum_by_stratum(items, ["y", "x", "x", "x", "y", "z"], np.array([0, 0, 1, 2, 2, 2]), 4)
    assert {name: (sums.tolist(), numbers.tolist()) for name, (sums, numbers) in found.items()} == {
        "x": ([2, 0, 4, 0], [1, 0, 1, 0]),
        "y": ([1, 0, 5, 0], [1, 0, 1, 0]),
        "z": ([0, 0, 0, 0], [0, 0, 0, 0]),
    }
    assert list(found) == ["x", "y", "z"]
    assert all(part.dtype == np.float64 for parts in found.values() for part in parts)


def test_the_spread_of_strata_written_out() -> None:
    """Five clusters, one of them without rows; the third stratum has a single cluster."""
    sums = np.array([[2.0, 9.0, 0.0], [5.0, 0.0, 7.0], [1.0, 4.0, 0.0], [0.0, 0.0, 0.0], [6.0, 8.0, 0.0]])
    numbers = np.array([[1.0, 2.0, 0.0], [2.0, 0.0, 2.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 3.0, 0.0]])
    means, weights = sums.sum(axis=0) / numbers.sum(axis=0), np.array([0.5, 0.3, 0.2])
    changes = []
    for cluster in (0, 1, 2, 4):
        change = 0.0
        for stratum in (0, 1):
            left = numbers[:, stratum].sum() - numbers[cluster, stratum]
            without = (sums[:, stratum].sum() - sums[cluster, stratum]) / left
            change += weights[stratum] * (means[stratum] - without)
        changes.append(change)
    within = [
        sum((sums[k, s] / numbers[k, s] - means[s]) ** 2 for k in range(5) if numbers[k, s]) for s in range(len(means))
    ]
    pooled = sum(within) / (3 + 2 + 0)
    found = spread_stratified(sums, numbers, means, weights)
    assert found.variance == pytest.approx(3 / 4 * sum(np.square(changes)) + pooled * 0.2**2)
    rows = np.array([3.0, 4.0, 2.0, 5.0])
    assert found.freedom == pytest.approx(max(1, rows.sum() ** 2 / (rows**2).sum() - 1 - 3 + 1))
    assert (found.clusters, found.few) == (4, True)
    two = spread_stratified(sums[:, :2], numbers[:, :2], means[:2], np.array([0.6, 0.4]))
    rows = np.array([3.0, 2.0, 2.0, 5.0])
    assert two.freedom == pytest.approx(rows.sum() ** 2 / (rows**2).sum() - 1 - 2 + 1)


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
