"""Confidence intervals by formula: from a value, its standard error over dialogues, and its range.

    student   value -+ t * error, not beyond the range
    wilson    for a value within a range of two ends, as a fraction p = (value - least) / (largest - least):
              (p + t^2 / 2m -+ t * sqrt(p (1 - p) / m + t^2 / 4m^2)) / (1 + t^2 / m),   m = p (1 - p) / error^2
    gaffke    for a mean of bounded values whose distribution is unknown (see below)
    tango     for a paired difference of yes/no values: the differences D for which the score test does not reject
    rows      mean -+ t * std / sqrt(rows), t = 1.97 unless given: that of dialog-eval, as if rows were independent

t is Student's factor for the level, with Kish's effective number of clusters less one as degrees of freedom
(`core.exact`, which also has the error). `wilson` is for yes/no values (all at one end of the range or at the other)
and for corpus values, `student` for other means. m is the effective sample size: of yes/no values never more than there
are. Of independent yes/no values m is their number, and t that of the normal distribution, since the fraction
determines their spread. Where the value is at an end of its range, nothing is known of the spread within dialogues:
every dialogue counts as one such value. `core.fold.IntervalChoice` chooses between them.

`gaffke` is for the values of tasks that were tried repeatedly (pass^k): bounded, few, and often 0 but for a few tasks,
which the standard error of some tasks does not show. With K values x_k as fractions of the range, and a sample
D_1 ... D_{K+1} of weights from the flat Dirichlet distribution (the Bayesian bootstrap), the upper end is the quantile
(1 + level) / 2 of D_1 x_1 + ... + D_K x_K + D_{K+1} * 1; the lower end is the same with the signs reversed. The
additional value at the end of the range stands for what was not observed. For yes/no values that is Clopper and
Pearson's exact interval. No distribution on a bounded range is known for which it covers less than `level`. The
quantile is computed by numerical inversion of the moment generating function, without random numbers.

`tango` is of b rows in which only the system says yes, c in which only the baseline does, and n rows. The score test of
D divides b - c - n D by its standard deviation where the probabilities are estimated under D; for D = 0 it is McNemar's
(b - c) / sqrt(b + c). The interval has a width also where no row differs, -+ t^2 / (n + t^2). Where dialogues have
several rows, b, c and n are divided by the design effect: what the clustered variance is to that of independent rows. t
is that of the normal distribution where every row is independent, as in Tango's paper, else Student's.

Papers: Student 1908, "The Probable Error of a Mean", Biometrika; Wilson 1927, "Probable Inference, the Law of
Succession, and Statistical Inference", JASA; Korn and Graubard 1998, "Confidence Intervals for Proportions with Small
Expected Number of Positive Counts Estimated from Survey Data", Survey Methodology; Gaffke 2005, "Three Test Statistics
for a Nonparametric One-Sided Hypothesis on the Mean of a Nonnegative Variable", Mathematical Methods of Statistics;
Tango 1998, "Equivalence Test and Confidence Interval for the Difference in Proportions for the Paired-Sample Design",
Statistics in Medicine; Learned-Miller and Thomas 2019, "A New Confidence Interval for the Mean of a Bounded Random
Variable".

Edge cases: of a single row or a single dialogue nothing can be said: there is no interval. A value that counts
different things (distinct) has none either until dialogues are resampled (`analysis.values`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np

from dialeval.core.arrays import Floats

Bounds: TypeAlias = tuple[float, float]
"""The least and the largest value that is possible; infinite where there is no end."""

# Student's t distribution: quantiles for intervals, p-values for tests, without the weight of a statistics library.

_NORMAL_FROM = 10_000_000
"""Degrees of freedom from which the normal distribution is the same to eight digits."""

_MOST_STEPS = 200
_CLOSE_ENOUGH = 1e-13


def two_sided_t(level: float, rows: int) -> float:
    """Return the t for which mean -+ t * std / sqrt(rows) has the given level; NaN for fewer than two rows."""
    return t_factor(level, rows - 1) if rows > 1 else math.nan


@lru_cache(maxsize=1024)
def t_factor(level: float, freedom: float) -> float:
    """Return the t beyond which, on both sides together, there is 1 - level of the distribution."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    if freedom >= _NORMAL_FROM or not normal:  # a level too small to tell from 0 has the factor 0
        return normal
    low = high = normal
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
        if abs(step - t) <= _CLOSE_ENOUGH * t:
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
    if x <= 0:  # a t so near to 0, or so far from it, that its square is lost in rounding
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


DEFAULT_LEVEL = 0.95

_BISECTIONS = 50
"""Of the ends of Tango's interval."""
_STEP, _LAST_NODE, _HALVINGS, _CLOSE = 0.02, 10.0, 14, 1e-12
"""Of Gaffke's interval: the nodes of the integral, the halvings that find its line, and the precision of an end."""


def student(value: float, error: float, bounds: Bounds, t: float) -> tuple[float, float]:
    """Return Student's interval, value -+ t * error, within the bounds."""
    low, high = value - t * error, value + t * error
    # A value may itself be beyond its bounds by a rounding.
    return max(low, min(bounds[0], value)), min(high, max(bounds[1], value))


def wilson(value: float, size: float, bounds: Bounds, t: float) -> tuple[float, float]:
    """Return Wilson's interval of a value with an effective sample size, within the bounds."""
    least, width = bounds[0], bounds[1] - bounds[0]
    fraction = fraction_of_range(value, bounds)
    more = t * t / size
    half = t * math.sqrt(fraction * (1 - fraction) / size + more / (4 * size))
    low, high = ((fraction + more / 2 + way * half) / (1 + more) for way in (-1, 1))
    # Rounding must neither leave the range nor lose the value.
    return min(least + width * max(low, 0.0), value), max(least + width * min(high, 1.0), value)


