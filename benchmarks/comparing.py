"""Comparing systems: those of MultiWOZ with the first of them, 1,000 resamples.

Uses the eight systems of the shared data where it lies beside the checkout, else the two of the shipped town.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator

import dialeval
from benchmarks.measure import command
from benchmarks.multiwoz import SHARED
from benchmarks.startup import MAIN, shown
from dialeval import sample_data
from dialeval.multiwoz import Evaluator


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    data = SHARED if SHARED.is_dir() else sample_data.folder() / "town"
    run = Evaluator(data=data).run(data / "predictions")
    dialeval.compare(run, resamples=2, trials=2)  # kernels are compiled
    for trials in (1000, None):
        wall, cpu = time.perf_counter(), time.process_time()
        found = dialeval.compare(run, trials=trials)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        what = f"{len(run)} systems, {found.design.clusters:,} dialogues, {len(found.differences)} tests"
        drawn = f"1,000 resamples, {found.trials:,} exchanges"
        yield f"{what}, {drawn}", f"{wall:.1f} s wall, {cpu:.1f} CPU s"
    with tempfile.TemporaryDirectory() as folder:
        run.save(folder)
        yield "the whole warm command from the saved run", shown(command(["-c", MAIN, "compare", folder], 1))
