"""Plain dialogues: a JSONL file with one dialogue a line, `{"turns": [texts]}` or a chat with `messages`."""

from __future__ import annotations

from collections.abc import Iterable

from dialeval.core.errors import DataError, Fault
from dialeval.data.formats import jsonl
from dialeval.data.formats.opening import PathSource
from dialeval.data.formats.records import FieldNames, kind_of
from dialeval.data.rows.fields import FieldReader


def read_dialogues(paths: Iterable[PathSource]) -> list[list[str]]:
    """The turns of every dialogue in files, in order; the faults of all files if there are any."""
    found: list[list[str]] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            records = jsonl.read(path)
        except DataError as error:
            faults += error.faults
            continue
        reader = FieldReader(records.where, FieldNames(), records.faults)
        for reader.line, row in records.rows:
            turns = row.get("turns", row.get("messages")) if isinstance(row, dict) else None
            if turns is None:
                reader.fault(f"is {kind_of(row)} without turns", "give a list of texts as `turns`, or `messages`")
                continue
            found.append(reader.texts(turns, "turns", turns=True))
        faults += records.faults
    if faults:
        raise DataError(faults)
    return found
