"""n-grams of token columns, and their counts as states that merge.

An n-gram is within a row. In a column each is one int64 key: the word itself (n = 1), two packed words (n = 2), or the
number of its first n - 1 words among those of the column, packed with its last word.

`NgramCounts` is the state of every metric that counts n-grams. Inside one process all counts refer to one shared
vocabulary. Counts for other processes are pickled with their words, and merging translates between vocabularies: the
result is exact wherever the parts were counted.

Kernels over n-gram keys take linear time: distinct keys per row, merging of sorted counts, hashes.

Keys are non-negative int64. Tables are open-addressed and made by the caller; their length is a power of two and at
least twice the number of keys. The hashes of n-grams depend only on the bytes of their words, so they are equal in
every process and on every machine; their arithmetic is modulo 2**64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
from numpy import uint64

from dialeval.core.arrays import Bytes, Floats, Ids, Ints, empty_array, offsets_of, ranges, release, row_numbers
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.contributions import ClusteredRows, Resamples
from dialeval.core.fold import Reduction
from dialeval.core.inputs import Input
from dialeval.core.kernels import kernel
from dialeval.text.tokenizers import Oov, Tokenizer, tokenize, tokens
from dialeval.text.vocabulary import Vocabulary

_ODD = np.uint64(0x9E3779B97F4A7C15)
_TOP = np.uint64(20)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
_LOWER = 0xFFFFFFFF


@kernel("(i8[::1], i8[::1], i8[::1], i8[::1], f8[::1])")
def count_distinct(keys, offsets, table, seen, distinct):  # type: ignore[no-untyped-def]
    """Count the distinct keys of every row; `seen` (zeros before) holds the last row that used a slot, plus one."""
    mask = uint64(table.shape[0] - 1)
    for row in range(distinct.shape[0]):
        types = 0
        for i in range(offsets[row], offsets[row + 1]):
            key = keys[i]
            slot = ((uint64(key) * _ODD) >> _TOP) & mask
            while seen[slot] == row + 1 and table[slot] != key:
                slot = (slot + uint64(1)) & mask
            if seen[slot] != row + 1:
                seen[slot] = row + 1
                table[slot] = key
                types += 1
        distinct[row] = types


@kernel
def _compare(left, i, right, j):  # type: ignore[no-untyped-def]
    """Return -1, 0 or 1 as row `i` of the one comes before, equals or comes after row `j` of the other."""
    for k in range(left.shape[1]):
        if left[i, k] != right[j, k]:
            return -1 if left[i, k] < right[j, k] else 1
    return 0


@kernel("(i8[:, ::1], i4[::1], i8[:, ::1], i4[::1], i8[:, ::1], i4[::1])")
def merge_counts(left, left_counts, right, right_counts, merged, counts):  # type: ignore[no-untyped-def]
    """Merge two lists of rows in ascending order, adding the counts of equal rows; return the number of merged rows."""
    i = j = size = 0
    while i < left.shape[0] or j < right.shape[0]:
        order = 0  # below 0: the left row comes first
        if i == left.shape[0]:
            order = 1
        elif j == right.shape[0]:
            order = -1
        else:
            order = _compare(left, i, right, j)
        for k in range(merged.shape[1]):
            merged[size, k] = left[i, k] if order <= 0 else right[j, k]
        count = 0
        if order <= 0:
            count += left_counts[i]
            i += 1
        if order >= 0:
            count += right_counts[j]
            j += 1
        counts[size] = count
        size += 1
    return size


@kernel
def _find_after(keys, start, stop, other, row):  # type: ignore[no-untyped-def]
    """Return the first of the rows from `start` to `stop` that comes after a row of `other`."""
    while start < stop:
        middle = (start + stop) // 2
        if _compare(keys, middle, other, row) <= 0:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel("(i8[:, ::1], i8, i8[:, ::1], i8, i8)")
def merge_ends(left, i, right, j, most):  # type: ignore[no-untyped-def]
    """Return how far from `i` and `j` on, at most `most` rows on either side, two lists can be merged by themselves."""
    left_end = min(i + most, left.shape[0])
    right_end = min(j + most, right.shape[0])
    if i < left_end and j < right_end:
        if _compare(left, left_end - 1, right, right_end - 1) <= 0:
            right_end = _find_after(right, j, right_end, left, left_end - 1)
        else:
            left_end = _find_after(left, i, left_end, right, right_end - 1)
    return left_end, right_end


@kernel
def _mix_bits(value):  # type: ignore[no-untyped-def]
    """Return every bit of the value spread over all bits (the finalizer of SplitMix64)."""
    value = (value ^ (value >> uint64(30))) * _FIRST
    value = (value ^ (value >> uint64(27))) * _SECOND
    return value ^ (value >> uint64(31))


@kernel("(u1[::1], i8[::1], i8[::1], u8[::1])")
def hash_words(data, starts, ends, hashes):  # type: ignore[no-untyped-def]
    """Fill `hashes` with one of each word: its bytes eight at a time, then its length."""
    for word in range(starts.shape[0]):
        total = _ODD
        place = starts[word]
        while place < ends[word]:
            piece = uint64(0)
            for byte in range(place, min(place + 8, ends[word])):
                piece = piece << uint64(8) | uint64(data[byte])
            total = _mix_bits(total ^ piece) + _ODD
            place += 8
        hashes[word] = _mix_bits(total ^ uint64(ends[word] - starts[word]))


@kernel
def _word(keys, row, number):  # type: ignore[no-untyped-def]
    """Return one of the halves of a row of keys: half 0 is the upper one of the first key."""
    key = keys[row, number // 2]
    return key & _LOWER if number % 2 else key >> 32


@kernel("(i8[:, ::1], i8, u8[::1], u2[::1], i8[::1])")
def choose_parts(keys, n, hashes, chosen, sizes):  # type: ignore[no-untyped-def]
    """Fill `chosen` with the part of each n-gram, by its hash, and `sizes` (zeros before) with how many a part has."""
    parts = uint64(sizes.shape[0])
    for row in range(keys.shape[0]):
        total = _ODD
        for word in range(n % 2, n + n % 2):
            total = _mix_bits(total ^ hashes[_word(keys, row, word)]) + _ODD
        half = _mix_bits(total) & uint64(0xFFFFFFFF)
        chosen[row] = (half * parts) >> _HALF
        sizes[chosen[row]] += 1


@kernel("(i8[:, ::1], i4[::1], u2[::1], i8[::1], i8[:, ::1], i4[::1])")
def copy_parts(keys, counts, chosen, places, part_keys, part_counts):  # type: ignore[no-untyped-def]
    """Copy n-grams to their parts, in order; `places` is where the next one of each part is stored."""
    for row in range(keys.shape[0]):
        place = places[chosen[row]]
        places[chosen[row]] += 1
        part_counts[place] = counts[row]
        for k in range(keys.shape[1]):
            part_keys[place, k] = keys[row, k]


Counts: TypeAlias = npt.NDArray[np.int32 | np.int64]
Hashes: TypeAlias = npt.NDArray[np.uint64]

_WORD_BITS = 32
_WORD_MASK = (1 << _WORD_BITS) - 1

_COMPARED_KEYS = 1 << 20
"""Keys that are compared at a time, so that many millions need little additional memory."""

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
        """Return all n-grams of a token column, in order."""
        if n == 1:
            return cls(1, tokens.ids.astype(np.int64), tokens.offsets, None)
        column = cls.of_pairs(tokens, tokens)
        for size in range(3, n + 1):
            counts = np.maximum(tokens.lengths - (size - 1), 0)
            if not counts.any():  # no text is so long
                return cls(n, np.empty(0, np.int64), offsets_of(counts), np.empty((0, n - 1), np.int32))
            unique, number = column.number_keys()
            first, last = ranges(column.offsets[:-1], counts), ranges(tokens.offsets[:-1] + (size - 1), counts)
            keys = number[first] << _WORD_BITS | tokens.ids[last]
            column = cls(size, keys, offsets_of(counts), column.decode(unique))
        return column

    @classmethod
    def of_pairs(cls, first: TokenColumn, second: TokenColumn) -> NgramColumn:
        """Return all pairs of a word of `first` and the next word of `second`, two columns of the same texts."""
        counts = np.maximum(first.lengths - 1, 0)
        place = ranges(first.offsets[:-1], counts)
        keys = first.ids[place].astype(np.int64) << _WORD_BITS | second.ids[place + 1]
        return cls(2, keys, offsets_of(counts), None)

    def decode(self, keys: Ints) -> Ids:
        """Return the word ids behind keys, one n-gram a row."""
        last = (keys & _WORD_MASK).astype(np.int32)[:, None]
        if self.n == 1:
            return last
        upper = keys >> _WORD_BITS
        before = upper.astype(np.int32)[:, None] if self.prefixes is None else self.prefixes[upper]
        return np.hstack((before, last))

    def count_distinct(self) -> Floats:
        """Return the number of distinct n-grams of every row."""
        rows = len(self.offsets) - 1
        size = 1 << max(4, int(2 * np.diff(self.offsets).max(initial=0)).bit_length())
        table, seen = np.empty(size, np.int64), np.zeros(size, np.int64)
        result = np.empty(rows, np.float64)
        count_distinct(self.keys, self.offsets, table, seen, result)
        return result

    def counts(self) -> tuple[Ints, Counts]:
        """Return the distinct keys in ascending order, and how often each occurs."""
        keys = np.sort(self.keys)
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        return keys[firsts], np.diff(firsts, append=len(keys)).astype(_counts_type(len(keys)))

    def number_keys(self) -> tuple[Ints, Ints]:
        """Return the distinct keys in ascending order, and the number that each key has among them."""
        return np.unique(self.keys, return_inverse=True)


@dataclass(frozen=True, eq=False)
class NgramCounts:
    """The counts of n-grams: packed word ids, one n-gram a row, in ascending order, and `counts` next to them."""

    n: int
    vocabulary: Vocabulary
    keys: Ints
    counts: Counts

    @classmethod
    def empty(cls, n: int) -> NgramCounts:
        """Return counts of nothing."""
        return cls(n, Vocabulary(), np.empty((0, _packs(n)), np.int64), np.empty(0, np.int32))

    @classmethod
    def of(cls, column: NgramColumn, vocabulary: Vocabulary) -> NgramCounts:
        """Return the counts of all rows of a column together."""
        keys, counts = column.counts()
        if column.n <= 2:  # such keys are packed words already
            return cls(column.n, vocabulary, keys[:, None], counts)
        return cls._of_unsorted(column.n, vocabulary, _pack(column.decode(keys)), counts)

    @classmethod
    def _of_unsorted(cls, n: int, vocabulary: Vocabulary, keys: Ints, counts: Counts) -> NgramCounts:
        order = np.argsort(keys[:, 0]) if keys.shape[1] == 1 else np.lexsort(keys.T[::-1])
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
        """Return the counts of both; large ones are in temporary files, and few pages of them in memory."""
        if not other.types:
            return self
        if not self.types:
            return other
        other = other.to_vocabulary(self.vocabulary)
        keys = empty_array((self.types + other.types, _packs(self.n)), np.int64)
        counts = empty_array((len(keys),), _counts_type(self.total + other.total))
        size = _merge(self, other, keys, counts)
        for array in (keys, counts):
            if array.flags.owndata:  # in place: a copy would need the memory twice; a file needs none for its end
                array.resize((size, *array.shape[1:]), refcheck=False)
        return NgramCounts(self.n, self.vocabulary, keys[:size], counts[:size])

    def intersect(self, other: NgramCounts) -> tuple[Ints, Counts, Counts]:
        """Return the keys of n-grams (of one or two words) that both have, and their counts in both."""
        other = other.to_vocabulary(self.vocabulary)
        parts = [(self.keys[:0, 0], self.counts[:0], self.counts[:0])]
        for start in range(0, self.types if other.types else 0, _COMPARED_KEYS):
            here = slice(start, start + _COMPARED_KEYS)
            place = np.minimum(np.searchsorted(other.keys[:, 0], self.keys[here, 0]), other.types - 1)
            both = other.keys[place, 0] == self.keys[here, 0]
            parts.append((self.keys[here, 0][both], self.counts[here][both], other.counts[place[both]]))
        keys, counts, others = (np.concatenate(column) for column in zip(*parts, strict=True))
        return keys, counts, others

    def to_vocabulary(self, vocabulary: Vocabulary) -> NgramCounts:
        """Return the same counts in terms of another vocabulary; new words are added to it."""
        if vocabulary is self.vocabulary or not self.types:
            return self
        words, used = self._find_words()
        return self._of_unsorted(self.n, vocabulary, self._renumber(used, vocabulary.add(words)), self.counts)

    def _find_words(self) -> tuple[TextColumn, Ints]:
        """Return the words that occur, in the order of their ids, and these ids."""
        column = self.vocabulary.column()
        used = np.zeros(len(column), np.bool_)
        used[self.grams] = True
        ids = np.flatnonzero(used)
        return column.take(ids), ids

    def _renumber(self, used: Ints, numbers: Ids) -> Ints:
        """Return the keys with another number for every word that occurs."""
        places = np.zeros(int(used[-1]) + 1 if len(used) else 0, np.int32)
        places[used] = numbers
        return _pack(places[self.grams])

    def number_words(self) -> tuple[TextColumn, Ints]:
        """Return the words that occur, in the order of their ids, and the keys with numbers of these words."""
        words, used = self._find_words()
        return words, self._renumber(used, np.arange(len(used), dtype=np.int32))

    def split(self, parts: int) -> list[NgramCounts]:
        """Return the counts in parts of different n-grams; which part one belongs to depends on its words alone."""
        words, keys = self.number_words()
        vocabulary = Vocabulary()  # of these words: each part looks through all words of its vocabulary
        vocabulary.add(words)
        chosen, sizes = np.empty(self.types, np.uint16), np.zeros(parts, np.int64)
        choose_parts(keys, self.n, hash_column(words), chosen, sizes)
        edges = offsets_of(sizes)
        part_keys, part_counts = np.empty_like(keys), np.empty(self.types, self.counts.dtype)
        copy_parts(keys, self.counts, chosen, edges[:-1].copy(), part_keys, part_counts)
        rows = [slice(start, stop) for start, stop in pairwise(edges.tolist())]
        return [NgramCounts(self.n, vocabulary, part_keys[part], part_counts[part]) for part in rows]

    def to_plain(self) -> tuple[int, Bytes, Ints, Ints, Counts]:
        """Return the counts with the words they use, in plain arrays; `from_plain` gives equal counts back."""
        words, keys = self.number_words()
        lengths = words.ends - words.starts
        return self.n, words.data[ranges(words.starts, lengths)], lengths, keys, self.counts

    @classmethod
    def from_plain(cls, n: int, data: Bytes, lengths: Ints, keys: Ints, counts: Counts) -> NgramCounts:
        """Make counts from what `to_plain` returned, over a vocabulary of their own."""
        ends = np.cumsum(lengths)
        vocabulary = Vocabulary()
        vocabulary.add(TextColumn(data, ends - lengths, ends))
        # Words come in the order of their old ids, so the n-grams are in order already.
        return cls(n, vocabulary, keys, counts)

    def __reduce__(self) -> tuple[object, tuple[int, Bytes, Ints, Ints, Counts]]:
        return NgramCounts.from_plain, self.to_plain()


def _merge(left: NgramCounts, right: NgramCounts, keys: Ints, counts: Counts) -> int:
    """Fill in the merged counts, a part at a time, and return their number."""
    i = j = size = 0
    while i < left.types or j < right.types:
        i_end, j_end = merge_ends(left.keys, i, right.keys, j, _COMPARED_KEYS)
        left_part, right_part = slice(i, i_end), slice(j, j_end)
        parts = left.keys[left_part], left.counts[left_part], right.keys[right_part], right.counts[right_part]
        room_left = keys[size:], counts[size:]
        merged = merge_counts(*parts, *room_left)
        for done in (*parts, *(part[:merged] for part in room_left)):
            release(done)
        i, j, size = i_end, j_end, size + merged
    return size


def hash_column(words: TextColumn) -> Hashes:
    """Return a hash of each word, the same in every process."""
    hashes = np.empty(len(words), np.uint64)
    hash_words(words.data, words.starts, words.ends, hashes)
    return hashes


def _counts_type(total: int) -> type[np.int32 | np.int64]:
    """Return the smallest type that holds a count out of a total: there may be many millions of counts."""
    return np.int32 if total < 1 << 31 else np.int64


def _packs(n: int) -> int:
    """Return the number of int64 that hold n words, two each."""
    return (n + 1) // 2


def _pack(grams: Ids) -> Ints:
    """Pack two words in each int64, the first of an odd number alone, so that rows sort like rows of words."""
    words = grams.astype(np.int64)
    if words.shape[1] % 2:
        words = np.hstack((np.zeros((len(words), 1), np.int64), words))
    return words[:, ::2] << _WORD_BITS | words[:, 1::2]


@dataclass(frozen=True, slots=True)
class NgramTotals:
    """The totals of closed counts: the number of different n-grams, and of all n-grams."""

    types: int = 0
    total: int = 0

    def merge(self, other: NgramTotals) -> NgramTotals:
        """Return the totals of both, whose n-grams are different ones."""
        return NgramTotals(self.types + other.types, self.total + other.total)


def count_texts(
    texts: TextColumn, vocabulary: Vocabulary, n: int, tokenizer: Tokenizer, unified: Callable[[Ids], Ids] | None
) -> NgramCounts:
    """Count the n-grams of any number of texts, a part at a time; `unified` maps word ids before they are counted."""
    sums = Reduction(NgramCounts.merge, lambda: NgramCounts.empty(n))
    for start in range(0, len(texts), COUNTED_TEXTS):
        slice_ = texts.slice(start, start + COUNTED_TEXTS)
        part = tokenize(slice_, vocabulary, tokenizer)
        slice_.release()
        ids = part.ids if unified is None else unified(part.ids)
        sums.add(NgramCounts.of(NgramColumn.of(TokenColumn(ids, part.offsets, vocabulary), n), vocabulary))
    return sums.result()


def ngrams(batch: Batch, need: Input, n: int, tokenizer: Tokenizer, oov: Oov = "self") -> NgramColumn:
    """Return the n-grams of a batch's texts; computed once for all metrics of the batch."""
    words = tokens(batch, need, tokenizer, oov)
    return batch.derive(("ngrams", need, n, tokenizer, oov), lambda: NgramColumn.of(words, n))


