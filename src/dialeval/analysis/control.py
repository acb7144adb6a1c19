"""Metrics against each other, and against the length of the response as the control.

A metric stands here in the direction in which it is better: times -1 where lower values are; one without a direction,
and length itself, whichever way it correlates. A metric is above the control if its r is, with Williams' test below
0.05; one that is not has shown no more than that longer (or shorter) responses are rated higher.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from dialeval.analysis.correlation import FEWEST_POINTS, Points, pearson
from dialeval.analysis.dependent import Difference, permutation_p, williams
from dialeval.analysis.levels import dialogue_points, used_rows
from dialeval.analysis.matching import RatedRows
from dialeval.core.arrays import Ints
from dialeval.core.errors import SettingError
from dialeval.metrics.registry import registry

CONTROL = "length"
"""The metric that every other is compared with."""

SIGNIFICANT = 0.05


def _direction(key: str, r: float) -> float:
    """1 or -1, such that the metric times it is better when higher."""
    try:
        better = registry().parse(key).better
    except SettingError:  # a result of a family that is no metric of its own
        better = "higher"
    return {"higher": 1.0, "lower": -1.0, None: math.copysign(1.0, r)}[better]


def differences_of(
    rows: RatedRows, points: Mapping[str, Points], level: str, permutations: int, seed: int
) -> list[Difference]:
    """Every two metrics over the rows that both score, each in the direction in which it is better."""
    found = []
    for first, second in combinations(points, 2):
        both = np.intersect1d(used_rows(rows, first, level), used_rows(rows, second, level))
        if len(both) < FEWEST_POINTS + 1:
            continue
        one, other = (_pointwise(rows, key, both, level) for key in (first, second))
        human = one.second
        x, z = (
            _direction(key, pearson(side.first, human)) * side.first for key, side in ((first, one), (second, other))
        )
        r = pearson(x, human), pearson(z, human)
        t, p = williams(*r, pearson(x, z), len(x))
        chance = permutation_p(x, z, human, one.clusters, permutations, seed)
        found.append(Difference(first, second, level, len(x), r, t, p, chance))
    return found


def _pointwise(rows: RatedRows, key: str, used: Ints, level: str) -> Points:
    metric, human = rows.metrics[key][used], rows.human[used]
    return (
        dialogue_points(rows, used, metric, human)
        if level == "dialogue"
        else Points(metric, human, rows.dialogue[used])
    )


def not_above_control(differences: Iterable[Difference], keys: Sequence[str]) -> list[str]:
    """Those of some metrics that are not significantly above the control."""
    above = set()
    for each in differences:
        if CONTROL in (each.first, each.second):
            key = each.second if each.first == CONTROL else each.first
            gain = (each.pearson[0] - each.pearson[1]) * (1 if each.second == CONTROL else -1)
            if gain > 0 and each.williams_p < SIGNIFICANT:
                above.add(key)
    return [key for key in keys if key not in above]
