"""Which metric agrees best with people, and which metrics cannot be told apart.

Metrics are ranked by Spearman's rho with the human scores, turned so that higher is better (`direction`). Two metrics
are compared by the bootstrap that their intervals are of, which draws whole dialogues and gives both metrics the same
resamples:

    t = (rho1 - rho2) / (standard deviation of rho1 - rho2 over the resamples * sqrt(k / (k - 1)))

with k dialogues and k - 1 degrees of freedom, two-sided; p is adjusted for all pairs (Holm). Groups are letters, as in
the compact displays of statisticians: two metrics share a letter exactly if they cannot be told apart. A metric may be
in several groups, for it may be close to two others that differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations, combinations_with_replacement, count
from string import ascii_lowercase

import numpy as np
from msgspec import Struct

from dialeval.analysis.significance import holm
from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.core.student import two_sided_p
from dialeval.metrics.registry import registry

RANKED_BY = "spearman"
SIGNIFICANT = 0.05
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

    def differ(self, one: str, other: str) -> bool:
        """Tell whether two metrics can be told apart: they share no letter."""
        groups = [re.findall("[a-z][0-9]*", place.groups) for place in self.metrics if place.metric in (one, other)]
        return len(groups) == 2 and set(groups[0]).isdisjoint(groups[1])


def direction(metric: str, correlation: float) -> float:
    """Return 1, or -1 where lower values are better; for a metric without a direction, the sign of its correlation."""
    try:
        better = registry().parse(metric).better
    except SettingError:  # a result of a family that is no metric of its own
        better = "higher"
    return {"higher": 1.0, "lower": -1.0, None: math.copysign(1.0, correlation)}[better]


def rank(level: str, values: Mapping[str, float], samples: Mapping[str, Floats], clusters: int) -> MetricRanking:
    """Rank metrics by their correlations; `samples` are those of the resamples of so many dialogues."""
    signs = {metric: direction(metric, value) for metric, value in values.items()}
    turned = {metric: signs[metric] * value for metric, value in values.items()}
    ps = adjusted_ps(turned, {metric: signs[metric] * samples[metric] for metric in values}, clusters)
    order = sorted(values, key=lambda metric: -turned[metric])
    letters = _letters(order, {frozenset(pair) for pair, p in ps.items() if p < SIGNIFICANT})
    places = [Place(metric, turned[metric], signs[metric] < 0, letters[metric]) for metric in order]
    return MetricRanking(RANKED_BY, level, sum(not math.isnan(p) for p in ps.values()), places)


def adjusted_ps(
    values: Mapping[str, float], samples: Mapping[str, Floats], clusters: int
) -> dict[tuple[str, str], float]:
    """Return the p of the difference of every two metrics, in the order in which they were given, adjusted by Holm."""
    pairs = list(combinations(values, 2))
    ps = [_p(values[one] - values[other], samples[one] - samples[other], clusters) for one, other in pairs]
    return dict(zip(pairs, holm(ps), strict=True))


def _letters(metrics: Sequence[str], different: Set[frozenset[str]]) -> dict[str, str]:
    """Return the letters of metrics, of which some pairs are different.

    Each pair that does not differ begins a group unless it shares one, and all others that differ from none of the
    group join it, the best first.
    """
    groups: list[list[str]] = []
    for one, other in combinations_with_replacement(metrics, 2):
        if {one, other} in different or any(one in group and other in group for group in groups):
            continue
        group = [one, other]
        for metric in metrics:
            if metric not in group and not any({metric, each} in different for each in group):
                group.append(metric)
        groups.append(group)
    named = list(zip(groups, _names(), strict=False))
    return {metric: "".join(letter for group, letter in named if metric in group) for metric in metrics}


def _names() -> Iterator[str]:
    """Yield a to z, and then pairs with a number, which do not end."""
    yield from ascii_lowercase
    for number in count(2):
        yield from (f"{letter}{number}" for letter in ascii_lowercase)


def not_above(ranking: MetricRanking, control: str) -> list[str]:
    """Return the metrics that are not significantly better than a control; none where that has no coefficient."""
    values = {place.metric: place.value for place in ranking.metrics}
    others = [metric for metric in values if metric != control and control in values]
    return [metric for metric in others if values[metric] < values[control] or not ranking.differ(metric, control)]


def _p(difference: float, samples: Floats, clusters: int) -> float:
    """Return the two-sided p of a difference, from what it is in the resamples; NaN where these say nothing."""
    known = samples[~np.isnan(samples)]
    if clusters < 2 or len(known) < 2:
        return math.nan
    error = float(known.std(ddof=1)) * math.sqrt(clusters / (clusters - 1))
    if error <= _ROUNDING or abs(difference) <= _ROUNDING:
        return 1.0
    return two_sided_p(difference / error, clusters - 1)
