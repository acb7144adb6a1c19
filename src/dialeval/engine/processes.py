"""Processes of this machine that fold chunks, each with a vocabulary and resources of its own.

A worker that dies (most often killed because memory ran out) takes its pool with it. A new pool then takes the chunks
that were being worked on, one at a time, so that the one that kills its worker is known: after `TRIES` deaths on the
same chunk the run ends and names it. An error in the data is no death: it ends the run at once, with file and line.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import connection
from typing import Any

from dialeval.core.errors import DialevalError
from dialeval.data.shards.chunks import Chunk
from dialeval.engine.job import ChunkItems, ChunkResult, Engine, FactValues, Job, Stage, SystemStates
from dialeval.engine.worker import Worker

TRIES = 3
"""How often a chunk may kill its worker."""

_AHEAD = 2
"""Chunks that wait for each worker."""

_PRELOADED = [
    "dialeval.core.fingerprint_kernel",
    "dialeval.text.words_kernel",
    "dialeval.text.ngrams_kernel",
]
"""Imported once for all workers: most of their start-up is importing the compiler."""

_given: tuple[Job, FactValues] | None = None


def _begin(job: Job, facts: FactValues) -> None:
    """Give a new process its job; it opens resources with the first chunk, where an error is not taken for a death."""
    global _given  # noqa: PLW0603  (a worker is a process of its own)
    from dialeval.core.arrays import return_freed_arrays

    return_freed_arrays()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process gets it too, and ends its workers
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    _given = (job, facts)
    _worker.cache_clear()


def _leave_with_parent() -> None:
    """End this process when the first one is gone: one that was killed cannot end its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


@cache
def _worker() -> Worker:
    if _given is None:
        raise RuntimeError("a worker without a job")
    return Worker(*_given)


def _fold(stage: Stage, chunk: Chunk) -> tuple[SystemStates, ChunkItems]:
    return _worker().fold(stage, chunk)


class Processes(Engine):
    """Folds chunks in a number of processes."""

    same_disk = True

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def fold(
        self, job: Job, facts: FactValues, stage: Stage, chunks: Mapping[int, Chunk], alone: bool
    ) -> Iterator[ChunkResult]:
        waiting = deque(chunks.items())
        suspects: deque[tuple[int, Chunk]] = deque()
        deaths: dict[int, int] = {}
        while waiting or suspects:
            pool = self._pool(job, facts)
            ahead: deque[tuple[int, Chunk, Future[tuple[SystemStates, ChunkItems]]]] = deque()
            try:
                while waiting or suspects or ahead:
                    # Suspects go alone: one that breaks the pool then is the cause.
                    most = 1 if suspects else self._jobs * (1 + _AHEAD)
                    while len(ahead) < most and (suspects or waiting):
                        queue = suspects or waiting
                        number, chunk = queue[0]
                        ahead.append((number, chunk, pool.submit(_fold, stage, chunk)))
                        queue.popleft()
                    number, chunk, future = ahead[0]
                    states, items = future.result()
                    ahead.popleft()
                    yield ChunkResult((number,), states, (items,))
            except BrokenProcessPool:
                caught = [(number, chunk) for number, chunk, _ in ahead]
                if len(caught) == 1:
                    _count_death(deaths, *caught[0])
                suspects.extendleft(reversed(caught))
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _pool(self, job: Job, facts: FactValues) -> ProcessPoolExecutor:
        methods = multiprocessing.get_all_start_methods()
        # Never plain fork: a copy of a process with threads may wait for a lock that is never released.
        context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            context.set_forkserver_preload([__name__, *_PRELOADED])
        return ProcessPoolExecutor(self._jobs, context, _begin, (job, facts))


def _count_death(deaths: dict[int, int], number: int, chunk: Chunk) -> None:
    deaths[number] = deaths.get(number, 0) + 1
    if deaths[number] >= TRIES:
        raise DialevalError(
            f"{chunk}: a worker died {TRIES} times on this chunk, most likely because memory ran out; "
            "use fewer --jobs, or split the shard"
        )
