"""Whether one metric agrees better with people than another, and than the length of the response as the control.

The two correlations share a variable, the human scores. Williams' test, for Pearson's r of two metrics with the scores
(r1, r2), of the metrics with each other (r12), and n points:

    t = (r1 - r2) * sqrt((n - 1) * (1 + r12)) / sqrt(2 * K * (n - 1) / (n - 3) + (r1 + r2)^2 / 4 * (1 - r12)^3)
    K = 1 - r1^2 - r2^2 - r12^2 + 2 * r1 * r2 * r12

with n - 3 degrees of freedom, two-sided. It takes points for independent. The permutation test does not: it
standardises both metrics, exchanges them in random dialogues (all points of a dialogue together), and counts how often
the correlations then differ at least as much; its p-value is (1 + that number) / (1 + permutations). With few dialogues
every exchange is made once.

A metric is turned so that higher is better: times -1 where lower values are; one without a direction, and length
itself, whichever way it correlates.

Papers: Williams 1959, "The comparison of regression variables", JRSS B; Steiger 1980, "Tests for comparing elements of
a correlation matrix", Psychological Bulletin; Graham and Baldwin 2014, "Testing for significance of increased
correlation with human judgment", EMNLP.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dialeval.analysis.correlation import FEWEST_POINTS, Points, pearson, standardised
from dialeval.analysis.levels import points_over, used_rows
from dialeval.analysis.matching import RatedRows
from dialeval.analysis.metric_ranking import direction
from dialeval.analysis.resampling import swaps
from dialeval.core.arrays import Floats, Ints
from dialeval.core.student import two_sided_p

CONTROL = "length"
"""The metric that every other is compared with."""

_ROUNDING = 1e-12
"""Two correlations that differ by less than that are equal."""


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """Two metrics against the same human scores, over the points that both score."""

    first: str
    second: str
    level: str
    n: int
    pearson: tuple[float, float]
    williams_t: float
    williams_p: float
    permutation_p: float


def metric_differences(
    rows: RatedRows, keys: Sequence[str], level: str, permutations: int, seed: int
) -> list[MetricDifference]:
    """Every two metrics over the rows that both score, each turned so that higher is better."""
    pairs: dict[tuple[str, str], Pair] = {}
    for first, second in combinations(keys, 2):
        both = np.intersect1d(used_rows(rows, first, level), used_rows(rows, second, level))
        one, other = (points_over(rows, key, both, level) for key in (first, second))
        if len(one) > FEWEST_POINTS:
            pairs[first, second] = Pair(_upwards(first, one), _upwards(second, other), one.second, one.clusters)
    ps = permutation_ps([*pairs.values()], int(rows.dialogue.max(initial=-1)) + 1, permutations, seed)
    differences = []
    for ((first, second), pair), permutation_p in zip(pairs.items(), ps, strict=True):
        n, r = len(pair.human), pair.correlations
        t, p = williams(*r, pearson(pair.first, pair.second), n)
        differences.append(MetricDifference(first, second, level, n, r, t, p, permutation_p))
    return differences


def _upwards(key: str, points: Points) -> Floats:
    """The metric's values times 1 or -1, such that higher is better."""
    turned: Floats = direction(key, pearson(points.first, points.second)) * points.first
    return turned


def williams(first: float, second: float, between: float, n: int) -> tuple[float, float]:
    """Williams' t and its two-sided p-value; NaN below four points."""
    if n < 4 or any(map(math.isnan, (first, second, between))):
        return math.nan, math.nan
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    spread = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + (first + second) ** 2 / 4 * (1 - between) ** 3
    if abs(first - second) <= _ROUNDING or spread <= 0:  # no spread: both metrics are one
        return 0.0, 1.0
    t = (first - second) * math.sqrt((n - 1) * (1 + between)) / math.sqrt(spread)
    return t, two_sided_p(t, n - 3)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two metrics and the human scores over the same points, with the cluster (dialogue) of each point."""

    first: Floats
    second: Floats
    human: Floats
    clusters: Ints

    @property
    def correlations(self) -> tuple[float, float]:
        """Pearson's r of either metric with the scores."""
        return pearson(self.first, self.human), pearson(self.second, self.human)


def permutation_ps(pairs: Sequence[Pair], clusters: int, permutations: int, seed: int) -> list[float]:
    """The p-values of exchanging two metrics in random clusters; NaN where a column is constant.

    All pairs see the same exchanges, and each exchange needs three sums per cluster of a pair.
    """
    observed = np.array([abs(one - other) for one, other in (pair.correlations for pair in pairs)], np.float64)
    known = np.flatnonzero(~np.isnan(observed))
    moved, totals, sizes = _exchanges([pairs[number] for number in known.tolist()], clusters)
    reached, trials = np.zeros(len(known), np.int64), 0
    for chunk in swaps(clusters, permutations, seed):
        trials += len(chunk)
        swapped = (chunk.astype(np.float64) @ moved).reshape(len(chunk), 3, len(known))
        one, other = _r(totals[0] + swapped, sizes), _r(totals[1] - swapped, sizes)
        reached += (np.abs(one - other) >= observed[known] - _ROUNDING).sum(axis=0)
    ps = np.full(len(pairs), np.nan)
    ps[known] = (1 + reached) / (1 + trials)
    return [float(p) for p in ps]


def _exchanges(pairs: Sequence[Pair], clusters: int) -> tuple[Floats, Floats, Floats]:
    """What an exchange in each cluster adds to the sums of the first metric, the sums of both, and n of each pair.

    The sums are of products with the scores, of values, and of their squares, each for all pairs.
    """
    moved = np.zeros((clusters, 3, len(pairs)))
    totals = np.zeros((2, 3, len(pairs)))
    for number, pair in enumerate(pairs):
        x, z, y = (standardised(column) for column in (pair.first, pair.second, pair.human))
        for term, (a, b) in enumerate(((x * y, z * y), (x, z), (x * x, z * z))):
            moved[:, term, number] = np.bincount(pair.clusters, b - a, minlength=clusters)
            totals[:, term, number] = a.sum(), b.sum()
    return moved.reshape(clusters, -1), totals, np.array([float(len(pair.first)) for pair in pairs])


def _r(sums: Floats, n: Floats) -> Floats:
    """r with standardised scores, from the sums of resamples by term and pair."""
    products, values, squares = sums[:, 0], sums[:, 1], sums[:, 2]
    r: Floats = products / np.sqrt(n * (squares - values * values / n))
    return r
