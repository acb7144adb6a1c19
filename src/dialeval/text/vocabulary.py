"""The vocabulary: words and their ids, one to one, exact on any Unicode text.

Ids are assigned in the order of first occurrence. A vocabulary only grows, so an id keeps its word; several threads may
use it at once. It is pickled as its words.

Kernels: split UTF-8 text at whitespace and give every word an id, in one pass over the bytes.

Whitespace is that of `str.split()`. A word of up to seven bytes is its own key (bytes and length in one uint64), so
equal keys are equal words. A longer word's key is a hash, and a match is confirmed byte by byte: ids are exact. ASCII
words are read eight bytes at a time.

A store of words is a few arrays and a count (see `Vocabulary`, which owns them and makes them larger):

- `table`: open addressing with linear probing; key and id side by side, length a power of two, at most half full;
- `arena`, `ends`: the bytes of all words one after the other; word `id` is `arena[ends[id]:ends[id + 1]]`.

Kernels allocate nothing: that would double their compile time. Where a store is full they stop and return the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

import numpy as np
import numpy.typing as npt
from numpy import int64, uint64

from dialeval.core.arrays import Bytes, Ids, Ints, Number
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.kernels import kernel, load8, trailing_zeros

_ODD = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: spreads keys over the top bits (Fibonacci hashing)."""
_TOP = np.uint64(19)
"""A product's lower bits are poor; those from here up, made even, address the `[key, id]` pairs of a table."""
_PAIR = np.uint64(~1 & (2**64 - 1))
_LONG = np.uint64(0xFF << 56)
"""Top byte of a long word's key; a short word has its length and one there, so that no key is 0."""
_SHORT = 7
_HIGH_BITS = np.uint64(0x8080808080808080)
_ABOVE_BLANK = np.uint64(0x2121212121212121)


@kernel
def space_width(data, i, end):  # type: ignore[no-untyped-def]
    """Return the number of bytes of the white-space character at `i`; 0 if there is none."""
    b = data[i]
    if b <= 0x20:
        return 1 if b == 0x20 or 0x09 <= b <= 0x0D or 0x1C <= b <= 0x1F else 0
    if b < 0xC2 or b > 0xE3 or i + 1 >= end:
        return 0
    c = data[i + 1]
    if b == 0xC2:  # U+0085, U+00A0
        return 2 if c == 0x85 or c == 0xA0 else 0
    if i + 2 >= end:
        return 0
    d = data[i + 2]
    if b == 0xE1:  # U+1680
        return 3 if c == 0x9A and d == 0x80 else 0
    if b == 0xE2 and c == 0x80:  # U+2000-200A, U+2028, U+2029, U+202F
        return 3 if d <= 0x8A or d == 0xA8 or d == 0xA9 or d == 0xAF else 0
    if b == 0xE2:  # U+205F
        return 3 if c == 0x81 and d == 0x9F else 0
    if b == 0xE3:  # U+3000
        return 3 if c == 0x80 and d == 0x80 else 0
    return 0


@kernel
def _mix(state, chunk):  # type: ignore[no-untyped-def]
    state = (state ^ chunk) * _ODD
    return state ^ (state >> uint64(32))


@kernel
def _key(length, state, tail):  # type: ignore[no-untyped-def]
    """Return the key of a word from its length, the mix of its whole eight-byte chunks, and the bytes after them."""
    if length <= _SHORT:
        return tail | (uint64(length + 1) << uint64(56))
    return _mix(state, tail) | _LONG


@kernel
def _hash_word(data, start, end):  # type: ignore[no-untyped-def]
    """Return the key of `data[start:end]` as one word, whatever is in it."""
    state = tail = shift = uint64(0)
    for i in range(start, end):
        tail |= uint64(data[i]) << shift
        shift += uint64(8)
        if shift == 64:
            state = _mix(state, tail)
            tail = shift = uint64(0)
    return _key(end - start, state, tail)


@kernel
def _scan(data, i, end):  # type: ignore[no-untyped-def]
    """Return where the word at `i` ends, and its key; byte by byte, for any Unicode text and the edge of the buffer."""
    start = i
    while i < end and space_width(data, i, end) == 0:
        i += 1
    return i, _hash_word(data, start, i)


