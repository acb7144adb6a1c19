"""n-grams of token columns, and their counts as states that merge.

An n-gram never reaches over the end of a row. Within a column each is one int64 key: the word itself (n = 1), two words
packed (n = 2), or the number of its first n - 1 words among those of the column, packed with its last word.

`NgramCounts` is the state of every metric that counts n-grams. Inside one evaluation all counts refer to one shared
vocabulary. Counts that leave the process take the words they use with them, and merging translates where the
vocabularies differ: the result is exact wherever the parts were counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from dialeval.core.columns import Batch, Floats, Ids, Ints, TextColumn, TokenColumn
from dialeval.core.needs import Need
from dialeval.text.tokenise import tokens
from dialeval.text.vocabulary import Vocabulary

_WORD_BITS = 32
_WORD_MASK = (1 << _WORD_BITS) - 1


@dataclass(frozen=True, eq=False, slots=True)
class NgramColumn:
    """The n-grams of every row: row `i` has the keys `keys[offsets[i]:offsets[i + 1]]`."""

    n: int
    keys: Ints
    offsets: Ints
    prefixes: Ids | None
    """The word ids of each distinct (n - 1)-gram, for n > 2; the upper half of a key is a row of it."""

    @classmethod
    def of(cls, tokens: TokenColumn, n: int) -> NgramColumn:
        """All n-grams of a token column, in order."""
        if n == 1:
            return cls(1, tokens.ids.astype(np.int64), tokens.offsets, None)
        counts = np.maximum(tokens.lengths - (n - 1), 0)
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        last = np.repeat(tokens.offsets[:-1] - offsets[:-1], counts) + np.arange(offsets[-1]) + (n - 1)
        if n == 2:
            return cls(2, tokens.ids[last - 1].astype(np.int64) << _WORD_BITS | tokens.ids[last], offsets, None)
        shorter = cls.of(tokens, n - 1)
        unique, number = np.unique(shorter.keys, return_inverse=True)
        first = np.repeat(shorter.offsets[:-1] - offsets[:-1], counts) + np.arange(offsets[-1])
        keys = number[first].astype(np.int64) << _WORD_BITS | tokens.ids[last]
        return cls(n, keys, offsets, shorter.decode(unique))

    def decode(self, keys: Ints) -> Ids:
        """The word ids behind keys, one n-gram a row."""
        last = (keys & _WORD_MASK).astype(np.int32)[:, None]
        if self.n == 1:
            return last
        upper = keys >> _WORD_BITS
        before = upper.astype(np.int32)[:, None] if self.prefixes is None else self.prefixes[upper]
        return np.hstack((before, last))

    def distinct(self) -> Floats:
        """Number of distinct n-grams of every row."""
        from dialeval.text import ngrams_kernel as kernel

        rows = len(self.offsets) - 1
        longest = int(np.diff(self.offsets).max(initial=0))
        table, seen = _table(longest), _table(longest)
        seen[:] = 0
        result = np.empty(rows, np.float64)
        kernel.distinct_per_row(self.keys, self.offsets, table, seen, result)
        return result

    def counts(self) -> tuple[Ints, Ints]:
        """The distinct keys in ascending order, and how often each occurs."""
        from dialeval.text import ngrams_kernel as kernel

        table, counts = _table(len(self.keys)), _table(len(self.keys))
        counts[:] = 0
        kernel.count_keys(self.keys, table, counts)
        used = np.flatnonzero(counts)
        order = used[np.argsort(table[used])]
        return table[order], counts[order]


def _table(keys: int) -> Ints:
    return np.empty(1 << max(4, int(2 * keys).bit_length()), np.int64)


@dataclass(frozen=True, eq=False)
class NgramCounts:
    """How often each n-gram occurs: `grams` in ascending order of their word ids, one a row, and `counts` beside."""

    vocabulary: Vocabulary
    grams: Ids
    counts: Ints

    @classmethod
    def empty(cls, n: int) -> NgramCounts:
        """Counts of nothing."""
        return cls(Vocabulary(), np.empty((0, n), np.int32), np.empty(0, np.int64))

    @classmethod
    def of(cls, column: NgramColumn, vocabulary: Vocabulary) -> NgramCounts:
        """The counts of all rows of a column together."""
        keys, counts = column.counts()
        return cls(vocabulary, *_added_up(column.decode(keys), counts))

    @property
    def types(self) -> int:
        """Number of different n-grams."""
        return len(self.counts)

    @property
    def total(self) -> int:
        """Number of n-grams."""
        return int(self.counts.sum())

    def merge(self, other: NgramCounts) -> NgramCounts:
        """The counts of both."""
        if not other.types:
            return self
        if not self.types:
            return other
        there = other.grams if other.vocabulary is self.vocabulary else other._translated(self.vocabulary)
        grams, counts = np.concatenate((self.grams, there)), np.concatenate((self.counts, other.counts))
        return NgramCounts(self.vocabulary, *_added_up(grams, counts))

    def _translated(self, vocabulary: Vocabulary) -> Ids:
        used, place = np.unique(self.grams, return_inverse=True)
        words = self.vocabulary.column().take(used.astype(np.int64))
        return vocabulary.add(words)[place].reshape(self.grams.shape)

    def __reduce__(self) -> tuple[object, tuple[list[str], Ids, Ints]]:
        used, place = np.unique(self.grams, return_inverse=True)
        words = list(self.vocabulary.column().take(used.astype(np.int64)))
        return _unpickled_counts, (words, place.reshape(self.grams.shape).astype(np.int32), self.counts)


def _unpickled_counts(words: list[str], grams: Ids, counts: Ints) -> NgramCounts:
    vocabulary = Vocabulary()
    ids = vocabulary.add(TextColumn.from_strings(words))
    return NgramCounts(vocabulary, ids[grams], counts)


def _added_up(grams: Ids, counts: Ints) -> tuple[Ids, Ints]:
    """Sorted n-grams with the counts of equal ones added."""
    if not len(grams):
        return grams, counts
    # Stable sorting takes the sorted runs that merging puts one after the other in linear time.
    if grams.shape[1] <= 2:
        order = np.argsort(grams[:, 0].astype(np.int64) << _WORD_BITS | grams[:, -1], kind="stable")
    else:
        order = np.lexsort(grams.T[::-1])
    grams, counts = grams[order], counts[order]
    first = np.concatenate(([True], (grams[1:] != grams[:-1]).any(axis=1)))
    return grams[first], np.add.reduceat(counts, np.flatnonzero(first))


def ngrams(batch: Batch, need: Need, n: int, tokeniser: str) -> NgramColumn:
    """The n-grams of a batch's texts; computed once for all metrics of the batch."""
    words = tokens(batch, need, tokeniser)
    return batch.derived(("ngrams", need, n, tokeniser), lambda: NgramColumn.of(words, n))


def ngram_counts(batch: Batch, need: Need, n: int, tokeniser: str) -> NgramCounts:
    """The n-gram counts of a batch; computed once for all metrics of the batch."""
    column = ngrams(batch, need, n, tokeniser)
    vocabulary = cast(Vocabulary, batch.vocabulary)
    return batch.derived(("ngram counts", need, n, tokeniser), lambda: NgramCounts.of(column, vocabulary))
