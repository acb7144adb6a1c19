"""Threads give the results of chunks in order, few of them ahead, and stop at the first error."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from dialeval.engine import worker as module
from dialeval.engine.worker import Threads
from dialeval.io.chunks import Chunk


class Fake:
    """A worker that only sleeps and notes what it did."""

    begun: list[Any]

    def __init__(self, job: Any) -> None:
        self.job = job
        Fake.begun = []

    def learn(self, facts: Any) -> None:
        self.facts = facts

    def fold(self, _stage: Any, chunk: Any) -> tuple[Any, Any]:
        Fake.begun.append((chunk, threading.get_ident()))
        if chunk == "bad":
            raise ValueError("on purpose")
        time.sleep(0.002 if chunk % 3 else 0.01)
        return {"chunk": chunk}, {}


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Worker", Fake)


def chunks(count: int) -> dict[int, Chunk]:
    return {number + 5: number for number in range(count)}  # type: ignore[misc]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_results_come_in_order(threads: int) -> None:
    job: Any = object()
    results: list[Any] = list(Threads(threads).fold(job, {}, "metrics", chunks(30), alone=False))
    assert [(result.chunks, result.states["chunk"]) for result in results] == [((n + 5,), n) for n in range(30)]
    assert len({thread for _, thread in Fake.begun}) == threads


def test_few_chunks_are_begun_ahead() -> None:
    job: Any = object()
    results = Threads(2).fold(job, {}, "metrics", chunks(100), alone=False)
    next(results)
    assert len(Fake.begun) <= 6
    results.close()  # type: ignore[attr-defined]
    assert len(Fake.begun) < 12


def test_an_error_ends_the_run() -> None:
    job: Any = object()
    bad: dict[int, Any] = {0: 1, 1: "bad", **{number: number for number in range(2, 60)}}
    with pytest.raises(ValueError, match="on purpose"):
        list(Threads(2).fold(job, {}, "metrics", bad, alone=False))
    assert len(Fake.begun) < 12


def test_the_worker_is_kept_between_the_stages_of_a_job() -> None:
    job: Any = object()
    with Threads(1) as engine:
        list(engine.fold(job, {}, "facts", chunks(1), alone=False))
        first = engine._worker  # type: ignore[attr-defined]
        list(engine.fold(job, {}, "metrics", chunks(1), alone=False))
        assert engine._worker is first  # type: ignore[attr-defined]
    assert engine._worker is None  # type: ignore[attr-defined]
