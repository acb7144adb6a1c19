"""Correlations against scipy: as they are, resampled, and of every two metrics of a system."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dialeval.core.arrays import Floats
from dialeval.stats.correlation import (
    Points,
    kurtosis,
    measure_ceiling,
    pearson,
    scale_to_unit,
)

pairs = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 1.5, 2.0, -3.0, 7.25]), st.sampled_from([1.0, 2.0, 3.0, 5.0])),
    min_size=3,
    max_size=25,
)


def by_scipy(x: Floats, y: Floats) -> Floats:
    """Return the three coefficients."""
    return np.array([each(x, y).statistic for each in (stats.pearsonr, stats.spearmanr, stats.kendalltau)])


@given(pairs, st.data())
def test_coefficients_are_scipys(rows: list[tuple[float, float]], data: st.DataObject) -> None:
    x, y = np.array(rows).T
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    clusters = np.array(data.draw(st.lists(st.integers(0, 6), min_size=len(x), max_size=len(x))))
    expected = by_scipy(x, y)
    np.testing.assert_allclose(Points(x, y, clusters).correlate(), expected, atol=1e-12)
    assert pearson(x, y) == pytest.approx(expected[0], abs=1e-12)


def test_kurtosis_is_scipys() -> None:
    values = np.random.default_rng(1).exponential(size=50)
    assert kurtosis(values) == pytest.approx(stats.kurtosis(values, fisher=False))
    assert math.isnan(kurtosis(np.full(4, 0.3)))


@given(pairs, st.data())
def test_a_resample_is_the_sample_with_rows_repeated(rows: list[tuple[float, float]], data: st.DataObject) -> None:
    x, y = np.array(rows).T
    clusters = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(x), max_size=len(x))))
    counts = np.array(data.draw(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=4)))
    found = Points(x, y, clusters).correlate_resamples(counts)
    for values, taken in zip(found, counts, strict=True):
        one, other = (np.repeat(column, taken[clusters]) for column in (x, y))
        if len(set(one)) > 1 and len(set(other)) > 1:
            np.testing.assert_allclose(values, by_scipy(one, other), atol=1e-9)
        else:
            assert np.isnan(values).all()


def test_large_values_lose_no_digits() -> None:
    random = np.random.default_rng(1)
    x = 1e9 + random.normal(size=500)
    y = x + random.normal(size=500)
    np.testing.assert_allclose(Points(x, y, np.arange(500)).correlate(), by_scipy(x, y), atol=1e-9)


def test_a_constant_column_has_no_correlation() -> None:
    points = Points(np.full(5, 0.1) * 3, np.arange(5.0), np.arange(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(points.correlate()).all()
    assert np.isnan(pearson(np.array([]), np.array([])))


def test_a_spread_of_rounding_errors_is_none() -> None:
    column = np.array([0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2, 0.3])
    assert np.ptp(column) > 0
    rising = np.arange(5.0)
    for first, second in ((column, rising), (rising, column), (-column, rising)):
        assert math.isnan(pearson(first, second))
        assert math.isnan(Points(first, second, np.arange(5)).correlate()[0])
    assert pearson(np.array([0.0, 1e-100]), np.array([1.0, 2.0])) == 1, "small is not constant"


def test_perfect_correlation() -> None:
    points = Points(np.arange(6.0), -np.arange(6.0), np.arange(6))
    np.testing.assert_allclose(points.correlate(), [-1, -1, -1])


def test_within_one_keeps_every_digit() -> None:
    assert scale_to_unit(np.array([3.0, -5.0, 0.0])).tolist() == [3 / 8, -5 / 8, 0.0]
    assert scale_to_unit(np.array([1.7e308, -1.7e308])).tolist() == [1.7e308 / 2**1023 / 2, -1.7e308 / 2**1023 / 2]
    assert scale_to_unit(np.zeros(2)).tolist() == [0.0, 0.0]
    assert scale_to_unit(np.zeros(0)).tolist() == []


def test_people_who_agree() -> None:
    found = measure_ceiling([np.array([value] * 3) for value in (1.0, 2.0, 4.0)] + [np.array([3.0]), np.array([])])
    assert found.n == 3
    assert found.annotators == (3, 3)
    assert found.alpha == pytest.approx({"nominal": 1, "ordinal": 1, "interval": 1})


def test_responses_with_different_numbers_of_annotators() -> None:
    said = [np.array(values) for values in ([1.0, 2.0], [3.0, 3.0, 5.0, 4.0], [2.0, 2.0, 1.0], [5.0, 4.0, 5.0], [9.0])]
    found = measure_ceiling(said)
    assert (found.n, found.annotators) == (4, (2, 4))


def test_no_second_opinion_no_ceiling() -> None:
    found = measure_ceiling([np.array([1.0]), np.array([])])
    assert found.n == 0
    assert "two annotators" in (found.reason or "")


def test_annotators_without_variety() -> None:
    found = measure_ceiling([np.array([1.0, 1.0])] * 4)
    assert all(map(math.isnan, [*found.alpha.values()]))


def test_alpha_has_the_interval_of_a_jackknife_over_clusters() -> None:
    random = np.random.default_rng(3)
    said = list(np.round(random.normal(size=(20, 1)) + random.normal(size=(20, 3))))
    clusters = np.arange(20) // 2
    found = measure_ceiling(said, clusters, 0.9)
    for distance, alpha in found.alpha.items():
        kept = [[values for place, values in enumerate(said) if clusters[place] != out] for out in range(10)]
        without = np.arctanh([measure_ceiling(rest).alpha[distance] for rest in kept])
        error = np.sqrt(9 / 10 * ((without - without.mean()) ** 2).sum())
        freedom = 10 * 2 / (2 + max(float(stats.kurtosis(without)), 0)) - 1
        ends = np.tanh(stats.t.interval(0.9, freedom, np.arctanh(alpha), error))
        assert found.alpha_interval[distance] == pytest.approx(tuple(ends))
    continuous = measure_ceiling(list(random.normal(size=(200, 2))))
    assert np.isnan(list(continuous.alpha_interval.values())).all(), "which would take minutes"
    assert not np.isnan(list(continuous.alpha.values())).any()
