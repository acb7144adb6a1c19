"""Processes of this machine that fold pieces, each with a vocabulary and resources of its own.

A worker that dies (killed for want of memory, most of all) takes its pool with it. Then a new pool takes the pieces
that were being worked on, one at a time, so that it can be told which of them is too much: after `TRIES` deaths on the
same piece the run ends and names it. An error in the data is no death: it ends the run at once, with file and line.
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
from dialeval.data.shards.chunks import Piece
from dialeval.engine.job import Engine, Folded, Job, Known, Parts, PieceItems, Place, Task

TRIES = 3
"""How often a piece may take its worker down."""

_AHEAD = 2
"""Pieces that wait for each worker."""

_PRELOADED = [
    "dialeval.core.fingerprint_kernel",
    "dialeval.text.words_kernel",
    "dialeval.text.ngrams_kernel",
]
"""Imported once for all workers: most of their start is the compiler's."""

_given: tuple[Job, Known] | None = None


def _begin(job: Job, known: Known) -> None:
    """Tell a new worker its job; it opens its place for the first piece, where an error can be told from a death."""
    global _given  # noqa: PLW0603  (a worker is a process of its own)
    from dialeval.core.arrays import return_freed_arrays

    return_freed_arrays()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process hears it too, and ends its workers
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    _given = (job, known)
    _place.cache_clear()


def _leave_with_parent() -> None:
    """End this worker when the first process is gone: a killed one cannot tell its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


@cache
def _place() -> Place:
    if _given is None:
        raise RuntimeError("a worker that was told no job")
    return Place(*_given)


def _fold(task: Task, piece: Piece) -> tuple[Parts, PieceItems]:
    return _place().fold(task, piece)


class Processes(Engine):
    """Folds pieces in a number of processes."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def each(self, job: Job, known: Known, task: Task, pieces: Mapping[int, Piece], alone: bool) -> Iterator[Folded]:
        waiting = deque(pieces.items())
        suspects: deque[tuple[int, Piece]] = deque()
        deaths: dict[int, int] = {}
        while waiting or suspects:
            pool = self._pool(job, known)
            ahead: deque[tuple[int, Piece, Future[tuple[Parts, PieceItems]]]] = deque()
            try:
                while waiting or suspects or ahead:
                    # Suspects go alone: whoever takes the pool down then is the culprit.
                    most = 1 if suspects else self._jobs * (1 + _AHEAD)
                    while len(ahead) < most and (suspects or waiting):
                        queue = suspects or waiting
                        number, piece = queue[0]
                        ahead.append((number, piece, pool.submit(_fold, task, piece)))
                        queue.popleft()
                    number, piece, future = ahead[0]
                    parts, items = future.result()
                    ahead.popleft()
                    yield Folded((number,), parts, (items,))
            except BrokenProcessPool:
                caught = [(number, piece) for number, piece, _ in ahead]
                if len(caught) == 1:
                    _count_death(deaths, *caught[0])
                suspects.extendleft(reversed(caught))
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _pool(self, job: Job, known: Known) -> ProcessPoolExecutor:
        methods = multiprocessing.get_all_start_methods()
        # Never plain fork: a copy of a process with threads may wait for a lock that nobody will open.
        context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            context.set_forkserver_preload([__name__, *_PRELOADED])
        return ProcessPoolExecutor(self._jobs, context, _begin, (job, known))


def _count_death(deaths: dict[int, int], number: int, piece: Piece) -> None:
    deaths[number] = deaths.get(number, 0) + 1
    if deaths[number] >= TRIES:
        raise DialevalError(
            f"{piece}: a worker died {TRIES} times on this piece, most likely for want of memory; "
            "use fewer --jobs, or split the shard"
        )
