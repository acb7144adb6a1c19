"""Row blocks: the rows of a chunk, some thousand at a time, and never part of a dialogue.

A block knows where its rows stand, so that a fault names the line of the file; and any part of it can be read by
itself, which is how the row that a metric cannot score is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core.columns import Column, RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Fault
from dialeval.core.needs import Need
from dialeval.core.ragged import cut, offsets_of
from dialeval.data.formats import jsonl, parquet
from dialeval.data.formats.lines import encoding_faults, split
from dialeval.data.formats.opening import file_format
from dialeval.data.formats.streams import LineStream, count_lines, is_remote, local_path, size_of, stored, unpacked
from dialeval.data.rows.fields import FieldNames
from dialeval.data.rows.gathering import gather_rows
from dialeval.data.rows.reading import file_responses, side_by_side
from dialeval.data.rows.system import Rows
from dialeval.data.shards.chunks import Chunk, FileChunk, MemoryChunk, Span, dialogue_of, row_range, unequal

if TYPE_CHECKING:
    import pyarrow as pa

_UNNAMED = (None, "")


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
        """Return the rows of each system in the block or in a part of it; faults name the lines of the file."""
        try:
            return self.read(start, self.size if stop is None else stop)
        except DataError as error:
            shift = self.line(start) - 1
            raise DataError(
                [fault if fault.line is None else replace(fault, line=fault.line + shift) for fault in error.faults]
            ) from None

    def line(self, row: int) -> int:
        """Return the line (row) of the file on which a row of the block stands."""
        return self.lines_before() + row + 1


def row_blocks(chunk: Chunk, names: FieldNames, rows: int) -> Iterator[RowBlock]:
    """Return the blocks of a chunk, with about `rows` rows each (more only where one dialogue has more)."""
    if isinstance(chunk, MemoryChunk):
        return iter([_read_block(chunk.rows, chunk.first_row)])
    pieces = file_format(chunk.span.path).pieces
    if pieces == "lines":
        return _line_blocks(chunk, rows)
    if pieces == "rows":
        return _json_blocks(chunk, names, rows)
    return (_table_blocks if chunk.kind == "groups" else _whole_file_blocks)(chunk, names, rows)


def _read_block(rows: Rows, lines_before: int) -> RowBlock:
    """Return a block of rows that are read already."""
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
    """Return lines of responses, with those of references and contexts next to them."""
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


def _split(lines: Sequence[bytes], first: bool) -> TextColumn:
    return split(np.frombuffer(b"".join(lines), np.uint8), marked=first)


def _json_blocks(chunk: FileChunk, names: FieldNames, rows: int) -> Iterator[RowBlock]:
    span, path = chunk.span, chunk.span.path

    def read(lines: TextColumn, first: int, last: int) -> list[Rows]:
        return gather_rows(jsonl.records_of(lines.slice(first, last), path), names, chunk.system, part=True)

    if chunk.kind == "rows":
        with stored(path) as file:
            start, stop = row_range(file, span, size_of(path), names)
        span = replace(span, start=start, stop=stop)
    with _lines_of(span, chunk.kind) as stream:
        while True:
            taken = stream.lines
            if not (content := stream.take(rows)):
                return
            lines = _split([*content, *_rest_of_dialogue(content, stream, names)], not span.start and not taken)
            yield RowBlock(path, len(lines), partial(read, lines), partial(_lines_before, path, span.start, taken))


def _lines_before(path: str, start: int, taken: int) -> int:
    """Count the lines in the first `start` bytes of a file, and those taken since."""
    return taken + (count_lines(path, start) if start else 0)


def _rest_of_dialogue(content: Sequence[bytes], stream: LineStream, names: FieldNames) -> Iterator[bytes]:
    """Take the lines that go on with the dialogue of the last line."""
    last = next((line for line in reversed(content) if line.strip()), b"")
    dialogue = dialogue_of(last, names)
    while dialogue is not None and (taken := stream.take(1)):
        if taken[0].strip() and dialogue_of(taken[0], names) != dialogue:
            stream.put_back(taken[0])
            return
        yield taken[0]


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

    def read(table: pa.Table, start: int, stop: int) -> list[Rows]:
        records = parquet.records_of(table.slice(start, stop - start), path, names)
        return gather_rows(records, names, chunk.system, part=True)

    for before, table in read_row_groups(chunk.span, names, rows):
        yield RowBlock(path, len(table), partial(read, table), partial(int, before))


def read_row_groups(span: Span, names: FieldNames, rows: int) -> Iterator[tuple[int, pa.Table]]:
    """Read row groups of a Parquet file as tables of whole dialogues, each with the number of rows before it.

    A dialogue that a row group leaves open belongs to the chunk with its first row: that chunk reads on into the next
    groups, and the next chunk skips those rows. Only the column of dialogues is read to find that out.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with stored(span.path) as stream, parquet.damage_explained(span.path):
        file = pq.ParquetFile(stream)
        number = file.metadata.num_row_groups
        starts = offsets_of([file.metadata.row_group(group).num_rows for group in range(number)]).tolist()
        columns = names.chosen(file.schema_arrow.names, Need.RESPONSE)
        named = file.schema_arrow.names.count(names.dialog_id)
        if named > 1:
            raise DataError(parquet.several_columns(names.dialog_id, span.path))
        first, last = starts[span.start], starts[span.stop]
        if named:
            first = _end_of_open_dialogue(file, span.start, span.stop, starts, names)
            if first == last:  # all rows belong to a dialogue that began before
                return
            last = _end_of_open_dialogue(file, span.stop, number, starts, names)
        groups = [group for group in range(span.start, number) if starts[group] < last]
        held: list[pa.Table] = []
        place, before, dialogue = starts[span.start], first, None
        for batch in file.iter_batches(rows, row_groups=groups, columns=columns):
            low, high = max(first - place, 0), min(last - place, len(batch))
            place += len(batch)
            if low >= high:
                continue
            table = pa.Table.from_batches([batch.slice(low, high - low)])
            ids = table.column(names.dialog_id).to_pylist() if named else [None] * len(table)
            edge = _start_of_last_dialogue(ids)  # what comes after it is held until the end of the dialogue is read
            if edge or ids[0] != dialogue:
                whole = pa.concat_tables([*held, table.slice(0, edge)])
                if len(whole):
                    yield before, whole
                before, held = before + len(whole), []
            if edge < len(ids):
                held.append(table.slice(edge))
                dialogue = ids[-1]
        if held:
            yield before, pa.concat_tables(held)


def _end_of_open_dialogue(file: Any, group: int, stop: int, starts: Sequence[int], names: FieldNames) -> int:
    """Return the row on which the dialogue ends that is open where a row group begins, or group `stop` begins."""

    def read_ids(number: int) -> list[Any]:
        ids: list[Any] = file.read_row_group(number, columns=[names.dialog_id]).column(0).to_pylist()
        return ids

    before = next((ids for number in range(group - 1, -1, -1) if (ids := read_ids(number))), [None])
    if before[-1] in _UNNAMED:
        return starts[group]
    for number in range(group, stop):
        for row, name in enumerate(read_ids(number), starts[number]):
            if name != before[-1]:
                return row
    return starts[stop]


def _start_of_last_dialogue(ids: Sequence[Any]) -> int:
    """Return the row on which the last dialogue of some rows starts; their end where the last row is of none."""
    if ids[-1] in _UNNAMED:
        return len(ids)
    start = len(ids) - 1
    while start and ids[start - 1] == ids[-1]:
        start -= 1
    return start
