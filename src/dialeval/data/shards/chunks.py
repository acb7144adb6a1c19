"""Chunks: sources cut into parts that one worker can read and fold by itself.

- Lines on this machine: bytes between two ends of lines, found in one quick pass, with those of the references and
  contexts beside them.
- Rows in JSONL, also on shared storage: byte ranges of about equal size. The reader of a chunk finds the first row that
  belongs to it: `row_boundary` gives the same answer to the reader of the chunk before.
- Parquet: row groups.
- Anything else (packed files, small ones, CSV, JSON, Arrow): the whole shard.
- Rows in memory: as many as make a batch.

No chunk cuts a dialogue in two, as long as the rows of a dialogue stand together. The cuts depend on the inputs alone
and never on the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import IO, TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from dialeval.core.arrow import check_decoded_size
from dialeval.core.errors import DataError, Fault
from dialeval.core.needs import Need
from dialeval.core.ragged import cut
from dialeval.data.formats.opening import BYTE_ORDER_MARK, file_format, packing_of
from dialeval.data.formats.parquet import damage_explained
from dialeval.data.formats.row_shapes import ours
from dialeval.data.formats.streams import is_remote, local_path, size_of, stored
from dialeval.data.rows.system import Rows

if TYPE_CHECKING:
    from dialeval.data.rows.fields import FieldNames
    from dialeval.data.shards.sources import Shard, Source

SMALLEST_BYTES = 1 << 21
LARGEST_BYTES = 1 << 26
CHUNKS = 256
"""As many chunks as keep a cluster busy, unless they get too small or too large by that."""
MOST_CHUNKS = 4096
"""More are not made of large files, however large these are: each costs the first process the same."""

_READ_BYTES = 1 << 22
_BLANKS = b" \t\r\n"


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
    """Its bytes: its share of the work."""
    beside: tuple[tuple[Need, tuple[Span, ...]], ...] = ()

    @property
    def paths(self) -> list[str]:
        """Return the files that it is read from."""
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
        """Its rows: its share of the work."""
        return len(self.rows)


Chunk: TypeAlias = FileChunk | MemoryChunk


def cut_sources(sources: Sequence[Source], batch_rows: int, chunk_bytes: int | None = None) -> list[Chunk]:
    """Split all sources into chunks, in order; rows in memory are split into batches."""
    sizes = {shard.path: size_of(shard.path) for source in sources for shard in source.shards}
    total = sum(sizes.values())
    usual = min(max(total // CHUNKS, SMALLEST_BYTES), LARGEST_BYTES)
    most = chunk_bytes or max(usual, total // MOST_CHUNKS)
    chunks: list[Chunk] = []
    for number, source in enumerate(sources):
        if source.rows is not None:
            chunks += _memory_chunks(number, source.rows, batch_rows)
        for shard in source.shards:
            parts = _cut_shard(shard, sizes[shard.path], most)
            chunks += [replace(part, source=number, system=source.system) for part in parts]
    return chunks


def _memory_chunks(source: int, rows: Rows, batch_rows: int) -> list[MemoryChunk]:
    offsets = rows.dialogue_offsets()
    ranges = list(cut(offsets, batch_rows))
    if len(ranges) < 2:
        return [MemoryChunk(source, rows, 0, 0, only=True)]
    starts = [(first, int(offsets[first]), int(offsets[last])) for first, last in ranges]
    return [MemoryChunk(source, rows.slice(start, stop), start, first, only=False) for first, start, stop in starts]


def _cut_shard(shard: Shard, size: int, most: int) -> Iterable[FileChunk]:
    pieces = "whole" if any(packing_of(file) for file in shard.paths) else file_format(shard.path).pieces
    if pieces == "groups":
        return _row_groups(shard.path, most)
    if pieces == "rows" and size > most:
        edges = [*range(0, size - most // 2, most), size]
        spans = [Span(shard.path, start, stop) for start, stop in pairwise(edges)]
        return [FileChunk(0, "", "rows", span, span.stop - span.start) for span in spans]
    if pieces == "lines" and size > most and not any(map(is_remote, shard.paths)):
        return _line_chunks(shard, most)
    return [_whole(shard, size)]


def _whole(shard: Shard, size: int) -> FileChunk:
    beside = tuple((need, tuple(Span(file, 0, size_of(file)) for file in files)) for need, files in shard.beside)
    return FileChunk(0, "", "whole", Span(shard.path, 0, size), size, beside)


def _row_groups(path: str, most: int) -> Iterator[FileChunk]:
    import pyarrow.parquet as pq

    with stored(path) as stream, damage_explained(path):
        check_decoded_size(stream, size_of(path))
        facts = pq.ParquetFile(stream).metadata
        sizes = [facts.row_group(number).total_byte_size for number in range(facts.num_row_groups)]
    first = held = 0
    for number, size in enumerate(sizes):
        held += size
        if held >= most or number == len(sizes) - 1:
            yield FileChunk(0, "", "groups", Span(path, first, number + 1), held)
            first, held = number + 1, 0


def _line_chunks(shard: Shard, most: int) -> list[FileChunk]:
    """Chunks of equally many lines, of the responses and of what stands beside them."""
    lines = _lines_in(shard.path, most)
    edges, count = _line_edges(shard.path, lines)
    chunks = [
        FileChunk(0, "", "lines", Span(shard.path, start, stop, number * lines), stop - start)
        for number, (start, stop) in enumerate(pairwise(edges))
    ]
    for need, files in shard.beside:
        spans: list[list[Span]] = [[] for _ in chunks]
        for file in files:
            own, other = _line_edges(file, lines)
            if other != count:
                raise DataError(unequal(shard.path, count, file, other))
            for number, (start, stop) in enumerate(pairwise(own)):
                spans[number].append(Span(file, start, stop, number * lines))
        chunks = [
            replace(chunk, beside=(*chunk.beside, (need, tuple(here))))
            for chunk, here in zip(chunks, spans, strict=True)
        ]
    return chunks


def unequal(path: str, rows: int, other: str, others: int) -> Fault:
    """Return the fault of two files that should have equally many lines."""
    what = f"nothing belongs to this row: {other} has {others} rows, {path} has {rows}"
    return Fault(path if rows > others else other, min(rows, others) + 1, what, "both must have one line per response")


def _lines_in(path: str, size: int) -> int:
    """Estimate how many lines fit into some bytes."""
    with stored(path) as stream:
        head = stream.read(_READ_BYTES)
    return max(1, size * (head.count(b"\n") + 1) // len(head))


def _line_edges(path: str, every: int) -> tuple[list[int], int]:
    """Return where each `every`-th line of a file starts, its end, and the number of its lines."""
    edges, feeds, place, last = [0], 0, 0, b"\n"
    with stored(local_path(path)) as stream:
        while content := stream.read(_READ_BYTES):
            feeds_here = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))
            wanted = np.arange(every - feeds % every - 1, len(feeds_here), every)
            edges += (feeds_here[wanted] + 1 + place).tolist()
            feeds, place, last = feeds + len(feeds_here), place + len(content), content[-1:]
    if edges[-1] != place:
        edges.append(place)
    return edges, feeds + (last != b"\n")


def row_range(stream: IO[bytes], span: Span, size: int, names: FieldNames) -> tuple[int, int]:
    """Return where the rows of a chunk begin and end.

    Only the chunk in which a dialogue begins looks for its end, so that a dialogue over many chunks is read once.
    """
    start = row_boundary(stream, span.start, size, names, span.stop)
    return start, size if start == size else row_boundary(stream, span.stop, size, names)


def row_boundary(stream: IO[bytes], start: int, size: int, names: FieldNames, following: int | None = None) -> int:
    """Return where the chunk that should begin at `start` begins: the first line after it whose dialogue is a new one.

    The line before must itself begin at or after `start`, so that nobody has to look back. The end of the file where
    that is also the first line of the chunk at `following`, so that no row lies between the two.
    """
    if start <= 0 or start >= size:
        return min(max(start, 0), size)
    stream.seek(start - 1)
    place = start - 1 + len(stream.readline())
    before: str | None = None
    compared = False
    while line := stream.readline():
        if line.strip(_BLANKS):
            dialogue = dialogue_of(line, names)
            if compared and (dialogue is None or dialogue != before):
                return place
            if following is not None and place >= following:
                break
            before, compared = dialogue, True
        place += len(line)
    return size


def dialogue_of(line: bytes, names: FieldNames) -> str | None:
    """Return the dialogue that a row names, if it names one and can be read."""
    import orjson

    try:
        row = orjson.loads(line.removeprefix(BYTE_ORDER_MARK))
    except orjson.JSONDecodeError:
        return None
    known = ours(row, names) if isinstance(row, dict) else None
    name = None if known is None else known.get(names.dialog_id)
    return str(name) if isinstance(name, str | int) and name != "" else None
