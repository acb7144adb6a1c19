"""Threads of this process that fold chunks over one vocabulary: kernels release the lock, so they share the work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dialeval.data.shards.chunks import Chunk
from dialeval.engine.job import ChunkResult, Engine, FactValues, Job, Stage
from dialeval.engine.worker import Worker

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

Work = TypeVar("Work")
Folded = TypeVar("Folded")


class Threads(Engine):
    """Folds chunks in this process."""

    in_process = True

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._worker: Worker | None = None

    def __exit__(self, *_: object) -> None:
        self._worker = None

    def fold(
        self, job: Job, facts: FactValues, stage: Stage, chunks: Mapping[int, Chunk], alone: bool
    ) -> Iterator[ChunkResult]:
        if self._worker is None or self._worker.job is not job:
            self._worker = Worker(job)
        worker = self._worker
        worker.learn(facts)
        if self._threads == 1 or len(chunks) == 1:  # no pool to start, and no switching between threads
            for number, chunk in chunks.items():
                states, items = worker.fold(stage, chunk)
                yield ChunkResult((number,), states, (items,))
            return
        from concurrent.futures import ThreadPoolExecutor

        with (
            ThreadPoolExecutor(self._threads) as pool,
            closing(in_order(pool, self._threads, partial(worker.fold, stage), chunks)) as folded,
        ):
            for number, (states, items) in folded:
                yield ChunkResult((number,), states, (items,))


def in_order(
    pool: ThreadPoolExecutor, threads: int, fold: Callable[[Work], Folded], chunks: Mapping[int, Work]
) -> Generator[tuple[int, Folded], None, None]:
    """What threads make of numbered chunks or parts, in that order; a few are worked on ahead."""
    ahead: deque[tuple[int, Future[Folded]]] = deque()
    waiting = iter(chunks.items())
    try:
        while True:
            while len(ahead) <= 2 * threads and (following := next(waiting, None)) is not None:
                number, chunk = following
                ahead.append((number, pool.submit(fold, chunk)))
            if not ahead:
                return
            number, future = ahead.popleft()
            yield number, future.result()
    finally:
        for _, future in ahead:
            future.cancel()
