"""Threads of this process that fold pieces over one vocabulary: kernels release the lock, so they share the work."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from dialeval.data.shards.chunks import Piece
from dialeval.engine.job import Engine, Folded, Job, Known, Parts, PieceItems, Place, Task


class Threads(Engine):
    """Folds pieces in this process."""

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads

    def each(self, job: Job, known: Known, task: Task, pieces: Mapping[int, Piece], alone: bool) -> Iterator[Folded]:
        place = Place(job, known)
        with ThreadPoolExecutor(self._threads) as pool:
            ahead: deque[tuple[int, Future[tuple[Parts, PieceItems]]]] = deque()
            try:
                for number, piece in pieces.items():
                    ahead.append((number, pool.submit(place.fold, task, piece)))
                    if len(ahead) > 2 * self._threads:
                        yield _taken(ahead)
                while ahead:
                    yield _taken(ahead)
            finally:
                for _, future in ahead:
                    future.cancel()


def _taken(ahead: deque[tuple[int, Future[tuple[Parts, PieceItems]]]]) -> Folded:
    number, future = ahead.popleft()
    parts, items = future.result()
    return Folded((number,), parts, (items,))
