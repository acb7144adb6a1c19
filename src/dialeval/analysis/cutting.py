"""The result of some rows of a system: every figure as if only these rows had been evaluated.

A mean is that of the items of the rows, with the interval that an evaluation would give. A corpus value is made anew
from what the rows contribute (`values`), with the interval of the jackknife over dialogues (`influence`). A value of
dialogues is that of the dialogues with one of the rows.

What a metric knows of all rows (`Metric.facts`: for KL divergence the distribution of words) stays as it is. A value to
which whole dialogues contribute (`Metric.whole_dialogues`) is left out where only a part of one is taken.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dialeval.analysis.draws import DEFAULT_SEED
from dialeval.analysis.intervals import influences_of, interval_of_changes, within_range
from dialeval.analysis.values import NO_DIALOGUES, Values, cluster_sums, metric_of
from dialeval.core.arrays import Ints
from dialeval.core.contributions import taken
from dialeval.core.errors import SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import ANY_NUMBER, Analytic, Estimate, Level, Resampling
from dialeval.core.intervals import DEFAULT_LEVEL, IntervalChoice
from dialeval.core.result import Result
from dialeval.core.rowtable import RowTable


def cut(result: Result, rows: Ints, called: str | None = None, intervals: bool = True) -> Result:
    """Return the result of some rows of a system, as if only these had been evaluated.

    Rows of one dialogue are neighbors in `rows`. `called` is added to the signatures. Without `intervals` corpus values
    have none, which saves most of the time.
    """
    table = table_of(result)
    part, clusters = table.take(rows), table.clusters[rows]
    dialogues = clusters[np.flatnonzero(np.diff(clusters, prepend=-1))]
    whole = len(rows) == int(np.diff(table.offsets)[dialogues].sum())
    places = {Level.TURN: (rows, len(table)), Level.DIALOGUE: (dialogues, len(table.offsets) - 1)}
    found: dict[str, Estimate] = {}
    skipped = dict(result.skipped)
    for key, estimate in result.items():
        taken_rows, count = places[estimate.level]
        items, metric = estimate.items, metric_of(estimate)
        if items is not None and len(items) != count:
            skipped[key] = f"it has {len(items)} values for {count} {estimate.level}s"
        elif estimate.corpus and metric is not None and metric.whole_dialogues and not whole:
            skipped[key] = "whole dialogues contribute to it, and the slice has parts of some"
        elif estimate.corpus or items is not None:
            own = None if items is None else items[taken_rows]
            found[key] = _remade(key, replace(estimate, rows=len(taken_rows), items=own), part)
        else:
            skipped[key] = "the run holds no values of single rows for it"
    contributions = {name: taken(each, rows) for name, each in result.contributions.items()}
    if called is not None:
        found = {key: _signed(estimate, called) for key, estimate in found.items()}
    made = replace(result, estimates=found, skipped=skipped, rows=part, contributions=contributions)
    return _with_corpus_values(made, result, intervals)


def weigh_dialogues(result: Result) -> Result:
    """Return a result in which every dialogue counts once: a mean over rows becomes a mean over means of dialogues."""
    table = table_of(result)
    found = dict(result.estimates)
    for key, estimate in result.items():
        if not estimate.corpus and estimate.level is Level.TURN and estimate.items is not None:
            sums = cluster_sums(estimate.items, table.offsets)
            with np.errstate(invalid="ignore"):  # 0 / 0: a dialogue without a scored row
                items = sums[:, 0] / sums[:, 1]
            signature = None if estimate.signature is None else estimate.signature.with_fields(weight="dialogues")
            plain = replace(estimate, items=items, level=Level.DIALOGUE, rows=len(items), signature=signature)
            found[key] = _remade(key, plain, table)
    return replace(result, estimates=found)


def _signed(estimate: Estimate, called: str) -> Estimate:
    signature = estimate.signature
    return replace(estimate, signature=None if signature is None else signature.with_fields(slice=called))


def _remade(key: str, estimate: Estimate, rows: RowTable) -> Estimate:
    """The mean of items with its interval; a corpus value stays as it is."""
    if estimate.corpus or estimate.items is None:
        return estimate
    metric = metric_of(estimate)
    offsets = rows.offsets if estimate.level is Level.TURN else None
    if metric is None:
        bounds, made = ANY_NUMBER, Estimate.of_moments(Moments.of(estimate.items, offsets))
    else:
        bounds, made = metric.bounds_of(key), metric.estimate_of_items(key, estimate.items, offsets)
    if metric is not None and metric.untestable is not None:
        made = replace(made, error=None)
    made = replace(made, items=estimate.items, level=estimate.level, signature=estimate.signature)
    return _choice(estimate).added_to(made, bounds)


def _choice(estimate: Estimate) -> IntervalChoice:
    """The interval that an estimate has, but for one by resampling: that over dialogues has its level."""
    how = estimate.interval_by
    if isinstance(how, Analytic) and how.method == "rows":
        return IntervalChoice("rows", how.t if how.level is None else None, how.level)
    return IntervalChoice(level=None if how is None else how.level)


def _with_corpus_values(part: Result, whole: Result, intervals: bool) -> Result:
    """The result with its corpus values made anew from contributions, with intervals by the jackknife."""
    keys = [key for key, estimate in part.items() if estimate.corpus]
    values = Values.of(part, keys)
    estimates = dict(part.estimates)
    now = {key: float(column[0]) for key, column in values.by_key([np.ones((1, values.clusters), np.int64)]).items()}
    influences = influences_of(values, now) if intervals and values.clusters > 1 and now else {}
    for key, value in now.items():
        level = (estimates[key].interval_by or Analytic("wilson", None, "rows", 0, None)).level or DEFAULT_LEVEL
        made = replace(
            estimates[key],
            mean=value,
            scored=_scored(key, part, whole),
            interval=None,
            confidence=math.nan,
            interval_by=None,
        )
        if key in influences:
            bounds, _ = interval_of_changes(influences[key], None, level, values.clusters)
            if all(map(math.isfinite, bounds)):
                low, high = within_range(bounds, key, made)
                by = Resampling("jackknife", level, len(influences[key].changes), DEFAULT_SEED, values.clusters)
                made = replace(made, interval=(low, high), confidence=(high - low) / 2, interval_by=by)
        estimates[key] = made
    for key in values.reasons:
        del estimates[key]
    return replace(part, estimates=estimates, skipped={**part.skipped, **values.reasons})


def _scored(key: str, part: Result, whole: Result) -> int:
    """The rows behind a corpus value.

    One that has no items is made of the rows that a mean of as many scored rows is made of.
    """
    rows, scored = whole[key].rows, whole[key].scored
    alike = [key, *(name for name, each in whole.items() if (each.rows, each.scored) == (rows, scored))]
    items = next((each for name in alike if name in part and (each := part[name].items) is not None), None)
    if scored == rows or items is None or part[key].level is not Level.TURN:
        return part[key].rows
    return int(np.count_nonzero(~np.isnan(items)))


def table_of(result: Result) -> RowTable:
    """What the rows of a result are; SettingError where it does not know."""
    if result.rows is None:
        raise SettingError(f"{NO_DIALOGUES}; score again and save with items to cut it into slices")
    return result.rows
