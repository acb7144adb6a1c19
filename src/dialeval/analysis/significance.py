"""Is a difference between two systems one, or chance? Tests on pairs, and how much data a difference needs.

All work on clusters: dialogues, or single rows where rows stand alone. With d the difference of two values:

- approximate randomisation: if the systems were the same, it would not matter whose dialogue is whose. In each trial
  the two exchange every dialogue with probability one half; p = (trials with |d'| >= |d|, plus 1) / (trials + 1).
- paired bootstrap: both systems are found anew for the same resamples; p = (resamples whose d* is at least |d| away
  from the mean of all d*, plus 1) / (resamples + 1), two-sided.
- Holm: with m tests, the smallest p is multiplied by m, the next by m - 1, and so on, never below one before it.
- least difference: (z(1 - alpha / 2) + z(power)) * standard error is what such data would show with that power; the
  standard error falls with the root of the number of dialogues, which gives how many a smaller difference would need.

Papers: Noreen 1989, "Computer-Intensive Methods for Testing Hypotheses"; Riezler and Maxwell 2005, "On Some Pitfalls
in Automatic Evaluation and Significance Testing for MT", ACL workshop; Holm 1979, "A Simple Sequentially Rejective
Multiple Test Procedure", Scandinavian Journal of Statistics.

Edge cases: a trial or resample without a value is left out. Systems that are equal in every row have p = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from dialeval.core.arrays import Floats

POWER = 0.8
"""The power that the least difference and the number of dialogues are given for."""

_HOPELESS = 1e6
"""A difference so many times smaller than what the data can show is none that anybody could collect data for."""

_ROUNDING = 1e-11
"""Differences that are equal but for rounding count as equal, relative to the values that they are made of."""


def randomisation_p(difference: float, trials: Floats, scale: float) -> float:
    """The p of a difference from those between systems that exchanged dialogues; `scale`: the size of the values."""
    return _share_beyond(np.abs(trials), difference, scale)


def bootstrap_p(difference: float, resampled: Floats, scale: float) -> float:
    """The p of a difference from those of resamples."""
    known = resampled[~np.isnan(resampled)]
    return _share_beyond(np.abs(known - known.mean()) if len(known) else known, difference, scale)


def _share_beyond(sizes: Floats, difference: float, scale: float) -> float:
    known = sizes[~np.isnan(sizes)]
    if math.isnan(difference) or not len(known):
        return math.nan
    beyond = np.count_nonzero(known >= abs(difference) - _ROUNDING * scale)
    return (int(beyond) + 1) / (len(known) + 1)


def holm(ps: Sequence[float]) -> list[float]:
    """The adjusted p of each test of a family; NaN where there was no test, which then does not count."""
    order = [at for at in np.argsort(ps, kind="stable").tolist() if not math.isnan(ps[at])]
    adjusted, largest = [math.nan] * len(ps), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * ps[at]))
        adjusted[at] = largest
    return adjusted


def cohen_d(cluster_differences: Floats) -> float:
    """Mean over standard deviation of the differences of clusters; NaN for fewer than two or where all are equal."""
    known = cluster_differences[~np.isnan(cluster_differences)]
    spread = float(known.std(ddof=1)) if len(known) > 1 else 0.0
    if spread <= _ROUNDING * float(np.abs(known).max(initial=0.0)):
        return 0.0 if len(known) > 1 and not known.any() else math.nan
    return float(known.mean()) / spread


def least_difference(error: float, alpha: float, power: float = POWER) -> float:
    """The difference that would be found with a given power, from the standard error of a difference."""
    normal = NormalDist()
    return (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) * error


def needed_clusters(clusters: int, least: float, difference: float) -> int | None:
    """How many clusters it would take to find a smaller or larger difference with the same power."""
    if not difference or math.isnan(least) or least / abs(difference) > _HOPELESS:
        return None
    return max(2, math.ceil(clusters * (least / difference) ** 2))