@kernel
def _find(data, start, length, key, table, arena, ends):  # type: ignore[no-untyped-def]
    """Return the slot of a word: it holds the word's key and id, or an empty key."""
    mask = uint64(table.shape[0] - 1)
    slot = ((key * _ODD) >> _TOP) & mask & _PAIR
    while table[slot] != 0:
        if table[slot] == key:
            if length <= _SHORT:
                return slot
            word = table[slot + uint64(1)]
            first = ends[word]
            if ends[word + uint64(1)] - first == length:
                k = 0
                while k < length and arena[first + k] == data[start + k]:
                    k += 1
                if k == length:
                    return slot
        slot = (slot + uint64(2)) & mask
    return slot


@kernel
def _insert(data, start, length, key, slot, table, arena, ends, words):  # type: ignore[no-untyped-def]
    """Put word number `words` into an empty slot; False if the store is too small for it."""
    used = ends[words]
    if 4 * (words + 1) > table.shape[0] or used + length > arena.shape[0] or words + 2 > ends.shape[0]:
        return False
    for k in range(length):
        arena[used + k] = data[start + k]
    ends[words + 1] = used + length
    table[slot] = key
    table[slot + uint64(1)] = uint64(words)
    return True


@kernel("(u1[::1], i8[::1], i8[::1], i8, u8[::1], u1[::1], i8[::1], i8, i4[::1], i8[::1])")
def split_words(data, starts, ends, first, table, arena, word_ends, words, ids, offsets):  # type: ignore[no-untyped-def]
    """Fill `ids` and `offsets` with the words of the rows from `first` on.

    Returns the number of rows done and of words in the store; if some rows are not done, the store is full.
    """
    count = offsets[first]
    last_load = data.shape[0] - 8
    for row in range(first, starts.shape[0]):
        i = starts[row]
        end = ends[row]
        while i < end:
            start = i
            state = key = uint64(0)
            length = -1
            while i <= last_load:
                chunk = load8(data, i)
                # High bit set: this byte may be whitespace (below 0x21) or is not ASCII.
                special = ((chunk - _ABOVE_BLANK) & ~chunk | chunk) & _HIGH_BITS
                plain = end - i
                if special != 0:
                    plain = min(plain, trailing_zeros(special) >> 3)
                if plain >= 8:
                    state = _mix(state, chunk)
                    i += 8
                    continue
                if i + plain == end or data[i + plain] == 0x20:
                    length = i + plain - start
                    key = _key(length, state, chunk & ((uint64(1) << uint64(8 * plain)) - uint64(1)))
                    i += plain + 1
                break
            if length == 0:
                continue
            if length < 0:
                width = space_width(data, start, end)
                if width != 0:
                    i = start + width
                    continue
                i, key = _scan(data, start, end)
                length = i - start
            slot = _find(data, start, length, key, table, arena, word_ends)
            if table[slot] != 0:
                ids[count] = table[slot + uint64(1)]
            elif _insert(data, start, length, key, slot, table, arena, word_ends, words):
                ids[count] = words
                words += 1
            else:
                return row, words
            count += 1
        offsets[row + 1] = count
    return starts.shape[0], words


@kernel
def word_id(data, start, end, table, arena, word_ends, words):  # type: ignore[no-untyped-def]
    """Return the id of `data[start:end]` as one word, -1 where the store is full, and the words in the store."""
    key = _hash_word(data, start, end)
    slot = _find(data, start, end - start, key, table, arena, word_ends)
    if table[slot] != 0:
        return int64(table[slot + uint64(1)]), words
    if _insert(data, start, end - start, key, slot, table, arena, word_ends, words):
        return int64(words), words + 1
    return int64(-1), words


@kernel("(u1[::1], i8[::1], i8[::1], i8, u8[::1], u1[::1], i8[::1], i8, i4[::1])")
def intern_words(data, starts, ends, first, table, arena, word_ends, words, ids):  # type: ignore[no-untyped-def]
    """Fill `ids` with the ids of texts that are one word each, spaces included; return what `split_words` returns."""
    for row in range(first, starts.shape[0]):
        word, words = word_id(data, starts[row], ends[row], table, arena, word_ends, words)
        if word < 0:
            return row, words
        ids[row] = word
    return starts.shape[0], words


@kernel("(u1[::1], i8[::1], i8[::1], u8[::1], u1[::1], i8[::1], i4[::1])")
def find_words(data, starts, ends, table, arena, word_ends, ids):  # type: ignore[no-untyped-def]
    """Fill `ids` with the ids of texts that are one word each; -1 for a word that is not in the store."""
    for row in range(starts.shape[0]):
        key = _hash_word(data, starts[row], ends[row])
        slot = _find(data, starts[row], ends[row] - starts[row], key, table, arena, word_ends)
        ids[row] = int64(table[slot + uint64(1)]) if table[slot] != 0 else -1


