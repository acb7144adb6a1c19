"""n-grams of resampled rows: how often each occurs in every resample, and words in segments and in windows.

The n-grams of a system are numbered once, and of each cluster only the different ones are kept with their counts; a
resample then adds up the counts of its clusters.

Kernels over resamples of clusters: different words in segments and in moving windows.

A segment begins somewhere in a cluster, and the whole segments within the cluster follow from where; these are counted
once. What is left to a resample are the words at both ends of a cluster, which are in segments with its neighbors.
Windows are added up once for the whole text; a resample has those of its runs of consecutive clusters, and others where
two runs meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from dialeval.core.arrays import Floats, Ids, Ints, offsets_of, ranges, row_numbers
from dialeval.core.columns import TokenColumn
from dialeval.core.contributions import ClusteredRows, Resamples, add_up
from dialeval.core.kernels import kernel
from dialeval.text.ngrams import NgramColumn, NgramCounts
from dialeval.text.vocabulary import Vocabulary


@kernel
def count_inner(offsets, ids, size, seen, inner):  # type: ignore[no-untyped-def]
    """Count different words in the whole segments of cluster `k` from its word `start` on, in `inner[k, start]`.

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


@kernel
def count_segments(counts, offsets, ids, size, inner, seen, found):  # type: ignore[no-untyped-def]
    """Count per resample all words, different words in whole segments of `size` words, and those of the rest.

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


@kernel
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


@kernel
def _joined_windows(ids, first, length, size, times, last, kept):  # type: ignore[no-untyped-def]
    """Count different words of each window that has words of `last` and of the run from `first` on, added up."""
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


@kernel
def _keep_last(ids, end, length, size, last, kept):  # type: ignore[no-untyped-def]
    """Put the last `size - 1` words up to the end of a run into `last`, which has those before it."""
    new = min(length, size - 1)
    stay = min(kept, size - 1 - new)
    for i in range(stay):
        last[i] = last[kept - stay + i]
    for i in range(new):
        last[stay + i] = ids[end - new + i]
    return stay + new


@kernel
def count_windows(counts, offsets, ids, size, before, times, last, found):  # type: ignore[no-untyped-def]
    """Return per resample: all words, and the different words of each window of `size` words, added up.

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


@dataclass(frozen=True, eq=False, slots=True)
class ClusterGrams:
    """The different n-grams of each cluster: those of cluster `k` are `kinds[offsets[k]:offsets[k + 1]]`."""

    kinds: Ids
    """Numbers of n-grams, below `count`; a single word has the number of the word."""
    times: Ids
    offsets: Ints
    count: int
    heads: Ids
    """The number of the first word of each n-gram of two words."""

    @classmethod
    def of(cls, rows: ClusteredRows, name: str, n: int) -> ClusterGrams:
        """Return the n-grams of words of the rows, by cluster."""
        words = rows.words(name)
        column = NgramColumn.of(TokenColumn(words.ids, words.offsets, Vocabulary()), n)
        keys, numbers = column.numbered()
        count = max(len(words.words) if n == 1 else len(keys), 1)
        bounds = column.offsets[rows.offsets]
        pairs, times = np.unique(row_numbers(bounds) * count + numbers[bounds[0] : bounds[-1]], return_counts=True)
        offsets = np.searchsorted(pairs, np.arange(len(bounds)) * count)
        heads = (keys >> 32).astype(np.int32)
        return cls((pairs % count).astype(np.int32), times.astype(np.int32), offsets.astype(np.int64), count, heads)


def cluster_grams(sample: Resamples, name: str, n: int) -> ClusterGrams:
    """Return the n-grams of each cluster; found once for all resamples."""
    return sample.rows.derived(("grams", name, n), lambda: ClusterGrams.of(sample.rows, name, n))


def ngram_totals(sample: Resamples, name: str, n: int) -> Ids:
    """Return how often each n-gram occurs in each resample, one line per n-gram; made once for all metrics."""
    key = "gram totals", name, n
    if key not in sample.kept:
        grams = cluster_grams(sample, name, n)
        totals = sample.kept[key] = np.zeros((grams.count, len(sample.counts)), np.int32)
        add_up(sample.taken, grams.offsets, grams.kinds, grams.times, totals)
    return cast("Ids", sample.kept[key])


def segment_kinds(sample: Resamples, name: str, order: str, size: int) -> tuple[Ints, Ints, Ints]:
    """Return per resample the words, the different words of whole segments added up, and those of a rest.

    Words are one after the other; `order` names the place of each row.
    """
    rows, kinds = sample.rows, len(sample.rows.words(name).words)
    ids, offsets, clusters = rows.derived(("in order", name, order), lambda: _in_order(rows, name, order))

    def make() -> Ids:
        inner = np.zeros((len(clusters), size + 1), np.int32)
        count_inner(offsets, ids, size, np.zeros(kinds, np.int64), inner)
        return inner

    inner = rows.derived(("inner segments", name, order, size), make)
    found, seen = np.zeros((len(sample), 3), np.int64), np.zeros(kinds, np.int64)
    count_segments(np.ascontiguousarray(sample.counts[:, clusters]), offsets, ids, size, inner, seen, found)
    words, whole, rest = found.T
    return words, whole, rest


