"""Chunks: parts of sources that one worker can read and fold by itself.

- Lines on this machine: bytes between two ends of lines, found in one quick pass, with those of the references and
  contexts next to them.
- Rows in JSONL, also on shared storage: byte ranges of about equal size. The reader of a chunk finds the first row that
  belongs to it: `find_row_boundary` returns the same place to the reader of the chunk before.
- Parquet: row groups.
- Anything else (packed files, small ones, CSV, JSON): the whole shard.
- Rows in memory: as many as make a batch.

No chunk splits a dialogue whose rows are consecutive. The boundaries depend on the inputs only, not on the number of
workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import orjson

from dialeval.core import inputs
from dialeval.core.arrays import offsets_of, split_clusters
from dialeval.core.arrow import check_decoded_size, read_batches
from dialeval.core.columns import ColumnData, RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Problem
from dialeval.core.inputs import Input
from dialeval.io import json, opening, tables
from dialeval.io.chats import is_message
from dialeval.io.gathering import gather_rows
from dialeval.io.logs import PEEKED, find_assembler, peek_rows
from dialeval.io.outcomes import account_for, mark_outcomes
from dialeval.io.reading import join_rowwise, read_source
from dialeval.io.row_shapes import map_fields
from dialeval.io.rows import FieldNames, Rows, length_problem

if TYPE_CHECKING:
    import pyarrow as pa

    from dialeval.io.sources import Shard, Source


SMALLEST_BYTES = 1 << 21
LARGEST_BYTES = 1 << 26
CHUNKS = 256
"""The number of chunks that keeps a cluster busy, unless they would be too small or too large."""
MOST_CHUNKS = 4096
"""The maximum number of chunks of large files: each has a fixed cost in the first process."""

_READ_BYTES = 1 << 22
_WHITESPACE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a file: bytes, or row groups of a Parquet file."""

    path: str
    start: int
    stop: int
    lines_before: int = 0


@dataclass(frozen=True, slots=True)
class FileChunk:
    """A part of a shard."""

    source: int
    system: str
    """The system of rows that name none."""
    kind: Literal["lines", "rows", "groups", "whole"]
    span: Span
    size: int
    """Its bytes: its fraction of the work."""
    beside: tuple[tuple[Input, tuple[Span, ...]], ...] = ()

    @property
    def paths(self) -> list[str]:
        """The files that it is read from."""
        return [self.span.path, *(span.path for _, spans in self.beside for span in spans)]

    def __str__(self) -> str:
        unit = "row groups" if self.kind == "groups" else "bytes"
        place = "" if self.kind == "whole" else f" ({unit} {self.span.start} to {self.span.stop})"
        return f"{self.span.path}{place}"


@dataclass(frozen=True, eq=False, slots=True)
class MemoryChunk:
    """Rows of one system that are in memory."""

    source: int
    rows: Rows
    first_row: int
    first_dialogue: int
    """Rows and dialogues of the system that come before."""
    only: bool
    """Whether it is all rows of its source."""
    paths: ClassVar[tuple[str, ...]] = ()

    @property
    def size(self) -> int:
        """Its rows: its fraction of the work."""
        return len(self.rows)


Chunk: TypeAlias = FileChunk | MemoryChunk


