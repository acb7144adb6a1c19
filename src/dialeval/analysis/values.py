"""The values of a system as a function of which clusters are taken, for every key of its result.

A mean over rows follows from the items: the sums of each cluster are added up as often as the cluster is taken, and
divided by the number of scored rows. A corpus value is computed anew by its metric from the contributions that the run
kept. The caller says how often each cluster is taken: resamples, all clusters but one, exchanged dialogues.

Clusters are the dialogues of the rows, or single rows where rows stand alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from os import cpu_count
from typing import Any

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.contributions import KEPT_ROWS, ClusteredRows, Resamples, by_cluster, joined
from dialeval.core.errors import DialevalError, NeedError
from dialeval.core.fold import Estimate, Level, Metric
from dialeval.core.result import Result
from dialeval.metrics.registry import registry

NO_DIALOGUES = "the run does not say which rows belong to one dialogue"
"""Why a run of rows in chunks that an earlier version saved, or one saved without items, is not resampled."""

_PART = 64
"""Resamples that one thread takes at a time: few enough that what several metrics derive from them stays small."""


@dataclass(frozen=True, eq=False)
class Values:
    """The clusters of a system, its items by key, and the metrics of its corpus values by key."""

    rows: ClusteredRows
    """The clusters, and what the rows contribute to corpus values."""
    items: Mapping[str, Floats] = field(default_factory=dict)
    """One value per row or, for a value of dialogues, per cluster."""
    metrics: Mapping[str, Metric[Any]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a key has no values."""

    @classmethod
    def of(cls, result: Result, keys: Iterable[str] | None = None, alone: bool = False) -> Values:
        """What can be resampled of a result, and why the rest cannot.

        `alone`: take every row for a cluster where the result does not know its dialogues; else nothing can be.
        """
        keys = list(result if keys is None else keys)
        if result.rows is None and not alone:
            return cls(ClusteredRows({}, np.zeros(1, np.int64)), reasons=dict.fromkeys(keys, NO_DIALOGUES))
        rows = ClusteredRows(result.contributions, _offsets(result))
        count, clusters = int(rows.offsets[-1]), len(rows.offsets) - 1
        nothing = Resamples(rows, np.zeros((0, clusters), np.int64))
        items: dict[str, Floats] = {}
        metrics: dict[str, Metric[Any]] = {}
        reasons: dict[str, str] = {}
        for key in keys:
            estimate, metric = result[key], metric_of(result[key])
            if metric is not None and metric.untestable is not None:
                reasons[key] = metric.untestable
            elif estimate.corpus:
                try:
                    metrics[key] = _resamplable(estimate, nothing)
                except DialevalError as error:
                    reasons[key] = str(error)
            elif estimate.items is None:
                reasons[key] = "the run holds no values of single rows for it"
            elif len(estimate.items) not in (count, clusters):
                reasons[key] = f"it has {len(estimate.items)} values for {count} rows"
            else:
                items[key] = estimate.items
        return cls(rows, items, metrics, reasons)

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return len(self.rows.offsets) - 1

    @property
    def keys(self) -> list[str]:
        """The keys of the columns of `under`."""
        return [*self.items, *self.metrics]

    @property
    def repeatable(self) -> Values:
        """What can be resampled by repeating clusters: all but values that count kinds (`Metric.counts_kinds`)."""
        return replace(self, metrics={key: metric for key, metric in self.metrics.items() if not metric.counts_kinds})

    def counted_rows(self, key: str) -> Floats:
        """How many rows of each cluster the value of a key is made of."""
        if key in self.items:
            return cluster_sums(self.items[key], self.rows.offsets)[:, 1]
        return np.diff(self.rows.offsets).astype(np.float64)

    def by_key(self, draws: Iterable[Ints], jackknife: bool = False) -> dict[str, Floats]:
        """The values for every row of cluster counts, by key."""
        return dict(zip(self.keys, self.under(draws, jackknife).T, strict=True)) if self.keys else {}

    def joined(self, other: Values) -> Values:
        """The clusters of both systems in one, those of `other` behind; only the keys that both have are kept."""
        items = {
            key: np.concatenate([values, other.items[key]]) for key, values in self.items.items() if key in other.items
        }
        metrics = {key: metric for key, metric in self.metrics.items() if other.metrics.get(key) == metric}
        left, right = self.rows.contributions, other.rows.contributions
        contributions = {name: joined([left[name], right[name]]) for name in left if name in right}
        offsets = np.concatenate([self.rows.offsets, self.rows.offsets[-1] + other.rows.offsets[1:]])
        return Values(ClusteredRows(contributions, offsets), items, metrics)

    def under(self, draws: Iterable[Ints], jackknife: bool = False) -> Floats:
        """The value of every key (columns) for every row of cluster counts, which come in chunks.

        `jackknife`: the values that the influence of clusters is found from (`Metric.left_out`).
        """
        sums = self._sums()

        def work(counts: Ints) -> Floats:
            sample = Resamples(self.rows, counts)
            total, scored = np.hsplit(sample.added(sums), 2)
            with np.errstate(invalid="ignore"):  # 0 / 0: no row that is scored was taken
                means = total / scored
            metrics = self.metrics.values()
            corpus = [metric.left_out(sample) if jackknife else metric.resampled(sample) for metric in metrics]
            return np.column_stack([means, *corpus])

        threads = cpu_count() or 1
        parts = [np.zeros((0, len(self.keys)))]
        with ThreadPoolExecutor(threads) as pool:
            for counts in draws:
                parts += pool.map(work, np.array_split(counts, max(threads, -(-len(counts) // _PART))))
        return np.concatenate(parts)

    def _sums(self) -> Floats:
        """Per cluster the sums of the items of each key, then how many of each are scored."""
        sums = np.zeros((2, len(self.items), self.clusters))
        for number, values in enumerate(self.items.values()):
            sums[:, number] = cluster_sums(values, self.rows.offsets).T
        return np.transpose(sums.reshape(-1, self.clusters))


def cluster_sums(values: Floats, offsets: Ints) -> Floats:
    """Per cluster the sum of the items that are known and how many these are; `values` are of rows or of clusters."""
    known = ~np.isnan(values)
    both = np.column_stack([np.where(known, values, 0.0), known])
    # A value per cluster is its own sum; where every row is a cluster, both are the same.
    return both if len(values) == len(offsets) - 1 else by_cluster(both, offsets)


def metric_of(estimate: Estimate) -> Metric[Any] | None:
    """The metric of an estimate, by its signature; None where it has none or the metric is not installed."""
    if estimate.signature is None:
        return None
    try:
        return registry().parse(estimate.signature.metric)
    except DialevalError:
        return None


def _resamplable(estimate: Estimate, nothing: Resamples) -> Metric[Any]:
    """The metric of a corpus value, tried on no resamples; a `DialevalError` says why the value cannot be resampled."""
    metric = metric_of(estimate)
    if metric is None:
        raise NeedError("it is not made of contributions of single rows, or its metric is not installed here")
    if not nothing.rows.contributions and estimate.rows > KEPT_ROWS:
        raise NeedError(f"the contributions of single rows are kept for up to {KEPT_ROWS:,} rows")
    metric.resampled(nothing)
    return metric


def _offsets(result: Result) -> Ints:
    """The clusters of a result; each row is one where the result does not know its rows."""
    if result.rows is not None:
        return result.rows.offsets
    sizes = {(est.level, len(est.items)) for est in result.values() if est.items is not None}
    if {level for level, _ in sizes} == {Level.TURN, Level.DIALOGUE}:
        rows = max(size for level, size in sizes if level is Level.TURN)
    else:
        rows = max([*(size for _, size in sizes), *map(len, result.contributions.values())], default=0)
    return np.arange(rows + 1)
