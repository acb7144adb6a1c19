"""Intervals by resampling: how far a value would move if other dialogues had been drawn.

A resample takes as many clusters (dialogues, or single rows where rows stand alone) as there are, with replacement;
every value is found anew for it. From the values of many resamples:

- `percentile`: the middle part of them, 95% for a level of 0.95;
- `bca`: the same with the two ends moved to where they correct for bias and for a spread that changes with the value,

      end(alpha) = Phi(z0 + (z0 + z_alpha) / (1 - a (z0 + z_alpha)))

  with z0 from the share of resampled values below the value itself, and the acceleration a from the values without
  one cluster each (jackknife). More than `GROUPS` clusters are left out in that many groups of neighbours: that leaves
  the acceleration as it is on average, and its cost bounded.

A value about how many different things there are (distinct, numbers of n-grams, entropy: `Metric.counts_kinds`) is
smaller in every resample, since what is taken twice is not different: of the plain middle part none would contain the
value itself. Such values are moved by the difference between the value and the mean of the resampled ones before
anything else; `Resampling.centred` says so. For a value of n rows the interval is that of other n rows.

What is known of all rows beforehand (a `Fact`: for KL divergence the distributions of words) stays as it is.

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

from dialeval.analysis.draws import DEFAULT_LEVEL, DEFAULT_RESAMPLES, DEFAULT_SEED, draws, percentiles
from dialeval.analysis.values import Values
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.core.fold import Resampling
from dialeval.core.result import Result, Run

Method = Literal["percentile", "bca"]
AnyRun = TypeVar("AnyRun", bound=Run)

GROUPS = 1000
"""At most so many jackknife values are made."""


def with_intervals(
    run: AnyRun,
    method: Method = "percentile",
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = DEFAULT_SEED,
) -> AnyRun:
    """The run with intervals by resampling, for means and for values of all rows together.

    A key whose values cannot be resampled keeps what it has; a warning of the run says why.
    """
    check_resampling(method, level, resamples)
    results, warnings = {}, dict.fromkeys(run.warnings)
    for name, result in run.items():
        results[name], reasons = _with_intervals(result, Resampling(method, level, resamples, seed, 0))
        warnings.update(dict.fromkeys(f"{key} has no resampled interval: {why}" for key, why in reasons.items()))
    return replace(run, systems=results, warnings=tuple(warnings))


def check_resampling(method: str, level: float, resamples: int) -> None:
    """Refuse settings that make no interval."""
    if method not in get_args(Method):
        raise SettingError(f"intervals are made by {' or '.join(get_args(Method))}, not by {method!r}")
    if not 0 < level < 1:
        raise SettingError(f"a level lies between 0 and 1, such as 0.95; it is not {level}")
    if resamples < 1:
        raise SettingError(f"at least one resample is needed, not {resamples}")


def _with_intervals(result: Result, how: Resampling) -> tuple[Result, dict[str, str]]:
    values = Values.of(result)
    reasons = dict(values.reasons)
    if values.clusters < 2:
        reasons |= dict.fromkeys(values.keys, "there is only one dialogue, or none")
        return result, reasons
    found = values.under(draws(values.clusters, how.resamples, how.seed))
    without = values.under(leaving_out(values.clusters)) if how.method == "bca" else None
    estimates = dict(result.estimates)
    for column, key in enumerate(values.keys):
        estimate = estimates[key]
        centred = key in values.metrics and values.metrics[key].counts_kinds
        drawn = recentred(found[:, column], estimate.mean) if centred else found[:, column]
        jackknife = None if without is None else without[:, column]
        bounds = interval(drawn, estimate.mean, how.level, jackknife)
        if not math.isnan(bounds[0]):
            told = replace(how, clusters=values.clusters, centred=centred)
            estimates[key] = replace(estimate, interval=bounds, resampling=told)
    return replace(result, estimates=estimates), reasons


def recentred(drawn: Floats, value: float) -> Floats:
    """Resampled values moved so that their mean is the value itself."""
    known = drawn[~np.isnan(drawn)]
    return drawn + (value - known.mean()) if len(known) else drawn


def interval(drawn: Floats, value: float, level: float, without: Floats | None = None) -> tuple[float, float]:
    """The interval of a value from its resampled values: percentile or, from the values without clusters, BCa."""
    known = drawn[~np.isnan(drawn)]
    if without is None or not len(known) or known.min() == known.max():
        return percentiles(known, level)
    below = (np.count_nonzero(known < value) + np.count_nonzero(known <= value)) / (2 * len(known))
    # Where every resampled value lies on one side, as far over as this many resamples can tell.
    bias = _normal.inv_cdf(min(max(below, 0.5 / len(known)), 1 - 0.5 / len(known)))
    skew = acceleration(without)
    ends = [_normal.cdf(bias + (bias + z) / (1 - skew * (bias + z))) for z in _tails(level)]
    low, high = np.quantile(known, ends)
    return float(low), float(high)


_normal = NormalDist()


def _tails(level: float) -> tuple[float, float]:
    return _normal.inv_cdf((1 - level) / 2), _normal.inv_cdf((1 + level) / 2)


def acceleration(without: Floats) -> float:
    """How the spread of a value changes with it, from the values without one cluster each; 0 if there is no spread."""
    known = without[~np.isnan(without)]
    away = known.mean() - known if len(known) else known
    spread = float((away**2).sum())
    return float((away**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0


def leaving_out(clusters: int) -> Iterator[Ints]:
    """Every cluster once but one, for each of them; or but a group of neighbours, where there are many."""
    groups = min(clusters, GROUPS)
    bounds = np.arange(groups + 1) * clusters // groups
    for start in range(0, groups, 64):
        here = range(start, min(start + 64, groups))
        counts = np.ones((len(here), clusters), np.int64)
        for row, group in enumerate(here):
            counts[row, bounds[group] : bounds[group + 1]] = 0
        yield counts