class PairedCounts(NamedTuple):
    """Paired yes/no values: how often only one side says yes, and of how many; effective numbers, not integers."""

    more: float
    fewer: float
    size: float
    freedom: float

    @classmethod
    def of(cls, differences: Floats, error: float, clusters: int) -> PairedCounts:
        """Count differences between -1 and 1 in some clusters, in which their mean has this standard error.

        Differences that are parts of 1 count as such parts. Without an error every cluster counts as one row.
        """
        more, fewer = (float(np.clip(way * differences, 0, None).mean()) for way in (1, -1))
        spread = more + fewer - (more - fewer) ** 2
        whole = not (differences % 1).any()
        most = len(differences) if whole else math.inf
        size = min(spread / error**2 * clusters / (clusters - 1), most) if error > 0 else clusters
        freedom = math.inf if whole and clusters == len(differences) else max(clusters - 1, 1)
        return cls(more * size, fewer * size, size, freedom)

    def interval(self, level: float) -> tuple[float, float]:
        """Return Tango's interval."""
        return tango(self.more, self.fewer, self.size, t_factor(level, self.freedom))

    @property
    def p(self) -> float:
        """The p-value of McNemar's score test, that of the interval."""
        differ = self.more + self.fewer
        score = abs(self.more - self.fewer) / math.sqrt(differ) if differ else 0.0
        return math.erfc(score / math.sqrt(2)) if math.isinf(self.freedom) else two_sided_p(score, self.freedom)


def tango(more: float, fewer: float, size: float, t: float) -> tuple[float, float]:
    """Return Tango's interval of (more - fewer) / size; the numbers may be effective ones, and no integers."""
    difference = (more - fewer) / size

    def rejects(at: float) -> bool:
        slope, constant = (2 * size - more + fewer) * at - more - fewer, -fewer * at * (1 - at)
        least = (math.sqrt(max(slope * slope - 8 * size * constant, 0.0)) - slope) / (4 * size)
        variance = size * max(2 * least + at * (1 - at), 0.0)
        return (more - fewer - size * at) ** 2 > t * t * variance

    ends = []
    for beyond in (-1.0, 1.0):
        inside, outside = difference, beyond
        for _ in range(_BISECTIONS):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if rejects(middle) else (middle, outside)
        ends.append(inside)
    return ends[0], ends[1]


def gaffke(values: Iterable[tuple[float, int]], bounds: Bounds, level: float) -> tuple[float, float]:
    """Return Gaffke's interval for the mean of values within the bounds, given with how often each occurs."""
    least, width = bounds[0], bounds[1] - bounds[0]
    counted = [(fraction_of_range(value, bounds), count) for value, count in values]
    high = _gaffke_upper(counted, (1 - level) / 2)
    low = 1 - _gaffke_upper([(1 - value, count) for value, count in counted], (1 - level) / 2)
    return least + width * low, least + width * high


def _gaffke_upper(counted: Sequence[tuple[float, int]], tail: float) -> float:
    """Return the point that the mean, with Dirichlet weights and 1 as an additional value, exceeds with `tail`."""
    values, counts = np.array([*counted, (1.0, 1)], np.float64).T
    low, high = float((values[:-1] * counts[:-1]).sum() / counts[:-1].sum()), 1.0
    at_low, at_high, moved = math.nan, math.nan, ""  # logarithms of what exceeds the ends, over the tail
    while high - low > _CLOSE:
        # False position, with the value of an end that stays halved (Illinois); the middle while one is not known.
        point = low + (high - low) * at_low / (at_low - at_high)
        point = point if low < point < high else (low + high) / 2
        ratio = math.log(max(_exceedance_probability(values - point, counts), sys.float_info.min) / tail)
        if abs(ratio) < _CLOSE:
            return point
        if ratio > 0:
            low, at_low, at_high = point, ratio, at_high / 2 if moved == "low" else at_high
            moved = "low"
        else:
            high, at_high, at_low = point, ratio, at_low / 2 if moved == "high" else at_low
            moved = "high"
    return high


def _exceedance_probability(away: Floats, counts: Floats) -> float:
    """Return P(sum of G_j a_j > 0), where G_j has the gamma distribution of shape n_j (`counts`).

    It is the integral of M(s) / s, M(s) = product of (1 - a_j s)^-n_j, along the complex numbers with a real part
    between 0 and 1 / max a. It hardly oscillates where that part makes the integrand smallest on the real axis.
    """
    left, right = 0.0, 1 / float(away.max())
    for _ in range(_HALVINGS):
        real = (left + right) / 2
        left, right = (real, right) if (counts * away / (1 - away * real)).sum() < 1 / real else (left, real)
    flat = 1 - away * real
    scale = 1 / math.sqrt(float((counts * (away / flat) ** 2).sum()) + 1 / real**2)
    nodes = np.arange(0.0, _LAST_NODE, _STEP)
    heights, weights = scale * np.sinh(nodes), np.cosh(nodes) * _STEP
    weights[0] /= 2
    slopes = np.outer(heights, away / flat)
    logs = -(counts * np.log1p(slopes**2)).sum(axis=1) / 2 - np.log(np.hypot(real, heights))
    angles = (counts * np.arctan(slopes)).sum(axis=1) - np.arctan2(heights, real)
    sizes = np.exp(logs - float((counts * np.log(flat)).sum()))
    return float((sizes * np.cos(angles) * weights).sum()) * scale / math.pi


def fraction_of_range(value: float, bounds: Bounds) -> float:
    """Return where a value is in its range: 0 at the least possible value, 1 at the largest."""
    return min(max((value - bounds[0]) / (bounds[1] - bounds[0]), 0.0), 1.0)
