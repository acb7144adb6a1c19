"""n-grams of token columns, and their counts as states that merge.

An n-gram never reaches over the end of a row. Within a column each is one int64 key: the word itself (n = 1), two words
packed (n = 2), or the number of its first n - 1 words among those of the column, packed with its last word.

`NgramCounts` is the state of every metric that counts n-grams. Inside one evaluation all counts refer to one shared
vocabulary. Counts that leave the process take the words they use with them, and merging translates where the
vocabularies differ: the result is exact wherever the parts were counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Bytes, Floats, Ids, Ints, empty_array, release
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.fold import Reduction
from dialeval.core.gate import UnfitError, check_array
from dialeval.core.kernels import Kernels
from dialeval.core.needs import Need
from dialeval.core.ragged import offsets_of, ranges
from dialeval.text.tokenise import Oov, Tokeniser, tokenise, tokens
from dialeval.text.vocabulary import Vocabulary

_kernel = Kernels("dialeval.text.ngrams_kernel")


Counts: TypeAlias = npt.NDArray[np.int32 | np.int64]
Hashes: TypeAlias = npt.NDArray[np.uint64]

_WORD_BITS = 32
_WORD_MASK = (1 << _WORD_BITS) - 1

_COMPARED_KEYS = 1 << 20
"""Keys that are compared at a time, so that many millions do not need much memory beside their own."""

_DIGITS = 1 << 8
"""Different digits of keys by which they are sorted: so few that all the places written to are in the nearest cache."""

COUNTED_TEXTS = 1 << 15
"""Texts that are split and counted at a time."""


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
        if n == 2:
            return cls.pairs(tokens, tokens)
        counts = np.maximum(tokens.lengths - (n - 1), 0)
        shorter = cls.of(tokens, n - 1)
        unique, number = shorter.numbered()
        first, last = ranges(shorter.offsets[:-1], counts), ranges(tokens.offsets[:-1] + (n - 1), counts)
        keys = number[first] << _WORD_BITS | tokens.ids[last]
        return cls(n, keys, offsets_of(counts), shorter.decode(unique))

    @classmethod
    def pairs(cls, first: TokenColumn, second: TokenColumn) -> NgramColumn:
        """All pairs of a word of `first` and the next word of `second`, two columns of the same texts."""
        counts = np.maximum(first.lengths - 1, 0)
        place = ranges(first.offsets[:-1], counts)
        keys = first.ids[place].astype(np.int64) << _WORD_BITS | second.ids[place + 1]
        return cls(2, keys, offsets_of(counts), None)

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
        rows = len(self.offsets) - 1
        longest = int(np.diff(self.offsets).max(initial=0))
        table, seen = _table(longest), _table(longest)
        seen[:] = 0
        result = np.empty(rows, np.float64)
        _kernel.distinct_per_row(self.keys, self.offsets, table, seen, result)
        return result

    def counts(self) -> tuple[Ints, Counts]:
        """The distinct keys in ascending order, and how often each occurs."""
        keys, counts = _sorted_counts(self.keys.copy(), np.ones(len(self.keys), _counts_type(len(self.keys))))
        size = _kernel.add_equal(keys, counts)
        return keys[:size].copy(), counts[:size].copy()

    def numbered(self) -> tuple[Ints, Ints]:
        """The distinct keys in ascending order, and the number that each key has among them.

        As `np.unique` gives them, in a quarter of the time.
        """
        places = np.arange(len(self.keys)).astype(_counts_type(len(self.keys)))
        keys, order = _sorted_counts(self.keys.copy(), cast(Counts, places))
        is_first = np.diff(keys, prepend=-1) > 0
        numbers = np.empty(len(keys), np.int64)
        numbers[order] = np.cumsum(is_first) - 1
        return keys[is_first], numbers


def _sorted_counts(keys: Ints, counts: Counts) -> tuple[Ints, Counts]:
    """Keys in ascending order, each with its count; what was given is overwritten."""
    spare = np.empty_like(keys), np.empty_like(counts)
    in_spare = _kernel.sort_counts(keys, counts, *spare, np.empty(_DIGITS, np.int64))
    return spare if in_spare else (keys, counts)


def _table(keys: int) -> Ints:
    return np.empty(1 << max(4, int(2 * keys).bit_length()), np.int64)


@dataclass(frozen=True, eq=False)
class NgramCounts:
    """How often each n-gram occurs: packed word ids, one n-gram a row, in ascending order, and `counts` beside."""

    n: int
    vocabulary: Vocabulary
    keys: Ints
    counts: Counts

    @classmethod
    def empty(cls, n: int) -> NgramCounts:
        """Counts of nothing."""
        return cls(n, Vocabulary(), np.empty((0, _packs(n)), np.int64), np.empty(0, np.int32))

    @classmethod
    def of(cls, column: NgramColumn, vocabulary: Vocabulary) -> NgramCounts:
        """The counts of all rows of a column together."""
        keys, counts = column.counts()
        if column.n <= 2:  # such keys are packed words already
            return cls(column.n, vocabulary, keys[:, None], counts)
        return cls._sorted(column.n, vocabulary, _packed(column.decode(keys)), counts)

    @classmethod
    def _sorted(cls, n: int, vocabulary: Vocabulary, keys: Ints, counts: Counts) -> NgramCounts:
        if keys.shape[1] == 1:
            single, counts = _sorted_counts(keys.ravel(), counts.copy())
            return cls(n, vocabulary, single[:, None], counts)
        order = np.lexsort(keys.T[::-1])
        return cls(n, vocabulary, keys[order], counts[order])

    @property
    def grams(self) -> Ids:
        """The word ids of every n-gram, one a row."""
        words = np.empty((len(self.keys), 2 * _packs(self.n)), np.int32)
        words[:, ::2], words[:, 1::2] = self.keys >> _WORD_BITS, self.keys & _WORD_MASK
        return words[:, -self.n :]

    @property
    def types(self) -> int:
        """Number of different n-grams."""
        return len(self.counts)

    @property
    def total(self) -> int:
        """Number of n-grams."""
        total = 0
        for start in range(0, self.types, _COMPARED_KEYS):
            part = self.counts[start : start + _COMPARED_KEYS]
            total += int(part.sum(dtype=np.int64))
            release(part)
        return total

    def merge(self, other: NgramCounts) -> NgramCounts:
        """The counts of both; large ones lie in temporary files, and few pages of them in memory."""
        if not other.types:
            return self
        if not self.types:
            return other
        other = other.translated(self.vocabulary)
        keys = empty_array((self.types + other.types, _packs(self.n)), np.int64)
        counts = empty_array((len(keys),), _counts_type(self.total + other.total))
        size = _merge(self, other, keys, counts)
        for array in (keys, counts):
            if array.flags.owndata:  # in place: a copy would need the memory twice; a file needs none for its end
                array.resize((size, *array.shape[1:]), refcheck=False)
        return NgramCounts(self.n, self.vocabulary, keys[:size], counts[:size])

    def shared(self, other: NgramCounts) -> tuple[Ints, Counts, Counts]:
        """The keys of the n-grams, of one or two words, that both have, and the counts on either side."""
        other = other.translated(self.vocabulary)
        parts = [(self.keys[:0, 0], self.counts[:0], self.counts[:0])]
        for start in range(0, self.types if other.types else 0, _COMPARED_KEYS):
            here = slice(start, start + _COMPARED_KEYS)
            place = np.minimum(np.searchsorted(other.keys[:, 0], self.keys[here, 0]), other.types - 1)
            both = other.keys[place, 0] == self.keys[here, 0]
            parts.append((self.keys[here, 0][both], self.counts[here][both], other.counts[place[both]]))
        keys, own, others = (np.concatenate(column) for column in zip(*parts, strict=True))
        return keys, own, others

    def translated(self, vocabulary: Vocabulary) -> NgramCounts:
        """The same counts in terms of another vocabulary, new words being added to it."""
        if vocabulary is self.vocabulary or not self.types:
            return self
        words, used = self._words()
        return self._sorted(self.n, vocabulary, self._renumbered(used, vocabulary.add(words)), self.counts)

    def _words(self) -> tuple[TextColumn, Ints]:
        """The words that occur, in the order of their ids, and these ids."""
        column = self.vocabulary.column()
        used = np.zeros(len(column), np.bool_)
        _kernel.mark_words(self.keys, self.n, used)
        ids = np.flatnonzero(used)
        return column.take(ids), ids

    def _renumbered(self, used: Ints, numbers: Ids) -> Ints:
        """The keys with another number for every word that occurs."""
        places, keys = np.zeros(int(used[-1]) + 1 if len(used) else 0, np.int32), np.empty_like(self.keys)
        places[used] = numbers
        _kernel.renumber_words(self.keys, self.n, places, keys)
        return keys

    def worded(self) -> tuple[TextColumn, Ints]:
        """The words that occur, in the order of their ids, and the keys with numbers of these words."""
        words, used = self._words()
        return words, self._renumbered(used, np.arange(len(used), dtype=np.int32))

    def cut(self, parts: int) -> list[NgramCounts]:
        """The counts in parts of different n-grams; which part one belongs to depends on its words alone."""
        words, keys = self.worded()
        own = Vocabulary()  # of these words: each part looks through all words of its vocabulary
        own.add(words)
        chosen, sizes = np.empty(self.types, np.uint16), np.zeros(parts, np.int64)
        _kernel.choose_parts(keys, self.n, word_hashes(words), chosen, sizes)
        edges = offsets_of(sizes)
        part_keys, part_counts = np.empty_like(keys), np.empty(self.types, self.counts.dtype)
        _kernel.cut_parts(keys, self.counts, chosen, edges[:-1].copy(), part_keys, part_counts)
        rows = [slice(start, stop) for start, stop in pairwise(edges.tolist())]
        return [NgramCounts(self.n, own, part_keys[part], part_counts[part]) for part in rows]

    def to_plain(self) -> tuple[int, Bytes, Ints, Ints, Counts]:
        """The counts with the words they use, in plain arrays; `from_plain` gives equal counts back."""
        words, keys = self.worded()
        lengths = words.ends - words.starts
        return self.n, words.data[ranges(words.starts, lengths)], lengths, keys, self.counts

    @classmethod
    def from_plain(cls, n: int, data: Bytes, lengths: Ints, keys: Ints, counts: Counts) -> NgramCounts:
        """The counts out of a file, from what `to_plain` gave; UnfitError where they are not of that form.

        Kernels follow ids and lengths without a look, so that these must not point anywhere else.
        """
        for array, dtype, shape in (
            (data, np.uint8, (None,)),
            (lengths, np.int64, (None,)),
            (keys, np.int64, (None, _packs(n))),
            (counts, counts.dtype, (len(keys),)),
        ):
            check_array(array, dtype, shape)
        data.tobytes().decode()
        words = len(lengths)
        if n < 1 or counts.dtype not in (np.int32, np.int64) or counts.min(initial=1) < 1:
            raise UnfitError("no n-grams have these counts")
        if lengths.min(initial=0) < 0 or lengths.max(initial=0) > len(data) or lengths.sum() != len(data):
            raise UnfitError("words have other lengths than their text")
        if not _kernel.are_words(keys, n, words):
            raise UnfitError("n-grams are of words that are not there")
        made = cls._of_plain(n, data, lengths, keys, counts)
        if len(made.vocabulary) != words or not _kernel.is_ascending(made.keys):
            raise UnfitError("words stand there twice, or n-grams are out of order")
        return made

    @classmethod
    def _of_plain(cls, n: int, data: Bytes, lengths: Ints, keys: Ints, counts: Counts) -> NgramCounts:
        """The counts from what `to_plain` gave, over a vocabulary of their own."""
        ends = np.cumsum(lengths)
        vocabulary = Vocabulary()
        vocabulary.add(TextColumn(data, ends - lengths, ends))
        # Words come in the order of their old ids, so the n-grams are in order already.
        return cls(n, vocabulary, keys, counts)

    def __reduce__(self) -> tuple[object, tuple[int, Bytes, Ints, Ints, Counts]]:
        return NgramCounts._of_plain, self.to_plain()


def _merge(left: NgramCounts, right: NgramCounts, keys: Ints, counts: Counts) -> int:
    """Fill in the merged counts, a stretch at a time, and give their number."""
    i = j = size = 0
    while i < left.types or j < right.types:
        i_end, j_end = _kernel.merge_ends(left.keys, i, right.keys, j, _COMPARED_KEYS)
        here, there = slice(i, i_end), slice(j, j_end)
        parts = left.keys[here], left.counts[here], right.keys[there], right.counts[there]
        room_left = keys[size:], counts[size:]
        merged = _kernel.merge_counts(*parts, *room_left)
        for done in (*parts, *(part[:merged] for part in room_left)):
            release(done)
        i, j, size = i_end, j_end, size + merged
    return size


def word_hashes(words: TextColumn) -> Hashes:
    """A hash of each word, the same in every process."""
    hashes = np.empty(len(words), np.uint64)
    _kernel.hash_words(words.data, words.starts, words.ends, hashes)
    return hashes


def _counts_type(total: int) -> type[np.int32 | np.int64]:
    """The smallest type that holds a count out of a total: there may be many millions of counts."""
    return np.int32 if total < 1 << 31 else np.int64


def _packs(n: int) -> int:
    """Number of int64 that hold n words, two each."""
    return (n + 1) // 2


def _packed(grams: Ids) -> Ints:
    """Two words in each int64, the first of an odd number alone, so that rows sort like rows of words."""
    words = grams.astype(np.int64)
    if words.shape[1] % 2:
        words = np.hstack((np.zeros((len(words), 1), np.int64), words))
    packed: Ints = words[:, ::2] << _WORD_BITS | words[:, 1::2]
    return packed


@dataclass(frozen=True, slots=True)
class NgramTotals:
    """What remains of counts that are closed: how many different n-grams there are, and how many n-grams."""

    types: int = 0
    total: int = 0

    def merge(self, other: NgramTotals) -> NgramTotals:
        """The totals of both, whose n-grams are different ones."""
        return NgramTotals(self.types + other.types, self.total + other.total)


def count_texts(
    texts: TextColumn, vocabulary: Vocabulary, n: int, tokeniser: Tokeniser, unified: Callable[[Ids], Ids] | None
) -> NgramCounts:
    """The n-gram counts of texts of any number, a part at a time; `unified` maps word ids before they are counted."""
    sums = Reduction(NgramCounts.merge, lambda: NgramCounts.empty(n))
    for start in range(0, len(texts), COUNTED_TEXTS):
        slice_ = texts.slice(start, start + COUNTED_TEXTS)
        part = tokenise(slice_, vocabulary, tokeniser)
        slice_.release()
        ids = part.ids if unified is None else unified(part.ids)
        sums.add(NgramCounts.of(NgramColumn.of(TokenColumn(ids, part.offsets, vocabulary), n), vocabulary))
    return sums.result()


def ngrams(batch: Batch, need: Need, n: int, tokeniser: Tokeniser, oov: Oov = "self") -> NgramColumn:
    """The n-grams of a batch's texts; computed once for all metrics of the batch."""
    words = tokens(batch, need, tokeniser, oov)
    return batch.derived(("ngrams", need, n, tokeniser, oov), lambda: NgramColumn.of(words, n))


def ngram_counts(batch: Batch, need: Need, n: int, tokeniser: Tokeniser, oov: Oov = "self") -> NgramCounts:
    """The n-gram counts of a batch; computed once for all metrics of the batch."""
    column = ngrams(batch, need, n, tokeniser, oov)
    vocabulary = cast(Vocabulary, batch.vocabulary)
    return batch.derived(("ngram counts", need, n, tokeniser, oov), lambda: NgramCounts.of(column, vocabulary))
