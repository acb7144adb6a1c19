"""Word vectors as text: GloVe, word2vec text, fastText `.vec`; also `.gz` and `.zst`.

A line is a word and its numbers, with ASCII white space between them. The last `dimension` fields are the numbers and
what stands before them is the word: a word may hold blanks (`. . .` in GloVe) and any other Unicode space. Numbers are
read as float64, exactly as `float` reads them. Of two lines with the same word the later counts.

A first line of two whole numbers is a header, `words dimension`, and must be true. Without one the dimension is
that of most of the first lines, so that neither `. . .` nor a broken line in first place decides it.

Every fault of a file is listed: a blank line, a line with too few or too many numbers, a field that is not a finite
number, a word that is not UTF-8.
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
from typing import BinaryIO, cast

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError, Fault
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


def read_text(path: Path) -> Iterator[WordRows]:
    """All words and vectors in file order; DataError with every fault at the end."""
    where = str(path)
    with open_stream(path) as stream:
        blocks = _blocks(stream, where)
        first = next(blocks, Block(b"", 1))
        layout = find_layout(first.data)
        if 0 < layout.longest <= layout.dimension:  # no memory is reserved because a header says so
            what = f"the header promises {layout.dimension} numbers a word, but the lines have fewer"
            raise DataError(Fault(where, 1, what, "get the whole file, or correct the header"))
        if layout.words is not None:
            first = Block(first.data[first.data.find(b"\n") + 1 or len(first.data) :], 2)
        count = 0
        faults: list[Fault] = []
        for parsed in _parsed(chain([first], blocks), layout.dimension, where, len(first.data) >= KERNEL_BYTES):
            count += len(parsed.words)
            faults.extend(parsed.faults)
            if not faults:
                yield parsed.words, parsed.vectors
            if len(faults) >= MOST_FAULTS:
                what = "reading stopped after so many faults"
                raise DataError([*faults, Fault(where, None, what, "check that these are word vectors")])
    if layout.words not in (None, count):
        what = f"the header promises {layout.words} words, but {count} lines follow"
        faults.append(Fault(where, 1, what, "get the whole file, or correct the header"))
    if not count and not faults:
        faults.append(Fault(where, None, "holds no word vectors", "give a file with one word and its numbers a line"))
    if faults:
        raise DataError(faults)


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
    lines = [line.split() for line in beginning.split(b"\n", _VOTING_LINES + 1)[:_VOTING_LINES]]
    head, *others = lines
    if len(head) == 2 and all(field.isdigit() and len(field) <= _HEADER_DIGITS for field in head):
        words, dimension = map(int, head)
        # "1984 7" may also be a word with a vector of one number; then the next line looks alike.
        if dimension and (dimension == 1 or not others or len(others[0]) != 2):
            return Layout(dimension, words, max(map(len, others), default=0))
    votes = Counter(_trailing_numbers(fields) for fields in lines)
    del votes[0]
    return Layout(votes.most_common(1)[0][0] if votes else 1, None, 0)


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
        from dialeval.resources.vector_kernel import parse_lines

        parse_lines(data, starts, ends, vectors, word_ends)
    spans = zip(starts.tolist(), np.maximum(word_ends, starts).tolist(), strict=True)
    words = [block.data[start:end] for start, end in spans]
    faults: list[Fault] = []
    for row in np.flatnonzero(word_ends < 0).tolist():
        try:
            words[row], vectors[row] = parse_line(block.data[starts[row] : ends[row]], dimension)
        except _LineError as error:
            faults.append(Fault(where, block.first_line + row, *error.args))
    faults.extend(not_utf8(words, block.first_line, where))
    return Parsed(words, vectors, sorted(faults, key=lambda fault: fault.line or 0))


class _LineError(Exception):
    """What is wrong with a line, and what would mend it."""


def parse_line(line: bytes, dimension: int) -> tuple[bytes, list[float]]:
    """The word and the numbers of one line: the definition that the kernel follows."""
    before, *fields = line.strip().rsplit(None, dimension) or [b""]
    if not before:
        raise _LineError("blank line", "take the line out")
    extra = 0
    if len(fields) == dimension:
        numbers = _to_floats(fields)
        if numbers is None:
            wrong = next(field for field in fields if _to_floats([field]) is None)
            shown = wrong[:40].decode(errors="replace")
            raise _LineError(f"{shown!r} is not a finite number", "correct the number, or take the line out")
        extra = _trailing_numbers(before.split())
        if not extra:
            return before, numbers
    what = f"{len(fields) + extra} numbers where {dimension} are expected"
    raise _LineError(what, f"give every word {dimension} numbers, or take the line out")


def _to_floats(fields: list[bytes]) -> list[float] | None:
    """The numbers that the fields spell; None unless all of them are finite numbers."""
    try:
        numbers = list(map(float, fields))
    except ValueError:
        return None
    # Python takes underscores between digits; no vector file means a number by them.
    return numbers if all(map(math.isfinite, numbers)) and b"_" not in b"".join(fields) else None


def not_utf8(words: list[bytes], first_line: int, where: str) -> list[Fault]:
    """A fault for each word that is not UTF-8."""
    if _is_utf8(b"\n".join(words)):
        return []
    return [
        Fault(where, line, f"the word {word!r} is not UTF-8", "convert the file to UTF-8")
        for line, word in enumerate(words, first_line)
        if not _is_utf8(word)
    ]


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
