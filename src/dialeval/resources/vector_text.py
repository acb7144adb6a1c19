"""Word vectors as text: GloVe, word2vec text, fastText `.vec`; also `.gz` and `.zst`.

A line is a word and its numbers, with ASCII white space between them. The last `dimension` fields are the numbers and
what stands before them is the word: a word may hold blanks (`. . .` in GloVe) and any other Unicode space. Numbers are
read as float64, exactly as `float` reads them. Of two lines with the same word the later counts.

A first line of two whole numbers is a header, `words dimension`. Without one the dimension is that of most of the
first lines, so that neither `. . .` nor a broken line in first place decides it.

A few odd lines are read around (`vector_oddities`): blank lines, lines without a word, words that are not UTF-8, words
such as `windows 95`. Faults refuse the file, and every one is listed: a line with too few numbers, a field that is not
a finite number, odd lines where they are many.
"""

from __future__ import annotations

import math
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError, Fault
from dialeval.resources import vector_kernel as _kernel
from dialeval.resources.vector_oddities import JOINED, Findings, Oddity, not_utf8
from dialeval.resources.vectorstore import WordRows

BLOCK_BYTES = 1 << 24
"""How much text one thread parses at a time; a few such blocks are all that is in memory."""
KERNEL_BYTES = 1 << 23
"""Less text than this is parsed sooner without the compiled kernel, which takes time to load."""
MOST_FAULTS = 100_000
"""A file with so many faults is not a vector file; reading stops there."""

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

_VOTING_LINES = 64
_HEADER_DIGITS = 12
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Layout:
    """What the beginning of a file says about the rest."""

    dimension: int
    words: int | None
    """Number of words that the header promises; None without a header."""
    longest: int
    """Most fields of any of the first lines below a header; 0 without one."""
    start: int = 0
    """Where the lines with words begin."""


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file."""

    data: bytes
    first_line: int
    """Line number of the first of them, counted from 1."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a block holds; the words and vectors count only where there are no faults."""

    words: list[bytes]
    vectors: Floats
    faults: list[Fault]
    odd: list[tuple[int, Oddity]]


def open_stream(path: Path) -> BinaryIO:
    """The bytes of a file, decompressed where its name ends in `.gz` or `.zst`."""
    import pyarrow as pa

    compression = COMPRESSIONS.get(path.suffix.lower())
    return cast("BinaryIO", pa.input_stream(str(path), compression=compression))


def read_chunk(stream: BinaryIO, size: int, where: str) -> bytes:
    """The next bytes of a stream; DataError where they cannot be read, as of a file that was cut short."""
    try:
        return stream.read(size)
    except OSError as error:
        raise DataError(Fault(where, None, f"cannot be read: {error}", "get the file again")) from error


def read_text(path: Path, findings: Findings) -> Iterator[WordRows]:
    """All words and vectors in file order; DataError with every fault at the end."""
    where = str(path)
    with open_stream(path) as stream:
        blocks = _blocks(stream, where)
        first = next(blocks, Block(b"", 1))
        layout = find_layout(first.data)
        if 0 < layout.longest <= layout.dimension:  # no memory is reserved because a header says so
            what = f"the header promises {layout.dimension} numbers a word, but the lines have fewer"
            raise DataError(Fault(where, 1, what, "get the whole file, or correct the header"))
        findings.header = layout.words is not None
        first = Block(first.data[layout.start :], 1 + first.data.count(b"\n", 0, layout.start))
        count = joined = 0
        faults: list[Fault] = []
        for parsed in _parsed(chain([first], blocks), layout.dimension, where, len(first.data) >= KERNEL_BYTES):
            count += len(parsed.words)
            joined += sum(kind == JOINED for _, kind in parsed.odd)
            faults.extend(parsed.faults)
            findings.odd.extend(parsed.odd)
            if not faults:
                yield parsed.words, parsed.vectors
            if len(faults) >= MOST_FAULTS or (len(findings.odd) >= MOST_FAULTS and findings.too_many(count - joined)):
                what = "reading stopped after so many faults"
                stopped = Fault(where, None, what, "check that these are word vectors")
                raise DataError([*_in_order(faults, findings, where), stopped])
    if faults or findings.too_many(count - joined):
        faults = _in_order(faults, findings, where)
    elif not count:
        faults = [Fault(where, None, "holds no word vectors", "give a file with one word and its numbers a line")]
    if layout.words is not None and count:
        lines = count + sum(kind not in ("blank", JOINED) for _, kind in findings.odd)
        if untrue := findings.promised(layout.words, lines):
            faults.append(Fault(where, 1, untrue, "get the whole file, or correct the header"))
    if faults:
        raise DataError(faults)


def _in_order(faults: list[Fault], findings: Findings, where: str) -> list[Fault]:
    return sorted([*faults, *findings.faults(where)], key=lambda fault: fault.line or 0)


