"""Read files of word vectors: text and word2vec binary.

- Text (GloVe, word2vec text, fastText `.vec`; also `.gz`, `.zst`): a line is a word and its numbers, separated by ASCII
  whitespace. The last `dimension` fields are the numbers, and what precedes them is the word: it may contain spaces
  (`. . .` in GloVe) and any other Unicode space. Numbers are float64, exactly as `float` reads them. A first line of
  two integers is a header, `words dimension`. Without one the dimension is that of most of the first lines.
- `x.bin`, `x.bin.gz`, `x.bin.zst`: a header line `words dimension`, then per word its bytes, a space, and `dimension`
  little-endian float32 numbers; a line feed may follow. What follows the promised words is left out, as gensim does.
  The `.bin` models of fastText are another format and are refused.

Files that are in use have a few odd lines. They are tolerated, and one warning counts them:

- a blank line, a line without a word, and a word that is not UTF-8 are left out: no text contains such a word;
- a word with a number after a space (`windows 95`) is joined, since the numbers are the last fields of a line;
- a header may promise a few words more or fewer than there are.

A file is refused if it has more than ten odd lines that are also more than 1% of the sound ones, or more odd lines than
sound ones; the same holds for the words that a header promises too many or too few. Blank lines are never too many. A
wrong number of numbers, or one that is not finite, is an error of the file. Every error is listed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError, Problem
from dialeval.core.validation import InvalidError
from dialeval.io.opening import BYTE_ORDER_MARK, is_utf8, open_unpacked, packing_of

Matrix: TypeAlias = npt.NDArray[np.float32 | np.float64]
WordRows: TypeAlias = tuple[list[bytes], Matrix]
"""Some words of a file, and a matrix with a row for each."""
Oddity: TypeAlias = Literal["blank", "without a word", "with a word that is not UTF-8", "with a number in the word"]

BLOCK_BYTES = 1 << 24
"""Text that is parsed at a time."""
MOST_PROBLEMS = 100_000
"""A file with so many errors is not a vector file; reading stops there."""
_VOTING_LINES = 64
_HEADER_DIGITS = 12
_ROWS = 1 << 14
"""Rows of a binary file that are checked at a time."""
_READ_BYTES = 1 << 24
_LONGEST_HEADER = 64
_LONGEST_WORD = 1 << 16
_LARGEST_DIMENSION = 1 << 20
_FEW = 10
_FRACTION = 0.01
_JOINED: Oddity = "with a number in the word"
_PROBLEMS = {
    "blank": ("blank line", "take the line out"),
    "without a word": ("no word", "give every vector its word"),
    "with a word that is not UTF-8": ("the word is not UTF-8", "convert the file to UTF-8"),
    _JOINED: ("too many numbers, or a word with a number in it", "give every word as many numbers as the others"),
}


@dataclass(slots=True)
class VectorFindings:
    """The odd lines that a reader of vectors found; complete when all rows are read."""

    header: bool = False
    """Whether the first line of the file states the number of words."""
    odd: list[tuple[int, Oddity]] = field(default_factory=list)
    """Line or row, counted from 1, and what is odd about it."""
    other: list[str] = field(default_factory=list)

    def is_broken(self, words: int) -> bool:
        """Return whether there are too many odd lines for a file with so many words."""
        counts = Counter(kind for _, kind in self.odd)
        return _is_much(len(self.odd) - counts["blank"], words - counts[_JOINED])

    def check_header(self, words: int, read: int) -> str | None:
        """Return what is wrong with a header that promises too many or too few words; note a small difference."""
        if words == read:
            return None
        what = f"the header promises {words} words, but {read} follow"
        if _is_much(abs(words - read), read):
            return what
        self.other.append(what)
        return None

    def problems(self, where: str) -> list[Problem]:
        """Return the odd lines as errors, for a file that is refused."""
        return [Problem(where, line, *_PROBLEMS[kind]) for line, kind in self.odd]

    def warning(self) -> str | None:
        """Return one line about everything odd, or None."""
        counts = Counter(kind for _, kind in self.odd)
        left_out = [f"{counts[kind]} {kind}" for kind in get_args(Oddity) if counts[kind] and kind != _JOINED]
        parts = []
        if self.odd:
            lines = "1 odd line" if len(self.odd) == 1 else f"{len(self.odd)} odd lines"
            parts.append(f"{lines}, the first is {min(self.odd)[0]}")
        if left_out:
            parts.append(f"left out: {', '.join(left_out)}")
        if counts[_JOINED]:
            parts.append(f"joined: {counts[_JOINED]} {_JOINED}")
        return "; ".join([*parts, *self.other]) or None


def _is_much(odd: int, sound: int) -> bool:
    return odd > max(min(_FEW, sound), _FRACTION * sound)


def read_vectors(path: Path, findings: VectorFindings) -> Iterator[WordRows]:
    """Read all words and vectors in file order, and fill in the findings.

    Raises:
        DataError: With every error of the file.
    """
    plain = path.with_suffix("") if packing_of(path) else path
    if plain.suffix.lower() == ".bin":
        return _check_rows(_read_word2vec(path, findings), str(path), findings)
    return _read_text(path, findings)


class VectorLayout(NamedTuple):
    """The layout of a text file, derived from its beginning."""

    dimension: int
    words: int | None = None
    """Number of words that the header promises; None without a header."""
    longest: int = 0
    """Most fields of any of the first lines below a header; 0 without one."""
    start: int = 0
    """Where the lines with words begin."""


def _read_text(path: Path, findings: VectorFindings) -> Iterator[WordRows]:
    where = str(path)
    count, problems = 0, list[Problem]()
    with open_unpacked(str(path)) as stream:
        blocks = _split_blocks(stream, where)
        first = next((block for _, block in blocks), b"")
        layout = find_layout(first)
        if 0 < layout.longest <= layout.dimension:  # memory is not reserved by the header alone
            what = f"the header promises {layout.dimension} numbers a word, but the lines have fewer"
            raise DataError(Problem(where, 1, what, "get the whole file, or correct the header"))
        findings.header = layout.words is not None
        start = (1 + first.count(b"\n", 0, layout.start), first[layout.start :])
        for line, block in chain([start], blocks):
            words, vectors, wrong = parse_block(block, line, layout.dimension, where, findings)
            problems += wrong
            count += len(words) + len(wrong)
            if not problems:
                yield words, vectors
            if len(problems) >= MOST_PROBLEMS or (len(findings.odd) >= MOST_PROBLEMS and findings.is_broken(count)):
                what = "reading stopped after so many problems"
                stopped = Problem(where, None, what, "check that these are word vectors")
                raise DataError([*_read_in_order(problems, findings, where), stopped])
    if problems or findings.is_broken(count):
        problems = _read_in_order(problems, findings, where)
    elif not count:
        problems = [Problem(where, None, "holds no word vectors", "give a file with one word and its numbers a line")]
    if layout.words is not None and count:
        lines = count + sum(kind not in ("blank", _JOINED) for _, kind in findings.odd)
        if untrue := findings.check_header(layout.words, lines):
            problems.append(Problem(where, 1, untrue, "get the whole file, or correct the header"))
    if problems:
        raise DataError(problems)


def _read_in_order(problems: list[Problem], findings: VectorFindings, where: str) -> list[Problem]:
    return sorted([*problems, *findings.problems(where)], key=lambda problem: problem.line or 0)


def _split_blocks(stream: IO[bytes], where: str) -> Iterator[tuple[int, bytes]]:
    """Split a stream after line ends; with each block the number of its first line."""
    line, carried = 1, b""
    while chunk := stream.read(BLOCK_BYTES):
        if line == 1 and b"\0" in chunk:
            remedy = "give vectors as text or in the word2vec binary format (.bin); unpack archives"
            raise DataError(Problem(where, None, "is not a text file", remedy))
        if line == 1 and not carried:
            chunk = chunk.removeprefix(BYTE_ORDER_MARK)
        end = chunk.rfind(b"\n") + 1
        if not end:
            carried += chunk
            continue
        block, carried = carried + chunk[:end], chunk[end:]
        yield line, block
        line += block.count(b"\n")
    if carried:
        yield line, carried


def find_layout(beginning: bytes) -> VectorLayout:
    """Return the dimension, from the header or from most of the first lines."""
    start = len(beginning) - len(beginning.lstrip())
    start = beginning.rfind(b"\n", 0, start) + 1  # spaces before a first word are left to the line
    texts = beginning[start:].split(b"\n", _VOTING_LINES)[:_VOTING_LINES]
    lines = [line.split() for line in texts]
    head, *others = lines
    if len(head) == 2 and all(field.isdigit() and len(field) <= _HEADER_DIGITS for field in head):
        words, dimension = map(int, head)
        # "1984 7" may also be a word with a vector of one number; then most of the next lines look alike.
        alike = [len(fields) == 2 for fields in others if fields]
        if dimension and (dimension == 1 or 2 * sum(alike) <= len(alike)):
            after = beginning.find(b"\n", start) + 1 or len(beginning)
            return VectorLayout(dimension, words, max(map(len, others), default=0), after)
    # A line that begins with a space may lack its word, and then one of its numbers would be taken for it.
    begun = [fields for text, fields in zip(texts, lines, strict=True) if text[:1].strip()]
    votes = Counter(_count_trailing_numbers(fields) for fields in begun or lines)
    del votes[0]
    # Of equally many votes the smaller dimension is right: a word may end in a number, a number is no part of a word.
    return VectorLayout(max(votes, key=lambda dimension: (votes[dimension], -dimension), default=1))


def _count_trailing_numbers(fields: list[bytes]) -> int:
    """Count the numbers at the end; the first field is the word or belongs to it."""
    count = 0
    for text in reversed(fields[1:]):
        if _to_floats([text]) is None:
            break
        count += 1
    return count


def parse_block(
    data: bytes, first_line: int, dimension: int, where: str, findings: VectorFindings
) -> tuple[list[bytes], Floats, list[Problem]]:
    """Parse whole lines: their words, vectors and errors."""
    if plain := parse_plain(data, dimension):
        return *plain, []
    words, vectors, problems = [], [], []
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n") if data else [], first_line):
        try:
            word, numbers, odd = _parse_line(line, dimension)
        except InvalidError as error:
            problems.append(Problem(where, number, *error.args))
            continue
        if odd is not None:
            findings.odd.append((number, odd))
        if numbers is not None:
            words.append(word)
            vectors.append(numbers)
    return words, np.array(vectors).reshape(-1, dimension), problems


def parse_plain(data: bytes, dimension: int) -> tuple[list[bytes], Floats] | None:
    """Parse lines with Arrow's CSV reader, whose floats equal those of `float`; None where `_parse_line` must decide.

    It is six times as fast.
    """
    import pyarrow as pa
    from pyarrow import csv

    data = data.replace(b"\t", b" ").replace(b"\r\n", b"\n").replace(b" \n", b"\n")
    if not data or data.startswith(BYTE_ORDER_MARK) or any(space in data for space in (b"\r", b"\v", b"\f")):
        return None
    names = list(map(str, range(dimension + 1)))
    types = {names[0]: pa.binary(), **dict.fromkeys(names[1:], pa.float64())}
    try:
        table = csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(column_names=names, block_size=len(data)),
            csv.ParseOptions(delimiter=" ", quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=types, null_values=[]),
        )
    except pa.ArrowInvalid:
        return None
    texts, *columns = table.columns
    words: list[bytes] = texts.to_pylist()
    vectors = np.empty((len(table), dimension))
    for place, column in enumerate(columns):
        vectors[:, place] = column
    return (words, vectors) if all(words) and is_utf8(b"\n".join(words)) and np.isfinite(vectors).all() else None


def _parse_line(line: bytes, dimension: int) -> tuple[bytes, list[float] | None, Oddity | None]:
    """Return the word and the numbers of a line, None if it is left out, and what is odd about it.

    Raises:
        InvalidError: With what is wrong, and what to do.
    """
    before, *fields = line.strip().rsplit(None, dimension) or [b""]
    if not before:
        return b"", None, "blank"
    if len(fields) == dimension:
        numbers = _to_floats(fields)
        if numbers is None:
            wrong = next(text for text in fields if _to_floats([text]) is None)
            shown = wrong[:40].decode(errors="replace")
            raise InvalidError(f"{shown!r} is not a finite number", "correct the number, or take the line out")
        if not is_utf8(before):
            return before, None, "with a word that is not UTF-8"
        return before, numbers, _JOINED if _count_trailing_numbers(before.split()) else None
    if len(fields) == dimension - 1 and line[:1].isspace() and _to_floats([before, *fields]) is not None:
        return b"", None, "without a word"
    what = f"{len(fields)} numbers where {dimension} are expected"
    raise InvalidError(what, f"give every word {dimension} numbers, or take the line out")


def _to_floats(fields: list[bytes]) -> list[float] | None:
    """Return the numbers that the fields spell; None unless all of them are finite numbers."""
    try:
        numbers = list(map(float, fields))
    except ValueError:
        return None
    # Python takes underscores between digits; no vector file means a number by them.
    return numbers if all(map(math.isfinite, numbers)) and b"_" not in b"".join(fields) else None


def _read_word2vec(path: Path, findings: VectorFindings) -> Iterator[WordRows]:
    """Read blocks of words and vectors, which `_check_rows` has to check."""
    what = "is cut short, or is not in the word2vec binary format"
    broken = DataError(Problem(str(path), None, what, "get the file again, or give the vectors as text"))
    with open_unpacked(str(path)) as stream:
        data = stream.read(max(_LONGEST_HEADER, _READ_BYTES))
        place = data.find(b"\n", 0, _LONGEST_HEADER) + 1
        header = data[:place].split()
        count, dimension = map(int, header) if len(header) == 2 and all(map(bytes.isdigit, header)) else (0, 0)
        if not count or not 0 < dimension <= _LARGEST_DIMENSION:
            raise broken
        findings.header = True
        read, size = 0, 4 * dimension
        longest = _LONGEST_WORD + size
        words: list[bytes] = [b""]
        while words and read < count:
            words, vectors = [], list[bytes]()
            while len(words) < min(_ROWS, count - read):
                if len(data) - place < longest:
                    data, place = data[place:] + stream.read(max(longest, _READ_BYTES)), 0
                end = data.find(b" ", place, place + _LONGEST_WORD)
                if end < 0 or len(data) < end + 1 + size:
                    if data[place:].strip(b"\n"):
                        raise broken
                    break  # the file ends after a vector
                # The original tool ends each vector with a line feed, others do not: it precedes the next word.
                words.append(data[place:end].removeprefix(b"\n"))
                place = end + 1 + size
                vectors.append(data[end + 1 : place])
            read += len(words)
            yield words, np.frombuffer(b"".join(vectors), "<f4").reshape(len(words), dimension)
        if (data[place:] or stream.read(_READ_BYTES)).strip(b"\n"):
            findings.other.append(f"the header promises {count} words, and what follows them was left out")
    if findings.check_header(count, read):
        raise broken


def _check_rows(blocks: Iterable[WordRows], where: str, findings: VectorFindings) -> Iterator[WordRows]:
    """Yield the rows that have a word, note the others in the findings, and raise where a number is not finite."""
    what, remedy = "a number of this row is not finite", "correct the row, or take it out"
    problems: list[Problem] = []
    before = sound = 0
    for words, rows in blocks:
        infinite = np.flatnonzero(~np.isfinite(rows).all(axis=1)).tolist()
        problems += [Problem(where, before + row + 1, what, remedy) for row in infinite]
        number = len(words)
        if not is_utf8(b"\n".join(words)) or not all(map(bytes.strip, words)):
            odd: dict[int, Oddity] = {row: "without a word" for row, word in enumerate(words) if not word.strip()}
            odd |= {row: "with a word that is not UTF-8" for row, word in enumerate(words) if not is_utf8(word)}
            findings.odd += [(before + row + 1, odd[row]) for row in sorted(odd)]
            words, rows = [word for row, word in enumerate(words) if row not in odd], np.delete(rows, list(odd), axis=0)
        before, sound = before + number, sound + len(words)
        if not problems:
            yield words, rows
    if findings.is_broken(sound):
        problems = [*findings.problems(where), *problems]
    if problems:
        raise DataError(problems)
