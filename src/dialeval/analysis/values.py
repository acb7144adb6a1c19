"""The values of a system recomputed for other sets of clusters: intervals by resampling, slices, equal weights.

`Values` gives every key of a result as a function of which clusters (dialogues, or rows that are not part of one) are
taken. A mean over rows follows from the items: the sums of each cluster are added up as often as the cluster is taken,
and divided by the number of scored rows. A corpus value is computed anew by its metric from the per-row statistics that
the run kept. The caller passes how often each cluster is taken: resamples, all clusters but one, swapped dialogues.

`cut` returns the result of some rows as if only these had been evaluated: means with the interval that an evaluation
would give, corpus values with the jackknife's interval over dialogues, values of dialogues over the dialogues with one
of the rows. Corpus statistics of a first pass (`Metric.facts`: for KL divergence the distribution of words) stay as
they are. A value to which whole dialogues contribute (`Metric.whole_dialogues`) is left out where only a part of one is
taken.

`with_intervals` adds intervals by resampling. With T the value of all clusters, the interval is T -+ the change that
`level` of the studentized changes stay within (`stats.resampling`). Every resample is measured by a standard error of
its own, which makes up for few clusters, for unequal ones and in part for skewed values. Yes/no values and pass^k have
Wilson's and Gaffke's interval instead (`stats.intervals`): where nearly all values are equal, resamples contain no
other ones, and do not show how many there are.

A value that counts different things (distinct, numbers of n-grams, entropy: `Metric.counts_kinds`) cannot be found from
resamples that repeat clusters: what is repeated is not different. In texts with many rare words all its resampled
values lie below it, and vary up to six times too much; in texts of canned replies, too little. Its interval is
T -+ t error, with the jackknife's standard error and K - 1 degrees of freedom for K clusters: `Resampling.method` is
`jackknife`. The jackknife repeats nothing, and its variance is too large rather than too small
(Efron and Stein 1981). For a value of n rows the interval is that of other n rows.

No interval goes beyond what the metric can give (`Metric.bounds`).

KL divergence has no interval (`Metric.untestable`): the distribution of words of all responses is not resampled.

Papers: Efron and Stein 1981, "The Jackknife Estimate of Variance", Annals of Statistics; Koehn 2004, "Statistical
Significance Tests for Machine Translation Evaluation", EMNLP.

Edge cases: resamples in which nothing can be scored are left out. Where all resampled values are equal the interval is
that value. Of a single cluster nothing can be said: there is no interval. Where too many resamples do not vary at all,
studentizing fails and the interval is that of the jackknife. Warnings say which intervals may be too narrow: where no
cluster changes a value, and where clusters are few for how skewed they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np

from dialeval.core.account import FAILURES
from dialeval.core.arrays import Floats, Ints, offsets_of, ranges
from dialeval.core.columns import TextColumn
from dialeval.core.contributions import (
    KEPT_ROWS,
    ClusteredRows,
    Resamples,
    RowSums,
    join_parts,
    sum_by_cluster,
    take_rows,
)
from dialeval.core.errors import DialevalError, SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import (
    ANY_NUMBER,
    Analytic,
    Better,
    Bounds,
    Estimate,
    Level,
    Metric,
    Resampling,
)
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import Digests, RowTable
from dialeval.engine.intervals import IntervalChoice, compute_interval
from dialeval.io.rows import split_fields
from dialeval.metrics.registry import registry
from dialeval.stats.independent import ClusterSums
from dialeval.stats.intervals import DEFAULT_LEVEL
from dialeval.stats.resampling import (
    DEFAULT_RESAMPLES,
    DEFAULT_SEED,
    GROUPS,
    Influence,
    check_resampling,
    draw_resamples,
    leave_out_clusters,
    make_curve,
    studentize,
)
from dialeval.text.ngrams import hash_column
from dialeval.text.row_digests import digest_clusters

AnyRun = TypeVar("AnyRun", bound=Run)

NO_DIALOGUES = "the run does not record which rows belong to which dialogue"
"""Why a run of rows in chunks that an earlier version saved, or one saved without items, is not resampled."""

_PART = 512
"""Resamples that are computed at a time: few enough that what several metrics derive from them stays small."""


@dataclass(frozen=True, eq=False)
class Values:
    """The clusters of a system, its items by key, and the metrics of its corpus values by key."""

    rows: ClusteredRows
    """The clusters, and what the rows contribute to corpus values."""
    items: Mapping[str, Floats] = field(default_factory=dict)
    """One value per row or, for a value of dialogues, per cluster."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a key has no values."""

    @classmethod
    def of(cls, result: Result, keys: Iterable[str] | None = None, alone: bool = False) -> Values:
        """Collect what can be resampled of a result, and why the rest cannot.

        `alone`: take every row for a cluster where the result does not know its dialogues; else nothing can be.
        """
        keys = list(result if keys is None else keys)
        if result.table is None and not alone:
            return cls(ClusteredRows({}, np.zeros(1, np.int64)), reasons=dict.fromkeys(keys, NO_DIALOGUES))
        rows = ClusteredRows(result.contributions, find_offsets(result))
        count, clusters = int(rows.offsets[-1]), len(rows.offsets) - 1
        nothing = Resamples(rows, np.zeros((0, clusters), np.int64))
        items: dict[str, Floats] = {}
        metrics: dict[str, Metric] = {}
        reasons: dict[str, str] = {}
        for key in keys:
            estimate, metric = result[key], find_metric(result[key])
            if metric is not None and metric.untestable is not None:
                reasons[key] = metric.untestable
            elif estimate.corpus and metric is None:
                reasons[key] = "it has no per-row statistics, or its metric is not installed here"
            elif estimate.corpus and not rows.contributions and estimate.units > KEPT_ROWS:
                reasons[key] = f"per-row statistics are kept for up to {KEPT_ROWS:,} rows"
            elif estimate.corpus and metric is not None:
                try:
                    metric.score_resamples(nothing)
                    metrics[key] = metric
                except DialevalError as error:
                    reasons[key] = str(error)
            elif estimate.scores is None:
                reasons[key] = "the run has no per-row scores of it"
            elif len(estimate.scores) not in (count, clusters):
                reasons[key] = f"it has {len(estimate.scores)} values for {count} rows"
            else:
                items[key] = estimate.scores
        used = {name: each for name, each in rows.contributions.items() if name in rows.used}
        return cls(ClusteredRows(used, rows.offsets), items, metrics, reasons)

    @classmethod
    def sort(cls, result: Result, keys: Iterable[str] | None = None, alone: bool = False) -> Values:
        """Collect what can be resampled, with the clusters in an order that does not depend on that in the file."""
        values = cls.of(result, keys, alone)
        return values.take(sort_clusters(result)) if values.clusters else values

    def take(self, clusters: Ints) -> Values:
        """Return some clusters in the given order."""
        offsets, count = self.rows.offsets, self.clusters
        sizes = np.diff(offsets)[clusters]
        rows = ranges(offsets[clusters], sizes)
        contributions = {name: take_rows(each, rows) for name, each in self.rows.contributions.items()}
        items = {key: each[clusters if len(each) == count else rows] for key, each in self.items.items()}
        return replace(self, rows=ClusteredRows(contributions, offsets_of(sizes)), items=items)

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        return len(self.rows.offsets) - 1

    @property
    def keys(self) -> list[str]:
        """The keys of `compute`, in order."""
        return [*self.items, *self.metrics]

    @property
    def repeatable(self) -> Values:
        """What can be resampled by repeating clusters: all but values that count kinds (`Metric.counts_kinds`)."""
        return replace(self, metrics={key: metric for key, metric in self.metrics.items() if not metric.counts_kinds})

    def group(self) -> Values:
        """Return the values with neighboring clusters joined to groups, where there are more than `GROUPS`."""
        if self.clusters <= GROUPS:
            return self
        starts, items = self.rows.offsets[:-1], {}
        for key, values in self.items.items():
            items[key] = values
            if len(values) == self.clusters:  # of clusters: they become values of first rows
                items[key] = np.full(int(self.rows.offsets[-1]), math.nan)
                items[key][starts] = values
        bounds = np.arange(GROUPS + 1) * self.clusters // GROUPS
        return replace(self, rows=ClusteredRows(self.rows.contributions, self.rows.offsets[bounds]), items=items)

    def count_rows(self, key: str) -> Floats:
        """Count the rows of each cluster that the value of a key is made of."""
        if key in self.items:
            return sum_known(self.items[key], self.rows.offsets)[:, 1]
        return np.diff(self.rows.offsets).astype(np.float64)

    def sum_clusters(self, key: str) -> ClusterSums:
        """Sum the scored rows of each cluster under a key; clusters without one are left out."""
        both = sum_known(self.items[key], self.rows.offsets)
        return ClusterSums(*both[both[:, 1] > 0].T)

    def join(self, other: Values) -> Values:
        """Join the clusters of two systems, those of `other` last; only the keys that both have are kept."""
        items = {
            key: np.concatenate([values, other.items[key]]) for key, values in self.items.items() if key in other.items
        }
        metrics = {key: metric for key, metric in self.metrics.items() if other.metrics.get(key) == metric}
        left, right = self.rows.contributions, other.rows.contributions
        contributions = {name: join_parts([left[name], right[name]]) for name in left if name in right}
        offsets = np.concatenate([self.rows.offsets, self.rows.offsets[-1] + other.rows.offsets[1:]])
        return Values(ClusteredRows(contributions, offsets), items, metrics)

    def compute(self, draws: Iterable[Ints], jackknife: bool = False) -> dict[str, Floats]:
        """Compute the value of every key for every row of cluster counts, which come in chunks.

        `jackknife`: the values that the influence of clusters is found from (`Metric.score_jackknife`).
        """
        sums = self.sum_items()

        def work(counts: Ints) -> Floats:
            sample = Resamples(self.rows, counts)
            return self.score(sample, sample.sum_clusters(sums), jackknife)

        return _collect(self.keys, work, draws)

    def exchange(self, other: Values, draws: Iterable[Ints]) -> dict[str, Floats]:
        """Compute the difference of every key that both systems have, `other` less this, where they swap clusters.

        What adds up is added up for one side; the other side has the rest.
        """
        both = self.join(other)
        names = [name for name, each in both.rows.contributions.items() if isinstance(each, RowSums)]
        parts = [both.sum_items(), *(both.rows.cluster_sums(name) for name in names)]
        ends = np.cumsum([part.shape[1] for part in parts])[:-1]
        left, right = np.vsplit(np.hstack(parts), 2)
        apart, all_left, all_right = left - right, left.sum(axis=0), right.sum(axis=0)

        def work(swaps: Ints) -> Floats:
            moved, values = swaps.astype(np.float64) @ apart, []
            ways, size = np.hstack([swaps, 1 - swaps, swaps]), swaps.shape[1]
            for counts, total in ((ways[:, : 2 * size], all_right + moved), (ways[:, size:], all_left - moved)):
                items, *sums = np.hsplit(total, ends)
                sample = Resamples(both.rows, counts)
                sample.kept.update({("totals", name): each for name, each in zip(names, sums, strict=True)})
                values.append(both.score(sample, items))
            return values[0] - values[1]

        return _collect(both.keys, work, draws)

    def sum_items(self) -> Floats:
        """Return by cluster the sums of the items of each key, then how many of each are scored."""
        known = [sum_known(values, self.rows.offsets) for values in self.items.values()]
        return np.column_stack([np.zeros((self.clusters, 0)), *(each[:, at] for at in (0, 1) for each in known)])

    def score(self, sample: Resamples, items: Floats, jackknife: bool = False) -> Floats:
        """Return the value of each key in resamples, from the sums and numbers of their items."""
        total, scored = np.hsplit(items, 2)
        with np.errstate(invalid="ignore"):  # 0 / 0: no row that is scored was taken
            means = total / scored
        metrics = self.metrics.values()
        corpus = [each.score_jackknife(sample) if jackknife else each.score_resamples(sample) for each in metrics]
        return np.column_stack([means, *corpus])


