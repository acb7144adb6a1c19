"""Checking files without using them: every fault of every file, or a short description of a good one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dialeval.core.errors import DataError, Fault
from dialeval.core.notes import noted
from dialeval.data.formats.opening import PathSource, format_of
from dialeval.data.rows.reading import files_in, is_folder, read_responses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Summary:
    """What a good file holds; prints as one line, and one for each thing that was guessed."""

    where: str
    format: str
    rows: int
    systems: tuple[str, ...]
    columns: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = "1 row" if self.rows == 1 else f"{self.rows} rows"
        systems = "system" if len(self.systems) == 1 else f"{len(self.systems)} systems:"
        line = f"{self.where}: {self.format}, {rows}, {systems} {', '.join(self.systems)}; {', '.join(self.columns)}"
        return "\n".join([line, *(f"  {note}" for note in self.notes)])


def check(paths: Iterable[PathSource], fields: Mapping[str, str] | None = None, **reading: Any) -> list[Fault]:
    """Every fault of every file, in the order of the files; a folder stands for the files in it."""
    return [fault for path in paths for fault in _faults(path, fields, reading)]


def _faults(path: PathSource, fields: Mapping[str, str] | None, reading: dict[str, Any]) -> Sequence[Fault]:
    try:
        if is_folder(path):
            # File by file: the same system in two of them is no fault of either.
            return check(files_in(path), fields, **reading)
        with noted():  # a file that is good is described, and its notes with it
            read_responses(path, fields, **reading)
    except DataError as error:
        return error.faults
    return []


def summary(path: PathSource, fields: Mapping[str, str] | None = None, **reading: Any) -> Summary:
    """What a good file, or a folder of them, holds."""
    files = files_in(path) if is_folder(path) else [path]
    with noted() as notes:
        systems = [rows for file in files for rows in read_responses(file, fields, **reading)]
    columns = [str(need) for need in dict.fromkeys(need for rows in systems for need in rows.columns)]
    if any(rows.dialogues is not None for rows in systems):
        columns.append("dialog_id")
    if any(rows.turns is not None for rows in systems):
        columns.append("turn")
    kind = "folder" if is_folder(path) else format_of(path)
    names = tuple(rows.system for rows in systems)
    return Summary(os.fspath(path), kind, sum(map(len, systems)), names, tuple(columns), tuple(notes))
