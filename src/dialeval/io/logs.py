"""Logs of other programs whose rows are no conversations: events, trees and documents of many kinds.

An assembler takes all rows of a file and yields chats in our own format (`docs/formats.md`). `row_shapes.toml` says by
which fields a file is recognized, and names its assembler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeAlias

import numpy as np

from dialeval.io import json, opening, traces
from dialeval.io.delimited import split
from dialeval.io.otlp import Export
from dialeval.io.row_shapes import find_shape
from dialeval.io.rows import FieldNames, Records, RowObject

Numbered: TypeAlias = Iterable[tuple[int, object]]
Assembler: TypeAlias = Callable[[Numbered, FieldNames, str], Iterator[tuple[int, RowObject]]]

_PEEKED = 8
"""Rows among which the first one with a known shape is looked for."""


def peek_rows(records: Records, names: FieldNames) -> tuple[object, Iterator[tuple[int, object]]]:
    """Return the first row whose shape is known, else the first of all; and all rows."""
    rows = iter(records.rows)
    held: list[tuple[int, object]] = []
    first: object = None
    for line, row in islice(rows, _PEEKED):
        held.append((line, row))
        if not isinstance(row, dict) or names.response in row or find_shape(row) is not None:
            first = row
            break
    return held[0][1] if held and first is None else first, chain(held, rows)


def find_assembler(row: object, names: FieldNames) -> Assembler | None:
    """Return what puts conversations together from rows like this one; None for rows that are conversations."""
    if isinstance(row, Export):
        return traces.assemble
    shape = find_shape(row) if isinstance(row, dict) and not names.mapped else None
    return ASSEMBLERS[shape.assembler] if shape is not None and shape.assembler else None


def is_assembled(path: str) -> bool:
    """Return whether the rows of a file of lines belong together in conversations that only all of them tell."""
    if opening.format_of(path) != "jsonl":
        return False
    with opening.open_unpacked(path) as stream:
        lines = split(np.frombuffer(b"".join(opening.LineStream(stream, where=path).take(_PEEKED)), np.uint8), path)
    return find_assembler(peek_rows(json.parse_lines(lines, path), FieldNames())[0], FieldNames()) is not None


ASSEMBLERS: dict[str, Assembler] = {"spans": traces.assemble}
