"""Draws: which clusters a bootstrap resample is made of, and which ones two systems exchange.

A cluster is what was sampled as a whole: a dialogue with all its turns, or a single row where rows stand alone. A
resample takes as many clusters as there are, with replacement, and is written as how often it takes each. Every
analysis draws from here, so that equal seeds mean equal resamples for every metric and every system: that is what makes
a comparison paired.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError

DEFAULT_RESAMPLES = 1000
DEFAULT_SEED = 12345
DEFAULT_LEVEL = 0.95

_CHUNK_CELLS = 1 << 21
"""Counts of one chunk of resamples: 16 MB, whatever the number of clusters."""

MOST_RESAMPLES = 1_000_000
"""More would change no digit that anybody reads."""


def check_resampling(level: float, resamples: int) -> None:
    """Refuse settings that make no interval."""
    if not 0 < level < 1:
        raise SettingError(f"a level lies between 0 and 1, such as 0.95; it is not {level}")
    if resamples < 1:
        raise SettingError(f"at least one resample is needed, not {resamples}")
    if resamples > MOST_RESAMPLES:
        raise SettingError(f"{resamples:,} resamples would take too long; {MOST_RESAMPLES:,} are the most")


def draws(clusters: int, resamples: int = DEFAULT_RESAMPLES, seed: int = DEFAULT_SEED) -> Iterator[Ints]:
    """How often each cluster is drawn, a matrix of resamples by clusters, in chunks of rows; the same for a seed."""
    if seed < 0:
        raise SettingError(f"a seed is 0 or more, not {seed}")
    generator = np.random.default_rng(seed)
    for rows in _chunks(resamples, clusters):
        taken = generator.integers(clusters, size=(rows, clusters))
        taken += clusters * np.arange(rows)[:, None]
        yield np.bincount(taken.ravel(), minlength=rows * clusters).reshape(rows, clusters)


def swaps(clusters: int, trials: int, seed: int = DEFAULT_SEED) -> Iterator[Ints]:
    """Which clusters two systems exchange (1) or keep (0), a matrix of trials by clusters, in chunks of rows.

    Where there are no more than `trials` ways to exchange some (`all_swaps`), these are all of them, each once; else
    they are drawn.
    """
    if seed < 0:
        raise SettingError(f"a seed is 0 or more, not {seed}")
    if all_swaps(clusters, trials):
        first = 1  # in trial 0 nobody would exchange anything
        for rows in _chunks(2**clusters - 1, clusters):
            yield np.arange(first, first + rows)[:, None] >> np.arange(clusters) & 1
            first += rows
        return
    generator = np.random.default_rng(seed)
    for rows in _chunks(trials, clusters):
        yield generator.integers(2, size=(rows, clusters))


def all_swaps(clusters: int, trials: int) -> bool:
    """Whether some trials are enough for every way in which two systems may exchange clusters."""
    return clusters < 63 and (1 << clusters) - 1 <= trials


def _chunks(total: int, clusters: int) -> Iterator[int]:
    """The numbers of rows of the chunks."""
    step = max(1, _CHUNK_CELLS // max(clusters, 1))
    return (min(step, total - start) for start in range(0, total, step))


def percentiles(values: Floats, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
    """The middle `level` of resampled values; NaN where a resample had no value is left out."""
    known = values[~np.isnan(values)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