def _collect(keys: Sequence[str], work: Callable[[Ints], Floats], draws: Iterable[Ints]) -> dict[str, Floats]:
    """Return by key what is computed from chunks of draws, a part at a time."""
    if not keys:
        return {}
    parts = (part for counts in draws for part in np.array_split(counts, -(-len(counts) // _PART) or 1))
    return dict(zip(keys, np.concatenate([np.zeros((0, len(keys))), *map(work, parts)]).T, strict=True))


def sort_clusters(*systems: Result) -> Ints:
    """Return the clusters of systems with the same clusters in an order that does not depend on that in their files.

    They are sorted by digests of ids; equal ones by texts, by values, and then by those of the next system. Random
    draws go by this order. More than `GROUPS` are shuffled with a fixed seed: neighbors (`Values.group`) are not alike.
    """
    order = _sort_clusters(*systems)
    return order if len(order) <= GROUPS else order[np.random.default_rng(DEFAULT_SEED).permutation(len(order))]


def _sort_clusters(*systems: Result) -> Ints:
    order, keys = np.arange(0), list[Digests]()
    for result in systems:
        offsets = find_offsets(result)
        table = RowTable(offsets) if result.table is None else result.table
        ids = TextColumn.from_strings([name or "" for name in table.read_ids()])
        texts = partial(digest_clusters, [table.digests[name] for name in sorted(table.digests)], offsets)
        for digest in (partial(hash_column, ids), texts, partial(_digest_values, result)):
            keys.insert(0, digest())
            order = np.lexsort(keys)
            if np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0).all():
                return order
    return order


def _digest_values(result: Result) -> Digests:
    """Return a digest of the items and statistics of each cluster."""
    values = Values.of(result, alone=True)
    columns = [np.where(np.isnan(items), np.nan, items + 0.0).view(np.uint64) for items in values.items.values()]
    for each in result.contributions.values():
        if isinstance(each, RowSums):
            columns += list(np.ascontiguousarray(each.values.T + 0.0).view(np.uint64))
        else:
            columns.append(digest_clusters([hash_column(TextColumn.from_strings(each.words))[each.ids]], each.offsets))
    return digest_clusters(columns, values.rows.offsets)


def sum_known(values: Floats, offsets: Ints) -> Floats:
    """Sum the known items of each cluster and count them; `values` are of rows or of clusters."""
    known = ~np.isnan(values)
    both = np.column_stack([np.where(known, values, 0.0), known])
    # A value per cluster is its own sum; where every row is a cluster, both are the same.
    return both if len(values) == len(offsets) - 1 else sum_by_cluster(both, offsets)


def average_known(values: Floats, offsets: Ints) -> Floats:
    """Return the mean of the known items of each cluster; NaN for a cluster without one."""
    sums = sum_known(values, offsets)
    with np.errstate(invalid="ignore"):  # 0 / 0
        return np.asarray(sums[:, 0] / sums[:, 1])


def find_metric(estimate: Estimate) -> Metric | None:
    """Return the metric of an estimate, by its signature; None without one or where the metric is not installed."""
    if estimate.signature is None:
        return None
    try:
        return registry().parse(estimate.signature.metric)
    except DialevalError:
        return None


def find_better(results: Mapping[str, Result], key: str) -> Better | None:
    """Return which values of a key are better."""
    metrics = (find_metric(result[key]) for result in results.values() if key in result)
    return next((metric.better for metric in metrics if metric is not None), None)


def find_offsets(result: Result) -> Ints:
    """Return the clusters of a result; each row is one where the result does not know its rows."""
    if result.table is not None:
        return result.table.offsets
    sizes = {(est.level, len(est.scores)) for est in result.values() if est.scores is not None}
    if {level for level, _ in sizes} == {Level.TURN, Level.DIALOGUE}:
        rows = max(size for level, size in sizes if level is Level.TURN)
    else:
        rows = max([*(size for _, size in sizes), *map(len, result.contributions.values())], default=0)
    return np.arange(rows + 1)


def with_intervals(
    run: AnyRun,
    confidence: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = DEFAULT_SEED,
) -> AnyRun:
    """Return a run with confidence intervals by resampling whole dialogues, for means and for corpus values.

    A metric that cannot be resampled keeps the interval it has; a warning of the run names it.

    Args:
        run: The run.
        confidence: The confidence level.
        resamples: The number of resamples.
        seed: Their seed.

    Returns:
        The run with other intervals.

    Raises:
        SettingError: The confidence is not between 0 and 1.

    Examples:
        >>> import dialeval
        >>> run = dialeval.evaluate(["a b", "a", "b c d", "a d e f", "a c"], metrics="length")
        >>> dialeval.with_intervals(run)["system"]["length"].interval_by.method
        'studentized'
    """
    check_resampling(confidence, resamples)
    results, warnings = {}, dict.fromkeys(run.warnings)
    how = Resampling("studentized", confidence, resamples, seed, 0)
    for name, result in run.items():
        results[name], reasons, doubts = _with_intervals(result, how)
        warnings.update(dict.fromkeys(f"{key} has no resampled interval: {why}" for key, why in reasons.items()))
        warnings.update(dict.fromkeys(f"{name}: {doubt}" for doubt in doubts))
    return replace(run, systems=results, warnings=tuple(warnings))


def _with_intervals(result: Result, how: Resampling) -> tuple[Result, dict[str, str], list[str]]:
    """Return the result with intervals, why keys have none, and warnings of doubtful intervals."""
    values = Values.sort(result)
    reasons = dict(values.reasons)
    if values.clusters < 2:
        reasons |= dict.fromkeys(values.keys, "there is only one dialogue, or none")
        return result, reasons, []
    estimates = dict(result.estimates)
    by_formula = _with_formulas(estimates, values, how.level)
    estimates |= by_formula
    values = replace(values, items={key: each for key, each in values.items.items() if key not in by_formula})
    groups = values.group()
    influences = compute_influences(groups, {key: estimates[key].mean for key in values.keys})
    drawn = groups.repeatable.compute(draw_resamples(groups.clusters, how.resamples, how.seed))
    changes = studentize(influences, drawn, draw_resamples(groups.clusters, how.resamples, how.seed))
    for key, influence in influences.items():
        curve, by = make_curve(influence, changes.get(key), how.level, values.clusters)
        bounds = curve(how.level)
        resamples = how.resamples if by == "studentized" else len(influence.changes)
        done = replace(how, method=by, resamples=resamples, clusters=values.clusters)
        if all(map(math.isfinite, bounds)):
            bounds = clip_to_range(bounds, key, estimates[key])
            estimates[key] = replace(estimates[key], interval=bounds, interval_by=done)
        elif not math.isnan(influence.value):
            reasons[key] = "too few dialogues could be scored"
    return replace(result, estimates=estimates), reasons, _warn_of_narrow(influences)


def _with_formulas(estimates: Mapping[str, Estimate], values: Values, level: float) -> dict[str, Estimate]:
    """Return the yes/no values and values of repeated trials with Wilson's and Gaffke's intervals."""
    made = {}
    for key, items in values.items.items():
        estimate, metric = estimates[key], find_metric(estimates[key])
        if metric is None:
            continue
        rows = values.rows.offsets if estimate.level is Level.TURN else None
        plain = replace(metric.estimate_scores(key, items, rows), level=estimate.level)
        if plain.error is not None and (plain.error.yes_no or plain.error.values):
            found = compute_interval(plain, metric.bounds_of(key), level)
            if found is not None:
                (low, high), by = found
                made[key] = replace(estimate, interval=(low, high), half_width=(high - low) / 2, interval_by=by)
    return made


def find_skewed(run: Run) -> dict[str, list[str]]:
    """Return by system the metrics whose means are too skewed for so few dialogues: intervals may be too narrow."""
    found: dict[str, list[str]] = {}
    for name, result in run.items():
        values = Values.of(result, [key for key, estimate in result.items() if not estimate.corpus])
        for key in values.items:
            how, sums = result[key].interval_by, values.sum_clusters(key)
            if isinstance(how, Analytic) and how.method == "student" and len(sums.sums) > 1:
                changes = sums.changes - sums.changes.mean()
                if Influence(0.0, changes, sums.counts).few:
                    found.setdefault(name, []).append(key)
    return found


def find_bounds(key: str, estimate: Estimate) -> Bounds:
    """Return what the metric of an estimate can give; any number where it is not known."""
    metric = find_metric(estimate)
    return ANY_NUMBER if metric is None else metric.bounds_of(key)


def clip_to_range(ends: tuple[float, float], key: str, estimate: Estimate) -> tuple[float, float]:
    """Clip an interval to the range of the metric; a value may itself be beyond its range by a rounding error."""
    least, largest = find_bounds(key, estimate)
    return max(ends[0], min(least, estimate.mean)), min(ends[1], max(largest, estimate.mean))


def _warn_of_narrow(influences: Mapping[str, Influence]) -> list[str]:
    """Warn of intervals that may be too narrow."""
    few = ", ".join(key for key, influence in influences.items() if influence.few)
    flat = ", ".join(key for key, influence in influences.items() if influence.error == 0)
    skewed = f"too few dialogues for values as skewed as {few}; intervals may be too narrow"
    constant = f"{flat}: the same in all dialogues, so the interval has no width; other dialogues may differ"
    return [doubt for doubt, keys in ((skewed, few), (constant, flat)) if keys]


def compute_influences(values: Values, of: Mapping[str, float]) -> dict[str, Influence]:
    """Compute the influence of the clusters on the value of every key."""
    groups = values.group()
    without = groups.compute(leave_out_clusters(groups.clusters), jackknife=True)
    return {key: Influence.of(of[key], without[key], groups.count_rows(key)) for key in without}


def cut(result: Result, rows: Ints, called: str | None = None, intervals: bool = True) -> Result:
    """Return the result of some rows of a system, as if only these had been evaluated.

    Rows of one dialogue are neighbors in `rows`. `called` is added to the signatures. Without `intervals` corpus values
    have none, which saves most of the time.
    """
    table = require_table(result)
    part, clusters = table.take(rows), table.clusters[rows]
    dialogues = clusters[np.flatnonzero(np.diff(clusters, prepend=-1))]
    whole = len(rows) == int(np.diff(table.offsets)[dialogues].sum())
    places = {Level.TURN: (rows, len(table)), Level.DIALOGUE: (dialogues, len(table.offsets) - 1)}
    found: dict[str, Estimate] = {}
    skipped = dict(result.skipped)
    for key, estimate in result.items():
        taken_rows, count = places[estimate.level]
        items, metric = estimate.scores, find_metric(estimate)
        if items is not None and len(items) != count:
            skipped[key] = f"it has {len(items)} values for {count} {estimate.level}s"
        elif estimate.corpus and metric is not None and metric.whole_dialogues and not whole:
            skipped[key] = "it needs whole dialogues, and the slice has parts of some"
        elif estimate.corpus or items is not None:
            own = None if items is None else items[taken_rows]
            found[key] = _recompute_mean(key, replace(estimate, units=len(taken_rows), scores=own), part)
        else:
            skipped[key] = "the run has no per-row scores of it"
    contributions = {name: take_rows(each, rows) for name, each in result.contributions.items()}
    if called is not None:
        found = {key: _with_signature(estimate, slice=called) for key, estimate in found.items()}
    made = replace(result, estimates=found, skipped=skipped, table=part, contributions=contributions)
    return _recompute_corpus(made, result, intervals)


def add_failure_rates(systems: Mapping[str, Result]) -> dict[str, Result]:
    """Return systems with a failure rate of 0 where no reply failed, if another one, of another run, has a rate."""
    found = dict(systems)
    for known in [result[FAILURES] for result in systems.values() if FAILURES in result][:1]:
        for name, result in systems.items():
            if FAILURES not in result and result.account and not result.account.failed and result.table is not None:
                rows = len(result.table)
                zeros = replace(known, scores=np.zeros(rows), units=rows, missing=0)
                rate = _recompute_mean(FAILURES, zeros, result.table)
                found[name] = replace(result, estimates={FAILURES: rate, **result.estimates})
    return found


def weigh_dialogues(result: Result) -> Result:
    """Return a result in which every dialogue counts once: a mean over rows becomes a mean over means of dialogues."""
    table = require_table(result)
    found = dict(result.estimates)
    for key, estimate in result.items():
        if not estimate.corpus and estimate.level is Level.TURN and estimate.scores is not None:
            items = average_known(estimate.scores, table.offsets)
            plain = replace(estimate, scores=items, level=Level.DIALOGUE, units=len(items))
            found[key] = _recompute_mean(key, _with_signature(plain, weight="dialogues"), table)
    return replace(result, estimates=found)


def regroup(result: Result, field: str, labels: Sequence[str] | None = None) -> tuple[Result, list[str]]:
    """Return a result whose clusters are the dialogues with the same value of a field, and that value by dialogue.

    Rows are sorted by it; a value of a dialogue becomes that of its first row. Several fields are one with all
    combinations. `labels`: the values, if not those of the result.
    """
    table = require_table(result)
    if labels is None:
        columns, places = [], np.argsort(sort_clusters(result)).tolist()  # labels that do not depend on the order
        for name in split_fields(field):
            if name not in table.fields:
                raise SettingError(f"no field {name!r} was kept; score again with --cluster {name} or --by {name}")
            columns.append(_label_dialogues(table, name, places))
        labels = list(map(" / ".join, zip(*columns, strict=True)))
    names, codes = np.unique(np.array(labels, np.str_), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    sizes = np.diff(table.offsets)[order]
    part = cut(result, ranges(table.offsets[order], sizes), intervals=False)
    rows, firsts = require_table(part), offsets_of(sizes)[:-1]
    estimates = {}
    for key, estimate in part.items():
        items = estimate.scores
        if estimate.level is Level.DIALOGUE and items is not None:
            items = np.full(len(rows), math.nan)
            items[firsts] = estimate.scores
        estimates[key] = replace(estimate, scores=items, level=Level.TURN)
    groups = np.bincount(codes[order], sizes, len(names)).astype(np.int64)
    rows = replace(rows, offsets=offsets_of(groups), dialogues=names.tolist(), turns=None)
    return replace(part, estimates=estimates, table=rows), list(labels)


def _label_dialogues(table: RowTable, field: str, places: Sequence[int]) -> list[str]:
    """Return the value of a field in each dialogue, or its place where it has none: it is then alone."""
    labels = []
    for at, (start, end) in enumerate(pairwise(table.offsets.tolist())):
        values = {value for row in range(start, end) for value in table.fields[field][row]}
        if len(values) > 1:
            raise SettingError(f"dialogue {at + 1} has several values of {field}: {', '.join(sorted(values)[:3])}")
        labels.append(f"={values.pop()}" if values else f"#{places[at]}")
    return labels


def recompute_intervals(result: Result, groups: Result) -> Result:
    """Return a result with the intervals over the clusters of other groups of its rows (`regroup`)."""
    table = require_table(groups)
    made = {key: _recompute_mean(key, estimate, table) for key, estimate in groups.items()}
    made = dict(_recompute_corpus(replace(groups, estimates=made), groups, True).estimates)
    parts = ("interval", "interval_by", "half_width", "error")
    changed = {
        key: replace(estimate, **{part: getattr(made[key], part) for part in parts})
        for key, estimate in result.items()
        if key in made
    }
    return replace(result, estimates={**result.estimates, **changed})


def collapse_dialogues(run: Run) -> Run:
    """Return a run whose rows are whole dialogues, for ratings and preferences of conversations.

    Texts are those of the last row of a dialogue, values of turns become their mean, and corpus values are left out.
    """
    results = {}
    for name, result in run.items():
        table, weighed = require_table(result), weigh_dialogues(result)
        last = replace(table.take(table.offsets[1:] - 1), turns=None)
        found = {
            key: _recompute_mean(key, replace(estimate, level=Level.TURN), last)
            for key, estimate in weighed.items()
            if not estimate.corpus and estimate.scores is not None and len(estimate.scores) == len(last)
        }
        results[name] = replace(result, estimates=found, table=last, contributions={})
    return replace(run, systems=results)


def _with_signature(estimate: Estimate, **fields: str) -> Estimate:
    signature = estimate.signature
    return replace(estimate, signature=None if signature is None else signature.with_fields(**fields))


def _recompute_mean(key: str, estimate: Estimate, rows: RowTable) -> Estimate:
    """Return the mean of the items with its interval; a corpus value stays as it is."""
    if estimate.corpus or estimate.scores is None:
        return estimate
    metric = find_metric(estimate)
    offsets = rows.offsets if estimate.level is Level.TURN else None
    if metric is None:
        bounds, made = ANY_NUMBER, Estimate.of_moments(Moments.of(estimate.scores, offsets))
    else:
        bounds, made = metric.bounds_of(key), metric.estimate_scores(key, estimate.scores, offsets)
        made = made if metric.untestable is None else replace(made, error=None)
    missing = min(estimate.missing, int(np.count_nonzero(np.isnan(estimate.scores))))
    made = replace(made, scores=estimate.scores, level=estimate.level, signature=estimate.signature, missing=missing)
    # The kind of interval that the estimate has; in the place of one by resampling, that over dialogues at its level.
    how = estimate.interval_by
    choice = IntervalChoice(level=None if how is None else how.level)
    if isinstance(how, Analytic) and how.method == "rows":
        choice = IntervalChoice("rows", how.t if how.level is None else None, how.level)
    return choice.add_interval(made, bounds)


def _recompute_corpus(part: Result, whole: Result, intervals: bool) -> Result:
    """Return the result with corpus values from the statistics of its rows, with the jackknife's intervals."""
    keys = [key for key, estimate in part.items() if estimate.corpus]
    values = Values.sort(part, keys)
    estimates = dict(part.estimates)
    groups = values.group()
    now = {key: float(column[0]) for key, column in groups.compute([np.ones((1, groups.clusters), np.int64)]).items()}
    influences = compute_influences(values, now) if intervals and values.clusters > 1 and now else {}
    for key, value in now.items():
        how = estimates[key].interval_by
        level = DEFAULT_LEVEL if how is None or not how.level else how.level
        made = replace(estimates[key], mean=value, scored=_count_scored(key, part, whole), half_width=math.nan)
        made = replace(made, interval=None, interval_by=None)
        if key in influences:
            bounds = make_curve(influences[key], None, level, values.clusters)[0](level)
            if all(map(math.isfinite, bounds)):
                low, high = clip_to_range(bounds, key, made)
                by = Resampling("jackknife", level, len(influences[key].changes), DEFAULT_SEED, values.clusters)
                made = replace(made, interval=(low, high), half_width=(high - low) / 2, interval_by=by)
        estimates[key] = made
    for key in values.reasons:
        del estimates[key]
    return replace(part, estimates=estimates, skipped={**part.skipped, **values.reasons})


def _count_scored(key: str, part: Result, whole: Result) -> int:
    """Count the rows behind a corpus value.

    One that has no items is made of the rows that a mean of as many scored rows is made of.
    """
    rows, scored = whole[key].units, whole[key].scored
    alike = [key, *(name for name, each in whole.items() if (each.units, each.scored) == (rows, scored))]
    items = next((each for name in alike if name in part and (each := part[name].scores) is not None), None)
    if scored == rows or items is None or part[key].level is not Level.TURN:
        return part[key].units
    return int(np.count_nonzero(~np.isnan(items)))


def require_table(result: Result) -> RowTable:
    """Return the table of rows of a result; SettingError where it has none."""
    if result.table is None:
        raise SettingError(f"{NO_DIALOGUES}; score again and save the per-row scores to slice it")
    return result.table
