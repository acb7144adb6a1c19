"""Columns: texts, tokens and numbers of many rows as flat arrays.

- `TextColumn`: UTF-8 bytes with a start and an end per row. The bytes of a file of lines and the buffers of an Arrow
  string array are both such a column without being copied.
- `RaggedColumn`: any number of texts per row (references, turns of a context).
- `SharedColumn`: the same where rows share texts (a turn of a chat is in the context of every response after it).
- `TokenColumn`: int32 word ids with row offsets, over one vocabulary.
- `ObjectColumn`: one plain Python object per row, for what is neither.
- `NumberColumn`: several numbers per row, a matrix.

Columns are never changed after they are made. `join_columns` puts the rows of several into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import nan
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import orjson

from dialeval.core import inputs
from dialeval.core.arrays import Bytes, Floats, Ids, Ints, Mask, offsets_of, ranges, release
from dialeval.core.errors import LONE_SURROGATES, DataError, Problem
from dialeval.core.fingerprint import DIGEST_LENGTH, Fingerprint, short_digest
from dialeval.core.inputs import Input

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DIGEST_LENGTH", "ColumnData", "TextColumn"]

_DIGEST_ROWS = 1 << 16


class Words(Protocol):
    """The protocol of vocabularies of token columns: words by ids."""

    def __len__(self) -> int: ...

    def words(self, ids: Ids) -> list[str]: ...


class _Digested:
    """A column whose digest merges: it is a fold over the rows."""

    __slots__ = ()

    @property
    def fingerprint(self) -> Fingerprint:
        """The state of the digest: the fingerprints of parts add up to that of the whole."""
        column, total = cast(Any, self), Fingerprint()
        for start in range(0, len(column), _DIGEST_ROWS):
            part = column.slice(start, start + _DIGEST_ROWS)
            total += part._fingerprint()  # noqa: SLF001
            part.release()
        return total

    @property
    def digest(self) -> str:
        """A digest of the texts and their distribution over the rows, equal for a file, a list and a table."""
        return self.fingerprint.digest


@dataclass(frozen=True, eq=False, slots=True)
class TextColumn(_Digested):
    """One UTF-8 text per row: row `i` is `data[starts[i]:ends[i]]`."""

    data: Bytes
    starts: Ints
    ends: Ints

    @classmethod
    def from_strings(cls, texts: Sequence[str], where: str = "texts") -> TextColumn:
        """Make a column of Python strings; `where` names them in the error for a string that is not Unicode text."""
        try:
            data = "\n".join(texts).encode()
            lengths = np.fromiter(map(len, texts), np.int64, len(texts))
            if len(data) != lengths.sum() + max(len(texts) - 1, 0):  # some character takes more than one byte
                lengths = np.fromiter((len(text.encode()) for text in texts), np.int64, len(texts))
        except UnicodeEncodeError:
            remedy = "decode the text with the right encoding first"
            halves = [(row, hit[0]) for row, text in enumerate(texts, 1) if (hit := LONE_SURROGATES.search(text))]
            raise DataError(
                Problem(where, row, f"{half!r} is half of a surrogate pair, not a character", remedy)
                for row, half in halves
            ) from None
        ends = np.cumsum(lengths) + np.arange(len(texts))
        return cls(np.frombuffer(data, np.uint8), ends - lengths, ends)

    @classmethod
    def from_arrow(cls, array: pa.Array | pa.ChunkedArray) -> TextColumn:
        """Make a column over the buffers of an Arrow array of strings without nulls."""
        import pyarrow as pa

        array = array.cast(pa.large_string())
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
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
        """Return rows `start` to `stop`, over the same bytes."""
        return TextColumn(self.data, self.starts[start:stop], self.ends[start:stop])

    def take(self, rows: Ints) -> TextColumn:
        """Return the given rows in the given order, over the same bytes."""
        return TextColumn(self.data, self.starts[rows], self.ends[rows])

    def _fingerprint(self) -> Fingerprint:
        return Fingerprint.of(self.data, self.starts, self.ends)

    def release(self) -> None:
        """Release the pages of texts in a mapped file; they are read again when needed."""
        if len(self):
            release(self.data[self.starts[0] : self.ends[-1]])


class _TextLists(_Digested):
    """Several texts per row: row `i` holds `values[starts[i]:ends[i]]`."""

    __slots__ = ()
    values: TextColumn
    starts: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> list[str]:
        return [self.values[index] for index in range(self.starts[row], self.ends[row])]

    def __iter__(self) -> Iterator[list[str]]:
        return (self[row] for row in range(len(self)))

    def _fingerprint(self) -> Fingerprint:
        texts = self.values
        return Fingerprint.of(texts.data, texts.starts, texts.ends, (self.starts, self.ends))

    def release(self) -> None:
        """Release the pages of texts in a mapped file; they are read again when needed."""
        self.values.release()


@dataclass(frozen=True, eq=False, slots=True)
class RaggedColumn(_TextLists):
    """Several texts per row: row `i` holds `values[offsets[i]:offsets[i + 1]]`."""

    values: TextColumn
    offsets: Ints

    @classmethod
    def from_lists(cls, rows: Sequence[Sequence[str]], where: str = "texts") -> RaggedColumn:
        """Make a column of lists of Python strings."""
        texts = TextColumn.from_strings([text for row in rows for text in row], where)
        return cls(texts, offsets_of(map(len, rows)))

    @classmethod
    def from_texts(cls, column: TextColumn) -> RaggedColumn:
        """Make a column with one text per row."""
        return cls(column, np.arange(len(column) + 1, dtype=np.int64))

    @staticmethod
    def join(parts: Sequence[RaggedColumn]) -> RaggedColumn:
        """Return the rows of all parts."""
        values = join_texts([part.values for part in parts])
        return RaggedColumn(values, offsets_of(sizes_between(part.offsets for part in parts)))

    @property
    def starts(self) -> Ints:  # type: ignore[override]
        """Where the texts of each row begin."""
        return self.offsets[:-1]

    @property
    def ends(self) -> Ints:  # type: ignore[override]
        """Where the texts of each row end."""
        return self.offsets[1:]

    def slice(self, start: int, stop: int) -> RaggedColumn:
        """Return rows `start` to `stop`, over the same bytes."""
        offsets = self.offsets[start : stop + 1]
        return RaggedColumn(self.values.slice(int(offsets[0]), int(offsets[-1])), offsets - offsets[0])

    def take(self, rows: Ints) -> RaggedColumn:
        """Return the given rows in the given order, over the same bytes."""
        counts = self.offsets[rows + 1] - self.offsets[rows]
        offsets = offsets_of(counts)
        return RaggedColumn(self.values.take(ranges(self.offsets[rows], counts)), offsets)


@dataclass(frozen=True, eq=False, slots=True)
class SharedColumn(_TextLists):
    """Several texts per row, which rows may share: row `i` holds `values[starts[i]:ends[i]]`.

    Every text is in some row. The contexts of a chat have as many texts as the chat has messages, and not the square.
    """

    values: TextColumn
    starts: Ints
    ends: Ints

    @classmethod
    def from_steps(cls, steps: RaggedColumn, continues: Mask) -> SharedColumn:
        """Make a column from the texts that each row adds to the row before, if it continues that row; see `steps`."""
        firsts = np.where(continues, 0, np.arange(len(steps)))
        return cls(steps.values, steps.starts[np.maximum.accumulate(firsts)], steps.ends)

    def steps(self) -> tuple[RaggedColumn, Mask]:
        """Return the texts that each row adds to the row before, and whether it continues that row."""
        continues = np.zeros(len(self), np.bool_)
        continues[1:] = (self.starts[1:] == self.starts[:-1]) & (self.ends[1:] >= self.ends[:-1])
        firsts = self.starts.copy()
        firsts[1:][continues[1:]] = self.ends[:-1][continues[1:]]
        counts = self.ends - firsts
        return RaggedColumn(self.values.take(ranges(firsts, counts)), offsets_of(counts)), continues

    def slice(self, start: int, stop: int) -> SharedColumn:
        """Return rows `start` to `stop`, over the same bytes."""
        return self._select(self.starts[start:stop], self.ends[start:stop])

    def take(self, rows: Ints) -> SharedColumn:
        """Return the given rows in the given order, over the same bytes."""
        return self._select(self.starts[rows], self.ends[rows])

    def take_last(self, count: int) -> SharedColumn:
        """Return the last texts of each row, at most so many."""
        return self._select(np.maximum(self.starts, self.ends - count), self.ends)

    def _select(self, starts: Ints, ends: Ints) -> SharedColumn:
        """Return rows of the column or parts of them, without the texts that none of them has."""
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
        """Return the given rows in the given order."""
        counts = self.lengths[rows]
        offsets = offsets_of(counts)
        return TokenColumn(self.ids[ranges(self.offsets[rows], counts)], offsets, self.vocabulary)

    def words(self) -> list[list[str]]:
        """Return the tokens as strings."""
        words = self.vocabulary.words(self.ids)
        return [words[start:stop] for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True)]


@dataclass(frozen=True, eq=False, slots=True)
class ObjectColumn:
    """One plain Python object per row (dicts, lists, numbers, strings), for data without a column type of its own."""

    values: Sequence[Any]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Any:
        return self.values[row]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def slice(self, start: int, stop: int) -> ObjectColumn:
        """Return rows `start` to `stop`."""
        return type(self)(self.values[start:stop])

    def take(self, rows: Ints) -> ObjectColumn:
        """Return the given rows in the given order."""
        return ObjectColumn([self.values[row] for row in rows.tolist()])

    def release(self) -> None:
        """Do nothing: objects are in memory."""

    @property
    def digest(self) -> str:
        """A digest of the objects as JSON with sorted keys."""
        option = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
        return short_digest(*(orjson.dumps(value, option=option) for value in self.values))


@dataclass(frozen=True, eq=False, slots=True)
class NumberColumn(ObjectColumn):
    """The same number of numbers in each row: `values` is a matrix with a line per row."""

    values: Any

    @property
    def matrix(self) -> Floats:
        """All rows at once."""
        return cast("Floats", self.values)

    def take(self, rows: Ints) -> NumberColumn:
        """Return the given rows in the given order."""
        return NumberColumn(self.values[rows])

    @property
    def digest(self) -> str:
        """A digest of the numbers and of how many are in a row."""
        return short_digest(str(self.values.shape[1:]), np.ascontiguousarray(self.values).data)


@dataclass(frozen=True, eq=False, slots=True)
class FieldColumn(ObjectColumn):
    """One value per row, or None (NaN in an array of numbers) where there is none.

    A value of a whole conversation is in each of its rows; `counted` marks the row in which it counts, if it is of one
    number per conversation.
    """

    values: Any
    counted: Mask

    @classmethod
    def of(
        cls, values: Sequence[object], counted: Sequence[bool] | Mask | None = None, is_number: bool = False
    ) -> FieldColumn:
        """Return the column of some values, of which all count unless it is said."""
        made = np.array([nan if value is None else value for value in values]) if is_number else list(values)
        return cls(made, np.ones(len(values), np.bool_) if counted is None else np.array(counted, np.bool_))

    @property
    def known(self) -> Mask:
        """Whether each row has a value."""
        if isinstance(self.values, np.ndarray):
            return ~np.isnan(self.values)
        return np.array([value is not None for value in self.values], np.bool_)

    def slice(self, start: int, stop: int) -> FieldColumn:
        """Return rows `start` to `stop`."""
        return FieldColumn(self.values[start:stop], self.counted[start:stop])

    def take(self, rows: Ints) -> FieldColumn:
        """Return the given rows in the given order."""
        is_array = isinstance(self.values, np.ndarray)
        values = self.values[rows] if is_array else [self.values[row] for row in rows.tolist()]
        return FieldColumn(values, self.counted[rows])

    @property
    def fingerprint(self) -> Fingerprint:
        """The state of the digest, as that of columns of texts."""
        return self.to_texts().fingerprint

    def to_texts(self) -> RaggedColumn:
        """Return the values as JSON, none in a row without one."""
        option = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
        pairs = zip(self.values, self.known, strict=True)
        return RaggedColumn.from_lists(
            [[orjson.dumps(value, default=str, option=option).decode()] if known else [] for value, known in pairs]
        )

    @property
    def digest(self) -> str:
        """A digest of the values and of their rows."""
        return self.fingerprint.digest


def make_empty(need: Input, rows: int) -> ColumnData:
    """Return a column in which no row has a value."""
    if isinstance(need, inputs.Column) and (need.field is not None or need.kind == "object" or need == inputs.LATENCY):
        return FieldColumn.of([None] * rows, is_number=need.kind == "number")
    return RaggedColumn(TextColumn.from_strings([]), np.zeros(rows + 1, np.int64))


ColumnData: TypeAlias = TextColumn | RaggedColumn | SharedColumn | ObjectColumn

C = TypeVar("C", bound=ColumnData)


def join_columns(parts: Sequence[C]) -> C:
    """Return the rows of all parts; of texts that some rows share, a part without shared ones may be among them."""
    return parts[0] if len(parts) == 1 else cast(C, _join(cast(Any, parts)))


def join_texts(parts: Sequence[TextColumn]) -> TextColumn:
    """Return the texts of all parts, over one copy of their bytes."""
    shifts = offsets_of([len(part.data) for part in parts])[:-1]
    return TextColumn(
        np.concatenate([part.data for part in parts]),
        _shift([part.starts for part in parts], shifts),
        _shift([part.ends for part in parts], shifts),
    )


def _join(parts: Sequence[Any]) -> ColumnData:
    first = parts[0]
    if isinstance(first, FieldColumn):
        lists = [part.values for part in parts]
        is_array = isinstance(first.values, np.ndarray)
        joined = np.concatenate(lists) if is_array else list(chain.from_iterable(lists))
        return FieldColumn(joined, np.concatenate([part.counted for part in parts]))
    if isinstance(first, NumberColumn):
        return NumberColumn(np.concatenate([part.values for part in parts]))
    if isinstance(first, ObjectColumn):
        return ObjectColumn([value for part in parts for value in part])
    if isinstance(first, TextColumn):
        return join_texts(parts)
    if any(isinstance(part, SharedColumn) for part in parts):
        values, shifts = join_texts([part.values for part in parts]), offsets_of([len(part.values) for part in parts])
        starts = _shift([part.starts for part in parts], shifts[:-1])
        return SharedColumn(values, starts, _shift([part.ends for part in parts], shifts[:-1]))
    return cast("ColumnData", first.join(parts))  # that of its class: columns of suites have one of their own


def _shift(parts: Sequence[Ints], shifts: Ints) -> Ints:
    return np.concatenate([part + shift for part, shift in zip(parts, shifts, strict=True)])


def sizes_between(offsets: Iterable[Ints]) -> Ints:
    """Return the sizes between the offsets of each part, one after the other."""
    return np.concatenate([np.diff(each) for each in offsets])
