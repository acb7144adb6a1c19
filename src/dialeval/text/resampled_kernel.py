"""Kernel over resamples of clusters: different words in segments."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def count_segments(counts, offsets, ids, size, seen, found):  # type: ignore[no-untyped-def]
    """Per resample: all words, different words within whole segments of `size` words, those of the rest at the end.

    `seen` (zeros before) holds the last segment that has a word.
    """
    segment = 0
    for r in range(counts.shape[0]):
        words = whole = different = 0
        left = size
        segment += 1
        for k in range(counts.shape[1]):
            for _ in range(counts[r, k]):
                for i in range(offsets[k], offsets[k + 1]):
                    different += seen[ids[i]] != segment
                    seen[ids[i]] = segment
                    left -= 1
                    if left == 0:
                        whole += different
                        different = 0
                        left = size
                        segment += 1
                words += offsets[k + 1] - offsets[k]
        found[r, 0], found[r, 1], found[r, 2] = words, whole, different