def window_ratios(sample: Resamples, name: str, order: str, size: int) -> Floats:
    """Return per resample the mean fraction of different words in all windows of `size` consecutive words.

    With fewer words, it is the fraction of different words among them. `order` names the place of each row.
    """
    rows, kinds = sample.rows, len(sample.rows.words(name).words)
    ids, offsets, clusters = rows.derived(("in order", name, order), lambda: _in_order(rows, name, order))

    def make() -> Ints:
        before = np.zeros(len(ids) + 1, np.int64)
        add_windows(ids, size, np.zeros(kinds, np.int64), before)
        return before

    before = rows.derived(("windows", name, order, size), make)
    found, times, last = np.zeros((len(sample), 2), np.int64), np.zeros(kinds, np.int64), np.zeros(size, np.int32)
    counts = np.ascontiguousarray(sample.counts[:, clusters])
    count_windows(counts, offsets, ids, size, before, times, last, found)
    words, different = found.T
    with np.errstate(invalid="ignore"):  # 0 / 0: no words
        ratios: Floats = different / (np.maximum(words - size + 1, 1) * np.minimum(words, size))
    return ratios


def _in_order(rows: ClusteredRows, name: str, order: str) -> tuple[Ids, Ints, Ints]:
    """Return the words of each cluster in the order of its rows, their offsets, and the clusters in order.

    A cluster stands where its first row with words stands.
    """
    words = rows.words(name)
    lengths = np.diff(words.offsets)
    place = np.where(lengths > 0, rows.sums(order)[:, 0], np.inf)
    owners = row_numbers(rows.offsets)
    first = np.full(len(rows.offsets) - 1, np.inf)
    np.minimum.at(first, owners, place)
    clusters = np.argsort(first, kind="stable")
    rank = np.empty_like(clusters)
    rank[clusters] = np.arange(len(clusters))
    ordered = np.lexsort((place, rank[owners]))
    sizes = np.bincount(rank[owners], lengths, minlength=len(clusters)).astype(np.int64)
    return words.ids[ranges(words.offsets[:-1][ordered], lengths[ordered])], offsets_of(sizes), clusters


# Values of n-grams: a number for each of some n-grams, looked up for those of texts and added up by row.

_CACHED_KEYS = 1 << 17
"""Fewer keys than this stay in the processor's cache while they are searched."""


@dataclass(frozen=True, eq=False, slots=True)
class NgramValues:
    """A number for each of some n-grams of one or two words, found by binary search; pickled with its words."""

    keys: Ints
    values: Floats
    n: int
    vocabulary: Vocabulary

    @classmethod
    def of(cls, places: NgramCounts, values: Floats) -> NgramValues:
        """Return the values of n-grams; the count of each n-gram is the place of its value."""
        return cls(places.keys[:, 0], values[places.counts], places.n, places.vocabulary)

    def translated(self, vocabulary: Vocabulary) -> NgramValues:
        """Return the same values in terms of another vocabulary, new words being added to it."""
        if self.vocabulary is vocabulary:
            return self
        return NgramValues.of(self._places().translated(vocabulary), self.values)

    def _places(self) -> NgramCounts:
        """Return the n-grams, the count of each being the place of its value: sorting keeps the two together."""
        return NgramCounts(self.n, self.vocabulary, self.keys[:, None], np.arange(len(self.keys), dtype=np.int64))

    def __reduce__(self) -> tuple[object, tuple[NgramCounts, Floats]]:
        return NgramValues.of, (self._places(), self.values)

    def of_keys(self, keys: Ints) -> Floats:
        """Return the value of every key of an `NgramColumn`; NaN for an n-gram without one."""
        if not len(self.keys):
            return np.full(len(keys), np.nan)
        if len(self.keys) < _CACHED_KEYS:
            return self._looked_up(keys)
        # In ascending order neighbors are looked for in the same place, and most of the time goes into fetching it.
        order = np.argsort(keys)
        values = np.empty(len(keys))
        values[order] = self._looked_up(keys[order])
        return values

    def _looked_up(self, keys: Ints) -> Floats:
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.values[place], np.nan)


def row_sums(values: Floats, offsets: Ints) -> tuple[Floats, Ints]:
    """Return per row the sum of the values that are not NaN, from left to right, and how many there are."""
    known = ~np.isnan(values)
    # A zero more in a sum changes no bit of it, and is cheaper than leaving out what is not known.
    sums = np.bincount(row_numbers(offsets), np.where(known, values, 0.0), minlength=len(offsets) - 1)
    return sums.astype(np.float64), np.diff(np.append(0, np.cumsum(known))[offsets])
