"""Metrics against each other, and against the length of the response as the control.

A metric stands here in the direction in which it is better: times -1 where lower values are; one without a direction,
and length itself, whichever way it correlates. A metric is above the control if its r is, with Williams' test below
0.05; one that is not has shown no more than that longer (or shorter) responses are rated higher.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from dialeval.analysis.correlation import FEWEST_POINTS, Points, pearson
from dialeval.analysis.dependent import Difference, Pair, permutation_ps, williams
from dialeval.analysis.levels import dialogue_points, used_rows
from dialeval.analysis.matching import RatedRows
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.metrics.registry import registry

CONTROL = "length"
"""The metric that every other is compared with."""

SIGNIFICANT = 0.05


def differences_of(rows: RatedRows, keys: Sequence[str], level: str, permutations: int, seed: int) -> list[Difference]:
    """Every two metrics over the rows that both score, each in the direction in which it is better."""
    pairs: dict[tuple[str, str], Pair] = {}
    for first, second in combinations(keys, 2):
        both = np.intersect1d(used_rows(rows, first, level), used_rows(rows, second, level))
        one, other = (_pointwise(rows, key, both, level) for key in (first, second))
        if len(one) > FEWEST_POINTS:
            pairs[first, second] = Pair(_upwards(first, one), _upwards(second, other), one.second, one.clusters)
    by_chance = permutation_ps([*pairs.values()], int(rows.dialogue.max(initial=-1)) + 1, permutations, seed)
    found = []
    for ((first, second), pair), chance in zip(pairs.items(), by_chance, strict=True):
        n, r = len(pair.human), pair.correlations
        t, p = williams(*r, pearson(pair.first, pair.second), n)
        found.append(Difference(first, second, level, n, r, t, p, chance))
    return found


def _pointwise(rows: RatedRows, key: str, used: Ints, level: str) -> Points:
    metric, human = rows.metrics[key][used], rows.human[used]
    if level == "dialogue":
        return dialogue_points(rows, used, metric, human)
    return Points(metric, human, rows.dialogue[used])


def _upwards(key: str, points: Points) -> Floats:
    """The metric's values times 1 or -1, such that higher is better."""
    try:
        better = registry().parse(key).better
    except SettingError:  # a result of a family that is no metric of its own
        better = "higher"
    signs = {"higher": 1.0, "lower": -1.0, None: math.copysign(1.0, pearson(points.first, points.second))}
    return signs[better] * points.first


def not_above_control(differences: Iterable[Difference], keys: Sequence[str]) -> list[str]:
    """Those of some metrics that are not significantly above the control; none where that has no figures."""
    if CONTROL not in keys:
        return []
    above = {CONTROL}
    for each in differences:
        if CONTROL in (each.first, each.second):
            key = each.second if each.first == CONTROL else each.first
            gain = (each.pearson[0] - each.pearson[1]) * (1 if each.second == CONTROL else -1)
            if gain > 0 and each.williams_p < SIGNIFICANT:
                above.add(key)
    return [key for key in keys if key not in above]
