"""Student's t distribution: quantiles for intervals, p-values for tests, without the weight of a statistics library."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL_FROM = 10_000_000
"""Degrees of freedom from which the normal distribution is the same to eight digits."""

_MOST_STEPS = 200
_CLOSE = 1e-13


def two_sided_t(level: float, rows: int) -> float:
    """Return the t for which mean -+ t * std / sqrt(rows) has the given level; NaN for fewer than two rows."""
    return t_factor(level, rows - 1) if rows > 1 else math.nan


@lru_cache(maxsize=1024)
def t_factor(level: float, freedom: float) -> float:
    """Return the t beyond which, on both sides together, there is 1 - level of the distribution."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    if freedom >= _NORMAL_FROM or not normal:  # a level too small to tell from 0 has the factor 0
        return normal
    low, high = normal, 2 * normal
    while 1 - two_sided_p(high, freedom) < level:
        low, high = high, 2 * high
    # Newton's steps from the left end of the bracket, on a curve that bends one way; halving where one leaves it.
    t = low
    front = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    for _ in range(_MOST_STEPS):
        away = level - 1 + two_sided_p(t, freedom)
        low, high = (t, high) if away > 0 else (low, t)
        step = t + away / (2 * front * (1 + t * t / freedom) ** (-(freedom + 1) / 2))
        step = step if low < step < high else (low + high) / 2
        if abs(step - t) <= _CLOSE * t:
            return step
        t = step
    return t


def two_sided_p(t: float, freedom: float) -> float:
    """Return the probability of a value at least as far from 0 as t; NaN without a degree of freedom."""
    if freedom < 1 or math.isnan(t):
        return math.nan
    return incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function, by its continued fraction."""
    if x <= 0:  # the share of a t so near to 0, or so far from it, that its square is lost in rounding
        return 0.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - incomplete_beta(1 - x, b, a)
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
