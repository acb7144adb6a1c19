"""Sources: responses of one or several systems, in files (shards) or in memory.

A pattern (`'logs/2026-*.jsonl'`) is one system whose shards are the files that match, in the order of their names; a
folder is one system per file, or with `as_shards` one system whose shards are its files. References and contexts in
files of their own are given in the same way, as many files as the responses have and in the same order; only responses
in lines can have them, since rows hold their own. A dialogue never continues in the next shard.

Rows that are in memory already are a source without shards.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from dialeval.core import inputs
from dialeval.core.columns import make_empty
from dialeval.core.errors import DataError, Problem, SettingError, escape_surrogates
from dialeval.core.inputs import Input
from dialeval.core.run_schema import Role
from dialeval.io import opening
from dialeval.io.reading import find_response_files, is_folder
from dialeval.io.rows import READ_COLUMNS, Rows, kind_of

ROW_COLUMNS = frozenset({inputs.RESPONSE, inputs.REFERENCE, inputs.CONTEXT, inputs.OUTCOME, *READ_COLUMNS})
"""The columns that rows in a file may have."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of responses, and for references and contexts the files with those of the same rows, by set."""

    path: str
    beside: tuple[tuple[Input, tuple[str, ...]], ...] = ()

    @property
    def paths(self) -> list[str]:
        """All its files."""
        return [self.path, *(file for _, files in self.beside for file in files)]


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """One input of responses: the shards of a system, or of several whose rows name them; or rows in memory."""

    argument: int
    """The number of the argument it comes from: a folder is several sources."""
    name: str | None
    """What the user called it."""
    system: str
    """The system of rows that name none."""
    where: str
    shards: tuple[Shard, ...] = ()
    rows: Rows | None = None
    """The rows of one system, where they are in memory."""
    role: Role = "system"

    @property
    def columns(self) -> frozenset[Input]:
        """The columns that its rows have or, where they have to be read first, may have."""
        if self.rows is not None:
            return frozenset(self.rows.columns)
        if any(opening.format_of(shard.path) != opening.LINES for shard in self.shards):
            return ROW_COLUMNS
        return frozenset(
            {inputs.RESPONSE, inputs.OUTCOME, *(need for shard in self.shards for need, _ in shard.beside)}
        )


def list_file_names(responses: object) -> list[str]:
    """Return the files and patterns among responses; a folder may be read in several ways, and is not among them."""
    values = responses.values() if isinstance(responses, Mapping) else [responses]
    paths = [os.fspath(each) for each in values if isinstance(each, str | os.PathLike)]
    return [] if any(is_folder(path) for path in paths) else [path for path in paths if isinstance(path, str)]


def wrap_systems(systems: Sequence[Rows], roles: Mapping[str, Role] | None = None) -> list[Source]:
    """Return systems whose rows are in memory; where a reply of one failed, all have the column of outcomes."""
    if any(inputs.OUTCOME in rows.columns for rows in systems):
        outcomes = [
            {inputs.OUTCOME: make_empty(inputs.OUTCOME, len(rows))} if inputs.RESPONSE in rows.columns else {}
            for rows in systems
        ]
        systems = [
            replace(rows, columns={**more, **rows.columns}) for rows, more in zip(systems, outcomes, strict=True)
        ]
    return [
        Source(
            number,
            None,
            rows.system,
            rows.where,
            rows=rows if rows.dialogues is None else replace(rows, offsets=rows.dialogue_offsets()),
            role=(roles or {}).get(rows.system, "system"),
        )
        for number, rows in enumerate(systems)
    ]


def find_sources(
    responses: object, references: object = None, contexts: object = None, as_shards: bool = False
) -> list[Source]:
    """Return the sources behind paths, patterns and folders, or a mapping of names to these."""
    named: Mapping[str | None, Any] = responses if isinstance(responses, Mapping) else {None: responses}
    if not named:
        raise DataError(Problem("responses", None, "is an empty mapping", "name at least one system"))
    beside = {
        need: [
            _find_paths(one, as_shards, need.argument)
            for one in (source.values() if isinstance(source, Mapping) else [source])
        ]
        for need, source in {inputs.REFERENCE: references, inputs.CONTEXT: contexts}.items()
        if source is not None
    }
    found: list[Source] = []
    for argument, (name, source) in enumerate(named.items()):
        where = _check_path(source, "responses")
        shown = None if name is None else escape_surrogates(str(name))
        for system, paths, place in _find_systems(where, shown, as_shards):
            shards = _make_shards(paths, beside, place)
            found.append(Source(argument, shown, system, place, shards))
    return found


