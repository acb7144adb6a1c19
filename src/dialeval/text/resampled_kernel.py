"""Kernels over resamples of clusters: different words in segments.

A segment begins somewhere in a cluster, and the whole segments within the cluster follow from where; these are counted
once. What is left to a resample are the words at both ends of a cluster, which are in segments with its neighbours.
"""

from __future__ import annotations

from dialeval.core.numba_kernel import njit


@njit()
def count_inner(offsets, ids, size, seen, inner):  # type: ignore[no-untyped-def]
    """Different words in the whole segments of cluster `k` from its word `start` on, in `inner[k, start]`.

    `start` is 0 to `size`; `seen` (zeros before) holds the last segment that has a word.
    """
    segment = 0
    for k in range(inner.shape[0]):
        for start in range(inner.shape[1]):
            first, different = offsets[k] + start, 0
            while first + size <= offsets[k + 1]:
                segment += 1
                for i in range(first, first + size):
                    different += seen[ids[i]] != segment
                    seen[ids[i]] = segment
                first += size
            inner[k, start] = different


@njit()
def count_segments(counts, offsets, ids, size, inner, seen, found):  # type: ignore[no-untyped-def]
    """Per resample: all words, different words within whole segments of `size` words, those of the rest at the end.

    `seen` (zeros before) holds the last segment that has a word.
    """
    segment = 0
    for r in range(counts.shape[0]):
        words = whole = different = 0
        left = size  # words that the segment lacks
        segment += 1
        for k in range(counts.shape[1]):
            for _ in range(counts[r, k]):
                length = offsets[k + 1] - offsets[k]
                words += length
                first = offsets[k]
                if length >= left:
                    for i in range(first, first + left):
                        different += seen[ids[i]] != segment
                        seen[ids[i]] = segment
                    whole += different + inner[k, left]
                    first = offsets[k + 1] - (length - left) % size
                    left, different = size, 0
                    segment += 1
                for i in range(first, offsets[k + 1]):
                    different += seen[ids[i]] != segment
                    seen[ids[i]] = segment
                left -= offsets[k + 1] - first
        found[r, 0], found[r, 1], found[r, 2] = words, whole, different
