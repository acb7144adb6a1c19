"""Kernels over resamples of clusters: different words in segments and in moving windows.

A segment begins somewhere in a cluster, and the whole segments within the cluster follow from where; these are counted
once. What is left to a resample are the words at both ends of a cluster, which are in segments with its neighbours.
Windows are added up once for the whole text; a resample has those of its runs of consecutive clusters, and others where
two runs meet.
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


@njit()
def add_windows(ids, size, times, before):  # type: ignore[no-untyped-def]
    """Add up the different words of all windows of `size` words; `before[i]` is of the windows that end before word i.

    `times` (zeros before) holds how often the window has each word.
    """
    different = 0
    for i in range(len(ids)):
        different += times[ids[i]] == 0
        times[ids[i]] += 1
        if i >= size:
            times[ids[i - size]] -= 1
            different -= times[ids[i - size]] == 0
        before[i + 1] = before[i]
        if i >= size - 1:
            before[i + 1] += different


@njit()
def _joined_windows(ids, first, length, size, times, last, kept):  # type: ignore[no-untyped-def]
    """Different words of each window that has words of `last` and of the run from `first` on, added up."""
    total = different = gone = 0
    for i in range(kept):
        different += times[last[i]] == 0
        times[last[i]] += 1
    head = min(length, size - 1)
    for i in range(first, first + head):
        different += times[ids[i]] == 0
        times[ids[i]] += 1
        if kept - gone + i - first + 1 > size:
            times[last[gone]] -= 1
            different -= times[last[gone]] == 0
            gone += 1
        if kept - gone + i - first + 1 == size:
            total += different
    for i in range(kept):
        times[last[i]] = 0
    for i in range(first, first + head):
        times[ids[i]] = 0
    return total


@njit()
def _keep_last(ids, end, length, size, last, kept):  # type: ignore[no-untyped-def]
    """Put the last `size - 1` words up to the end of a run into `last`, which has those before it."""
    new = min(length, size - 1)
    stay = min(kept, size - 1 - new)
    for i in range(stay):
        last[i] = last[kept - stay + i]
    for i in range(new):
        last[stay + i] = ids[end - new + i]
    return stay + new


@njit()
def count_windows(counts, offsets, ids, size, before, times, last, found):  # type: ignore[no-untyped-def]
    """Per resample: all words, and the different words of each window of `size` words, added up.

    With fewer words than a window has, these are the different ones of all. `before` is that of `add_windows`, `times`
    (zeros before and after) holds how often the window has each word, `last` the last words of the runs so far.
    """
    clusters = counts.shape[1]
    for r in range(counts.shape[0]):
        words = total = kept = 0
        first = end = 0  # of the run of clusters that stand together
        for k in range(clusters + 1):
            for again in range(counts[r, k] if k < clusters else 1):
                if k < clusters and again == 0 and end == offsets[k]:
                    end = offsets[k + 1]
                    continue
                length = end - first
                if length >= size:
                    total += before[end] - before[first + size - 1]
                total += _joined_windows(ids, first, length, size, times, last, kept)
                kept = _keep_last(ids, end, length, size, last, kept)
                words += length
                if k < clusters:
                    first, end = offsets[k], offsets[k + 1]
        if words < size:
            for i in range(kept):
                total += times[last[i]] == 0
                times[last[i]] += 1
            for i in range(kept):
                times[last[i]] = 0
        found[r, 0], found[r, 1] = words, total
