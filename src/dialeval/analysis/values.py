"""The values of a system as a function of which clusters are taken, for every key of its result.

A mean over rows follows from the items: the sums of each cluster are added up as often as the cluster is taken, and
divided by the rows that are scored. A value of all rows together is made anew by its metric from the contributions that
the run kept. Which clusters are taken how often comes from outside: resamples, all but one, swapped dialogues.

Clusters are the dialogues of the rows, or single rows where rows stand alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from os import cpu_count
from typing import Any

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.contributions import KEPT_ROWS, ClusteredRows, Resamples, by_cluster, joined
from dialeval.core.errors import DialevalError
from dialeval.core.fold import Estimate, Level, Metric
from dialeval.core.result import Result
from dialeval.metrics.registry import registry

_PART = 64
"""Resamples of one part of the work: few enough that what several metrics share of them stays small."""


@dataclass(frozen=True, eq=False)
class Values:
    """The clusters of a system, its items by key, and the metrics whose value is of all rows together, by key."""

    rows: ClusteredRows
    """The clusters, and what the rows bring to values of all rows together."""
    items: Mapping[str, Floats] = field(default_factory=dict)
    """One value per row or, for a value of dialogues, per cluster."""
    metrics: Mapping[str, Metric[Any]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a key has no values."""

    @classmethod
    def of(cls, result: Result, keys: Iterable[str] | None = None) -> Values:
        """What can be resampled of a result, and why the rest cannot."""
        rows = ClusteredRows(result.contributions, _offsets(result))
        count, clusters = int(rows.offsets[-1]), len(rows.offsets) - 1
        items: dict[str, Floats] = {}
        metrics: dict[str, Metric[Any]] = {}
        reasons: dict[str, str] = {}
        for key in result if keys is None else keys:
            estimate = result[key]
            if estimate.corpus:
                found = _metric(estimate, rows)
                if isinstance(found, str):
                    reasons[key] = found
                else:
                    metrics[key] = found
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
    def of_kinds(self) -> Values:
        """Only the values about how many different things there are."""
        kinds = {key: metric for key, metric in self.metrics.items() if metric.counts_kinds}
        return replace(self, items={}, metrics=kinds)

    def by_key(self, draws: Iterable[Ints]) -> dict[str, Floats]:
        """The values for every way to take clusters, by key."""
        return dict(zip(self.keys, self.under(draws).T, strict=True)) if self.keys else {}

    def joined(self, other: Values) -> Values:
        """The clusters of both, those of the other behind; of what both have."""
        items = {
            key: np.concatenate([values, other.items[key]]) for key, values in self.items.items() if key in other.items
        }
        metrics = {key: metric for key, metric in self.metrics.items() if other.metrics.get(key) == metric}
        mine, theirs = self.rows.contributions, other.rows.contributions
        contributions = {name: joined([mine[name], theirs[name]]) for name in mine if name in theirs}
        offsets = np.concatenate([self.rows.offsets, self.rows.offsets[-1] + other.rows.offsets[1:]])
        return Values(ClusteredRows(contributions, offsets), items, metrics)

    def under(self, draws: Iterable[Ints]) -> Floats:
        """The value of every key (columns) for every way to take clusters (rows), given in chunks of counts."""
        sums = self._sums()

        def work(counts: Ints) -> Floats:
            sample = Resamples(self.rows, counts)
            total, scored = np.hsplit(sample.added(sums), 2)
            with np.errstate(invalid="ignore"):  # 0 / 0: no row that is scored was taken
                means = total / scored
            return np.column_stack([means, *(metric.resampled(sample) for metric in self.metrics.values())])

        return worked(draws, work, len(self.keys))

    def _sums(self) -> Floats:
        """Per cluster the sums of the items of each key, then how many of each are scored."""
        found = np.zeros((2, len(self.items), self.clusters))
        for at, values in enumerate(self.items.values()):
            known = ~np.isnan(values)
            both = np.column_stack([np.where(known, values, 0.0), known])
            # A value per cluster is its own sum; where every row is a cluster, both are the same.
            found[:, at] = (both if len(values) == self.clusters else by_cluster(both, self.rows.offsets)).T
        return np.transpose(found.reshape(-1, self.clusters))


def worked(draws: Iterable[Ints], work: Callable[[Ints], Floats], columns: int) -> Floats:
    """What `work` gives for the counts of all chunks, one below the other; threads share each chunk."""
    threads = cpu_count() or 1
    found = [np.zeros((0, columns))]
    with ThreadPoolExecutor(threads) as pool:
        for counts in draws:
            found += pool.map(work, np.array_split(counts, max(threads, -(-len(counts) // _PART))))
    return np.concatenate(found)


def metric_of(estimate: Estimate) -> Metric[Any] | None:
    """The metric that made an estimate, from its signature; None where nobody here knows it."""
    if estimate.signature is None:
        return None
    try:
        return registry().parse(estimate.signature.metric)
    except DialevalError:
        return None


def _metric(estimate: Estimate, rows: ClusteredRows) -> Metric[Any] | str:
    """The metric of a value of all rows together, or why it cannot be resampled."""
    metric = metric_of(estimate)
    if metric is None:
        return "it is not made of what single rows bring, or its metric is not installed here"
    if not rows.contributions and estimate.rows > KEPT_ROWS:
        return f"what single rows bring to it is kept for up to {KEPT_ROWS:,} rows"
    try:
        metric.resampled(Resamples(rows, np.zeros((0, len(rows.offsets) - 1), np.int64)))
    except DialevalError as error:
        return str(error)
    return metric


def _offsets(result: Result) -> Ints:
    if result.rows is not None:
        return result.rows.offsets
    sizes: Sequence[int] = [len(est.items) for est in result.values() if est.items is not None]
    levels = {est.level for est in result.values() if est.items is not None}
    rows = max([*sizes, *(len(statistic) for statistic in result.contributions.values())], default=0)
    if levels == {Level.TURN, Level.DIALOGUE}:
        rows = max(len(est.items) for est in result.values() if est.items is not None and est.level is Level.TURN)
    return np.arange(rows + 1)