def _find_systems(where: str, name: str | None, as_shards: bool) -> list[tuple[str, list[str], str]]:
    """Return the systems of one argument: its name, its files, and where they are."""
    one_system = as_shards or opening.is_remote(where)
    if not one_system and is_folder(folder := opening.local_path(where)):
        return [(opening.stem_of(file), [str(file)], str(file)) for file in find_response_files(folder)]
    return [(name or name_system(where), _find_paths(where, as_shards, "responses"), where)]


def _find_paths(source: object, as_shards: bool, what: str) -> list[str]:
    """Return the files of one system."""
    where = _check_path(source, what)
    if opening.is_pattern(where):
        return opening.find_files(where)
    if opening.is_remote(where):
        return opening.find_files(where.rstrip("/") + "/*") if as_shards and where.endswith("/") else [where]
    if not is_folder(opening.local_path(where)):
        opening.size_of(where)  # a file that is missing is refused now and not in an hour
        return [where]
    if not as_shards:
        remedy = "name one file, or write --shards if the files of a folder are the parts of one"
        raise DataError(Problem(where, None, "is a folder, and one file is expected", remedy))
    return opening.drop_repeated([str(file) for file in find_response_files(opening.local_path(where))])


def _check_path(path: object, what: str) -> str:
    if isinstance(path, str | os.PathLike):
        return os.fspath(path)
    raise SettingError(
        f"{what}: {kind_of(path)} is in the memory of this process; save it to a file to score it in batches"
    )


def _make_shards(
    paths: Sequence[str], beside: Mapping[Input, Sequence[Sequence[str]]], where: str
) -> tuple[Shard, ...]:
    if not beside:
        return tuple(Shard(path) for path in paths)
    rows = next((path for path in paths if opening.format_of(path) != opening.LINES), None)
    if rows is not None:
        remedy = "put them into the rows (fields reference, context), or give responses one a line"
        raise DataError(Problem(rows, None, "holds rows, and rows carry their own references and contexts", remedy))
    for need, sets in beside.items():
        for files in sets:
            if len(files) != len(paths):
                what = f"{len(paths)} files of responses and {len(files)} of {need.argument}"
                raise DataError(Problem(where, None, what, "give one file for each, in the order of names"))
    return tuple(
        Shard(path, tuple((need, tuple(files[number] for files in sets)) for need, sets in beside.items()))
        for number, path in enumerate(paths)
    )


def name_system(where: str) -> str:
    """Name the responses behind a path or pattern: its file name without what varies, else the folder's."""
    if not opening.is_pattern(where):
        return opening.stem_of(where.rstrip("/"))
    path = PurePath(where)
    fixed = re.sub(r"[*?]+|\[[^]]*\]", "", opening.stem_of(path)).strip("-_. ")
    return fixed or path.parent.name or "system"


# Versions: check that no shard changes during a run.
#
# A run reads a shard in chunks, some of them twice, over hours. Values of a shard that is changed, replaced, truncated
# or removed in between would be those of neither content. Size, times and identity of a file are recorded before it is
# read, and compared when a chunk of it has been read, on the same machine.


class Versions:
    """The versions of files at the beginning of a run."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._versions = {path: opening.version_of(path) for path in paths}

    @classmethod
    def of(cls, sources: Iterable[Source]) -> Versions:
        """Return the versions of all files of some sources."""
        return cls(dict.fromkeys(path for source in sources for shard in source.shards for path in shard.paths))

    def refuse_changed(self, paths: Iterable[str] | None = None) -> None:
        """Raise DataError where some of the files, or any, are no longer what they were."""
        files = self._versions if paths is None else dict.fromkeys(paths)
        if problems := [opening.change_problem(path) for path in files if self._now(path) != self._versions[path]]:
            raise DataError(problems)

    @contextmanager
    def report_changes(self) -> Iterator[None]:
        """Report that a file changed where an error of the block (half a line, a truncated archive) comes of that."""
        try:
            yield
        except Exception as error:
            try:
                self.refuse_changed()
            except DataError as change:
                raise change from error
            raise

    def _now(self, path: str) -> Hashable:
        try:
            return opening.version_of(path)
        except DataError:  # it is gone, or may no longer be read
            return None
