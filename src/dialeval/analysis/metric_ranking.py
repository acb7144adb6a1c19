"""Rank metrics by their correlation with human ratings, and test their differences.

Metrics are ranked by Spearman's rho with the human scores, turned so that higher is better (`find_direction`). Two
metrics are compared by a bootstrap that draws whole dialogues and gives both metrics the same resamples:

    t = (rho1 - rho2) / (standard deviation of rho1 - rho2 over the resamples * sqrt(k / (k - 1)))

with k dialogues and k - 1 degrees of freedom, two-sided; p is adjusted for all pairs (Holm). At the level of systems
whole systems are drawn instead, from `FEWEST_SYSTEMS` systems on. Groups are letters, as in the compact displays of
statisticians: two metrics share a letter exactly if they do not differ significantly. A metric may be in several
groups, for it may be close to two others that differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from msgspec import Struct

from dialeval.analysis.matching import RatedRows
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import DialevalError, SettingError
from dialeval.metrics.registry import registry
from dialeval.stats.correlation import FEWEST_POINTS, Points, scale_to_unit
from dialeval.stats.intervals import two_sided_p
from dialeval.stats.significance import find_homogeneous_groups, holm, letter_display

RANKED_BY = "spearman"
SIGNIFICANT = 0.05
CONTROL = "length"
"""The metric that every other is compared with."""
_ROUNDING = 1e-12
"""Two correlations that differ by less than that are equal."""


class Place(Struct, frozen=True):
    """A metric in the ranking."""

    metric: str
    value: float
    """Its correlation, turned so that higher is better."""
    turned: bool
    """Whether that is -1 times its correlation."""
    groups: str
    """A letter for each group that it is in."""


class MetricRanking(Struct, frozen=True):
    """The metrics that have coefficients at one level, the best first."""

    by: str
    level: str
    tests: int
    """The pairs that were tested."""
    metrics: Sequence[Place]
    test: str = ""
    """The test of the difference of two correlations."""
    p: Mapping[str, Mapping[str, float]] = {}
    """The adjusted p-value of each two metrics, the better one first; NaN where they were not tested."""

    def differ(self, one: str, other: str) -> bool:
        """Return whether two metrics differ significantly: they share no letter."""
        groups = [re.findall("[a-z][0-9]*", place.groups) for place in self.metrics if place.metric in (one, other)]
        return len(groups) == 2 and set(groups[0]).isdisjoint(groups[1])


def find_direction(metric: str, correlation: float) -> float:
    """Return 1, or -1 where lower values are better; where neither is, the sign of the correlation."""
    try:
        better = registry().parse(metric).better
    except SettingError:  # a result of a family that is no metric of its own
        better = "higher"
    return {"higher": 1.0, "lower": -1.0, None: math.copysign(1.0, correlation)}[better]


def rank_metrics(
    level: str, values: Mapping[str, float], samples: Mapping[str, Floats], clusters: int
) -> MetricRanking:
    """Rank metrics by their correlations; `samples` are those of resamples of `clusters` dialogues or systems."""
    signs = {metric: find_direction(metric, value) for metric, value in values.items()}
    turned = {metric: signs[metric] * value for metric, value in values.items()}
    ps = compare_pairs(turned, {metric: signs[metric] * samples[metric] for metric in values}, clusters)
    order = sorted(values, key=lambda metric: -turned[metric])
    different = {frozenset(pair) for pair, p in ps.items() if p < SIGNIFICANT}
    letters = letter_display(find_homogeneous_groups(order, different))
    places = [Place(metric, turned[metric], signs[metric] < 0, letters[metric]) for metric in order]
    over = f"{clusters} {'systems' if level == 'system' else 'dialogues'}"
    test = f"paired bootstrap of the difference in {RANKED_BY} over {over}, Student's t, adjusted by Holm"
    known = ps | {(other, one): p for (one, other), p in ps.items()}
    table = {one: {other: known[one, other] for other in order[at:]} for at, one in enumerate(order[:-1], 1)}
    return MetricRanking(RANKED_BY, level, sum(not math.isnan(p) for p in ps.values()), places, test, table)


def compare_pairs(
    values: Mapping[str, float], samples: Mapping[str, Floats], clusters: int
) -> dict[tuple[str, str], float]:
    """Return the p of the difference of every two metrics, in the order in which they were given, adjusted by Holm."""
    pairs = list(combinations(values, 2))
    ps = [_compute_p(values[one] - values[other], samples[one] - samples[other], clusters) for one, other in pairs]
    return dict(zip(pairs, holm(ps), strict=True))


def list_not_above(ranking: MetricRanking, control: str) -> list[str]:
    """Return the metrics that are not significantly better than a control; none where that has no coefficient."""
    values = {place.metric: place.value for place in ranking.metrics}
    others = [metric for metric in values if metric != control and control in values]
    return [metric for metric in others if values[metric] < values[control] or not ranking.differ(metric, control)]


def _compute_p(difference: float, samples: Floats, clusters: int) -> float:
    """Return the two-sided p of a difference, from its values in resamples; NaN with fewer than two of them."""
    known = samples[~np.isnan(samples)]
    if clusters < 2 or len(known) < 2:
        return math.nan
    error = float(known.std(ddof=1)) * math.sqrt(clusters / (clusters - 1))
    if error <= _ROUNDING or abs(difference) <= _ROUNDING:
        return 1.0
    return two_sided_p(difference / error, clusters - 1)


# The points that a metric is correlated over: rated turns, dialogues, or systems, each with the metric's value.

LEVELS = ("turn", "dialogue", "system")

FEWEST_SYSTEMS = 6
"""The fewest systems for inference about other systems: intervals, p-values and groups at the level of systems."""
LEAST_SHARE = 0.25
"""Of the rated rows that metrics score, the share that they must have in common."""
MOST_NAMED = 3


class NoPointsError(DialevalError):
    """A metric cannot be correlated over the `n` points of a level; the message is the reason that people read."""

    def __init__(self, reason: str, n: int = 0) -> None:
        super().__init__(reason)
        self.n = n


def keep_common_rows(rows: RatedRows) -> tuple[RatedRows, dict[str, str], list[str]]:
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
    for n in dict.fromkeys(rows.learned.values()):
        names = ", ".join(key for key, own in rows.learned.items() if own == n)
        sentences.append(f"{n} of {len(rows)} rated rows are not scored by {names}, which learned from them")
    sentences += [f"{key} {reason}" for key, reason in left_out.items()]
    return replace(rows, metrics=kept), left_out, sentences


def find_used_rows(rows: RatedRows, key: str, level: str) -> Ints:
    """Return the rows with both values that count at a level."""
    known = ~np.isnan(rows.human) & ~np.isnan(rows.metrics[key])
    if level == "turn":
        known &= ~rows.whole
    if level == "system":
        known &= rows.system >= 0
    return np.flatnonzero(known)


def make_points(rows: RatedRows, key: str, level: str) -> Points:
    """Return the points of a metric at a level; `NoPointsError` says why there are none."""
    if level == "turn" and key in rows.of_dialogues:
        raise NoPointsError("scores dialogues, not turns")
    used = find_used_rows(rows, key, level)
    if not len(used):
        raise NoPointsError(_explain_unused(rows, key, level))
    points = collect_points(rows, key, used, level)
    if len(points) < FEWEST_POINTS:
        number = f"{len(points)} {level}{'' if len(points) == 1 else 's'}"
        raise NoPointsError(f"{number} cannot be correlated; {FEWEST_POINTS} can", len(points))
    if np.isnan(points.correlate()[0]):
        raise NoPointsError(_describe_constant(points), len(points))
    return points


def collect_points(rows: RatedRows, key: str, used: Ints, level: str) -> Points:
    """Return a metric and the human scores of some rows, their means over the rows of each point.

    Both are divided by a power of two (`scale_to_unit`), which no correlation depends on.
    """
    metric, human = scale_to_unit(rows.metrics[key][used]), scale_to_unit(rows.human[used])
    codes, clusters = number_points(rows, used, level)
    sizes = np.bincount(codes)
    first, second = (np.bincount(codes, column) / sizes for column in (metric, human))
    return Points(first, second, clusters)


def number_points(rows: RatedRows, used: Ints, level: str) -> tuple[Ints, Ints]:
    """Return the point of each row at a level, and the cluster of each point: its dialogue, or its system."""
    if level == "turn":
        return np.arange(len(used)), rows.dialogue[used]
    columns = [rows.system[used]] if level == "system" else [rows.system[used], rows.dialogue[used]]
    distinct, codes = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    return codes.ravel(), distinct[:, -1].astype(np.int64)


def _explain_unused(rows: RatedRows, key: str, level: str) -> str:
    if np.isnan(rows.metrics[key]).all():
        return "it learned from all rated rows" if key in rows.learned else "no rated row could be scored"
    if level == "turn":
        return "whole dialogues were rated and not turns"
    return "no rated row names its system" if level == "system" else "no row has both values"


def _describe_constant(points: Points) -> str:
    if np.ptp(points.first) == 0:
        return "the metric gives the same value to every row"
    if np.ptp(points.second) == 0:
        return "all human scores are the same"
    return "one of the two is constant (up to rounding)"
