"""Row blocks: the rows of a chunk, some thousand at a time, and never part of a dialogue.

A block knows where its rows stand, so that a fault names the line of the file; and any part of it can be read by
itself, which is how the row that a metric cannot score is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dialeval.core.columns import Column, RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Fault
from dialeval.core.needs import Need
from dialeval.core.ragged import cut
from dialeval.data.formats import jsonl, parquet
from dialeval.data.formats.lines import encoding_faults, split
from dialeval.data.formats.opening import LINES, format_of
from dialeval.data.formats.streams import LineStream, count_lines, is_remote, local_path, size_of, stored, unpacked
from dialeval.data.rows.fields import FieldNames
from dialeval.data.rows.gathering import gather_rows
from dialeval.data.rows.reading import file_responses, side_by_side
from dialeval.data.rows.system import Rows
from dialeval.data.shards import row_groups
from dialeval.data.shards.chunks import Chunk, FileChunk, MemoryChunk, Span, dialogue_of, row_range, unequal

_LOOKED_AT = 16
"""Lines after a block that are looked at first, to find the end of its last dialogue."""


@dataclass(frozen=True, eq=False, slots=True)
class RowBlock:
    """Consecutive rows (lines) of a source; `read(start, stop)` gives some of them, by system."""

    where: str
    size: int
    read: Callable[[int, int], list[Rows]]
    lines_before: Callable[[], int]
    """The lines of the file before the block. They are counted only if a fault has to be placed."""

    def __len__(self) -> int:
        return self.size

    def rows(self, start: int = 0, stop: int | None = None) -> list[Rows]:
        """The rows of each system in the block or in a part of it; faults name the lines of the file."""
        try:
            return self.read(start, self.size if stop is None else stop)
        except DataError as error:
            shift = self.line(start) - 1
            raise DataError(
                [fault if fault.line is None else replace(fault, line=fault.line + shift) for fault in error.faults]
            ) from None

    def line(self, row: int) -> int:
        """The line (row) of the file on which a row of the block stands."""
        return self.lines_before() + row + 1


def row_blocks(chunk: Chunk, names: FieldNames, rows: int) -> Iterator[RowBlock]:
    """The blocks of a chunk, with about `rows` rows each (more only where one dialogue has more)."""
    if isinstance(chunk, MemoryChunk):
        return iter([_read_block(chunk.rows, chunk.first_row)])
    kind = format_of(chunk.span.path)
    if chunk.kind == "groups":
        return _table_blocks(chunk, names, rows)
    if kind == LINES:
        return _line_blocks(chunk, rows)
    if kind == "jsonl":
        return _json_blocks(chunk, names, rows)
    return _whole_file_blocks(chunk, names, rows)


def _read_block(rows: Rows, lines_before: int) -> RowBlock:
    """A block of rows that are read already."""
    return RowBlock(rows.where, len(rows), lambda start, stop: [rows.slice(start, stop)], lambda: lines_before)


def _line_blocks(chunk: FileChunk, rows: int) -> Iterator[RowBlock]:
    beside = [(need, span) for need, spans in chunk.beside for span in spans]
    with ExitStack() as files:
        spans = [chunk.span, *(span for _, span in beside)]
        own, *others = [files.enter_context(_lines_of(span, chunk.kind)) for span in spans]
        while True:
            taken = own.lines
            first = chunk.span.start == 0 and not taken
            column = _split(own.take(rows), first)
            sets: dict[Need, dict[str, TextColumn]] = {need: {} for need, _ in beside}
            for (need, span), other in zip(beside, others, strict=True):
                texts = _split(other.take(rows), first)
                if len(texts) != len(column):
                    _raise_unequal(chunk.span, own, rows, span, other)
                sets[need][f"{len(sets[need])} {span.path}" if span.path in sets[need] else span.path] = texts
            if not len(column):
                return
            read = partial(_read_lines, chunk, column, sets)
            yield RowBlock(chunk.span.path, len(column), read, partial(int, chunk.span.lines_before + taken))


def _read_lines(
    chunk: FileChunk, responses: TextColumn, beside: Mapping[Need, Mapping[str, TextColumn]], start: int, stop: int
) -> list[Rows]:
    """Lines of responses, with those of references and contexts beside them."""
    where = chunk.span.path
    columns: dict[Need, Column] = {Need.RESPONSE: responses.slice(start, stop)}
    faults = encoding_faults(responses.slice(start, stop), where)
    for need, sets in beside.items():
        parts = {file: column.slice(start, stop) for file, column in sets.items()}
        for file, part in parts.items():
            faults += encoding_faults(part, file)
        columns[need] = side_by_side({file: RaggedColumn.single(part) for file, part in parts.items()}, where)
    if faults:
        raise DataError(faults)
    return [Rows(chunk.system, columns, where=where)] if stop > start else []


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
            yield LineStream(stream, where=span.path)
    else:
        with stored(span.path) as stream:
            stream.seek(span.start)
            yield LineStream(stream, span.stop - span.start, span.path)


def _split(content: bytes, first: bool) -> TextColumn:
    return split(np.frombuffer(content, np.uint8), marked=first)


def _json_blocks(chunk: FileChunk, names: FieldNames, rows: int) -> Iterator[RowBlock]:
    span = chunk.span
    if chunk.kind == "whole":
        with unpacked(span.path) as stream:
            yield from _json_lines(chunk, LineStream(stream, where=chunk.span.path), names, rows, start=0)
        return
    with stored(span.path) as stream:
        start, stop = row_range(stream, span, size_of(span.path), names)
        stream.seek(start)
        yield from _json_lines(chunk, LineStream(stream, stop - start, chunk.span.path), names, rows, start)


def _json_lines(chunk: FileChunk, stream: LineStream, names: FieldNames, rows: int, start: int) -> Iterator[RowBlock]:
    """The blocks of the lines of a stream that begins `start` bytes into the file."""
    path = chunk.span.path

    def read(lines: TextColumn, first: int, last: int) -> list[Rows]:
        return gather_rows(jsonl.records_of(lines.slice(first, last), path), names, chunk.system, part=True)

    while True:
        taken = stream.lines
        content = stream.take(rows)
        if not content:
            return
        content += _rest_of_dialogue(content, stream, names)
        lines = _split(content, first=not start and not taken)
        yield RowBlock(path, len(lines), partial(read, lines), partial(_lines_before, path, start, taken))


def _lines_before(path: str, start: int, taken: int) -> int:
    """The lines in the first `start` bytes of a file, and those taken since."""
    return taken + (count_lines(path, start) if start else 0)


def _rest_of_dialogue(content: bytes, stream: LineStream, names: FieldNames) -> bytes:
    """The lines that go on with the dialogue of the last line."""
    rest: list[bytes] = []
    lines = content.rstrip(b"\r\n \t")
    last = dialogue_of(lines[lines.rfind(b"\n") + 1 :], names)
    count = _LOOKED_AT
    while last is not None and (lines := stream.take(count)):
        end = _end_of_dialogue(lines, last, names)
        rest.append(lines[:end])
        if end < len(lines):
            stream.put_back(lines[end:])
            break
        count *= 2  # what is taken costs time whatever its size, and a dialogue may have any number of lines
    return b"".join(rest)


def _end_of_dialogue(lines: bytes, dialogue: str, names: FieldNames) -> int:
    """Where the first line begins that is of another dialogue."""
    place = 0
    while place < len(lines):
        end = lines.find(b"\n", place) + 1 or len(lines)
        line = lines[place:end]
        if line.strip() and dialogue_of(line, names) != dialogue:
            break
        place = end
    return place


def _whole_file_blocks(chunk: FileChunk, names: FieldNames, rows: int) -> Iterator[RowBlock]:
    path = chunk.span.path
    if is_remote(path):
        what = "is read as a whole, and that only from this machine"
        raise DataError(Fault(path, None, what, "give lines, JSONL or Parquet, or copy it here first"))
    for system in file_responses(local_path(path), names, chunk.system):
        offsets = system.dialogue_offsets()
        for first, last in cut(offsets, rows):
            start = int(offsets[first])
            yield _read_block(system.slice(start, int(offsets[last])), start)


def _table_blocks(chunk: FileChunk, names: FieldNames, rows: int) -> Iterator[RowBlock]:
    path = chunk.span.path
    for before, table in row_groups.tables(chunk.span, names, rows):

        def read(start: int, stop: int, table: row_groups.Table = table) -> list[Rows]:
            records = parquet.records_of(table.slice(start, stop - start), path, names)
            return gather_rows(records, names, chunk.system, part=True)

        yield RowBlock(path, len(table), read, partial(int, before))
