"""The local engine: fold facts and metrics over the batches of one system, threads over batches.

Kernels release the interpreter lock, so threads share the work. Every state is exact and batches are merged pairwise
in a fixed shape, so the result is the same for every number of threads and every batch size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import cpu_count
from typing import Any, TypeVar

import numpy as np

from dialeval.core.arrays import Floats, Ints, release, unscored
from dialeval.core.batch import Batch
from dialeval.core.columns import Words
from dialeval.core.contributions import ContributionCollector, Contributions
from dialeval.core.fold import Estimate, Fact, Level, Metric, Reduction
from dialeval.core.needs import Need
from dialeval.data.rows.system import Rows

BATCH_ROWS = 1 << 15
"""Rows of a batch: enough to forget the cost of a batch, few enough that its arrays stay in the processor's cache."""

COSTLY_ROWS = 512
"""Rows of a batch at most where a costly metric runs, so that all threads get to work and the progress is seen."""

Progress = Callable[[int], None]
"""Told the number of rows done, each time a batch is."""

T = TypeVar("T")


@dataclass(frozen=True)
class Local:
    """One system's rows, cut into batches of whole dialogues, and the threads that work on them."""

    rows: Rows
    vocabulary: Words
    resources: Mapping[Need, Any] = field(default_factory=dict)
    batch_rows: int = BATCH_ROWS
    threads: int | None = None
    contributions: dict[str, Contributions] = field(default_factory=dict)
    """What each row brings to values of all rows together: filled by `fold`, unless there are very many rows."""

    @cached_property
    def dialogues(self) -> Ints:
        """Row offsets of the dialogues."""
        return self.rows.dialogue_offsets()

    @cached_property
    def cuts(self) -> list[tuple[int, int]]:
        """Ranges of dialogues with about `batch_rows` rows each (more only where one dialogue has more)."""
        found, first = [], 0
        while first < len(self.dialogues) - 1:
            full = int(np.searchsorted(self.dialogues, self.dialogues[first] + self.batch_rows, side="right")) - 1
            last = max(full, first + 1)
            found.append((first, last))
            first = last
        return found

    @cached_property
    def _only_batch(self) -> Batch:
        return self._made(self.cuts[0])

    def _made(self, cut: tuple[int, int]) -> Batch:
        offsets = self.dialogues[cut[0] : cut[1] + 1]
        part = self.rows.slice(int(offsets[0]), int(offsets[-1]))
        return Batch(len(part), part.columns, self.vocabulary, offsets - offsets[0], self.resources)

    def each(self, work: Callable[[Batch], T]) -> Iterator[tuple[tuple[int, int], T]]:
        """The work of every batch with its cut, in order, a bounded number of batches ahead."""
        if len(self.cuts) == 1:
            # Kept between the passes for facts and metrics, so that neither splits the texts again.
            yield self.cuts[0], work(self._only_batch)
            return

        def task(cut: tuple[int, int]) -> T:
            batch = self._made(cut)
            result = work(batch)
            for column in batch.columns.values():
                column.release()
            return result

        threads = self.threads or cpu_count() or 1
        with ThreadPoolExecutor(threads) as pool:
            ahead: deque[tuple[tuple[int, int], Future[T]]] = deque()
            try:
                for cut in self.cuts:
                    ahead.append((cut, pool.submit(task, cut)))
                    if len(ahead) > 2 * threads:
                        done, future = ahead.popleft()
                        yield done, future.result()
                while ahead:
                    done, future = ahead.popleft()
                    yield done, future.result()
            finally:
                for _, future in ahead:
                    future.cancel()

    def find(self, metrics: Sequence[Metric[Any]]) -> dict[Hashable, Any]:
        """The facts that metrics ask for, each once."""
        asked: dict[Fact[Any, Any], frozenset[Need]] = {}
        for metric in metrics:
            asked.update(dict.fromkeys(metric.facts, metric.needs | metric.wants))
        if not asked:
            return {}
        sums = {fact: Reduction(fact.merge, fact.empty) for fact in asked}
        for _, states in self.each(lambda batch: [fact.gather(batch.only(needs)) for fact, needs in asked.items()]):
            for fact, state in zip(asked, states, strict=True):
                sums[fact].add(state)
        return {fact: fact.finish(sums.pop(fact).result()) for fact in asked}

    def fold(
        self, named: Mapping[str, Metric[Any]], digests: Mapping[Need, str], progress: Progress | None = None
    ) -> dict[str, Estimate]:
        """The estimates of metrics with items and signatures; `digests` are those of all that may stand in one.

        A metric's main result gets the name that the metric has in the mapping.
        """
        metrics = list(named.values())
        facts = self.find(metrics)
        sums = [Reduction(metric.merge, metric.empty) for metric in metrics]
        items = Items(len(self.rows), len(self.dialogues) - 1)
        brought = ContributionCollector(len(self.rows))

        def work(batch: Batch) -> list[Any]:
            batch = replace(batch, facts=facts)
            return [metric.partial(batch.only(metric.needs | metric.wants)) for metric in metrics]

        for (first, last), partials in self.each(work):
            start, stop = int(self.dialogues[first]), int(self.dialogues[last])
            for metric, total, partial in zip(metrics, sums, partials, strict=True):
                total.add(partial.state)
                at = slice(start, stop) if metric.level is Level.TURN else slice(first, last)
                items.put(metric.level, at, partial.items)
            brought.put(partial.contributions for partial in partials)
            if progress is not None:
                progress(stop - start)
        self.contributions.update(brought.result())

        estimates = {}
        for name, metric in named.items():
            data = {need.value: digests[need] for need in signed(metric) if need in digests}
            signature = metric.signature().with_fields(**data)
            for key, estimate in metric.finish(sums.pop(0).result()).items():
                shown = name if key == metric.name else key
                values = items.columns.get(key)
                estimates[shown] = replace(estimate, items=values, level=metric.level, signature=signature)
        return estimates


def signed(metric: Metric[Any]) -> list[Need]:
    """The needs whose digests stand in a metric's signature: all but its subject, which is what is compared."""
    return sorted((metric.needs | metric.wants) - {metric.subject})


class Items:
    """The item columns of one system, filled in batch by batch."""

    def __init__(self, turns: int, dialogues: int) -> None:
        self._sizes = {Level.TURN: turns, Level.DIALOGUE: dialogues}
        self.columns: dict[str, Floats] = {}

    def put(self, level: Level, at: slice, items: Mapping[str, Floats]) -> None:
        """Put the items of a batch at their place; a key that a batch lacks stays NaN there."""
        for key, values in items.items():
            if key not in self.columns:
                self.columns[key] = unscored(self._sizes[level])
            part = self.columns[key][at]
            part[:] = values
            release(part)