def _parsed(blocks: Iterable[Block], dimension: int, where: str, compiled: bool) -> Iterator[Parsed]:
    """The blocks in order, parsed by as many threads as there are cores; never more than that in memory."""
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    under_way: deque[Future[Parsed]] = deque()
    with ThreadPoolExecutor(workers, "dialeval-vectors") as pool:
        for block in blocks:
            under_way.append(pool.submit(parse_block, block, dimension, where, compiled))
            if len(under_way) > workers:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def _blocks(stream: BinaryIO, where: str) -> Iterator[Block]:
    """Cut a stream after line ends."""
    line, carried = 1, b""
    while chunk := read_chunk(stream, BLOCK_BYTES, where):
        if line == 1 and b"\0" in chunk:
            remedy = "give vectors as text, .npy with its vocabulary beside it, or word2vec .bin; unpack archives first"
            raise DataError(Fault(where, None, "is not a text file", remedy))
        if line == 1 and not carried:
            chunk = chunk.removeprefix(_MARK)
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            carried += chunk
            continue
        block = Block(carried + chunk[:cut], line)
        carried = chunk[cut:]
        line += block.data.count(b"\n")
        yield block
    if carried:
        yield Block(carried, line)


def find_layout(beginning: bytes) -> Layout:
    """The dimension, from the header or from most of the first lines."""
    start = len(beginning) - len(beginning.lstrip())
    start = beginning.rfind(b"\n", 0, start) + 1  # blanks before a first word are left to the line
    texts = beginning[start:].split(b"\n", _VOTING_LINES + 1)[:_VOTING_LINES]
    lines = [line.split() for line in texts]
    head, *others = lines
    if len(head) == 2 and all(field.isdigit() and len(field) <= _HEADER_DIGITS for field in head):
        words, dimension = map(int, head)
        # "1984 7" may also be a word with a vector of one number; then most of the next lines look alike.
        alike = [len(fields) == 2 for fields in others if fields]
        if dimension and (dimension == 1 or 2 * sum(alike) <= len(alike)):
            after = beginning.find(b"\n", start) + 1 or len(beginning)
            return Layout(dimension, words, max(map(len, others), default=0), after)
    # A line that begins with a blank may lack its word, and then one of its numbers would be taken for it.
    begun = [fields for text, fields in zip(texts, lines, strict=True) if not text[:1].isspace()]
    votes = Counter(_trailing_numbers(fields) for fields in begun or lines)
    del votes[0]
    # Of equally many votes the smaller dimension is right: a word may end in a number, a number is no part of a word.
    return Layout(max(votes, key=lambda dimension: (votes[dimension], -dimension), default=1), None, 0)


def _trailing_numbers(fields: list[bytes]) -> int:
    """How many fields at the end are numbers, the first field apart: that is the word or belongs to it."""
    count = 0
    for field in reversed(fields[1:]):
        if _to_floats([field]) is None:
            break
        count += 1
    return count


def parse_block(block: Block, dimension: int, where: str, compiled: bool) -> Parsed:
    """Parse the lines of a block, by the kernel where it is asked for and sure, else by `parse_line`."""
    data = np.frombuffer(block.data, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if block.data and not block.data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))[: len(ends)]
    vectors = np.empty((len(starts), dimension))
    word_ends = np.full(len(starts), -1, np.int64)
    if compiled:
        _kernel.parse_lines(data, starts, ends, vectors, word_ends)
    spans = zip(starts.tolist(), np.maximum(word_ends, starts).tolist(), strict=True)
    words = [block.data[start:end] for start, end in spans]
    faults: list[Fault] = []
    odd: dict[int, Oddity] = {}
    for row in np.flatnonzero(word_ends < 0).tolist():
        try:
            line = parse_line(block.data[starts[row] : ends[row]], dimension)
        except _LineError as error:
            faults.append(Fault(where, block.first_line + row, *error.args))
            continue
        if line.odd is not None:
            odd[row] = line.odd
        if line.numbers is not None:
            words[row], vectors[row] = line.word, line.numbers
    odd |= dict.fromkeys(not_utf8(words), "with a word that is not UTF-8")
    left_out = [row for row, kind in odd.items() if kind != JOINED]
    if left_out:
        kept = np.delete(np.arange(len(words)), left_out)
        words, vectors = [words[row] for row in kept.tolist()], vectors[kept]
    return Parsed(words, vectors, faults, [(block.first_line + row, odd[row]) for row in sorted(odd)])


class _LineError(Exception):
    """What is wrong with a line, and what would mend it."""


class Line(NamedTuple):
    """A line of a file; one without numbers is left out."""

    word: bytes
    numbers: list[float] | None
    odd: Oddity | None


def parse_line(line: bytes, dimension: int) -> Line:
    """The word and the numbers of one line: the definition that the kernel follows."""
    before, *fields = line.strip().rsplit(None, dimension) or [b""]
    if not before:
        return Line(b"", None, "blank")
    if len(fields) == dimension:
        numbers = _to_floats(fields)
        if numbers is not None:
            return Line(before, numbers, JOINED if _trailing_numbers(before.split()) else None)
        wrong = next(field for field in fields if _to_floats([field]) is None)
        shown = wrong[:40].decode(errors="replace")
        raise _LineError(f"{shown!r} is not a finite number", "correct the number, or take the line out")
    if len(fields) == dimension - 1 and line[:1].isspace() and _to_floats([before, *fields]) is not None:
        return Line(b"", None, "without a word")
    what = f"{len(fields)} numbers where {dimension} are expected"
    raise _LineError(what, f"give every word {dimension} numbers, or take the line out")


def _to_floats(fields: list[bytes]) -> list[float] | None:
    """The numbers that the fields spell; None unless all of them are finite numbers."""
    try:
        numbers = list(map(float, fields))
    except ValueError:
        return None
    # Python takes underscores between digits; no vector file means a number by them.
    return numbers if all(map(math.isfinite, numbers)) and b"_" not in b"".join(fields) else None
