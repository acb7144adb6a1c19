"""CSV and TSV: a header and one row per response, quoted as in RFC 4180.

The header names the fields. LF and CRLF end a row outside quotes; a lone CR is part of its cell. An empty cell means
that the field is not given, except in the response column, where it is an empty response. Blank lines are skipped; in
a table of one column, where such a line is an empty cell, it is a row. A row with more or fewer cells than the header
is a fault, and every fault names the line of the file on which its row starts.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dialeval.core.errors import DataError, Fault
from dialeval.data.formats.lines import encoding_faults, split
from dialeval.data.formats.opening import PathSource, read_bytes, without_mark
from dialeval.data.formats.records import FieldNames, Records

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_PRIVATE_CHARACTER = 0xE000
_TROUBLE = re.compile("\0|\r(?!\n)")
"""What the parser of the standard library stumbles over inside a cell: a NUL (before Python 3.11) and a lone CR."""


def read(path: PathSource, names: FieldNames, delimiter: str) -> Records:
    """The rows of a file, parsed when they are asked for."""
    where = str(path)
    data = read_bytes(path)
    faults = encoding_faults(split(data), where)
    if faults:
        raise DataError(faults)
    cells = _cells(str(without_mark(data).data, "utf-8"), delimiter, where, faults)
    _, header = next(cells, (1, []))
    if not any(header):
        raise DataError(faults or Fault(where, 1, "has no header", "name the columns in the first row"))
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        what = f"the header names {', '.join(map(repr, twice))} more than once"
        raise DataError(Fault(where, 1, what, "give every column a name of its own"))
    return Records(where, _rows(cells, header, names.response, where, faults), faults, tuple(header))


def _rows(
    cells: Iterator[tuple[int, list[str]]], header: list[str], response: str, where: str, faults: list[Fault]
) -> Iterator[tuple[int, object]]:
    for line, row in cells:
        if not row:
            if len(header) > 1:
                continue
            row = [""]
        if len(row) != len(header):
            what = f"has {len(row)} cells where the header has {len(header)}"
            faults.append(Fault(where, line, what, "put cells with delimiters or line ends into double quotes"))
            continue
        named = zip(header, row, strict=True)
        yield line, {name: cell if cell or name == response else None for name, cell in named}


def _cells(text: str, delimiter: str, where: str, faults: list[Fault]) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row and the line it starts on; a row that does not parse is a fault, and reading goes on."""
    text, back = _without_trouble(text)
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, strict=True)
    with _cells_of_any_length():
        while True:
            line = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                remedy = 'close every double quote, and write "" for one inside a quoted cell'
                faults.append(Fault(where, line, f"is not quoted correctly ({error})", remedy))
                continue
            yield line, [cell.translate(back) for cell in row] if back else row


def _without_trouble(text: str) -> tuple[str, dict[int, str]]:
    """The text with stand-ins that do not occur in it for what cannot be parsed, and the way back."""
    back: dict[int, str] = {}
    code = _FIRST_PRIVATE_CHARACTER
    for trouble in sorted(set(_TROUBLE.findall(text))):
        while chr(code) in text:
            code += 1
        text = re.sub("\r(?!\n)" if trouble == "\r" else trouble, chr(code), text)
        back[code] = trouble
    return text, back


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """Lift the parser's limit of 128 KiB per cell, which holds for the whole process, while a file is read."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
