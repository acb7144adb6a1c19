"""Lines of text: one response, reference or context per line, without building a single Python string.

UTF-8 always; a byte order mark at the start is dropped. LF and CRLF end a line and nothing else does: a lone CR,
U+2028, U+0085, a form feed or a NUL is part of the text. The last line may go without its line feed. An empty line is
a row with an empty text; a file without a line is a fault, and so is every line that is not UTF-8.
"""

from __future__ import annotations

import numpy as np

from dialeval.core.arrays import Bytes, Ints, release
from dialeval.core.columns import TextColumn
from dialeval.core.errors import MOST_FAULTS, DataError, Fault
from dialeval.data.formats.opening import PathSource, read_bytes, without_mark

_SEARCHED_BYTES = 1 << 24
"""Bytes searched at a time, so that a huge file does not need a mask of its own size."""

_CHECKED_LINES = 1 << 14
"""Lines that are decoded together: many, so that a good file costs one decoding; few, so that a bad line is near."""


def read_lines(path: PathSource) -> TextColumn:
    """Return the lines of a file."""
    column = split(read_bytes(path))
    where = str(path)
    if not len(column):
        raise DataError(Fault(where, None, "is empty", "give one line per row"))
    faults = encoding_faults(column, where)
    if faults:
        raise DataError(faults)
    return column


def split(data: Bytes, marked: bool = True) -> TextColumn:
    """Return the lines of some bytes, without their endings and, at the start of a file, a byte order mark."""
    data = without_mark(data) if marked else data
    ends = occurrences(data, b"\n")
    if len(data) and (not len(ends) or ends[-1] != len(data) - 1):
        ends = np.append(ends, len(data))
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1] + 1
    # A carriage return belongs to the ending only before a line feed, never at the end of the file.
    ended = np.flatnonzero((ends > starts) & (ends < len(data)))
    returns = ended[data[ends[ended] - 1] == ord("\r")]
    ends[returns] -= 1
    return TextColumn(data, starts, ends)


def encoding_faults(column: TextColumn, where: str) -> list[Fault]:
    """Return a fault for each row of consecutive lines that is not UTF-8."""
    view = column.data.data
    faults: list[Fault] = []
    for first in range(0, len(column), _CHECKED_LINES):
        block = column.slice(first, first + _CHECKED_LINES)
        if _decoding_error(view[block.starts[0] : block.ends[-1]]):
            faults += _block_faults(view, block, where, first)
        block.release()
        if len(faults) >= MOST_FAULTS:
            return [*faults[:MOST_FAULTS], Fault(where, None, "further problems are not listed", "correct these first")]
    return faults


def occurrences(data: Bytes, token: bytes) -> Ints:
    """Return where a token stands in some bytes, overlapping ones included."""
    parts = [np.zeros(0, np.int64)]
    for start in range(0, len(data), _SEARCHED_BYTES):
        part = data[start : start + _SEARCHED_BYTES + len(token) - 1]
        places = np.flatnonzero(part[: max(len(part) - len(token) + 1, 0)] == token[0])
        for at, byte in enumerate(token[1:], 1):
            places = places[part[places + at] == byte]
        parts.append(places + start)
        release(part)
    return np.concatenate(parts)


def _decoding_error(view: memoryview) -> UnicodeDecodeError | None:
    try:
        str(view, "utf-8")
    except UnicodeDecodeError as error:
        return error
    return None


def _block_faults(view: memoryview, block: TextColumn, where: str, first: int) -> list[Fault]:
    spans = zip(block.starts.tolist(), block.ends.tolist(), strict=True)
    errors = ((line, _decoding_error(view[start:end])) for line, (start, end) in enumerate(spans, first + 1))
    return [not_utf8(where, line, error) for line, error in errors if error]


def not_utf8(where: str, line: int, error: UnicodeDecodeError) -> Fault:
    """Return the fault of a line that cannot be decoded."""
    what = f"byte 0x{error.object[error.start]:02x} at position {error.start + 1} of the line is not UTF-8"
    return Fault(where, line, what, "save the file as UTF-8")
