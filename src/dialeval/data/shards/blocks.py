"""Stretches: the rows of a piece, some thousand at a time, and never part of a dialogue.

A stretch knows where its rows stand: a fault names the line of the file, and any part of a stretch can be read by
itself, which is how one finds the row that a metric cannot bear.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dialeval.core.columns import Column, RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Fault
from dialeval.core.needs import Need
from dialeval.data.formats.jsonl import records_of
from dialeval.data.formats.lines import encoding_faults, split
from dialeval.data.formats.opening import LINES, format_of
from dialeval.data.formats.streams import LineStream, count_lines, is_remote, local_path, size_of, stored, unpacked
from dialeval.data.rows import arrow_columns
from dialeval.data.rows.fields import FieldNames
from dialeval.data.rows.gathering import gather_rows
from dialeval.data.rows.reading import file_responses, side_by_side
from dialeval.data.rows.system import Rows
from dialeval.data.shards import row_groups
from dialeval.data.shards.chunks import Piece, Span, dialogue_of, row_boundary, unequal

if TYPE_CHECKING:
    import pyarrow as pa


class Stretch(ABC):
    """Consecutive rows (lines) of a file: behind `base()` lines before its piece and `taken` lines of that."""

    where: str
    base: Callable[[], int]
    taken: int

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _read(self, start: int, stop: int) -> list[Rows]: ...

    def rows(self, start: int = 0, stop: int | None = None) -> list[Rows]:
        """The rows of each system in the stretch or in a part of it; faults name the lines of the file."""
        with self._placed(start):
            return self._read(start, len(self) if stop is None else stop)

    @contextmanager
    def _placed(self, start: int) -> Iterator[None]:
        try:
            yield
        except DataError as error:
            shift = self.line(start) - 1
            raise DataError(
                [fault if fault.line is None else replace(fault, line=fault.line + shift) for fault in error.faults]
            ) from None

    def line(self, row: int) -> int:
        """The line (row) of the file on which a row of the stretch stands."""
        return self.base() + self.taken + row + 1


@dataclass(frozen=True, eq=False, slots=True)
class _Lines(Stretch):
    """Lines of responses, and those of references and contexts beside them."""

    where: str
    base: Callable[[], int]
    taken: int
    system: str
    responses: TextColumn
    beside: Mapping[Need, Mapping[str, TextColumn]]

    def __len__(self) -> int:
        return len(self.responses)

    def _read(self, start: int, stop: int) -> list[Rows]:
        columns: dict[Need, Column] = {Need.RESPONSE: self.responses.slice(start, stop)}
        faults = encoding_faults(self.responses.slice(start, stop), self.where)
        for need, sets in self.beside.items():
            parts = {file: column.slice(start, stop) for file, column in sets.items()}
            for file, part in parts.items():
                faults += encoding_faults(part, file)
            columns[need] = side_by_side({file: RaggedColumn.single(part) for file, part in parts.items()}, self.where)
        if faults:
            raise DataError(faults)
        return [Rows(self.system, columns, where=self.where)] if stop > start else []


@dataclass(frozen=True, eq=False, slots=True)
class _JsonLines(Stretch):
    where: str
    base: Callable[[], int]
    taken: int
    system: str
    names: FieldNames
    lines: TextColumn

    def __len__(self) -> int:
        return len(self.lines)

    def _read(self, start: int, stop: int) -> list[Rows]:
        return gather_rows(records_of(self.lines.slice(start, stop), self.where), self.names, self.system, part=True)


@dataclass(frozen=True, eq=False, slots=True)
class _Table(Stretch):
    where: str
    base: Callable[[], int]
    taken: int
    system: str
    names: FieldNames
    table: pa.Table

    def __len__(self) -> int:
        return len(self.table)

    def _read(self, start: int, stop: int) -> list[Rows]:
        part = self.table.slice(start, stop - start)
        return arrow_columns.rows_of(part, self.where, self.names, self.system, part=True)


@dataclass(frozen=True, eq=False, slots=True)
class _Read(Stretch):
    """Rows of one system out of a file that was read as a whole."""

    where: str
    base: Callable[[], int]
    taken: int
    whole: Rows

    def __len__(self) -> int:
        return len(self.whole)

    def _read(self, start: int, stop: int) -> list[Rows]:
        return [self.whole.slice(start, stop)]


def stretches(piece: Piece, names: FieldNames, rows: int) -> Iterator[Stretch]:
    """The stretches of a piece, with about `rows` rows each (more only where one dialogue has more)."""
    kind = format_of(piece.span.path)
    if piece.kind == "groups":
        return _table_stretches(piece, names, rows)
    if kind == LINES:
        return _line_stretches(piece, rows)
    if kind == "jsonl":
        return _json_stretches(piece, names, rows)
    return _read_stretches(piece, names, rows)


def _line_stretches(piece: Piece, rows: int) -> Iterator[Stretch]:
    beside = [(need, span) for need, spans in piece.beside for span in spans]
    with ExitStack() as files:
        spans = [piece.span, *(span for _, span in beside)]
        own, *others = [files.enter_context(_lines_of(span, piece.kind)) for span in spans]
        while True:
            taken = own.lines
            first = piece.span.start == 0 and not taken
            column = _split(own.take(rows), first)
            sets: dict[Need, dict[str, TextColumn]] = {need: {} for need, _ in beside}
            for (need, span), other in zip(beside, others, strict=True):
                texts = _split(other.take(rows), first)
                if len(texts) != len(column):
                    _raise_unequal(piece.span, own, rows, span, other)
                sets[need][f"{len(sets[need])} {span.path}" if span.path in sets[need] else span.path] = texts
            if not len(column):
                return
            yield _Lines(piece.span.path, lambda: piece.span.lines_before, taken, piece.system, column, sets)


def _raise_unequal(span: Span, own: LineStream, rows: int, other_span: Span, other: LineStream) -> None:
    """Count both files to their ends for the message."""
    for stream in (own, other):
        while stream.take(rows):
            pass
    raise DataError(unequal(span.path, own.lines, other_span.path, other.lines))


@contextmanager
def _lines_of(span: Span, kind: str) -> Iterator[LineStream]:
    if kind == "whole":
        with unpacked(span.path) as stream:
            yield LineStream(stream)
    else:
        with stored(span.path) as stream:
            stream.seek(span.start)
            yield LineStream(stream, span.stop - span.start)


def _split(content: bytes, first: bool) -> TextColumn:
    return split(np.frombuffer(content, np.uint8), marked=first)


def _json_stretches(piece: Piece, names: FieldNames, rows: int) -> Iterator[Stretch]:
    span = piece.span
    if piece.kind == "whole":
        with unpacked(span.path) as stream:
            yield from _json_lines(piece, LineStream(stream), names, rows, lambda: 0)
        return
    with stored(span.path) as stream:
        size = size_of(span.path)
        start, stop = (row_boundary(stream, edge, size, names) for edge in (span.start, span.stop))
        stream.seek(start)
        lines = LineStream(stream, stop - start)
        # Nobody counts the lines before, unless there is something to tell about one behind them.
        yield from _json_lines(piece, lines, names, rows, lambda: count_lines(span.path, start), first=start == 0)


def _json_lines(
    piece: Piece, stream: LineStream, names: FieldNames, rows: int, base: Callable[[], int], first: bool = True
) -> Iterator[Stretch]:
    while True:
        taken = stream.lines
        content = stream.take(rows)
        if not content:
            return
        content += _rest_of_dialogue(content, stream, names)
        lines = _split(content, first and not taken)
        yield _JsonLines(piece.span.path, base, taken, piece.system, names, lines)


def _rest_of_dialogue(content: bytes, stream: LineStream, names: FieldNames) -> bytes:
    """The lines that go on with the dialogue of the last line."""
    found: list[bytes] = []
    lines = content.rstrip(b"\r\n \t")
    last = dialogue_of(lines[lines.rfind(b"\n") + 1 :], names)
    while last is not None and (line := stream.take(1)):
        if line.strip() and dialogue_of(line, names) != last:
            stream.put_back(line)
            break
        found.append(line)
    return b"".join(found)


def _read_stretches(piece: Piece, names: FieldNames, rows: int) -> Iterator[Stretch]:
    if is_remote(piece.span.path):
        what = "is read as a whole, and that only from this machine"
        raise DataError(Fault(piece.span.path, None, what, "give lines, JSONL or Parquet, or copy it here first"))
    for system in file_responses(local_path(piece.span.path), names, piece.system):
        offsets, first = system.dialogue_offsets(), 0
        while first < len(offsets) - 1:
            full = int(np.searchsorted(offsets, offsets[first] + rows, side="right")) - 1
            last = max(full, first + 1)
            start = int(offsets[first])
            part = system.slice(start, int(offsets[last]))
            yield _Read(system.where, lambda: 0, start, part)
            first = last


def _table_stretches(piece: Piece, names: FieldNames, rows: int) -> Iterator[Stretch]:
    for before, table in row_groups.tables(piece.span, names, rows):
        yield _Table(piece.span.path, lambda: 0, before, piece.system, names, table)
