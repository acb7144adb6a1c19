"""Intervals by resampling: 20 metrics of 10,000 responses, 1,000 resamples."""

from __future__ import annotations

import time
from collections.abc import Iterator

import dialeval
from benchmarks.measure import cpu_seconds
from benchmarks.texts import lines
from dialeval import sample_data

ROWS = 10_000
MORE = "distinct(n=3),distinct(n=2,per=response),bleu(by=sacre)"
"""Beside the 17 that every input of responses has."""


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    run = dialeval.evaluate(
        lines(ROWS, 0),
        lines(ROWS, 1),
        lines(ROWS, 2),
        train=lines(ROWS, 3),
        vectors=sample_data.folder() / "vectors.txt",
        metrics=f"all,{MORE}",
        reading=dialeval.Reading(vocabulary=sorted({word for text in lines(ROWS, 0) for word in text.split()})),
    )
    metrics = len(run["system"])
    dialeval.with_intervals(run, resamples=2)  # modules are loaded
    start = time.perf_counter()
    dialeval.with_intervals(run)
    wall = time.perf_counter() - start
    cpu = cpu_seconds(lambda: dialeval.with_intervals(run), 2)
    yield f"intervals of {metrics} metrics, {ROWS:,} responses", f"{wall:.2f} s wall, {cpu:.2f} CPU s"
