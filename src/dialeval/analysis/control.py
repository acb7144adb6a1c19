"""Metrics against each other, and against the length of the response as the control.

A metric is turned so that higher is better: times -1 where lower values are; one without a direction, and length
itself, whichever way it correlates. A metric is above the control if its r is, with Williams' test below 0.05; one that
is not has shown no more than that longer (or shorter) responses are rated higher.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dialeval.analysis.correlation import FEWEST_POINTS, Points, pearson
from dialeval.analysis.dependent import Pair, permutation_ps, williams
from dialeval.analysis.levels import points_over, used_rows
from dialeval.analysis.matching import RatedRows
from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.metrics.registry import registry

CONTROL = "length"
"""The metric that every other is compared with."""

SIGNIFICANT = 0.05


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
    try:
        better = registry().parse(key).better
    except SettingError:  # a result of a family that is no metric of its own
        better = "higher"
    signs = {"higher": 1.0, "lower": -1.0, None: math.copysign(1.0, pearson(points.first, points.second))}
    return signs[better] * points.first


def not_above_control(differences: Iterable[MetricDifference], keys: Sequence[str]) -> list[str]:
    """Those of some metrics that are not significantly above the control; none where that has no figures."""
    if CONTROL not in keys:
        return []
    above = {CONTROL}
    for each in differences:
        if CONTROL in (each.first, each.second) and each.williams_p < SIGNIFICANT:
            above.add(each.first if each.pearson[0] > each.pearson[1] else each.second)
    return [key for key in keys if key not in above]
