"""Columns: texts and tokens as flat arrays, and the batch of rows that a metric sees.

- `TextColumn`: UTF-8 bytes with a start and an end per row. A memory-mapped file of lines and the buffers of an Arrow
  string array are both such a column without being copied.
- `RaggedColumn`: any number of texts per row (references, turns of a context).
- `TokenColumn`: int32 word ids with row offsets, over one vocabulary.
- `ObjectColumn`: one plain Python object per row, for what is neither.
- `NumberColumn`: several numbers per row, a matrix.
- `Batch`: consecutive rows, the columns of which are handed out only to a metric that declared them.

Columns are never changed after they are made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np

from dialeval.core.arrays import Bytes, Floats, Ids, Ints, release
from dialeval.core.errors import DataError, Fault, NeedError
from dialeval.core.needs import Need

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

DIGEST_LENGTH = 12
"""Hexadecimal digits of a SHA-256 that stand in a signature."""

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
        sha = hashlib.sha256((self.ends - self.starts).data)
        for start in range(0, len(self), _DIGEST_ROWS):
            part = self.slice(start, start + _DIGEST_ROWS)
            sha.update(part.joined())
            sha.update(b"\n")
            part.release()
        return sha.hexdigest()[:DIGEST_LENGTH]

    def release(self) -> None:
        """Give the memory of texts that lie in a mapped file back for now."""
        if len(self):
            release(self.data[self.starts[0] : self.ends[-1]])

    def joined(self) -> bytes | memoryview:
        """The texts with a line feed between them; no copy where they lie like that already."""
        between = self.ends[:-1]
        if (self.starts[1:] == between + 1).all() and (self.data[between] == ord("\n")).all():
            return self.data[self.starts[0] : self.ends[-1]].data
        spans = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return b"\n".join([self.data[start:end].tobytes() for start, end in spans])


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
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return cls(TextColumn.from_strings([text for row in rows for text in row], where), offsets)

    @classmethod
    def single(cls, column: TextColumn) -> RaggedColumn:
        """One text per row."""
        return cls(column, np.arange(len(column) + 1, dtype=np.int64))

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
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        return RaggedColumn(self.values.take(np.repeat(self.offsets[rows], counts) + inside), offsets)

    def release(self) -> None:
        """Give the memory of texts that lie in a mapped file back for now."""
        self.values.release()

    @property
    def digest(self) -> str:
        """A digest of the texts and of how they are spread over the rows."""
        sha = hashlib.sha256(np.diff(self.offsets).data)
        sha.update(self.values.digest.encode())
        return sha.hexdigest()[:DIGEST_LENGTH]


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
        """Objects lie in no file."""

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


Column: TypeAlias = TextColumn | RaggedColumn | ObjectColumn


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Consecutive rows of one system; never part of a dialogue.

    Columns, resources and facts are given only to a metric that declared them. `derived` keeps what is computed from
    them (tokens, n-grams, overlap counts), so that metrics over the same rows share it. One thread works on a batch.
    """

    size: int
    columns: Mapping[Need, Column]
    vocabulary: Words
    dialogues: Ints
    """Row offsets of the dialogues: dialogue `k` is the rows `dialogues[k]` to `dialogues[k + 1]`."""
    resources: Mapping[Need, Any] = field(default_factory=dict)
    facts: Mapping[Any, Any] = field(default_factory=dict)
    """What was found out about all rows before this batch is looked at; see `fold.Fact`."""
    allowed: frozenset[Need] = frozenset(Need)
    kept: dict[Hashable, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.size

    def only(self, needs: frozenset[Need]) -> Batch:
        """The same batch for a metric that declared `needs`; what is derived stays shared."""
        return replace(self, allowed=needs)

    def has(self, need: Need) -> bool:
        """Whether a declared need is there."""
        return need in self.allowed and (need in self.columns or need in self.resources)

    def column(self, need: Need) -> Column:
        """The column behind a declared need."""
        self._check(need, self.columns)
        return self.columns[need]

    def resource(self, need: Need) -> Any:
        """The resource behind a declared need."""
        self._check(need, self.resources)
        return self.resources[need]

    def fact(self, fact: Hashable) -> Any:
        """What a declared fact came to."""
        if fact not in self.facts:
            raise NeedError(f"the metric reads {fact} without naming it among its facts")
        return self.facts[fact]

    def _check(self, need: Need, there: Mapping[Need, object]) -> None:
        if need not in self.allowed:
            declared = ", ".join(sorted(self.allowed)) or "nothing"
            raise NeedError(f"the metric reads {need} but declares {declared}; add Need.{need.name} to its needs")
        if need not in there:
            raise NeedError(need.remedy)

    def texts(self, need: Need) -> TextColumn:
        """The column of a need with one text per row."""
        column = self.column(need)
        if not isinstance(column, TextColumn):
            raise NeedError(f"{need} does not hold one text per row; read it with Batch.lists or Batch.objects")
        return column

    def lists(self, need: Need) -> RaggedColumn:
        """The column of a need with any number of texts per row."""
        column = self.column(need)
        if isinstance(column, ObjectColumn):
            raise NeedError(f"{need} holds objects and not texts; read it with Batch.objects")
        return RaggedColumn.single(column) if isinstance(column, TextColumn) else column

    def objects(self, need: Need) -> ObjectColumn:
        """The column of a need with one object per row."""
        column = self.column(need)
        if not isinstance(column, ObjectColumn):
            raise NeedError(f"{need} holds texts; read it with Batch.texts or Batch.lists")
        return column

    def numbers(self, need: Need) -> Floats:
        """The column of a need with several numbers per row, as a matrix."""
        column = self.column(need)
        if not isinstance(column, NumberColumn):
            raise NeedError(f"{need} does not hold numbers; read it with Batch.texts, Batch.lists or Batch.objects")
        return column.matrix

    def derived(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once per batch and key."""
        if key not in self.kept:
            self.kept[key] = make()
        return cast(T, self.kept[key])
