"""Student's intervals from values without one dialogue each."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dialeval.core.arrays import Floats
from dialeval.stats.resampling import FISHER, LOG_ODDS, PLAIN, Transformation, jackknife


def without_each(values: Floats) -> Floats:
    means: Floats = (values.sum() - values) / (len(values) - 1)
    return means


def test_a_mean_has_the_interval_of_student() -> None:
    # Fewer extremes than a normal distribution has, so that the degrees of freedom are K - 1.
    values = np.random.default_rng(1).uniform(size=20)
    found = jackknife(values.mean(), without_each(values), np.ones(20))
    assert found.error == pytest.approx(stats.sem(values))
    assert found.freedom == 19
    assert found.interval(0.9) == pytest.approx(stats.t.interval(0.9, 19, values.mean(), stats.sem(values)))
    shifted = values - 0.4
    tested = jackknife(shifted.mean(), without_each(shifted), np.ones(20))
    assert tested.p == pytest.approx(stats.ttest_1samp(shifted, 0).pvalue)


def test_unequal_dialogues_and_heavy_tails_have_fewer_degrees_of_freedom() -> None:
    rng = np.random.default_rng(2)
    values, sizes = rng.uniform(size=20), np.array([1.0] * 19 + [19.0])
    assert jackknife(values.mean(), without_each(values), sizes).freedom == pytest.approx(38**2 / (19 + 19**2) - 1)
    heavy = np.exp(3 * rng.normal(size=20))
    assert jackknife(heavy.mean(), without_each(heavy), np.ones(20)).freedom < 10


@pytest.mark.parametrize(("scale", "ends"), [(LOG_ODDS, (0.0, 1.0)), (FISHER, (-1.0, 1.0))])
def test_intervals_stay_within_the_range(scale: Transformation, ends: tuple[float, float]) -> None:
    values = np.random.default_rng(3).uniform(0.6, 1.0, size=5)
    low, high = jackknife(values.mean(), without_each(values), np.ones(5), scale).interval(0.99)
    assert ends[0] < low < values.mean() < high < ends[1]
    assert scale.back(float(scale.to(np.array([0.7]))[0])) == pytest.approx(0.7)


def test_what_has_no_error_has_no_interval() -> None:
    for value in (1.0, 0.0):
        at_the_end = jackknife(value, np.full(6, value), np.ones(6), LOG_ODDS)
        assert all(map(math.isnan, at_the_end.interval(0.95)))
        assert at_the_end.p == 2 / 2**6
    low, high = jackknife(1.0, np.array([1.0, 1.0, 0.9, 1.0]), np.ones(4), FISHER).interval(0.95)
    assert low < 0 < high == 1
    unknown = jackknife(0.5, np.array([0.4, math.nan, 0.6]), np.ones(3))
    assert all(map(math.isnan, (*unknown.interval(0.95), unknown.p)))


def test_equal_dialogues_have_the_least_p_that_their_number_allows() -> None:
    same = jackknife(0.7, np.full(3, 0.7), np.ones(3))
    assert same.p == 0.25
    assert all(map(math.isnan, same.interval(0.95)))
    assert jackknife(0.0, np.zeros(3), np.ones(3)).p == 1
    assert jackknife(1.0, np.zeros(1), np.ones(1), PLAIN).interval(0.95) != (1.0, 1.0)
