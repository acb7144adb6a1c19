"""Columns: texts, tokens and numbers of many rows as flat arrays.

- `TextColumn`: UTF-8 bytes with a start and an end per row. The bytes of a file of lines and the buffers of an Arrow
  string array are both such a column without being copied.
- `RaggedColumn`: any number of texts per row (references, turns of a context).
- `SharedColumn`: the same where rows share texts (a turn of a chat is in the context of every response after it).
- `TokenColumn`: int32 word ids with row offsets, over one vocabulary.
- `ObjectColumn`: one plain Python object per row, for what is neither.
- `NumberColumn`: several numbers per row, a matrix.

`grouped_column` has one more: texts of a row in groups.

Columns are never changed after they are made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from dialeval.core.arrays import Bytes, Floats, Ids, Ints, Mask, release
from dialeval.core.errors import DataError, Fault
from dialeval.core.fingerprint import DIGEST_LENGTH, Fingerprint
from dialeval.core.ragged import offsets_of, ranges

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DIGEST_LENGTH",
    "Column",
    "NumberColumn",
    "ObjectColumn",
    "RaggedColumn",
    "SharedColumn",
    "TextColumn",
    "TokenColumn",
    "Words",
]

_DIGEST_ROWS = 1 << 16


class Words(Protocol):
    """What a token column asks of its vocabulary: the words behind ids."""

    def __len__(self) -> int: ...

    def words(self, ids: Ids) -> list[str]: ...


@dataclass(frozen=True, eq=False, slots=True)
class TextColumn:
    """One UTF-8 text per row: row `i` is `data[starts[i]:ends[i]]`."""

    data: Bytes
    starts: Ints
    ends: Ints

    @classmethod
    def from_strings(cls, texts: Sequence[str], where: str = "texts") -> TextColumn:
        """A column of Python strings; `where` names them in the error for a string that is not Unicode text."""
        try:
            data = "\n".join(texts).encode()
            lengths = np.fromiter(map(len, texts), np.int64, len(texts))
            if len(data) != lengths.sum() + max(len(texts) - 1, 0):  # some character takes more than one byte
                lengths = np.fromiter((len(text.encode()) for text in texts), np.int64, len(texts))
        except UnicodeEncodeError:
            faults = (_surrogate_fault(text, where, row) for row, text in enumerate(texts, 1))
            raise DataError([fault for fault in faults if fault]) from None
        ends = np.cumsum(lengths) + np.arange(len(texts))
        return cls(np.frombuffer(data, np.uint8), ends - lengths, ends)

    @classmethod
    def from_arrow(cls, array: pa.Array | pa.ChunkedArray, where: str = "column") -> TextColumn:
        """A column over the buffers of an Arrow string array; nulls are a fault."""
        import pyarrow as pa

        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if not pa.types.is_large_string(array.type):
            array = array.cast(pa.large_string())
        if array.null_count:
            empty = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)) + 1
            remedy = "give every row a text, or leave the row out"
            raise DataError([Fault(where, int(row), "null where a text is expected", remedy) for row in empty])
        _, offset_buffer, data_buffer = array.buffers()
        if offset_buffer is None or not len(array):
            return cls.from_strings([])
        offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
        data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
        return cls(data, offsets[:-1], offsets[1:])

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> str:
        return self.data[self.starts[row] : self.ends[row]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))

    def slice(self, start: int, stop: int) -> TextColumn:
        """Rows `start` to `stop`, over the same bytes."""
        return TextColumn(self.data, self.starts[start:stop], self.ends[start:stop])

    def take(self, rows: Ints) -> TextColumn:
        """The given rows in the given order, over the same bytes."""
        return TextColumn(self.data, self.starts[rows], self.ends[rows])

    @property
    def digest(self) -> str:
        """A digest of the texts alone: the same for a file, a list and a table that hold them."""
        return self.fingerprint.digest

    @property
    def fingerprint(self) -> Fingerprint:
        """What the digest is made of: the fingerprints of parts add up to that of the whole."""
        total = Fingerprint()
        for start in range(0, len(self), _DIGEST_ROWS):
            part = self.slice(start, start + _DIGEST_ROWS)
            total += Fingerprint.of(part.data, part.starts, part.ends)
            part.release()
        return total

    def release(self) -> None:
        """Release the pages of texts in a mapped file; they are read again when needed."""
        if len(self):
            release(self.data[self.starts[0] : self.ends[-1]])


def _surrogate_fault(text: str, where: str, row: int) -> Fault | None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = f"{text[error.start]!r} is half of a surrogate pair, not a character"
        return Fault(where, row, what, "decode the text with the right encoding first")
    return None


@dataclass(frozen=True, eq=False, slots=True)
class RaggedColumn:
    """Several texts per row: row `i` holds `values[offsets[i]:offsets[i + 1]]`."""

    values: TextColumn
    offsets: Ints

    @classmethod
    def from_lists(cls, rows: Sequence[Sequence[str]], where: str = "texts") -> RaggedColumn:
        """A column of lists of Python strings."""
        texts = TextColumn.from_strings([text for row in rows for text in row], where)
        return cls(texts, offsets_of(map(len, rows)))

    @classmethod
    def single(cls, column: TextColumn) -> RaggedColumn:
        """One text per row."""
        return cls(column, np.arange(len(column) + 1, dtype=np.int64))

    @property
    def starts(self) -> Ints:
        """Where the texts of each row begin."""
        return self.offsets[:-1]

    @property
    def ends(self) -> Ints:
        """Where the texts of each row end."""
        return self.offsets[1:]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> list[str]:
        return [self.values[index] for index in range(self.offsets[row], self.offsets[row + 1])]

    def __iter__(self) -> Iterator[list[str]]:
        return (self[row] for row in range(len(self)))

    def slice(self, start: int, stop: int) -> RaggedColumn:
        """Rows `start` to `stop`, over the same bytes."""
        offsets = self.offsets[start : stop + 1]
        return RaggedColumn(self.values.slice(int(offsets[0]), int(offsets[-1])), offsets - offsets[0])

    def take(self, rows: Ints) -> RaggedColumn:
        """The given rows in the given order, over the same bytes."""
        counts = self.offsets[rows + 1] - self.offsets[rows]
        offsets = offsets_of(counts)
        return RaggedColumn(self.values.take(ranges(self.offsets[rows], counts)), offsets)

    def release(self) -> None:
        """Release the pages of texts in a mapped file; they are read again when needed."""
        self.values.release()

    @property
    def digest(self) -> str:
        """A digest of the texts and of how they are spread over the rows."""
        return self.fingerprint.digest

    @property
    def fingerprint(self) -> Fingerprint:
        """What the digest is made of: the fingerprints of parts add up to that of the whole."""
        total = Fingerprint()
        for start in range(0, len(self), _DIGEST_ROWS):
            offsets = self.offsets[start : start + _DIGEST_ROWS + 1]
            part = self.values.slice(int(offsets[0]), int(offsets[-1]))
            total += Fingerprint.of(part.data, part.starts, part.ends, offsets)
            part.release()
        return total


@dataclass(frozen=True, eq=False, slots=True)
class SharedColumn:
    """Several texts per row, which rows may share: row `i` holds `values[starts[i]:ends[i]]`.

    Every text is in some row. The contexts of a chat have as many texts as the chat has messages, and not the square.
    """

    values: TextColumn
    starts: Ints
    ends: Ints

    @classmethod
    def from_steps(cls, steps: RaggedColumn, continues: Mask) -> SharedColumn:
        """Rows that add texts to those of the row before where they continue it, and have no others elsewhere."""
        firsts = np.where(continues, 0, np.arange(len(steps)))
        return cls(steps.values, steps.starts[np.maximum.accumulate(firsts)], steps.ends)

    def steps(self) -> tuple[RaggedColumn, Mask]:
        """What each row adds to the row before, and whether it continues that row; see `from_steps`."""
        continues = np.zeros(len(self), np.bool_)
        continues[1:] = (self.starts[1:] == self.starts[:-1]) & (self.ends[1:] >= self.ends[:-1])
        firsts = self.starts.copy()
        firsts[1:][continues[1:]] = self.ends[:-1][continues[1:]]
        counts = self.ends - firsts
        return RaggedColumn(self.values.take(ranges(firsts, counts)), offsets_of(counts)), continues

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> list[str]:
        return [self.values[index] for index in range(self.starts[row], self.ends[row])]

    def __iter__(self) -> Iterator[list[str]]:
        return (self[row] for row in range(len(self)))

    def slice(self, start: int, stop: int) -> SharedColumn:
        """Rows `start` to `stop`, over the same bytes."""
        return self._cut(self.starts[start:stop], self.ends[start:stop])

    def take(self, rows: Ints) -> SharedColumn:
        """The given rows in the given order, over the same bytes."""
        return self._cut(self.starts[rows], self.ends[rows])

    def last(self, count: int) -> SharedColumn:
        """The last texts of each row, at most so many."""
        return self._cut(np.maximum(self.starts, self.ends - count), self.ends)

    def _cut(self, starts: Ints, ends: Ints) -> SharedColumn:
        """Rows of the column or parts of them, without the texts that none of them has."""
        order = np.argsort(starts, kind="stable")
        begins, reach = starts[order], np.maximum.accumulate(ends[order])
        first = np.ones(len(order), np.bool_)
        first[1:] = begins[1:] > reach[:-1]
        lows = begins[first]
        lengths = reach[np.append(np.flatnonzero(first)[1:] - 1, len(order) - 1)] - lows if len(order) else lows
        piece = np.searchsorted(lows, starts, "right") - 1  # the texts in use are the pieces `lows` to `lows + lengths`
        shifts = (offsets_of(lengths)[:-1] - lows)[piece]
        whole = len(lows) == 1
        values = self.values.slice(int(lows[0]), int(reach[-1])) if whole else self.values.take(ranges(lows, lengths))
        return SharedColumn(values, starts + shifts, ends + shifts)

    def release(self) -> None:
        """Release the pages of texts in a mapped file; they are read again when needed."""
        self.values.release()

    @property
    def digest(self) -> str:
        """A digest of the texts of every row: that of a `RaggedColumn` with the same rows."""
        return self.fingerprint.digest

    @property
    def fingerprint(self) -> Fingerprint:
        """What the digest is made of: the fingerprints of parts add up to that of the whole."""
        texts = self.values
        return Fingerprint.of_shared(texts.data, texts.starts, texts.ends, self.starts, self.ends)


@dataclass(frozen=True, eq=False, slots=True)
class TokenColumn:
    """Word ids: row `i` is `ids[offsets[i]:offsets[i + 1]]`, each id a word of `vocabulary`."""

    ids: Ids
    offsets: Ints
    vocabulary: Words

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """Number of tokens per row."""
        return np.diff(self.offsets)

    def take(self, rows: Ints) -> TokenColumn:
        """The given rows in the given order."""
        counts = self.lengths[rows]
        offsets = offsets_of(counts)
        return TokenColumn(self.ids[ranges(self.offsets[rows], counts)], offsets, self.vocabulary)

    def words(self) -> list[list[str]]:
        """The tokens as strings, for people and tests."""
        words = self.vocabulary.words(self.ids)
        return [words[start:stop] for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True)]


@dataclass(frozen=True, eq=False, slots=True)
class ObjectColumn:
    """One plain Python object per row (dicts, lists, numbers, strings), for what has no better shape."""

    values: Sequence[Any]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Any:
        return self.values[row]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def slice(self, start: int, stop: int) -> ObjectColumn:
        """Rows `start` to `stop`."""
        return ObjectColumn(self.values[start:stop])

    def take(self, rows: Ints) -> ObjectColumn:
        """The given rows in the given order."""
        return ObjectColumn([self.values[row] for row in rows.tolist()])

    def release(self) -> None:
        """Nothing to release: objects are in memory."""

    @property
    def digest(self) -> str:
        """A digest of the objects as JSON with sorted keys."""
        import orjson

        sha = hashlib.sha256()
        for value in self.values:
            sha.update(orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))
        return sha.hexdigest()[:DIGEST_LENGTH]


@dataclass(frozen=True, eq=False, slots=True)
class NumberColumn(ObjectColumn):
    """The same number of numbers in each row: `values` is a matrix with a line per row."""

    values: Any

    @property
    def matrix(self) -> Floats:
        """All rows at once."""
        return cast("Floats", self.values)

    def slice(self, start: int, stop: int) -> NumberColumn:
        """Rows `start` to `stop`, over the same memory."""
        return NumberColumn(self.values[start:stop])

    def take(self, rows: Ints) -> NumberColumn:
        """The given rows in the given order."""
        return NumberColumn(self.values[rows])

    @property
    def digest(self) -> str:
        """A digest of the numbers and of how many stand in a row."""
        sha = hashlib.sha256(str(self.values.shape[1:]).encode())
        sha.update(np.ascontiguousarray(self.values).data)
        return sha.hexdigest()[:DIGEST_LENGTH]


Column: TypeAlias = TextColumn | RaggedColumn | SharedColumn | ObjectColumn
