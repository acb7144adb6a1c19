"""Plain dialogues: a JSONL file with one dialogue a line, `{"turns": [texts]}` or a chat with `messages`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from dialeval.data.formats import jsonl
from dialeval.data.formats.opening import PathSource
from dialeval.data.formats.records import FieldNames, all_of, kind_of
from dialeval.data.rows.fields import FieldReader


def read_dialogues(paths: Iterable[PathSource]) -> list[list[str]]:
    """Return the turns of every dialogue in files, in order; the faults of all files if there are any."""
    files = all_of(partial(_file_dialogues, path) for path in paths)
    return [turns for dialogues in files for turns in dialogues]


def read_replies(paths: Iterable[PathSource]) -> list[list[str]]:
    """Return the `replies` of every dialogue, other replies to its last turn; in the order of `read_dialogues`."""
    files = all_of(partial(_file_dialogues, path, "replies") for path in paths)
    return [replies for dialogues in files for replies in dialogues]


def _file_dialogues(path: PathSource, column: str = "turns") -> list[list[str]]:
    records = jsonl.read(path)
    reader = FieldReader(records.where, FieldNames(), records.faults)
    dialogues = []
    for reader.line, row in records.rows:
        turns = row.get("turns", row.get("messages")) if isinstance(row, dict) else None
        if turns is None:
            reader.fault(f"is {kind_of(row)} without turns", "give a list of texts as `turns`, or `messages`")
        else:
            wanted = turns if column == "turns" else row.get(column) or []  # type: ignore[attr-defined]
            dialogues.append([turn.shown for turn in reader.turns(wanted, column)])
    records.raise_faults()
    return dialogues
