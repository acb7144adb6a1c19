"""Influences of clusters: errors by hand and by scipy, changes of resamples by their definition, and groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

import dialeval
from dialeval.analysis import values as values_module
from dialeval.analysis.values import Values, compute_influences
from dialeval.core.arrays import Floats, Ints
from dialeval.core.contributions import ClusteredRows
from dialeval.stats import resampling as module
from dialeval.stats.resampling import Influence, draw_resamples, leave_out_clusters, studentize


def ratio_influence(sums: Floats, sizes: Floats) -> Influence:
    """Of the mean over all rows of clusters with these sums and sizes."""
    without = (sums.sum() - sums) / (sizes.sum() - sizes)
    return Influence.of(float(sums.sum() / sizes.sum()), without, sizes)


def test_the_error_of_a_mean_is_that_of_textbooks() -> None:
    values = np.random.default_rng(1).exponential(size=23)
    found = ratio_influence(values, np.ones(23))
    assert found.error == pytest.approx(values.std(ddof=1) / math.sqrt(23))
    assert found.skewness == pytest.approx(scipy.stats.skew(values))
    assert found.changes == pytest.approx(values - values.mean())


def test_the_jackknife_by_hand() -> None:
    found = Influence.of(3.0, np.array([1.0, 2.0, 6.0]), np.array([2.0, 2.0, 5.0]))
    assert found.changes.tolist() == [4, 2, -6]
    assert found.error == pytest.approx(math.sqrt(56 / 6))
    assert found.weights == pytest.approx([2 / 3, 2 / 3, 5 / 3])


def test_what_cannot_be_computed_without_a_cluster_has_no_error() -> None:
    assert math.isnan(Influence.of(1.0, np.array([1.0, math.nan]), np.ones(2)).error)
    assert math.isnan(Influence.of(1.0, np.array([math.nan]), np.ones(1)).error)


def test_equal_but_for_rounding_is_equal() -> None:
    found = Influence.of(0.3, np.array([0.1 + 0.2, 0.3, 0.3]), np.ones(3))
    assert (found.error, found.skewness, found.few) == (0.0, 0.0, False)


def test_few_clusters_are_those_that_are_too_few_for_their_skewness() -> None:
    one_apart = np.append(np.zeros(9), 1.0)  # skewness 2.67: seventy such clusters would be enough
    assert ratio_influence(one_apart, np.ones(10)).few
    assert ratio_influence(-one_apart, np.ones(10)).few
    assert not ratio_influence(np.arange(10.0), np.ones(10)).few


def test_clusters_are_worth_less_where_few_of_them_decide() -> None:
    values = np.random.default_rng(3).standard_t(3, size=40)
    found = ratio_influence(values, np.ones(40))
    assert found.effective_clusters == pytest.approx(80 / (2 + scipy.stats.kurtosis(values)))
    assert found.effective_clusters < 30
    assert ratio_influence(np.arange(10.0), np.ones(10)).effective_clusters == 10, (
        "flat ones are worth no more than they are"
    )
    assert ratio_influence(np.ones(10), np.ones(10)).effective_clusters == 10


def test_changes_of_resamples_are_measured_by_their_own_error() -> None:
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 9, size=12).astype(np.float64)
    sums = rng.normal(size=12) * sizes
    found = ratio_influence(sums, sizes)
    counts = np.concatenate(list(draw_resamples(12, 50, 3)))
    drawn = counts @ sums / (counts @ sizes)
    changes = studentize({"x": found}, {"x": drawn}, [counts[:20], counts[20:]])["x"]
    for change, value, times in zip(changes, drawn, counts, strict=True):
        away = value - found.value
        squares = times * (found.changes - away * found.weights) ** 2
        error = math.sqrt(squares.sum() / (12 * 11)) / (times * found.weights).mean()
        assert change == pytest.approx(away * found.error / error)


def test_for_clusters_of_one_row_each_the_error_of_a_resample_is_that_of_its_rows() -> None:
    values = np.random.default_rng(4).exponential(size=9)
    counts = np.array([[2, 0, 1, 1, 1, 0, 3, 0, 1]])
    taken = np.repeat(values, counts[0])
    changes = studentize({"x": ratio_influence(values, np.ones(9))}, {"x": np.array([taken.mean()])}, [counts])["x"]
    t = (taken.mean() - values.mean()) / (taken.std(ddof=1) / 3)
    assert changes[0] == pytest.approx(t * values.std(ddof=1) / 3)


def test_a_resample_in_which_nothing_varies_is_infinitely_far_or_the_value_itself() -> None:
    found = {"x": ratio_influence(np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4))}
    counts: Ints = np.array([[2, 2, 0, 0], [0, 0, 4, 0], [1, 1, 1, 1], [1, 1, 1, 1]])
    changes = studentize(found, {"x": np.array([0.0, 1.0, 0.5, math.nan])}, [counts])["x"]
    assert changes.tolist()[:3] == [-math.inf, math.inf, 0.0]
    assert math.isnan(changes[3])
    flat = {"x": ratio_influence(np.ones(4), np.ones(4))}
    assert studentize(flat, {"x": np.ones(4)}, [counts])["x"].tolist() == [0.0] * 4
    assert studentize(found, {}, [counts]) == {}


def test_each_cluster_is_left_out_once_or_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    assert np.array_equal(np.concatenate(list(leave_out_clusters(70))), 1 - np.eye(70))
    monkeypatch.setattr(module, "GROUPS", 4)
    counts = np.concatenate(list(leave_out_clusters(10)))
    assert counts.shape == (4, 10)
    assert (counts.sum(axis=0) == 3).all()
    assert set(counts.sum(axis=1)) <= {7, 8}


@pytest.mark.parametrize("metric", ["length", "distinct-1"])
def test_intervals_of_many_rows_do_not_depend_on_their_order(metric: str) -> None:
    """Neighbors in a sorted file are alike: with groups of them, intervals were up to twice as wide."""
    random = np.random.default_rng(7)
    numbers = np.sort(random.zipf(1.3, size=3000) % 4000)
    replies = [" ".join([f"w{number}"] * (1 + number % 7)) for number in numbers.tolist()]
    shuffled = [replies[row] for row in random.permutation(3000)]
    widths = []
    for texts in (replies, shuffled):
        made = dialeval.with_intervals(dialeval.evaluate(texts, metrics=metric), resamples=300)["system"][metric]
        low, high = made.interval or (0.0, 0.0)
        widths.append(high - low)
    assert widths[0] == pytest.approx(widths[1], rel=0.1)


def test_rows_are_grouped_as_they_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters of unequal size: weights are those of the clusters left out together."""
    monkeypatch.setattr(module, "GROUPS", 4)
    sizes = np.arange(1.0, 11.0)
    counts = np.concatenate(list(leave_out_clusters(10)))
    found = Influence.of(0.5, np.zeros(4), sizes)
    left_out = (1 - counts) @ sizes
    assert found.weights == pytest.approx(left_out / left_out.mean())
    assert not np.array_equal(left_out, np.add.reduceat(sizes, [0, 2, 5, 7])), "groups are no neighbors"


def test_groups_leave_error_and_changes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    items = np.random.default_rng(5).exponential(size=3000)
    values, found = Values(ClusteredRows({}, np.arange(3001)), {"x": items}), []
    for most in (1000, 3000):
        for where in (module, values_module):
            monkeypatch.setattr(where, "GROUPS", most)
        groups = values.group()
        influences, draws = compute_influences(values, {"x": float(items.mean())}), list(draw_resamples(most, 4000))
        assert len(influences["x"].changes) == most
        changes = studentize(influences, groups.compute(draws), draws)["x"]
        found.append((influences["x"].error, np.quantile(np.abs(changes), [0.5, 0.95])))
    (error, grouped), (exact, single) = found
    assert error == pytest.approx(exact, rel=0.1)
    assert grouped == pytest.approx(single, rel=0.1)
