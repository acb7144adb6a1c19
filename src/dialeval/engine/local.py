"""The local engine: fold metrics over the batches of one system, threads over batches.

Kernels release the interpreter lock, so threads share the work. Every state is exact and batches are merged pairwise
in a fixed shape, so the result is the same for every number of threads and every batch size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from os import cpu_count
from typing import Any

import numpy as np

from dialeval.core.columns import Batch, Floats, Ints, Words
from dialeval.core.fold import Estimate, Level, Metric, Partial
from dialeval.core.needs import Need
from dialeval.data.rows import Rows

BATCH_ROWS = 1 << 15
"""Rows of a batch: enough to forget the cost of a batch, few enough that its arrays stay in the processor's cache."""

Progress = Callable[[int], None]
"""Told the number of rows done, each time a batch is."""


def fold(
    metrics: Sequence[Metric[Any]],
    rows: Rows,
    vocabulary: Words,
    digests: Mapping[Need, str],
    *,
    batch_rows: int = BATCH_ROWS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Estimate]:
    """The estimates of one system with items and signatures; `digests` are those of the columns beside responses."""
    dialogues = rows.dialogue_offsets()
    sums = [Reduction(metric) for metric in metrics]
    items = Items(len(rows), len(dialogues) - 1)
    batches = list(_cuts(dialogues, batch_rows))

    def work(cut: tuple[int, int]) -> list[Partial[Any]]:
        batch = _batch(rows, dialogues, cut, vocabulary)
        return [metric.partial(batch.only(metric.needs)) for metric in metrics]

    for (first, last), partials in zip(batches, _in_order(work, batches, threads or cpu_count() or 1), strict=True):
        start, stop = int(dialogues[first]), int(dialogues[last])
        for metric, total, partial in zip(metrics, sums, partials, strict=True):
            total.add(partial.state)
            at = slice(start, stop) if metric.level is Level.TURN else slice(first, last)
            items.put(metric.level, at, partial.items)
        if progress is not None:
            progress(stop - start)

    estimates = {}
    for metric, total in zip(metrics, sums, strict=True):
        signature = metric.signature().with_fields(**{need.value: digests[need] for need in digests_of(metric)})
        for key, estimate in metric.finish(total.result()).items():
            column = items.columns.get(key)
            estimates[key] = replace(estimate, items=column, level=metric.level, signature=signature)
    return estimates


def digests_of(metric: Metric[Any]) -> list[Need]:
    """The needs whose digests stand in a metric's signature: all but the responses, which are what is compared."""
    return sorted(metric.needs - {Need.RESPONSE})


class Reduction:
    """Merges states as they come, pairs of equal rank first: n states cost log n merges each, in a fixed shape."""

    def __init__(self, metric: Metric[Any]) -> None:
        self._metric = metric
        self._ranks: list[tuple[int, Any]] = []

    def add(self, state: Any) -> None:
        """Take one more state in."""
        rank = 0
        while self._ranks and self._ranks[-1][0] == rank:
            state = self._metric.merge(self._ranks.pop()[1], state)
            rank += 1
        self._ranks.append((rank, state))

    def result(self) -> Any:
        """The state of everything that was added."""
        if not self._ranks:
            return self._metric.empty()
        state = self._ranks[-1][1]
        for _, earlier in reversed(self._ranks[:-1]):
            state = self._metric.merge(earlier, state)
        return state


class Items:
    """The item columns of one system, filled in batch by batch."""

    def __init__(self, turns: int, dialogues: int) -> None:
        self._sizes = {Level.TURN: turns, Level.DIALOGUE: dialogues}
        self.columns: dict[str, Floats] = {}

    def put(self, level: Level, at: slice, items: Mapping[str, Floats]) -> None:
        """Put the items of a batch at their place; a key that a batch lacks stays NaN there."""
        for key, values in items.items():
            if key not in self.columns:
                self.columns[key] = np.full(self._sizes[level], np.nan)
            self.columns[key][at] = values


def _cuts(dialogues: Ints, batch_rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of whole dialogues with about `batch_rows` rows each (more only where one dialogue has more)."""
    first = 0
    while first < len(dialogues) - 1:
        last = int(np.searchsorted(dialogues, dialogues[first] + batch_rows, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _batch(rows: Rows, dialogues: Ints, cut: tuple[int, int], vocabulary: Words) -> Batch:
    offsets = dialogues[cut[0] : cut[1] + 1]
    part = rows.slice(int(offsets[0]), int(offsets[-1]))
    return Batch(len(part), part.columns, vocabulary, offsets - offsets[0])


def _in_order(
    work: Callable[[tuple[int, int]], list[Partial[Any]]], batches: Sequence[tuple[int, int]], threads: int
) -> Iterator[list[Partial[Any]]]:
    """The work of every batch, in order, a bounded number of batches ahead."""
    if threads == 1 or len(batches) < 2:
        yield from map(work, batches)
        return
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[list[Partial[Any]]]] = deque()
        try:
            for batch in batches:
                ahead.append(pool.submit(work, batch))
                if len(ahead) > 2 * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()