@kernel("(u8[::1], u8[::1])")
def refill(table, larger):  # type: ignore[no-untyped-def]
    """Put the entries of a table into an empty larger one."""
    mask = uint64(larger.shape[0] - 1)
    for old in range(0, table.shape[0], 2):
        if table[old] != 0:
            slot = ((table[old] * _ODD) >> _TOP) & mask & _PAIR
            while larger[slot] != 0:
                slot = (slot + uint64(2)) & mask
            larger[slot] = table[old]
            larger[slot + uint64(1)] = table[old + 1]


_FIRST_WORDS = 1 << 11
_FIRST_BYTES = 1 << 14


class Vocabulary:
    """Words and ids over flat arrays; the kernels above use their layout."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._table = np.zeros(4 * _FIRST_WORDS, np.uint64)
        self._arena: Bytes = np.empty(_FIRST_BYTES, np.uint8)
        self._ends: Ints = np.zeros(_FIRST_WORDS + 1, np.int64)
        self._count = 0
        self._lock = Lock()
        listed = list(words)
        if listed:
            self.add(TextColumn.from_strings(listed, "vocabulary"))

    def __len__(self) -> int:
        return self._count

    def __reduce__(self) -> tuple[type[Vocabulary], tuple[list[str]]]:
        return Vocabulary, (list(self.column()),)

    def column(self) -> TextColumn:
        """Return all words, row number = id."""
        return TextColumn(self._arena, self._ends[: self._count], self._ends[1 : self._count + 1])

    def words(self, ids: Ids) -> list[str]:
        """Return the words behind ids."""
        column = self.column()
        unique, inverse = np.unique(ids, return_inverse=True)
        texts = [column[int(word)] for word in unique]
        return [texts[index] for index in inverse]

    def add(self, texts: TextColumn) -> Ids:
        """Return the ids of texts that are one word each (spaces included), new ones being added."""
        ids = np.empty(len(texts), np.int32)
        with self._lock:
            row = 0
            while row < len(texts):
                row, self._count = intern_words(
                    texts.data, texts.starts, texts.ends, row, self._table, self._arena, self._ends, self._count, ids
                )
                if row < len(texts):
                    self._grow(int(texts.ends[row] - texts.starts[row]))
        return ids

    def find(self, texts: TextColumn) -> Ids:
        """Return the ids of texts that are one word each; -1 for a text that is not a word of this vocabulary."""
        ids = np.empty(len(texts), np.int32)
        with self._lock:
            find_words(texts.data, texts.starts, texts.ends, self._table, self._arena, self._ends, ids)
        return ids

    def split(self, texts: TextColumn) -> TokenColumn:
        """Split texts at whitespace, as `str.split()` does, new words being added.

        The work is done in a small vocabulary of the texts' own words, which fits the processor's cache and needs no
        lock; only these words are then looked up here.
        """
        most = (texts.ends - texts.starts + 1) // 2  # a word and a space take two bytes at least
        return self.split_with(texts, most, lambda *place: split_words(texts.data, texts.starts, texts.ends, *place))

    def split_with(self, texts: TextColumn, most: Ints, run: Callable[..., tuple[int, int]]) -> TokenColumn:
        """Run a kernel that splits until all texts are done, new words being added; `most`: tokens of each at most."""
        vocabulary = Vocabulary()
        ids = np.empty(int(most.sum()), np.int32)
        offsets = np.zeros(len(texts) + 1, np.int64)
        row = 0
        while row < len(texts):
            row, vocabulary._count = run(
                row, vocabulary._table, vocabulary._arena, vocabulary._ends, vocabulary._count, ids, offsets
            )
            if row < len(texts):
                vocabulary._grow(int(texts.ends[row] - texts.starts[row]))
        return TokenColumn(self.add(vocabulary.column())[ids[: offsets[-1]]], offsets, self)

    def _grow(self, needed_bytes: int) -> None:
        """Make every array larger; the old ones stay as they are, since another thread may be reading them."""
        table = np.zeros(4 * len(self._table), np.uint64)
        refill(self._table, table)
        self._table = table
        self._arena = _lengthen(self._arena, 4 * len(self._arena) + needed_bytes)
        self._ends = _lengthen(self._ends, 4 * len(self._ends))


def _lengthen(array: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    larger = np.empty(size, array.dtype)
    larger[: len(array)] = array
    return larger
