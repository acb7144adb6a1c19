"""Values of n-grams: a number for each of some n-grams, looked up for those of texts and added up by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.ragged import row_numbers
from dialeval.text.ngrams import NgramCounts
from dialeval.text.vocabulary import Vocabulary

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
        """The values of n-grams; the count of each n-gram is the place of its value."""
        return cls(places.keys[:, 0], values[places.counts], places.n, places.vocabulary)

    def translated(self, vocabulary: Vocabulary) -> NgramValues:
        """The same values in terms of another vocabulary, new words being added to it."""
        if self.vocabulary is vocabulary:
            return self
        return NgramValues.of(self._places().translated(vocabulary), self.values)

    def _places(self) -> NgramCounts:
        """The n-grams with the place of its value as the count of each: sorting them anew keeps the two together."""
        return NgramCounts(self.n, self.vocabulary, self.keys[:, None], np.arange(len(self.keys), dtype=np.int64))

    def __reduce__(self) -> tuple[object, tuple[NgramCounts, Floats]]:
        return NgramValues.of, (self._places(), self.values)

    def of_keys(self, keys: Ints) -> Floats:
        """The value of every key of an `NgramColumn`; NaN for an n-gram without one."""
        if not len(self.keys):
            return np.full(len(keys), np.nan)
        if len(self.keys) < _CACHED_KEYS:
            return self._looked_up(keys)
        # In ascending order neighbours are looked for in the same place, and most of the time goes into fetching it.
        order = np.argsort(keys)
        values = np.empty(len(keys))
        values[order] = self._looked_up(keys[order])
        return values

    def _looked_up(self, keys: Ints) -> Floats:
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.values[place], np.nan)


def row_sums(values: Floats, offsets: Ints) -> tuple[Floats, Ints]:
    """Per row the sum of the values that are not NaN, from left to right, and how many there are."""
    known = ~np.isnan(values)
    # A zero more in a sum changes no bit of it, and is cheaper than leaving out what is not known.
    sums = np.bincount(row_numbers(offsets), np.where(known, values, 0.0), minlength=len(offsets) - 1)
    return sums.astype(np.float64), np.diff(np.append(0, np.cumsum(known))[offsets])
