"""Whether one metric agrees better with people than another: two correlations that share a variable, the human scores.

Williams' test, for Pearson's r of two metrics with the scores (r1, r2), of the metrics with each other (r12), n points:

    t = (r1 - r2) * sqrt((n - 1) * (1 + r12)) / sqrt(2 * K * (n - 1) / (n - 3) + (r1 + r2)^2 / 4 * (1 - r12)^3)
    K = 1 - r1^2 - r2^2 - r12^2 + 2 * r1 * r2 * r12

with n - 3 degrees of freedom, two-sided. It takes points for independent. The permutation test does not: it
standardises both metrics, exchanges them in random dialogues (all points of a dialogue together), and asks how often
the correlations then differ at least as much; its p-value is (1 + that number) / (1 + permutations).

Papers: Williams 1959, "The comparison of regression variables", JRSS B; Steiger 1980, "Tests for comparing elements of
a correlation matrix", Psychological Bulletin; Graham and Baldwin 2014, "Testing for significance of increased
correlation with human judgment", EMNLP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dialeval.analysis.correlation import pearson, standardised
from dialeval.core.arrays import Floats, Ints
from dialeval.core.student import two_sided_p

_CHUNK_CELLS = 1 << 21
_SAME = 1e-12
"""Differences that only rounding makes are no smaller than the observed one."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Two metrics against the same human scores, over the points that both score."""

    first: str
    second: str
    level: str
    n: int
    pearson: tuple[float, float]
    williams_t: float
    williams_p: float
    permutation_p: float


def williams(first: float, second: float, between: float, n: int) -> tuple[float, float]:
    """Williams' t and its two-sided p-value; NaN below four points, or where both metrics are one."""
    if n < 4 or any(map(math.isnan, (first, second, between))):
        return math.nan, math.nan
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    spread = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + (first + second) ** 2 / 4 * (1 - between) ** 3
    if spread <= 0:
        return math.nan, math.nan
    t = (first - second) * math.sqrt((n - 1) * (1 + between)) / math.sqrt(spread)
    return t, two_sided_p(t, n - 3)


def permutation_p(first: Floats, second: Floats, human: Floats, clusters: Ints, permutations: int, seed: int) -> float:
    """The p-value of exchanging two metrics in random clusters; NaN where a column is constant."""
    observed = pearson(first, human) - pearson(second, human)
    if math.isnan(observed):
        return math.nan
    _, codes = np.unique(clusters, return_inverse=True)
    x, z, y = (standardised(column) for column in (first, second, human))
    terms = [(x * y, z * y), (x, z), (x * x, z * z)]
    moved = np.column_stack([np.bincount(codes, b - a) for a, b in terms])
    totals = np.array([(a.sum(), b.sum()) for a, b in terms])
    generator = np.random.default_rng(seed)
    size, reached = len(moved), 0
    for start in range(0, permutations, step := max(1, _CHUNK_CELLS // size)):
        swapped = generator.integers(2, size=(min(step, permutations - start), size)).astype(np.float64) @ moved
        one, other = (_r(totals[:, side] + sign * swapped, len(x)) for side, sign in ((0, 1), (1, -1)))
        reached += int((np.abs(one - other) >= abs(observed) - _SAME).sum())
    return (1 + reached) / (1 + permutations)


def _r(terms: Floats, n: int) -> Floats:
    """r with a standardised column, from sums over the points: of products, of values, of their squares."""
    products, sums, squares = terms.T
    r: Floats = products / np.sqrt(n * (squares - sums * sums / n))
    return r
