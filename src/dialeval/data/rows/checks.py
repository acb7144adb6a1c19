"""Checking files without using them: every fault of every file, or a short description of a good one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialeval.core.errors import DataError, Fault
from dialeval.data.formats.opening import PathSource, format_of
from dialeval.data.rows.reading import files_in, is_folder, read_responses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Summary:
    """What a good file holds; prints as one line."""

    where: str
    format: str
    rows: int
    systems: tuple[str, ...]
    columns: tuple[str, ...]

    def __str__(self) -> str:
        rows = "1 row" if self.rows == 1 else f"{self.rows} rows"
        systems = "system" if len(self.systems) == 1 else f"{len(self.systems)} systems:"
        return f"{self.where}: {self.format}, {rows}, {systems} {', '.join(self.systems)}; {', '.join(self.columns)}"


def check(paths: Iterable[PathSource], fields: Mapping[str, str] | None = None) -> list[Fault]:
    """Every fault of every file, in the order of the files; a folder stands for the files in it."""
    return [fault for path in paths for fault in _faults(path, fields)]


def _faults(path: PathSource, fields: Mapping[str, str] | None) -> Sequence[Fault]:
    try:
        if is_folder(path):
            # File by file: the same system in two of them is no fault of either.
            return check(files_in(path), fields)
        read_responses(path, fields)
    except DataError as error:
        return error.faults
    return []


def summary(path: PathSource, fields: Mapping[str, str] | None = None) -> Summary:
    """What a good file, or a folder of them, holds."""
    files = files_in(path) if is_folder(path) else [path]
    systems = [rows for file in files for rows in read_responses(file, fields)]
    columns = [str(need) for need in dict.fromkeys(need for rows in systems for need in rows.columns)]
    if any(rows.dialogues is not None for rows in systems):
        columns.append("dialog_id")
    if any(rows.turns is not None for rows in systems):
        columns.append("turn")
    kind = "folder" if is_folder(path) else format_of(path)
    names = tuple(rows.system for rows in systems)
    return Summary(os.fspath(path), kind, sum(map(len, systems)), names, tuple(columns))
