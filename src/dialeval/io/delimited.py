"""CSV and TSV: a header and one row per response, quoted as in RFC 4180.

The separator of cells is found from the header: a comma, a semicolon, a tab or a bar, whichever gives most names of
known fields, then most columns, then the one of the suffix. A first line `sep=;`, as of Excel, states it, and
`FieldNames.separator` overrides all. The text is UTF-8, or UTF-16 with a byte order mark. Where it is neither and no
character is one of UTF-8, it is read as Windows-1252, with a warning.

The header names the fields. LF and CRLF end a row outside quotes; a lone CR has to be in quotes. An empty cell means
that the field is not given, except in the response column, where it is an empty response. Blank lines are skipped; in
a table of one column, where such a line is an empty cell, it is a row. A row with more or fewer cells than the header
is a problem, and every problem names the line of the file on which its row starts.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from dialeval.core.arrays import Bytes, Ints, release
from dialeval.core.columns import TextColumn
from dialeval.core.errors import MOST_PROBLEMS, DataError, Problem, ProblemList, add_warning
from dialeval.io import row_shapes
from dialeval.io.opening import PathSource, check_lines, read_bytes, strip_mark
from dialeval.io.rows import FieldNames, Records, join_names

# Lines of text: one response, reference or context per line, without building a single Python string.
#
# UTF-8 always; a byte order mark at the start is dropped. LF and CRLF end a line and nothing else does: a lone CR,
# U+2028, U+0085, a form feed or a NUL is part of the text. The last line may go without its line feed. An empty line
# is a row with an empty text; a file without a line is a problem, and so is every line that is not UTF-8.

_SEARCHED_BYTES = 1 << 24
"""Bytes searched at a time, so that a huge file does not need a mask of its own size."""

_CHECKED_LINES = 1 << 14
"""Lines that are decoded together; where that fails, they are decoded one by one."""


def read_lines(path: PathSource) -> TextColumn:
    """Return the lines of a file."""
    where = str(path)
    column = split(read_bytes(path), where)
    if not len(column):
        raise DataError(Problem(where, None, "is empty", "give one line per row"))
    problems = find_encoding_problems(column, where)
    if problems:
        raise DataError(problems)
    return column


def split(data: Bytes, where: str = "the file", marked: bool = True) -> TextColumn:
    """Return the lines of some bytes, without their endings and, at the start of a file, a byte order mark."""
    data = strip_mark(data) if marked else data
    ends = _find_line_feeds(data, where)
    if len(data) and (not len(ends) or ends[-1] != len(data) - 1):
        ends = np.append(ends, len(data))
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1] + 1
    # A carriage return belongs to the ending only before a line feed, never at the end of the file.
    ended = np.flatnonzero((ends > starts) & (ends < len(data)))
    returns = ended[data[ends[ended] - 1] == ord("\r")]
    ends[returns] -= 1
    return TextColumn(data, starts, ends)


def find_encoding_problems(column: TextColumn, where: str) -> list[Problem]:
    """Return a problem for each row of consecutive lines that is not UTF-8."""
    view = column.data.data
    problems: list[Problem] = []
    for first in range(0, len(column), _CHECKED_LINES):
        block = column.slice(first, first + _CHECKED_LINES)
        if _try_decoding(view[block.starts[0] : block.ends[-1]]):
            spans = zip(block.starts.tolist(), block.ends.tolist(), strict=True)
            errors = ((line, _try_decoding(view[start:end])) for line, (start, end) in enumerate(spans, first + 1))
            problems += [encoding_problem(where, line, error) for line, error in errors if error]
        block.release()
        if len(problems) >= MOST_PROBLEMS:
            return [
                *problems[:MOST_PROBLEMS],
                Problem(where, None, "further problems are not listed", "correct these first"),
            ]
    return problems


def _find_line_feeds(data: Bytes, where: str) -> Ints:
    """Return the places of all line feeds."""
    parts, feeds = [np.zeros(0, np.int64)], 0
    for start in range(0, len(data), _SEARCHED_BYTES):
        part = data[start : start + _SEARCHED_BYTES]
        parts.append(np.flatnonzero(part == ord("\n")) + start)
        feeds += len(parts[-1])
        check_lines(feeds, start + len(part), where)
        release(part)
    return np.concatenate(parts)


def _try_decoding(view: memoryview) -> UnicodeDecodeError | None:
    try:
        str(view, "utf-8")
    except UnicodeDecodeError as error:
        return error
    return None


def encoding_problem(where: str, line: int, error: UnicodeDecodeError) -> Problem:
    """Return the problem of a line that cannot be decoded."""
    what = f"byte 0x{error.object[error.start]:02x} at position {error.start + 1} of the line is not UTF-8"
    return Problem(where, line, what, "save the file as UTF-8")


MOST_COLUMNS = 10_000
_SEPARATORS = ",;\t|"
_SAID = re.compile(r"sep=(?P<separator>[^\r\n\0\"])\r?\n", re.IGNORECASE)
"""The line before the header that states the separator for Excel."""
_LOOKED_AT = 1 << 16
"""Characters of a text that are searched for the header."""
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_UTF_8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def read(path: PathSource, names: FieldNames, delimiter: str) -> Records:
    """Return the rows of a file, parsed lazily; `delimiter` is that of its suffix."""
    where = str(path)
    text = _decode(read_bytes(path), where)
    problems = ProblemList()
    said = _SAID.match(text)
    if said:
        text, delimiter = text[said.end() :], said["separator"]
    if names.separator is not None:
        delimiter = names.separator
    elif not said:
        delimiter = _find_separator(text, names, delimiter)
    cells = _read_cells(text, delimiter, where, problems, 1 if said else 0)
    line, header = next(cells, (1, []))
    if not any(header):
        raise DataError(problems or Problem(where, line, "has no header", "name the columns in the first row"))
    if len(header) > MOST_COLUMNS:
        what = f"the header names {len(header):,} columns, and at most {MOST_COLUMNS:,} are read"
        raise DataError(Problem(where, line, what, "leave out columns, or check what separates cells"))
    twice = sorted(name for name, count in Counter(header).items() if count > 1)
    if twice:
        what = f"the header names {join_names(map(repr, twice))} more than once"
        raise DataError(Problem(where, line, what, "give every column a name of its own"))
    return Records(where, _read_rows(cells, header, names.response, where, problems), problems, tuple(header))


def _decode(data: Bytes, where: str) -> str:
    """Return the text of a file; warn where its encoding was guessed."""
    start = data[:2].tobytes()
    if start in _UTF_16:
        try:
            return data[2:].tobytes().decode(_UTF_16[start])
        except UnicodeDecodeError as error:
            what = f"begins as UTF-16 and is not ({error.reason} at byte {error.start + 2})"
            raise DataError(Problem(where, None, what, "save the file as UTF-8")) from None
    if not (problems := find_encoding_problems(split(data, where), where)):
        return str(strip_mark(data).data, "utf-8")
    content = data.tobytes()
    if _UTF_8_CHARACTER.search(content):  # a damaged file of UTF-8, whose other characters would be spoilt
        raise DataError(problems)
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        raise DataError(problems) from None
    add_warning(
        f"{where} is not UTF-8 (line {problems[0].line}) and was read as Windows-1252; save it as UTF-8 to be sure"
    )
    return text


def _find_separator(text: str, names: FieldNames, usual: str) -> str:
    """Find the separator of the cells of a text."""
    head = text[:_LOOKED_AT]
    expected = {*names.all, *row_shapes.list_columns()}
    best, most = usual, (0, 0)
    for candidate in dict.fromkeys((usual, *_SEPARATORS)):
        reader = csv.reader(io.StringIO(head, newline="\n"), delimiter=candidate)
        with _lift_cell_limit(), suppress(csv.Error):
            header = next(reader, [])
            score = (len(expected.intersection(header)), len(header))
            if score > most and (score[0] or len(header) > 1):
                best, most = candidate, score
    return best


def _read_rows(
    cells: Iterator[tuple[int, list[str]]], header: list[str], response: str, where: str, problems: list[Problem]
) -> Iterator[tuple[int, object]]:
    for line, row in cells:
        if not row:
            if len(header) > 1:
                continue
            row = [""]
        if len(row) != len(header):
            what = f"has {len(row)} cells where the header has {len(header)}"
            problems.append(Problem(where, line, what, "put cells with delimiters or line ends into double quotes"))
            continue
        named = zip(header, row, strict=True)
        yield line, {name: cell if cell or name == response else None for name, cell in named}


def _read_cells(
    text: str, delimiter: str, where: str, problems: list[Problem], before: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row starts, and its cells; a row that does not parse is added to the problems.

    `before`: lines of the file before the text.
    """
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, strict=True)
    with _lift_cell_limit():
        while True:
            line = reader.line_num + 1 + before
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                remedy = 'close every double quote, and write "" for one inside a quoted cell'
                problems.append(Problem(where, line, f"is not quoted correctly ({error})", remedy))
                continue
            if delimiter == "\t" and any("\t" in cell and "\n" in cell for cell in row):
                what = "has a quoted cell with tabs and line ends in it, most likely several rows"
                problems.append(Problem(where, line, what, 'write """" for a cell that begins with ", or save as .csv'))
                continue
            yield line, row


@contextmanager
def _lift_cell_limit() -> Iterator[None]:
    """Lift the parser's limit of 128 KiB per cell, which holds for the whole process, while a file is read."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
