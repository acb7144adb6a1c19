"""The vocabulary: words and their ids, one to one, exact on any Unicode text.

Ids are given in the order in which words are first met. A vocabulary only ever grows, so an id keeps its word; it may
be used by several threads at once. It is pickled as its words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Bytes, Ids, Ints
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.kernels import Kernels

_kernel = Kernels("dialeval.text.words_kernel")
_separation_kernel = Kernels("dialeval.text.separation_kernel")


Number = TypeVar("Number", bound=np.generic)

_FIRST_WORDS = 1 << 11
_FIRST_BYTES = 1 << 14


class Vocabulary:
    """Words and ids over flat arrays; see `words_kernel` for their layout."""

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
        """All words, row number = id."""
        return TextColumn(self._arena, self._ends[: self._count], self._ends[1 : self._count + 1])

    def words(self, ids: Ids) -> list[str]:
        """The words behind ids."""
        column = self.column()
        unique, inverse = np.unique(ids, return_inverse=True)
        known = [column[int(word)] for word in unique]
        return [known[index] for index in inverse]

    def add(self, texts: TextColumn) -> Ids:
        """The ids of texts that are one word each (blanks included), new ones being added."""
        ids = np.empty(len(texts), np.int32)
        with self._lock:
            row = 0
            while row < len(texts):
                row, self._count = _kernel.intern_words(
                    texts.data, texts.starts, texts.ends, row, self._table, self._arena, self._ends, self._count, ids
                )
                if row < len(texts):
                    self._grow(int(texts.ends[row] - texts.starts[row]))
        return ids

    def find(self, texts: TextColumn) -> Ids:
        """The ids of texts that are one word each; -1 for a text that is not a word of this vocabulary."""
        ids = np.empty(len(texts), np.int32)
        with self._lock:
            _kernel.find_words(texts.data, texts.starts, texts.ends, self._table, self._arena, self._ends, ids)
        return ids

    def split(self, texts: TextColumn) -> TokenColumn:
        """Split texts at white space, as `str.split()` does, new words being added.

        The work is done in a small vocabulary of the texts' own words, which fits the processor's cache and needs no
        lock; only that handful of words is then looked up here.
        """
        most = (texts.ends - texts.starts + 1) // 2  # a word and a blank take two bytes at least
        return self._split(
            texts, most, lambda *place: _kernel.split_words(texts.data, texts.starts, texts.ends, *place)
        )

    def split_apart(self, texts: TextColumn, kinds: Bytes, padded: bool, stripped: bool) -> TokenColumn:
        """Split texts by the kinds of their characters, as `separation_kernel` says, new words being added."""
        most = texts.ends - texts.starts
        cuts = np.empty(2 * int(most.max(initial=0)), np.int64)
        bytes_, how = (texts.data, texts.starts, texts.ends), (kinds, padded, stripped, cuts)
        split = _separation_kernel.split_apart
        return self._split(texts, most, lambda row, *place: split(*bytes_, row, *how, *place))

    def _split(self, texts: TextColumn, most: Ints, run: Callable[..., tuple[int, int]]) -> TokenColumn:
        """Run a kernel that splits, until all texts are done; `most` tokens at most has each of them."""
        own = Vocabulary()
        ids = np.empty(int(most.sum()), np.int32)
        offsets = np.zeros(len(texts) + 1, np.int64)
        row = 0
        while row < len(texts):
            row, own._count = run(row, own._table, own._arena, own._ends, own._count, ids, offsets)
            if row < len(texts):
                own._grow(int(texts.ends[row] - texts.starts[row]))
        return TokenColumn(self.add(own.column())[ids[: offsets[-1]]], offsets, self)

    def _grow(self, needed_bytes: int) -> None:
        """Make every array larger; the old ones stay as they are, since another thread may be reading them."""
        table = np.zeros(4 * len(self._table), np.uint64)
        _kernel.refill(self._table, table)
        self._table = table
        self._arena = _longer(self._arena, 4 * len(self._arena) + needed_bytes)
        self._ends = _longer(self._ends, 4 * len(self._ends))


def _longer(array: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    larger = np.empty(size, array.dtype)
    larger[: len(array)] = array
    return larger