def ngram_counts(batch: Batch, need: Input, n: int, tokenizer: Tokenizer, oov: Oov = "self") -> NgramCounts:
    """Return the n-gram counts of a batch; computed once for all metrics of the batch."""
    column = ngrams(batch, need, n, tokenizer, oov)
    vocabulary = cast(Vocabulary, batch.vocabulary)
    return batch.derive(("ngram counts", need, n, tokenizer, oov), lambda: NgramCounts.of(column, vocabulary))


# n-grams of resampled rows: how many there are in every resample, and how many different ones.
#
# The n-grams of a system are numbered once, and of each cluster only the different ones are kept. To count different
# ones it is enough to know which clusters a resample contains: one bit per cluster and resample, 64 resamples to a
# number. An n-gram of a single cluster is counted with it; of any other, the numbers of its clusters are combined by
# `or`, which leaves the bits of the resamples that it occurs in.


_RESAMPLES = 64
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
    for first in range(0, len(sample) if len(starts) else 0, _RESAMPLES):
        part = contains[first : first + _RESAMPLES]
        bits = np.zeros((part.shape[1], _RESAMPLES), np.bool_)
        bits[:, : len(part)] = part.T
        occurs = np.bitwise_or.reduceat(np.packbits(bits, axis=1).view(np.uint64)[:, 0][clusters], starts)
        counts = np.unpackbits(occurs.view(np.uint8).reshape(-1, _RESAMPLES // 8), axis=1).sum(axis=0, dtype=np.int64)
        different[first : first + _RESAMPLES] += counts[: len(part)]
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
