"""The points that a metric is correlated over: rated turns, dialogues, or systems, each with the metric's value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dialeval.analysis.correlation import FEWEST_POINTS, MeanPoints, Points, within_one
from dialeval.analysis.matching import RatedRows
from dialeval.core.arrays import Ints
from dialeval.core.errors import DialevalError

LEVELS = ("turn", "dialogue", "system")

LEAST_SHARE = 0.25
"""Of the rated rows that metrics score, the share that they must have in common."""
MOST_NAMED = 3


class NoPointsError(DialevalError):
    """A metric cannot be correlated over the `n` points of a level; the message is the reason that people read."""

    def __init__(self, reason: str, n: int = 0) -> None:
        super().__init__(reason)
        self.n = n


def on_common_rows(rows: RatedRows) -> tuple[RatedRows, dict[str, str], list[str]]:
    """Return the rows with values only where all metrics have one, so that all are compared on the same.

    Metrics are taken in from the one that scores most rated rows down. One that would leave fewer than `LEAST_SHARE` of
    them is left out. Also return what was left out: metrics by their reasons, and sentences about rows.
    """
    scored = {key: ~np.isnan(rows.human) & ~np.isnan(values) for key, values in rows.metrics.items()}
    rated = np.any(list(scored.values()), axis=0)
    common, left_out = rated, {}
    for key in sorted(scored, key=lambda key: -int(scored[key].sum())):
        shared, own = common & scored[key], int(scored[key].sum())
        if shared.sum() >= LEAST_SHARE * rated.sum():
            common = shared
        elif own:
            left_out[key] = (
                f"is left out, since it scores {own} of {int(rated.sum())} rated rows, and only {int(shared.sum())} of "
                "those that the other metrics score"
            )
    kept = {key: np.where(common & (key not in left_out), values, np.nan) for key, values in rows.metrics.items()}
    missing = {key: int((rated & ~scored[key]).sum()) for key in kept if key not in left_out and scored[key].any()}
    short = sorted((key for key, count in missing.items() if count), key=lambda key: -missing[key])
    sentences: list[str] = []
    if short:
        more = f" and {len(short) - MOST_NAMED} more" if len(short) > MOST_NAMED else ""
        why = ", ".join(f"{key} cannot score {missing[key]}" for key in short[:MOST_NAMED]) + more
        count = f"{int(rated.sum() - common.sum())} of {int(rated.sum())} rated rows"
        sentences = [f"{count} are left out, so that all metrics have the same: {why}"]
    return replace(rows, metrics=kept), left_out, [*sentences, *(f"{key} {reason}" for key, reason in left_out.items())]


def used_rows(rows: RatedRows, key: str, level: str) -> Ints:
    """Return the rows with both values that count at a level."""
    known = ~np.isnan(rows.human) & ~np.isnan(rows.metrics[key])
    if level == "turn":
        known &= ~rows.whole
    if level == "system":
        known &= rows.system >= 0
    return np.flatnonzero(known)


def points_of(rows: RatedRows, key: str, level: str) -> Points:
    """Return the points of a metric at a level; `NoPointsError` says why there are none."""
    if level == "turn" and key in rows.of_dialogues:
        raise NoPointsError("scores whole dialogues and not turns")
    used = used_rows(rows, key, level)
    if not len(used):
        raise NoPointsError(_why_unused(rows, key, level))
    points = points_over(rows, key, used, level)
    if level == "system":
        systems, codes = np.unique(rows.system[used], return_inverse=True)
        points = MeanPoints(points.first, points.second, points.clusters, codes.ravel(), len(systems))
    if len(points) < FEWEST_POINTS:
        number = f"{len(points)} {level}{'' if len(points) == 1 else 's'}"
        raise NoPointsError(f"{number} cannot be correlated; {FEWEST_POINTS} can", len(points))
    if np.isnan(points.values()[0]):
        raise NoPointsError(_constant_side(points), len(points))
    return points


def points_over(rows: RatedRows, key: str, used: Ints, level: str) -> Points:
    """Return a metric and the human scores of some rows; of dialogues the means over each system's rows.

    Both are divided by a power of two (`within_one`), which no correlation depends on.
    """
    metric, human = within_one(rows.metrics[key][used]), within_one(rows.human[used])
    if level != "dialogue":
        return Points(metric, human, rows.dialogue[used])
    pairs = np.column_stack((rows.system[used], rows.dialogue[used]))
    distinct, codes = np.unique(pairs, axis=0, return_inverse=True)
    codes = codes.ravel()
    sizes = np.bincount(codes)
    first, second = (np.bincount(codes, column) / sizes for column in (metric, human))
    return Points(first, second, distinct[:, 1].astype(np.int64))


def _why_unused(rows: RatedRows, key: str, level: str) -> str:
    if np.isnan(rows.metrics[key]).all():
        return "no rated row could be scored"
    if level == "turn":
        return "whole dialogues were rated and not turns"
    return "no rated row names its system" if level == "system" else "no row has both values"


def _constant_side(points: Points) -> str:
    if np.ptp(points.first) == 0:
        return "the metric gives the same value to every row"
    if np.ptp(points.second) == 0:
        return "all human scores are the same"
    return "one side is the same everywhere, or but for rounding"
