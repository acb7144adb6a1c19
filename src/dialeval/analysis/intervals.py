"""Intervals by resampling: how far a value would move if other dialogues had been drawn.

A resample takes as many clusters (dialogues, or single rows where rows stand alone) as there are, with replacement, and
every value is computed anew for it. With T the value of all K clusters:

- `studentised`: T -+ the change that `level` of the studentised changes stay within (`influence`). Every resample is
  measured by a standard error of its own, which makes up for few clusters, for unequal ones and in part for skewed
  values. Yes/no values and pass^k have Wilson's and Gaffke's interval instead (`core.intervals`): where nearly all
  values are equal, resamples contain no other ones, and say nothing about how many there are;
- `percentile`: the middle part of the resampled values. With few clusters they vary too little, so the ends are moved
  outwards by Student's factor: not Phi(-+ z) but Phi(-+ t sqrt(K / (K - 1))) with t of K - 1 degrees of freedom;
- `bca`: the same with the two ends moved to where they correct for bias and for a spread that changes with the value,

      end(z) = Phi(z0 + (z0 + z) / (1 - a (z0 + z)))

  with z as above, z0 from the share of resampled values below the value itself, and the acceleration a from the
  influences of the clusters.

A value that counts different things (distinct, numbers of n-grams, entropy: `Metric.counts_kinds`) cannot be found from
resamples that repeat clusters: what is repeated is not different. In texts with many rare words all its resampled
values lie below it, and vary up to six times too much; in texts of canned replies, too little. Its interval is
T -+ t error, with the jackknife's standard error (`influence`) and K - 1 degrees of freedom, whatever was asked for:
`Resampling.method` is `jackknife`. The jackknife repeats nothing, and its variance is too large rather than too small
(Efron and Stein 1981). For a value of n rows the interval is that of other n rows.

No interval goes beyond what the metric can give (`Metric.bounds`).

KL divergence has no interval (`Metric.untestable`): the distribution of words of all responses is not resampled.

Papers: Efron 1987, "Better Bootstrap Confidence Intervals", JASA; Hesterberg 2015, "What Teachers Should Know About the
Bootstrap", American Statistician (Student's factor for percentiles); Efron and Stein 1981, "The Jackknife Estimate of
Variance", Annals of Statistics; Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation", EMNLP.

Edge cases: resamples in which nothing can be scored are left out. Where all resampled values are equal the interval is
that value. Of a single cluster nothing can be said: there is no interval. Where too many resamples do not vary at all,
studentising fails and the interval is that of the jackknife. Warnings say which intervals may be too narrow: where no
cluster changes a value, and where clusters are few for how skewed they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import NormalDist
from typing import Literal, TypeVar, get_args

import numpy as np

from dialeval.analysis.draws import DEFAULT_LEVEL, DEFAULT_RESAMPLES, DEFAULT_SEED, check_resampling, draws
from dialeval.analysis.influence import Influence, leaving_out, studentised
from dialeval.analysis.values import Values, metric_of
from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate, Level, Resampling
from dialeval.core.intervals import clustered
from dialeval.core.result import Result, Run
from dialeval.core.student import two_sided_t

Method = Literal["studentised", "percentile", "bca"]
AnyRun = TypeVar("AnyRun", bound=Run)

_normal = NormalDist()


@checked
def with_intervals(
    run: AnyRun,
    method: Method = "studentised",
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = DEFAULT_SEED,
) -> AnyRun:
    """The run with intervals by resampling, for means and for corpus values.

    A key whose values cannot be resampled keeps what it has; a warning of the run says why.
    """
    if method not in get_args(Method):
        raise SettingError(f"intervals are made by {', '.join(get_args(Method))}, not by {method!r}")
    check_resampling(level, resamples)
    results, warnings = {}, dict.fromkeys(run.warnings)
    for name, result in run.items():
        results[name], reasons, doubts = _with_intervals(result, Resampling(method, level, resamples, seed, 0))
        warnings.update(dict.fromkeys(f"{key} has no resampled interval: {why}" for key, why in reasons.items()))
        warnings.update(dict.fromkeys(f"{name}: {doubt}" for doubt in doubts))
    return replace(run, systems=results, warnings=tuple(warnings))


def _with_intervals(result: Result, how: Resampling) -> tuple[Result, dict[str, str], list[str]]:
    """The result with intervals, why keys have none, and which intervals are doubtful."""
    values = Values.of(result)
    reasons = dict(values.reasons)
    if values.clusters < 2:
        reasons |= dict.fromkeys(values.keys, "there is only one dialogue, or none")
        return result, reasons, []
    estimates = dict(result.estimates)
    if how.method == "studentised":
        by_formula = _with_formulas(estimates, values, how.level)
        estimates |= by_formula
        values = replace(values, items={key: each for key, each in values.items.items() if key not in by_formula})
    influences = influences_of(values, {key: estimates[key].mean for key in values.keys})
    drawn = values.repeatable.by_key(draws(values.clusters, how.resamples, how.seed))
    changes = {}
    if how.method == "studentised":
        changes = studentised(influences, drawn, draws(values.clusters, how.resamples, how.seed))
    for key, influence in influences.items():
        done = replace(how, clusters=values.clusters)
        if how.method == "studentised" or key not in drawn:
            bounds, by = interval_of_changes(influence, changes.get(key), how.level, values.clusters)
            done = done if by == how.method else replace(done, method=by, resamples=len(influence.changes))
        else:
            bounds = interval(drawn[key], how.level, values.clusters, influence if how.method == "bca" else None)
        if all(map(math.isfinite, bounds)):
            bounds = within_range(bounds, key, estimates[key])
            estimates[key] = replace(estimates[key], interval=bounds, interval_by=done)
        elif not math.isnan(influence.value):
            reasons[key] = "too few dialogues could be scored"
    return replace(result, estimates=estimates), reasons, _doubts(influences)


def _with_formulas(estimates: Mapping[str, Estimate], values: Values, level: float) -> dict[str, Estimate]:
    """Return the yes/no values and values of repeated trials with Wilson's and Gaffke's intervals."""
    made = {}
    for key, items in values.items.items():
        estimate, metric = estimates[key], metric_of(estimates[key])
        if metric is None:
            continue
        rows = values.rows.offsets if estimate.level is Level.TURN else None
        plain = replace(metric.estimate_of_items(key, items, rows), level=estimate.level)
        if plain.error is not None and (plain.error.yes_no or plain.error.values):
            found = clustered(plain, metric.bounds_of(key), level)
            if found is not None:
                (low, high), by = found
                half = (high - low) / 2
                made[key] = replace(estimate, interval=(low, high), confidence=half, interval_by=by)
    return made


def within_range(bounds: tuple[float, float], key: str, estimate: Estimate) -> tuple[float, float]:
    """The interval without what the metric cannot give; a value may itself be beyond its range by a rounding."""
    metric, (low, high) = metric_of(estimate), bounds
    if metric is None:
        return bounds
    least, largest = metric.bounds_of(key)
    return max(low, min(least, estimate.mean)), min(high, max(largest, estimate.mean))


def _doubts(influences: Mapping[str, Influence]) -> list[str]:
    """Sentences about intervals that may be too narrow."""
    few = ", ".join(key for key, influence in influences.items() if influence.few)
    flat = ", ".join(key for key, influence in influences.items() if influence.error == 0)
    doubts = []
    if few:
        doubts.append(f"too few dialogues for values as skewed as {few}; intervals may be too narrow")
    if flat:
        doubts.append(f"no dialogue changes {flat}; intervals without a width say nothing about other dialogues")
    return doubts


def influences_of(values: Values, of: Mapping[str, float]) -> dict[str, Influence]:
    """The influence of the clusters on the value of every key."""
    without = values.by_key(leaving_out(values.clusters), jackknife=True)
    return {key: Influence.of(of[key], without[key], values.counted_rows(key)) for key in without}


def interval_of_changes(
    influence: Influence, changes: Floats | None, level: float, clusters: int
) -> tuple[tuple[float, float], Literal["studentised", "jackknife"]]:
    """The value -+ the change that a share `level` of the studentised changes stay within, and how it was made.

    By the jackknife where there are no changes (kinds), or too many of them are infinite: with two systems that differ
    in one dialogue only, a third of all resamples lack it and do not vary.
    """
    half = math.inf if changes is None or math.isnan(influence.error) else largest_of(changes, level)
    if math.isfinite(half):
        return (influence.value - half, influence.value + half), "studentised"
    half = two_sided_t(level, clusters) * influence.error
    return (influence.value - half, influence.value + half), "jackknife"


def largest_of(changes: Floats, level: float) -> float:
    """The size that a share `level` of some changes stay within; NaN if there are none."""
    sizes = np.sort(np.abs(changes[~np.isnan(changes)]))
    # Of n changes and the true one, each is as likely to be the largest: the rank is among n + 1.
    rank = math.ceil(level * (len(sizes) + 1)) if len(sizes) else 0
    return math.nan if not rank else float(sizes[min(rank, len(sizes)) - 1])


def interval(drawn: Floats, level: float, clusters: int, influence: Influence | None = None) -> tuple[float, float]:
    """The interval of a value from its resampled values: percentile or, with the influence of clusters, BCa."""
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return math.nan, math.nan
    factor = two_sided_t(level, clusters) * math.sqrt(clusters / (clusters - 1))
    ends = [_normal.cdf(-factor), _normal.cdf(factor)]
    if influence is not None and known.min() < known.max():
        below = np.count_nonzero(known < influence.value) + np.count_nonzero(known <= influence.value)
        # Where all resampled values lie on one side, the share is kept half a resample away from 0 and 1.
        share = min(max(below / (2 * len(known)), 0.5 / len(known)), 1 - 0.5 / len(known))
        bias, skew = _normal.inv_cdf(share), influence.acceleration
        ends = [_normal.cdf(bias + (bias + z) / (1 - skew * (bias + z))) for z in (-factor, factor)]
    low, high = np.quantile(known, ends)
    return float(low), float(high)
