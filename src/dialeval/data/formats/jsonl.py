"""JSONL: one JSON value per line, a row object or a plain string.

LF and CRLF end a line, blank lines are skipped, a byte order mark is dropped. Every line that is not JSON is a fault,
and so is nesting or a number beyond all measure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.core.errors import Fault, FaultList
from dialeval.data.formats.lines import not_utf8, split
from dialeval.data.formats.opening import PathSource, read_bytes
from dialeval.data.formats.records import Records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dialeval.core.columns import TextColumn

_BLANKS = b" \t\r\n"


def read(path: PathSource) -> Records:
    """Return the rows of a file, parsed when they are asked for."""
    return records_of(split(read_bytes(path)), str(path))


def records_of(lines: TextColumn, where: str) -> Records:
    """Return the rows of some lines of a file, numbered from the first of them on."""
    faults = FaultList()
    return Records(where, _rows(lines, where, faults), faults)


def _rows(lines: TextColumn, where: str, faults: list[Fault]) -> Iterator[tuple[int, object]]:
    import orjson

    view = lines.data.data
    spans = zip(lines.starts.tolist(), lines.ends.tolist(), strict=True)
    for line, (start, end) in enumerate(spans, 1):
        try:
            yield line, orjson.loads(view[start:end])
        except orjson.JSONDecodeError as error:
            text = bytes(view[start:end])
            if text.strip(_BLANKS):
                faults.append(_fault(where, line, text, error))


def _fault(where: str, line: int, text: bytes, error: ValueError) -> Fault:
    try:
        text.decode()
    except UnicodeDecodeError as bad:
        return not_utf8(where, line, bad)
    return Fault(where, line, f"not JSON ({str(error).partition(': line')[0]})", "write one JSON object per line")
