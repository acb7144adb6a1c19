"""Words in flat arrays that find their row without a dictionary in memory.

All words lie one after the other in `blob`; word `i` is `blob[offsets[i]:offsets[i + 1]]` and belongs to row `i` of the
matrix. `hashes` holds the 64-bit BLAKE2b hashes of the distinct words in ascending order and `rows` the row of each, so
that a look-up is a binary search in a memory-mapped file. A hit is confirmed byte by byte, so that words with equal
hashes are told apart. Of two equal words the later one counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dialeval.core.arrays import Bytes, Ints

Hashes: TypeAlias = npt.NDArray[np.uint64]

_HASH_BYTES = 8


@dataclass(frozen=True, eq=False, slots=True)
class WordTable:
    """The arrays described above; none of them is ever changed."""

    blob: Bytes
    offsets: Ints
    hashes: Hashes
    rows: Ints

    @classmethod
    def build(cls, blob: Bytes, offsets: Ints) -> WordTable:
        """A table over words that lie in `blob`."""
        whole = blob.tobytes()
        bounds = offsets.tolist()
        hashes = hashes_of(whole[start:end] for start, end in pairwise(bounds))
        order = np.argsort(hashes, kind="stable").astype(np.int64)
        hashes = hashes[order]
        keep = np.ones(len(order), np.bool_)
        later: set[bytes] = set()
        # Equal words have equal hashes; different words almost never do, and then both stay. Looking only at these
        # is faster than a dictionary of all words, by half a second for a million.
        for place in reversed(_shared(hashes).tolist()):
            row = order[place]
            word = whole[bounds[row] : bounds[row + 1]]
            keep[place] = word not in later
            later.add(word)
        return cls(blob, offsets, hashes[keep], order[keep])

    def __len__(self) -> int:
        return len(self.rows)

    def find(self, words: Sequence[str]) -> Ints:
        """The row of each word, or -1."""
        # A lone surrogate has no UTF-8 form, so no file holds it; looking it up must not fail.
        wanted = [word.encode("utf-8", "surrogatepass") for word in words]
        keys = hashes_of(wanted)
        after = np.searchsorted(self.hashes, keys, side="right")
        rows = np.full(len(wanted), -1, np.int64)
        hits = np.flatnonzero((after > 0) & (self.hashes[after - 1] == keys)) if len(self) else after[:0]
        for index in hits.tolist():
            rows[index] = self._confirmed(wanted[index], int(after[index]) - 1)
        return rows

    def words(self) -> list[str]:
        """The distinct words in the order of their rows."""
        return [self._word(row).decode() for row in np.sort(self.rows).tolist()]

    def _word(self, row: int) -> bytes:
        return self.blob[self.offsets[row] : self.offsets[row + 1]].tobytes()

    def _confirmed(self, word: bytes, place: int) -> int:
        """The row of `word` among the entries at and before `place` that have its hash."""
        key = self.hashes[place]
        while place >= 0 and self.hashes[place] == key:
            row = int(self.rows[place])
            if self._word(row) == word:
                return row
            place -= 1
        return -1


def hashes_of(words: Iterable[bytes]) -> Hashes:
    """64 bits of BLAKE2b per word: the same on every machine and in every process, unlike `hash`."""
    digests = b"".join([blake2b(word, digest_size=_HASH_BYTES).digest() for word in words])
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def _shared(hashes: Hashes) -> Ints:
    """Places in ascending hashes that have the same value as a neighbour."""
    same = hashes[1:] == hashes[:-1]
    return np.flatnonzero(np.concatenate((same, [False])) | np.concatenate(([False], same)))
