"""JSON documents: any document of a file, and documents of rows.

A document of rows is a list of strings, a list of row objects, an object of system name -> such a list, a single row of
a known shape, or a log that holds a list of these (`row_shapes`). It is parsed in one go. The parser keeps no line
numbers, so the lines of the items are looked up afterwards, and only if there is a fault to place.
"""

from __future__ import annotations

import json
import os
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from dialeval.core.errors import DataError, Fault
from dialeval.data.formats.lines import encoding_faults, split
from dialeval.data.formats.opening import PathSource, read_bytes, without_mark
from dialeval.data.formats.records import Records, kind_of
from dialeval.data.formats.row_shapes import document_rows, is_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dialeval.core.arrays import Bytes

_FORMS = "give a list of strings, a list of row objects, or an object of system name -> list"
_GAP = re.compile(r"[ \t\r\n,:]*")


def load(path: PathSource, form: str = "write a JSON document") -> Any:
    """Return the parsed document of a file; `form` says what an empty file should hold."""
    return parsed(read_bytes(path), os.fspath(path), form)


def parsed(data: Bytes, where: str, form: str = "write a JSON document") -> Any:
    """Return the value of a JSON document; that it is empty, not UTF-8 or not JSON is a fault."""
    import orjson

    data = without_mark(data)
    try:
        return orjson.loads(data.data)
    except orjson.JSONDecodeError as error:
        if not data.tobytes().strip():
            raise DataError(Fault(where, None, "is empty", form)) from None
        what = f"not JSON ({error.msg.partition(': line')[0]})"
        faults = encoding_faults(split(data), where)
        raise DataError(faults or Fault(where, error.lineno, what, "correct it there")) from None


def read(path: PathSource) -> dict[str | None, Records]:
    """Return the rows of each named list of a file; those of a plain list have no name."""
    data = without_mark(read_bytes(path))
    where = os.fspath(path)
    document = parsed(data, where, _FORMS)
    if isinstance(document, list):
        return {None: Records(where, enumerate(document, 1), lines=partial(_item_lines, data, None))}
    if not isinstance(document, dict) or not document:
        what = "is an empty object" if isinstance(document, dict) else f"is {kind_of(document)}"
        raise DataError(Fault(where, 1, what, _FORMS))
    inner = document_rows(document)
    if inner is not None and isinstance(document[inner], list):
        return {None: Records(where, enumerate(document[inner], 1), lines=partial(_item_lines, data, inner))}
    if is_row(document):
        return {None: Records(where, [(1, document)])}
    kinds = {name: "an empty list" if items == [] else kind_of(items) for name, items in document.items()}
    faults = [
        Fault(where, None, f"{name!r} is {kind}, not a list of rows", f"{_FORMS}; put a single row into a list")
        for name, kind in kinds.items()
        if kind != "a list"
    ]
    if faults:
        raise DataError(faults)
    return {
        name: Records(where, enumerate(items, 1), lines=partial(_item_lines, data, name))
        for name, items in document.items()
    }


def _item_lines(data: Bytes, name: str | None) -> list[int]:
    """Return the line on which each item of a list starts; fewer where the document is nested too deeply to tell."""
    text = data.tobytes().decode()
    lines: list[int] = []
    line, counted = 1, 0
    try:
        start = _skipped(text, 0) + 1 if name is None else _list_start(text, name)
        for position in _item_starts(text, start):
            line, counted = line + text.count("\n", counted, position), position
            lines.append(line)
    except RecursionError:
        pass
    return lines


def _list_start(text: str, name: str) -> int:
    """Return where the items of the list called `name` begin; the last one of that name, as in the parsed document."""
    decoder = json.JSONDecoder()
    start = position = _skipped(text, 0) + 1
    while text[position := _skipped(text, position)] != "}":
        key, position = decoder.raw_decode(text, position)
        position = _skipped(text, position)
        if key == name:
            start = position + 1
        _, position = decoder.raw_decode(text, position)
    return start


def _item_starts(text: str, position: int) -> Iterator[int]:
    decoder = json.JSONDecoder()
    while text[position := _skipped(text, position)] != "]":
        yield position
        _, position = decoder.raw_decode(text, position)


def _skipped(text: str, position: int) -> int:
    gap = _GAP.match(text, position)
    return gap.end() if gap else position
