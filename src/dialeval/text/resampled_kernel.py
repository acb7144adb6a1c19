"""Kernels over resamples of clusters: counts of n-grams, and different words in segments."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def add_up(counts, offsets, kinds, times, totals):  # type: ignore[no-untyped-def]
    """Add what every cluster brings, as often as a resample takes it, to `totals` (zeros before)."""
    for r in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            taken = counts[r, k]
            if taken != 0:
                for i in range(offsets[k], offsets[k + 1]):
                    totals[r, kinds[i]] += taken * times[i]


@njit(nogil=True, cache=True)
def count_segments(counts, offsets, ids, size, seen, found):  # type: ignore[no-untyped-def]
    """Per resample: all words, different words within whole segments of `size` words, those of the rest at the end.

    `seen` (zeros before) holds the last segment that has a word.
    """
    segment = 0
    for r in range(counts.shape[0]):
        words = whole = different = 0
        segment += 1
        for k in range(counts.shape[1]):
            for _ in range(counts[r, k]):
                for i in range(offsets[k], offsets[k + 1]):
                    if seen[ids[i]] != segment:
                        seen[ids[i]] = segment
                        different += 1
                    words += 1
                    if words % size == 0:
                        whole += different
                        different = 0
                        segment += 1
        found[r, 0], found[r, 1], found[r, 2] = words, whole, different
