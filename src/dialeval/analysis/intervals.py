"""Intervals by resampling: how far a value would move if other dialogues had been drawn.

A resample takes as many clusters (dialogues, or single rows where rows stand alone) as there are, with replacement, and
every value is computed anew for it. From the values of many resamples:

- `percentile`: the middle part of them, 95% for a level of 0.95;
- `bca`: the same with the two ends moved to where they correct for bias and for a spread that changes with the value,

      end(alpha) = Phi(z0 + (z0 + z_alpha) / (1 - a (z0 + z_alpha)))

  with z0 from the share of resampled values below the value itself, and the acceleration a from the values without
  one cluster each (jackknife). More than `GROUPS` clusters are left out in that many groups of neighbours: that leaves
  the acceleration as it is on average, and its cost bounded.

A value that counts different things (distinct, numbers of n-grams, entropy: `Metric.counts_kinds`) is smaller in every
resample, since a row that is taken twice adds nothing new: the plain middle part would not even contain the value
itself. Therefore the resampled values are shifted so that their mean is the value. They also vary too little, because a
resample has no word that the rows do not have, whereas the jackknife overestimates the variance (Efron and Stein 1981,
"The Jackknife Estimate of Variance", Annals of Statistics); they are rescaled to the geometric mean of the two standard
deviations, which comes close in simulations. `Resampling.centred` says that this was done. For a value of n rows the
interval is that of other n rows.

A `Fact` about all rows (for KL divergence the distributions of words) is not resampled.

Papers: Efron 1987, "Better Bootstrap Confidence Intervals", JASA; Koehn 2004, "Statistical Significance Tests for
Machine Translation Evaluation", EMNLP.

Edge cases: resamples in which nothing can be scored are left out. Where all resampled values are equal the interval is
that value. Of a single cluster nothing can be said: there is no interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from statistics import NormalDist
from typing import Literal, TypeVar, get_args

import numpy as np

from dialeval.analysis.draws import DEFAULT_LEVEL, DEFAULT_RESAMPLES, DEFAULT_SEED, check_resampling, draws, percentiles
from dialeval.analysis.values import Values
from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.core.fold import Resampling
from dialeval.core.result import Result, Run

Method = Literal["percentile", "bca"]
AnyRun = TypeVar("AnyRun", bound=Run)

_normal = NormalDist()
GROUPS = 1000
"""The most jackknife values that are computed."""


@checked
def with_intervals(
    run: AnyRun,
    method: Method = "percentile",
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = DEFAULT_SEED,
) -> AnyRun:
    """The run with intervals by resampling, for means and for corpus values.

    A key whose values cannot be resampled keeps what it has; a warning of the run says why.
    """
    if method not in get_args(Method):
        raise SettingError(f"intervals are made by {' or '.join(get_args(Method))}, not by {method!r}")
    check_resampling(level, resamples)
    results, warnings = {}, dict.fromkeys(run.warnings)
    for name, result in run.items():
        results[name], reasons = _with_intervals(result, Resampling(method, level, resamples, seed, 0))
        warnings.update(dict.fromkeys(f"{key} has no resampled interval: {why}" for key, why in reasons.items()))
    return replace(run, systems=results, warnings=tuple(warnings))


def _with_intervals(result: Result, how: Resampling) -> tuple[Result, dict[str, str]]:
    values = Values.of(result)
    reasons = dict(values.reasons)
    if values.clusters < 2:
        reasons |= dict.fromkeys(values.keys, "there is only one dialogue, or none")
        return result, reasons
    drawn = values.by_key(draws(values.clusters, how.resamples, how.seed))
    without = (values if how.method == "bca" else values.of_kinds).by_key(leaving_out(values.clusters))
    estimates = dict(result.estimates)
    for key, resampled in drawn.items():
        estimate = estimates[key]
        centred = key in values.of_kinds.metrics
        resampled = recentred(resampled, estimate.mean, without[key]) if centred else resampled
        bounds = interval(resampled, estimate.mean, how.level, without[key] if how.method == "bca" else None)
        if not math.isnan(bounds[0]):
            done = replace(how, clusters=values.clusters, centred=centred)
            estimates[key] = replace(estimate, interval=bounds, resampling=done)
    return replace(result, estimates=estimates), reasons


def recentred(drawn: Floats, value: float, without: Floats) -> Floats:
    """Recentre and rescale the bootstrap values of a type-counting metric, by the values without one cluster each."""
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return drawn
    spread, largest = float(known.std()), jackknife_error(without)
    scale = math.sqrt(largest / spread) if spread > 0 and largest > 0 else 1.0
    moved: Floats = value + (drawn - known.mean()) * scale
    return moved


def jackknife_error(without: Floats) -> float:
    """The standard error of a value from the values without one cluster each; NaN if there are none."""
    known = without[~np.isnan(without)]
    return math.sqrt((len(known) - 1) * float(known.var())) if len(known) else math.nan


def interval(drawn: Floats, value: float, level: float, without: Floats | None = None) -> tuple[float, float]:
    """The interval of a value from its resampled values: percentile or, from the values without clusters, BCa."""
    known = drawn[~np.isnan(drawn)]
    if without is None or not len(known) or known.min() == known.max():
        return percentiles(known, level)
    below = (np.count_nonzero(known < value) + np.count_nonzero(known <= value)) / (2 * len(known))
    # Where all resampled values lie on one side, the share is kept half a resample away from 0 and 1.
    bias = _normal.inv_cdf(min(max(below, 0.5 / len(known)), 1 - 0.5 / len(known)))
    skew = acceleration(without)
    tails = [_normal.inv_cdf((1 - level) / 2), _normal.inv_cdf((1 + level) / 2)]
    ends = [_normal.cdf(bias + (bias + z) / (1 - skew * (bias + z))) for z in tails]
    low, high = np.quantile(known, ends)
    return float(low), float(high)


def acceleration(without: Floats) -> float:
    """How the spread of a value changes with it, from the values without one cluster each; 0 if there is no spread."""
    known = without[~np.isnan(without)]
    away = known.mean() - known if len(known) else known
    spread = float((away**2).sum())
    return float((away**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0


def leaving_out(clusters: int) -> Iterator[Ints]:
    """Counts that leave out one cluster each, or a group of neighbours each where there are many."""
    groups = min(clusters, GROUPS)
    bounds = np.arange(groups + 1) * clusters // groups
    for start in range(0, groups, 64):
        here = range(start, min(start + 64, groups))
        counts = np.ones((len(here), clusters), np.int64)
        for row, group in enumerate(here):
            counts[row, bounds[group] : bounds[group + 1]] = 0
        yield counts
