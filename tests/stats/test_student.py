"""Student's t, against printed tables and against an integral of its density."""

from __future__ import annotations

import math

import pytest
import scipy.special
import scipy.stats

from dialeval.stats.intervals import incomplete_beta, t_factor, two_sided_p, two_sided_t


@pytest.mark.parametrize(
    ("level", "freedom", "expected"),
    [
        (0.95, 1, 12.706),
        (0.95, 2, 4.303),
        (0.95, 10, 2.228),
        (0.95, 30, 2.042),
        (0.95, 120, 1.980),
        (0.99, 5, 4.032),
        (0.90, 60, 1.671),
        (0.50, 3, 0.765),
        (0.999, 8, 5.041),
    ],
)
def test_equals_the_printed_tables(level: float, freedom: int, expected: float) -> None:
    assert two_sided_t(level, freedom + 1) == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize("freedom", [1, 4, 29, 400])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_the_density_between_the_bounds_is_the_level(level: float, freedom: int) -> None:
    t = two_sided_t(level, freedom + 1)
    front = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    steps = 200_000
    width = 2 * t / steps
    middles = (-t + (step + 0.5) * width for step in range(steps))
    inside = math.fsum(front * (1 + x * x / freedom) ** (-(freedom + 1) / 2) * width for x in middles)
    assert inside == pytest.approx(level, abs=1e-7)


@pytest.mark.parametrize("freedom", [1, 1.3, 2, 5.86, 19, 99, 999, 14_695, 10**5])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999, 0.99999])
def test_factors_as_scipys(level: float, freedom: float) -> None:
    assert t_factor(level, freedom) == pytest.approx(float(scipy.stats.t.ppf((1 + level) / 2, freedom)), rel=1e-8)


def test_many_rows_are_normal_and_one_row_says_nothing() -> None:
    assert two_sided_t(0.95, 10**9) == pytest.approx(1.959963984540054, rel=1e-9)
    assert two_sided_t(0.95, 9_999_999) == pytest.approx(1.959963984540054, rel=1e-6)
    assert math.isnan(two_sided_t(0.95, 1))


@pytest.mark.parametrize("t", [0.0, 1e-300, -1e-17, 1e-9, -0.3, 2.0, 40.0, 1e200, -math.inf])
@pytest.mark.parametrize("freedom", [1, 4, 1000])
def test_two_sided_p_as_scipys(t: float, freedom: int) -> None:
    expected = 2 * float(scipy.stats.t.sf(abs(t), freedom))
    assert two_sided_p(t, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("level", [5e-324, 1e-17])
def test_a_tiny_level_has_a_tiny_factor(level: float) -> None:
    assert t_factor(level, 3.0) == 0


@pytest.mark.parametrize("x", [0.0, 1e-300, 0.01, 0.3, 0.5, 0.7, 0.99, 1.0])
@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.5, 40.0), (3.0, 1.5), (1.0, 1.0), (700.0, 300.0), (2e5, 0.5)])
def test_incomplete_beta_as_scipys(x: float, a: float, b: float) -> None:
    expected = float(scipy.special.betainc(a, b, x))
    assert incomplete_beta(x, a, b) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("level", [1e-9, 1e-12])
def test_factors_whose_squares_are_lost_in_rounding_are_near_zero(level: float) -> None:
    assert 0 < t_factor(level, 5.0) < 3e-8


def test_p_values_need_a_degree_of_freedom_and_a_number() -> None:
    assert two_sided_p(1.0, 1) == pytest.approx(0.5, rel=1e-14), "Cauchy's distribution"
    for t, freedom in ((1.0, 0.99), (1.0, 0), (math.nan, 5), (math.nan, 0.5)):
        assert math.isnan(two_sided_p(t, freedom))
