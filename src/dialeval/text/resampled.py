"""n-grams of resampled rows: how often each occurs in every resample, and words in segments and in windows.

The n-grams of a system are numbered once, and of each cluster only the different ones are kept with their counts; a
resample then adds up the counts of its clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialeval.core.arrays import Floats, Ids, Ints
from dialeval.core.columns import TokenColumn
from dialeval.core.contributions import ClusteredRows, Resamples
from dialeval.core.kernels import Kernels
from dialeval.core.ragged import offsets_of, ranges, row_numbers
from dialeval.text.ngrams import NgramColumn
from dialeval.text.vocabulary import Vocabulary

_contributions_kernel = Kernels("dialeval.core.contributions_kernel")
_resampled_kernel = Kernels("dialeval.text.resampled_kernel")


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
        """The n-grams of words of the rows, by cluster."""
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
    """The n-grams of each cluster; found once for all resamples."""
    return sample.rows.derived(("grams", name, n), lambda: ClusterGrams.of(sample.rows, name, n))


def ngram_totals(sample: Resamples, name: str, n: int) -> Ids:
    """How often each n-gram occurs in each resample, one line per n-gram; made once for all metrics."""

    def make() -> Ids:
        grams = cluster_grams(sample, name, n)
        totals = np.zeros((grams.count, len(sample)), np.int32)
        _contributions_kernel.add_up(sample.taken, grams.offsets, grams.kinds, grams.times, totals)
        return totals

    return sample.derived(("gram totals", name, n), make)


def segment_kinds(sample: Resamples, name: str, order: str, size: int) -> tuple[Ints, Ints, Ints]:
    """Words one after the other, in segments: per resample the words, the different words within whole segments added
    up, and the different words of the last segment, if it is not whole. `order` names the place of each row."""
    rows, kinds = sample.rows, len(sample.rows.words(name).words)
    ids, offsets, clusters = rows.derived(("in order", name, order), lambda: _in_order(rows, name, order))

    def make() -> Ids:
        inner = np.zeros((len(clusters), size + 1), np.int32)
        _resampled_kernel.count_inner(offsets, ids, size, np.zeros(kinds, np.int64), inner)
        return inner

    inner = rows.derived(("inner segments", name, order, size), make)
    found, seen = np.zeros((len(sample), 3), np.int64), np.zeros(kinds, np.int64)
    _resampled_kernel.count_segments(
        np.ascontiguousarray(sample.counts[:, clusters]), offsets, ids, size, inner, seen, found
    )
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
        _resampled_kernel.add_windows(ids, size, np.zeros(kinds, np.int64), before)
        return before

    before = rows.derived(("windows", name, order, size), make)
    found, times, last = np.zeros((len(sample), 2), np.int64), np.zeros(kinds, np.int64), np.zeros(size, np.int32)
    counts = np.ascontiguousarray(sample.counts[:, clusters])
    _resampled_kernel.count_windows(counts, offsets, ids, size, before, times, last, found)
    words, different = found.T
    with np.errstate(invalid="ignore"):  # 0 / 0: no words
        ratios: Floats = different / (np.maximum(words - size + 1, 1) * np.minimum(words, size))
    return ratios


def _in_order(rows: ClusteredRows, name: str, order: str) -> tuple[Ids, Ints, Ints]:
    """The words of each cluster in the order of its rows, the offsets of clusters in them, and the clusters in order.

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
