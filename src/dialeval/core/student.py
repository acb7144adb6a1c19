"""Student's t distribution: quantiles for intervals, p-values for tests, without the weight of a statistics library."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL_FROM = 10_000_000
"""Degrees of freedom from which the normal distribution is the same to eight digits."""


@lru_cache(maxsize=1024)
def two_sided_t(level: float, rows: int) -> float:
    """The t for which an interval mean -+ t * std / sqrt(rows) has the given level; NaN for fewer than two rows."""
    freedom = rows - 1
    if freedom < 1:
        return math.nan
    normal = NormalDist().inv_cdf((1 + level) / 2)
    if freedom >= _NORMAL_FROM:
        return normal
    low, high = normal, 2 * normal
    while 1 - two_sided_p(high, freedom) < level:
        high *= 2
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        low, high = (middle, high) if 1 - two_sided_p(middle, freedom) < level else (low, middle)


def two_sided_p(t: float, freedom: int) -> float:
    """The probability of a value at least as far from 0 as t; NaN without a degree of freedom."""
    if freedom < 1 or math.isnan(t):
        return math.nan
    return _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if x <= 0:  # the share of a t so near to 0, or so far from it, that its square is lost in rounding
        return 0.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    numerator, denominator, value = 1.0, 1 / (1 - (a + b) * x / (a + 1)), 1 / (1 - (a + b) * x / (a + 1))
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1 / (1 + term * denominator)
            numerator = 1 + term / numerator
            value *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-16:
            break
    return front * value
