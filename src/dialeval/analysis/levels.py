"""The points that a metric is correlated over: rated turns, dialogues, or systems, each with the metric's value.

A level that has no figures has a reason instead, in words for people.
"""

from __future__ import annotations

import numpy as np

from dialeval.analysis.correlation import FEWEST_POINTS, MeanPoints, Points
from dialeval.analysis.matching import RatedRows
from dialeval.core.arrays import Floats, Ints

LEVELS = ("turn", "dialogue", "system")


def used_rows(rows: RatedRows, key: str, level: str) -> Ints:
    """The rows with both values that count at a level."""
    known = ~np.isnan(rows.human) & ~np.isnan(rows.metrics[key])
    if level == "turn":
        known &= ~rows.whole
    if level == "system":
        known &= rows.system >= 0
    return np.flatnonzero(known)


def points_of(rows: RatedRows, key: str, level: str) -> Points | MeanPoints | str:
    """The points of a metric at a level, or why there are none."""
    if level == "turn" and key in rows.of_dialogues:
        return "scores whole dialogues and not turns"
    used = used_rows(rows, key, level)
    if not len(used):
        return _nothing(rows, key, level)
    metric, human, dialogue = rows.metrics[key][used], rows.human[used], rows.dialogue[used]
    points: Points | MeanPoints
    if level == "turn":
        points = Points(metric, human, dialogue)
    elif level == "dialogue":
        points = dialogue_points(rows, used, metric, human)
    else:
        systems, codes = np.unique(rows.system[used], return_inverse=True)
        points = MeanPoints(Points(metric, human, dialogue), codes.astype(np.int64), len(systems))
    if len(points) < FEWEST_POINTS:
        return f"{len(points)} {level}{'' if len(points) == 1 else 's'} cannot be correlated; {FEWEST_POINTS} can"
    constant = np.isnan(points.values()[0])
    return _constant_side(points) if constant else points


def dialogue_points(rows: RatedRows, used: Ints, metric: Floats, human: Floats) -> Points:
    """The means of each system's dialogues."""
    pairs = np.column_stack((rows.system[used], rows.dialogue[used]))
    distinct, codes = np.unique(pairs, axis=0, return_inverse=True)
    codes = codes.ravel()
    sizes = np.bincount(codes)
    first, second = (np.bincount(codes, column) / sizes for column in (metric, human))
    return Points(first, second, distinct[:, 1].astype(np.int64))


def _nothing(rows: RatedRows, key: str, level: str) -> str:
    if np.isnan(rows.metrics[key]).all():
        return "no rated row could be scored"
    if level == "turn":
        return "whole dialogues were rated and not turns"
    return "no rated row names its system" if level == "system" else "no row has both values"


def _constant_side(points: Points | MeanPoints) -> str:
    rows = points if isinstance(points, Points) else points.rows
    if np.ptp(rows.first) == 0:
        return "the metric gives the same value to every row"
    return "all human scores are the same" if np.ptp(rows.second) == 0 else "one side is the same everywhere"


def count_points(rows: RatedRows, key: str, level: str) -> int:
    """How many points a metric has at a level."""
    used = used_rows(rows, key, level)
    if level == "turn":
        return 0 if key in rows.of_dialogues else len(used)
    sides = (rows.system[used], rows.dialogue[used])
    return len(np.unique(sides[0])) if level == "system" else len(set(zip(*(s.tolist() for s in sides), strict=True)))
