"""Measuring: CPU seconds of functions in this process, and of whole commands."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Cost(NamedTuple):
    """What a command took, in seconds."""

    wall: float
    cpu: float


def cpu_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The CPU seconds of the fastest of some calls: what is above it is the noise of the machine."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def command(arguments: Sequence[str], repeats: int = 5, environment: Mapping[str, str] | None = None) -> Cost:
    """The fastest of some runs of a Python command in a process of its own."""
    costs = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments], check=True, capture_output=True, env={**os.environ, **(environment or {})}
        )
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return min(costs)
