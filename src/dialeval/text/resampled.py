"""n-grams of resampled rows: how many there are in every resample, and how many different ones.

The n-grams of a system are numbered once, and of each cluster only the different ones are kept. To count different ones
it is enough to know which clusters a resample contains: one bit per cluster and resample, 64 resamples to a number. An
n-gram of a single cluster is counted with it; of any other, the numbers of its clusters are combined by `or`, which
leaves the bits of the resamples that it occurs in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialeval.core.arrays import Floats, Ints, offsets_of, row_numbers
from dialeval.core.columns import TokenColumn
from dialeval.core.contributions import ClusteredRows, Resamples
from dialeval.text.ngrams import NgramColumn, NgramCounts
from dialeval.text.vocabulary import Vocabulary

_WORD = 64
"""Resamples whose bits are held in one number."""


@dataclass(frozen=True, eq=False, slots=True)
class ClusterGrams:
    """The different n-grams of clusters."""

    sizes: Floats
    """By cluster its n-grams, and those that no other cluster has."""
    clusters: Ints
    """The clusters of n-grams that several have, one n-gram after the other."""
    offsets: Ints
    """Where those of each n-gram begin and end."""

    @classmethod
    def of(cls, rows: ClusteredRows, name: str, n: int) -> ClusterGrams:
        """Return the n-grams of words of the rows."""
        words = rows.words(name)
        column = NgramColumn.of(TokenColumn(words.ids, words.offsets, Vocabulary()), n)
        keys, numbers = column.number_keys()
        bounds = column.offsets[rows.offsets]
        clusters, count = len(bounds) - 1, max(len(words.words) if n == 1 else len(keys), 1)
        pairs = np.sort(numbers[bounds[0] : bounds[-1]] * np.int64(clusters) + row_numbers(bounds))
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # NumPy's `unique` of such numbers is ten times slower
        kinds, places = np.divmod(pairs, max(clusters, 1))
        times = np.bincount(kinds, minlength=count)
        several = times[kinds] > 1
        single = np.bincount(places[~several], minlength=clusters)
        return cls(np.column_stack([np.diff(bounds), single]), places[several], offsets_of(times[times > 1]))


def count_ngrams(sample: Resamples, name: str, n: int) -> tuple[Ints, Ints]:
    """Return the n-grams of each resample, and the different ones; made once for all metrics."""
    return sample.derive(("grams", name, n), lambda: _count_ngrams(sample, name, n))


def _count_ngrams(sample: Resamples, name: str, n: int) -> tuple[Ints, Ints]:
    grams = sample.rows.derive(("grams", name, n), lambda: ClusterGrams.of(sample.rows, name, n))
    contains = sample.counts > 0
    different = (contains @ grams.sizes[:, 1]).astype(np.int64)
    # What more clusters have than a resample lacks is in all resamples.
    most_lacking = int(np.count_nonzero(~contains, axis=1).max(initial=0))
    some = np.diff(grams.offsets) <= most_lacking
    different += np.count_nonzero(~some)
    starts, clusters = grams.offsets[:-1], grams.clusters
    if not some.all():
        starts = offsets_of(np.diff(grams.offsets)[some])[:-1]
        clusters = clusters[np.repeat(some, np.diff(grams.offsets))]
    for first in range(0, len(sample) if len(starts) else 0, _WORD):
        part = contains[first : first + _WORD]
        bits = np.zeros((part.shape[1], _WORD), np.bool_)
        bits[:, : len(part)] = part.T
        occurs = np.bitwise_or.reduceat(np.packbits(bits, axis=1).view(np.uint64)[:, 0][clusters], starts)
        counts = np.unpackbits(occurs.view(np.uint8).reshape(-1, _WORD // 8), axis=1).sum(axis=0, dtype=np.int64)
        different[first : first + _WORD] += counts[: len(part)]
    return sample.sum_clusters(grams.sizes[:, :1])[:, 0].astype(np.int64), different


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
