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


def test_few_chunks_are_begun_ahead() -> None:
    job: Any = object()
    results = Threads(2).fold(job, {}, "metrics", chunks(100))
    next(results)
    assert len(Fake.begun) <= 6
    results.close()  # type: ignore[attr-defined]
    assert len(Fake.begun) < 12