def split_sources(sources: Sequence[Source], batch_rows: int, chunk_bytes: int | None = None) -> list[Chunk]:
    """Split all sources into chunks, in order; rows in memory are split into batches."""
    sizes = {shard.path: opening.size_of(shard.path) for source in sources for shard in source.shards}
    total = sum(sizes.values())
    usual = min(max(total // CHUNKS, SMALLEST_BYTES), LARGEST_BYTES)
    most = chunk_bytes or max(usual, total // MOST_CHUNKS)
    chunks: list[Chunk] = []
    for number, source in enumerate(sources):
        if source.rows is not None:
            chunks += _split_rows(number, source.rows, batch_rows)
        for shard in source.shards:
            parts = _split_shard(shard, sizes[shard.path], most)
            chunks += [replace(part, source=number, system=source.system) for part in parts]
    return chunks


def _split_rows(source: int, rows: Rows, batch_rows: int) -> list[MemoryChunk]:
    offsets = rows.dialogue_offsets()
    ranges = list(split_clusters(offsets, batch_rows))
    if len(ranges) < 2:
        return [MemoryChunk(source, rows, 0, 0, only=True)]
    starts = [(first, int(offsets[first]), int(offsets[last])) for first, last in ranges]
    first, *others = [
        MemoryChunk(source, rows.slice(start, stop), start, first, only=False) for first, start, stop in starts
    ]
    return [replace(first, rows=replace(first.rows, account=rows.account)), *others]


def _split_shard(shard: Shard, size: int, most: int) -> Iterable[FileChunk]:
    packed = any(map(opening.packing_of, shard.paths))
    pieces = "whole" if packed or _is_assembled(shard.path) else opening.file_format(shard.path).pieces
    if pieces == "groups":
        return _split_row_groups(shard.path, most)
    if pieces == "rows" and size > most:
        edges = [*range(0, size - most // 2, most), size]
        spans = [Span(shard.path, start, stop) for start, stop in pairwise(edges)]
        return [FileChunk(0, "", "rows", span, span.stop - span.start) for span in spans]
    if pieces == "lines" and size > most and not any(map(opening.is_remote, shard.paths)):
        return _split_lines(shard, most)
    size_of = opening.size_of
    beside = tuple((need, tuple(Span(file, 0, size_of(file)) for file in files)) for need, files in shard.beside)
    return [FileChunk(0, "", "whole", Span(shard.path, 0, size), size, beside)]


def _is_assembled(path: str) -> bool:
    """Return whether the rows of a file of lines belong together in conversations that only all of them tell."""
    if opening.format_of(path) != "jsonl":
        return False
    with opening.open_unpacked(path) as stream:
        lines = _split(opening.LineStream(stream, where=path).take(PEEKED), path, first=True)
    records = json.parse_lines(lines, path)
    return _belong_together(peek_rows(records, FieldNames())[0])


def _belong_together(row: object) -> bool:
    """Return whether rows like this one are spans, events or messages."""
    return find_assembler(row, FieldNames()) is not None or is_message(row, FieldNames())


def _split_row_groups(path: str, most: int) -> Iterator[FileChunk]:
    import pyarrow.parquet as pq

    with opening.open_stored(path) as stream, tables.explain_damage(path):
        check_decoded_size(stream, opening.size_of(path))
        facts = pq.ParquetFile(stream).metadata
        names = facts.schema.to_arrow_schema().names
        sizes = [facts.row_group(number).total_byte_size for number in range(facts.num_row_groups)]
    if _belong_together(dict.fromkeys(names, "?")):
        yield FileChunk(0, "", "whole", Span(path, 0, sum(sizes)), sum(sizes))
        return
    first = held = 0
    for number, size in enumerate(sizes):
        held += size
        if held >= most or number == len(sizes) - 1:
            yield FileChunk(0, "", "groups", Span(path, first, number + 1), held)
            first, held = number + 1, 0


def _split_lines(shard: Shard, most: int) -> list[FileChunk]:
    """Return chunks of equally many lines, of the responses and of the files next to them."""
    with opening.open_stored(shard.path) as stream:
        head = stream.read(_READ_BYTES)
    lines = max(1, most * (head.count(b"\n") + 1) // len(head))  # about as many as fit into so many bytes

    def spans_of(file: str) -> tuple[list[Span], int]:
        edges, count = _find_line_edges(file, lines)
        return [Span(file, *ends, number * lines) for number, ends in enumerate(pairwise(edges))], count

    own, count = spans_of(shard.path)
    beside: list[tuple[Input, list[tuple[Span, ...]]]] = []
    for need, files in shard.beside:
        sets = [spans_of(file) for file in files]
        for file, (_, other) in zip(files, sets, strict=True):
            if other != count:
                raise DataError(length_problem(shard.path, count, file, other))
        beside.append((need, list(zip(*(spans for spans, _ in sets), strict=True))))
    return [
        FileChunk(0, "", "lines", span, span.stop - span.start, tuple((need, spans[at]) for need, spans in beside))
        for at, span in enumerate(own)
    ]


def _find_line_edges(path: str, every: int) -> tuple[list[int], int]:
    """Return where each `every`-th line of a file starts, its end, and the number of its lines."""
    edges, feeds, place, last = [0], 0, 0, b"\n"
    with opening.open_stored(opening.local_path(path)) as stream:
        while content := stream.read(_READ_BYTES):
            feeds_here = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))
            wanted = np.arange(every - feeds % every - 1, len(feeds_here), every)
            edges += (feeds_here[wanted] + 1 + place).tolist()
            feeds, place, last = feeds + len(feeds_here), place + len(content), content[-1:]
            opening.check_lines(feeds, place, path)
    if edges[-1] != place:
        edges.append(place)
    return edges, feeds + (last != b"\n")


def find_row_range(stream: IO[bytes], span: Span, size: int, names: FieldNames) -> tuple[int, int]:
    """Return where the rows of a chunk begin and end.

    Only the reader of the chunk in which a dialogue begins looks for its end, so that a dialogue over many chunks is
    read once.
    """
    start = find_row_boundary(stream, span.start, size, names, span.stop, span.path)
    return start, size if start == size else find_row_boundary(stream, span.stop, size, names, where=span.path)


def find_row_boundary(
    stream: IO[bytes], start: int, size: int, names: FieldNames, following: int | None = None, where: str = "the file"
) -> int:
    """Return where the chunk of the bytes from `start` on begins: at the first line after it with a new dialogue.

    The line before must itself begin at or after `start`, so that no reader has to look back. The end of the file is
    returned where that is also the first line of the chunk at `following`, so that no row is between the two.
    """
    if start <= 0 or start >= size:
        return min(max(start, 0), size)
    stream.seek(start - 1)
    place = start - 1 + len(stream.readline())
    before: str | None = None
    compared = False
    lines = 0
    while line := stream.readline():
        opening.check_lines(lines := lines + 1, place - start + 1, where)
        if line.strip(_WHITESPACE):
            dialogue = read_dialogue(line, names)
            if compared and (dialogue is None or dialogue != before):
                return place
            if following is not None and place >= following:
                break
            before, compared = dialogue, True
        place += len(line)
    return size


def read_dialogue(line: bytes, names: FieldNames) -> str | None:
    """Return the dialogue that a row names, if it names one and can be read."""
    try:
        row = orjson.loads(line.removeprefix(opening.BYTE_ORDER_MARK))
    except orjson.JSONDecodeError:
        return None
    fields = map_fields(row, names) if isinstance(row, dict) else None
    name = None if fields is None else fields.get(names.find_dialog_id(fields))
    return str(name) if isinstance(name, str | int) and name != "" else None


# Row blocks: the rows of a chunk, some thousand at a time, in whole dialogues.
#
# A block knows the lines of its rows, so that a problem names the line of the file; and any part of it can be read by
# itself, which is how the row that a metric cannot score is found.

_UNNAMED = (None, "")


@dataclass(frozen=True, eq=False, slots=True)
class RowBlock:
    """Consecutive rows (lines) of a source; `read(start, stop)` returns some of them, by system."""

    where: str
    size: int
    read: Callable[[int, int], list[Rows]]
    lines_before: Callable[[], int]
    """The number of lines of the file before the block, counted only if a problem needs it."""

    def __len__(self) -> int:
        return self.size

    def rows(self, start: int = 0, stop: int | None = None) -> list[Rows]:
        """Return the rows of each system in the block or in a part of it; problems name the lines of the file."""
        try:
            systems = self.read(start, self.size if stop is None else stop)
        except DataError as error:
            raise DataError(self._shift(error.problems, start)) from None
        for rows in systems:
            if rows.account.problems and self.lines_before():
                problems = tuple(self._shift(rows.account.problems, start))
                return [replace(rows, account=replace(rows.account, problems=problems)), *systems[1:]]
        return systems

    def _shift(self, problems: Sequence[Problem], start: int) -> list[Problem]:
        """Return problems of a part of the block with the lines of the file."""
        shift = self.line(start) - 1
        return [each if each.line is None else replace(each, line=each.line + shift) for each in problems]

    def line(self, row: int) -> int:
        """Return the line (row) of the file of a row of the block."""
        return self.lines_before() + row + 1


def read_blocks(chunk: Chunk, names: FieldNames, rows: int) -> Iterator[RowBlock]:
    """Return the blocks of a chunk, with about `rows` rows each (more only where one dialogue has more)."""
    if isinstance(chunk, MemoryChunk):
        return iter([_make_block(chunk.rows, chunk.first_row)])
    pieces = opening.file_format(chunk.span.path).pieces
    if pieces == "lines":
        return _read_line_blocks(chunk, names, rows)
    if pieces == "rows" and not _is_assembled(chunk.span.path):
        return _read_json_blocks(chunk, names, rows)
    return (_read_table_blocks if chunk.kind == "groups" else _read_whole_file)(chunk, names, rows)


def _make_block(rows: Rows, lines_before: int) -> RowBlock:
    """Return a block of rows that are read already."""

    def read(start: int, stop: int) -> list[Rows]:
        return [rows if stop - start == len(rows) else rows.slice(start, stop)]

    return RowBlock(rows.where, len(rows), read, lambda: lines_before)


def _read_line_blocks(chunk: FileChunk, names: FieldNames, rows: int) -> Iterator[RowBlock]:
    beside = [(need, span) for need, spans in chunk.beside for span in spans]
    with ExitStack() as files:
        spans = [chunk.span, *(span for _, span in beside)]
        responses, *others = [files.enter_context(_open_lines(span, chunk.kind)) for span in spans]
        while True:
            taken = responses.lines
            first = chunk.span.start == 0 and not taken
            column = _split(responses.take(rows), chunk.span.path, first)
            sets: dict[Input, dict[str, TextColumn]] = {need: {} for need, _ in beside}
            for (need, span), other in zip(beside, others, strict=True):
                texts = _split(other.take(rows), span.path, first)
                if len(texts) != len(column):
                    for stream in (responses, other):  # to their ends, for the message
                        while stream.take(rows):
                            pass
                    raise DataError(length_problem(chunk.span.path, responses.lines, span.path, other.lines))
                sets[need][f"{len(sets[need])} {span.path}" if span.path in sets[need] else span.path] = texts
            if not len(column):
                return
            read = partial(_read_lines, chunk, column, sets, names.keep_reasoning)
            yield RowBlock(chunk.span.path, len(column), read, partial(int, chunk.span.lines_before + taken))


def _read_lines(
    chunk: FileChunk,
    responses: TextColumn,
    beside: Mapping[Input, Mapping[str, TextColumn]],
    keep_reasoning: bool,
    start: int,
    stop: int,
) -> list[Rows]:
    """Return lines of responses, with those of references and contexts next to them."""
    where = chunk.span.path
    columns: dict[Input, ColumnData] = {inputs.RESPONSE: responses.slice(start, stop)}
    problems = opening.find_encoding_problems(responses.slice(start, stop), where)
    for need, sets in beside.items():
        parts = {file: column.slice(start, stop) for file, column in sets.items()}
        for file, part in parts.items():
            problems += opening.find_encoding_problems(part, file)
        columns[need] = join_rowwise({file: RaggedColumn.from_texts(part) for file, part in parts.items()}, where)
    if problems:
        raise DataError(problems)
    if stop == start:
        return []
    return account_for([mark_outcomes(Rows(chunk.system, columns, where=where), {}, keep_reasoning)])


@contextmanager
def _open_lines(span: Span, kind: str) -> Iterator[opening.LineStream]:
    if kind == "whole":
        with opening.open_unpacked(span.path) as stream:
            yield opening.LineStream(stream, where=span.path)
    else:
        with opening.open_stored(span.path) as stream:
            stream.seek(span.start)
            yield opening.LineStream(stream, span.stop - span.start, span.path)


def _split(lines: Sequence[bytes], where: str, first: bool) -> TextColumn:
    return opening.split_lines(np.frombuffer(b"".join(lines), np.uint8), where, marked=first)


def _read_json_blocks(chunk: FileChunk, names: FieldNames, rows: int) -> Iterator[RowBlock]:
    span, path = chunk.span, chunk.span.path

    def read(lines: TextColumn, first: int, last: int) -> list[Rows]:
        return gather_rows(json.parse_lines(lines.slice(first, last), path), names, chunk.system, part=True)

    if chunk.kind == "rows":
        with opening.open_stored(path) as file:
            start, stop = find_row_range(file, span, opening.size_of(path), names)
        span = replace(span, start=start, stop=stop)
    size = 0
    with _open_lines(span, chunk.kind) as stream:
        while True:
            taken = stream.lines
            if not (content := stream.take(rows)):
                return
            lines = _split([*content, *_take_rest(content, stream, names)], path, not span.start and not taken)
            size += len(lines.data)
            opening.check_lines(stream.lines, size, path)
            yield RowBlock(
                path, len(lines), partial(read, lines), partial(opening.count_lines, path, span.start, taken)
            )


def _take_rest(content: Sequence[bytes], stream: opening.LineStream, names: FieldNames) -> Iterator[bytes]:
    """Take the lines that go on with the dialogue of the last line."""
    last = next((line for line in reversed(content) if line.strip()), b"")
    dialogue = read_dialogue(last, names)
    while dialogue is not None and (taken := stream.take(1)):
        if taken[0].strip() and read_dialogue(taken[0], names) != dialogue:
            stream.put_back(taken[0])
            return
        yield taken[0]


def _read_whole_file(chunk: FileChunk, names: FieldNames, rows: int) -> Iterator[RowBlock]:
    path = chunk.span.path
    if opening.is_remote(path):
        what = "is read as a whole, and that only from this machine"
        raise DataError(Problem(path, None, what, "give lines, JSONL or Parquet, or copy it here first"))
    local = opening.local_path(path)
    for system in read_source(local, local, names, chunk.system):
        offsets = system.dialogue_offsets()
        for first, last in split_clusters(offsets, rows):
            start = int(offsets[first])
            part = system.slice(start, int(offsets[last]))
            yield _make_block(part if start else replace(part, account=system.account), start)


def _read_table_blocks(chunk: FileChunk, names: FieldNames, rows: int) -> Iterator[RowBlock]:
    path = chunk.span.path

    def read(table: pa.Table, start: int, stop: int) -> list[Rows]:
        records = tables.make_records(table.slice(start, stop - start), path, names)
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

    with opening.open_stored(span.path) as stream, tables.explain_damage(span.path):
        file = pq.ParquetFile(stream)
        number = file.metadata.num_row_groups
        starts = offsets_of([file.metadata.row_group(group).num_rows for group in range(number)]).tolist()
        names = names.with_columns(file.schema_arrow.names)
        columns = names.choose_columns(file.schema_arrow.names, inputs.RESPONSE)
        named = file.schema_arrow.names.count(names.dialog_id)
        if named > 1:
            raise DataError(tables.ambiguity_problem(names.dialog_id, span.path))
        first, last = starts[span.start], starts[span.stop]
        if named:
            first = _find_end_of_open_dialogue(file, span.start, span.stop, starts, names)
            if first == last:  # all rows belong to a dialogue that began before
                return
            last = _find_end_of_open_dialogue(file, span.stop, number, starts, names)
        groups = [group for group in range(span.start, number) if starts[group] < last]
        place, before, held = starts[span.start], first, None
        for batch in read_batches(file, opening.size_of(span.path), rows, row_groups=groups, columns=columns):
            low, high = max(first - place, 0), min(last - place, len(batch))
            place += len(batch)
            if low >= high:
                continue
            table = pa.Table.from_batches([batch.slice(low, high - low)])
            table = table if held is None else pa.concat_tables([held, table])
            # The last dialogue is held until its end is read.
            edge = _find_last_start(table.column(names.dialog_id).to_pylist()) if named else len(table)
            if edge:
                yield before, table.slice(0, edge)
            before, held = before + edge, table.slice(edge)
        if held:
            yield before, held


def _find_end_of_open_dialogue(file: Any, group: int, stop: int, starts: Sequence[int], names: FieldNames) -> int:
    """Return the row on which the dialogue ends that is open where a row group begins, or group `stop` begins."""

    def read_ids(number: int) -> list[object]:
        return list(file.read_row_group(number, columns=[names.dialog_id]).column(0).to_pylist())

    before = next((ids for number in range(group - 1, -1, -1) if (ids := read_ids(number))), [None])
    if before[-1] in _UNNAMED:
        return starts[group]
    for number in range(group, stop):
        for row, name in enumerate(read_ids(number), starts[number]):
            if name != before[-1]:
                return row
    return starts[stop]


def _find_last_start(ids: Sequence[object]) -> int:
    """Return the row on which the last dialogue of some rows starts; their end where the last row is of none."""
    if ids[-1] in _UNNAMED:
        return len(ids)
    start = len(ids) - 1
    while start and ids[start - 1] == ids[-1]:
        start -= 1
    return start
