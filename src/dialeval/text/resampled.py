"""n-grams of resampled rows: how often each occurs in every resample, and how many different ones there are.

The n-grams of a system are numbered once, and of each cluster only the different ones are kept with their counts; a
resample then adds up the counts of its clusters.

To count different n-grams it is enough to know which clusters a resample contains: one bit per cluster and resample. 64
resamples are a number. An n-gram of a single cluster is counted with it; of any other, the numbers of its clusters are
combined by `or`, which leaves the bits of the resamples that it occurs in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from dialeval.core.arrays import Floats, Ids, Ints, offsets_of, row_numbers
from dialeval.core.columns import TokenColumn
from dialeval.core.contributions import ClusteredRows, Resamples, add_up, sum_by_cluster
from dialeval.text.ngrams import NgramColumn, NgramCounts
from dialeval.text.vocabulary import Vocabulary


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
        keys, numbers = column.number_keys()
        count = max(len(words.words) if n == 1 else len(keys), 1)
        bounds = column.offsets[rows.offsets]
        pairs, times = np.unique(row_numbers(bounds) * count + numbers[bounds[0] : bounds[-1]], return_counts=True)
        offsets = np.searchsorted(pairs, np.arange(len(bounds)) * count)
        heads = (keys >> 32).astype(np.int32)
        return cls((pairs % count).astype(np.int32), times.astype(np.int32), offsets.astype(np.int64), count, heads)


def cluster_grams(sample: Resamples, name: str, n: int) -> ClusterGrams:
    """Return the n-grams of each cluster; found once for all resamples."""
    return sample.rows.derive(("grams", name, n), lambda: ClusterGrams.of(sample.rows, name, n))


def ngram_totals(sample: Resamples, name: str, n: int) -> Ids:
    """Return how often each n-gram occurs in each resample, one line per n-gram; made once for all metrics."""
    key = "gram totals", name, n
    if key not in sample.kept:
        grams = cluster_grams(sample, name, n)
        totals = sample.kept[key] = np.zeros((grams.count, len(sample.counts)), np.int32)
        add_up(sample.counts_by_cluster, grams.offsets, grams.kinds, grams.times, totals)
    return cast("Ids", sample.kept[key])


_WORD = 64
"""Resamples whose bits are held in one number."""


def count_different(sample: Resamples, name: str, n: int) -> Ints:
    """Return how many different n-grams occur in each resample; made once for all metrics."""
    return sample.derive(("different grams", name, n), lambda: _count_different(sample, name, n))


def sum_sizes(sample: Resamples, name: str, n: int) -> Ints:
    """Return the number of n-grams of each resample."""
    grams = cluster_grams(sample, name, n)
    sizes = sample.rows.derive(("sizes", name, n), lambda: sum_by_cluster(grams.times[:, None], grams.offsets))
    return sample.sum_clusters(sizes)[:, 0].astype(np.int64)


class KindClusters(NamedTuple):
    """The clusters that each different n-gram occurs in."""

    everywhere: int
    """The n-grams of several clusters of which every resample contains one."""
    single: Floats
    """By cluster the n-grams that no other one has."""
    clusters: Ints
    """Those of any other n-gram, one n-gram after the other."""
    starts: Ints
    """Where those of each n-gram begin."""

    @classmethod
    def of(cls, grams: ClusterGrams, most_left_out: int) -> KindClusters:
        """Collect the clusters of n-grams; a resample contains all clusters but `most_left_out`."""
        clusters, times = row_numbers(grams.offsets), np.bincount(grams.kinds, minlength=grams.count)
        single = np.bincount(clusters[times[grams.kinds] == 1], minlength=len(grams.offsets) - 1)
        some = (times > 1) & (times <= most_left_out)
        pairs = np.flatnonzero(some[grams.kinds])
        places = clusters[pairs[np.argsort(grams.kinds[pairs], kind="stable")]]
        everywhere = np.count_nonzero(times > max(most_left_out, 1))
        return cls(int(everywhere), single.astype(np.float64), places, offsets_of(times[some])[:-1])


def _count_different(sample: Resamples, name: str, n: int) -> Ints:
    key = "clusters of grams", name, n, sample.most_left_out
    of = sample.rows.derive(key, lambda: KindClusters.of(cluster_grams(sample, name, n), sample.most_left_out))
    contains = sample.counts > 0
    different = (contains @ of.single).astype(np.int64) + of.everywhere
    for first in range(0, len(sample) if len(of.starts) else 0, _WORD):
        part = contains[first : first + _WORD]
        bits = np.zeros((part.shape[1], _WORD), np.bool_)
        bits[:, : len(part)] = part.T
        occurs = np.bitwise_or.reduceat(np.packbits(bits, axis=1).view(np.uint64)[:, 0][of.clusters], of.starts)
        counts = np.unpackbits(occurs.view(np.uint8).reshape(-1, _WORD // 8), axis=1).sum(axis=0, dtype=np.int64)
        different[first : first + _WORD] += counts[: len(part)]
    return different


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

    def to_vocabulary(self, vocabulary: Vocabulary) -> NgramValues:
        """Return the same values in terms of another vocabulary, new words being added to it."""
        if self.vocabulary is vocabulary:
            return self
        return NgramValues.of(self._places().to_vocabulary(vocabulary), self.values)

    def _places(self) -> NgramCounts:
        """Return the n-grams, the count of each being the place of its value: sorting keeps the two together."""
        return NgramCounts(self.n, self.vocabulary, self.keys[:, None], np.arange(len(self.keys), dtype=np.int64))

    def __reduce__(self) -> tuple[object, tuple[NgramCounts, Floats]]:
        return NgramValues.of, (self._places(), self.values)

    def look_up(self, keys: Ints) -> Floats:
        """Return the value of every key of an `NgramColumn`; NaN for an n-gram without one."""
        if not len(self.keys):
            return np.full(len(keys), np.nan)
        if len(self.keys) < _CACHED_KEYS:
            return self._search(keys)
        # In ascending order neighbors are looked for in the same place, and most of the time goes into fetching it.
        order = np.argsort(keys)
        values = np.empty(len(keys))
        values[order] = self._search(keys[order])
        return values

    def _search(self, keys: Ints) -> Floats:
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.values[place], np.nan)


def row_sums(values: Floats, offsets: Ints) -> tuple[Floats, Ints]:
    """Return per row the sum of the values that are not NaN, from left to right, and how many there are."""
    has_value = ~np.isnan(values)
    # A zero more in a sum changes no bit of it, and is cheaper than leaving out what is not known.
    sums = np.bincount(row_numbers(offsets), np.where(has_value, values, 0.0), minlength=len(offsets) - 1)
    return sums.astype(np.float64), np.diff(np.append(0, np.cumsum(has_value))[offsets])
