"""Read responses, references and contexts from files and objects.

A `str` or a path-like is the path of a file; a list holds texts or row objects; a mapping names its values; tables and
columns of Arrow, pandas, polars and Hugging Face datasets are accepted too. A folder is many systems: every file in it
in the order of names, except hidden ones, `metrics.txt`, folders, documents and programs.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dialeval.core import inputs
from dialeval.core.account import Account
from dialeval.core.arrays import offsets_of
from dialeval.core.columns import ColumnData, FieldColumn, RaggedColumn, TextColumn, join_texts
from dialeval.core.errors import DataError, Problem, SettingError, add_warning, collect_warnings, escape_surrogates
from dialeval.core.inputs import Input
from dialeval.core.rowtable import RUN_FILE
from dialeval.io import json, tables
from dialeval.io.fields import FieldReader
from dialeval.io.gathering import gather_rows, gather_texts
from dialeval.io.logs import read_markdown
from dialeval.io.opening import LINES, PathSource, format_of, read_lines, stem_of
from dialeval.io.outcomes import account_for, join_parts, mark_outcomes
from dialeval.io.row_shapes import count_values, find_document_rows, find_shape
from dialeval.io.rows import (
    DIALOGUE_IDS,
    LISTS,
    FieldNames,
    Records,
    RowObject,
    Rows,
    kind_of,
    length_problem,
    read_each,
)

T = TypeVar("T")

EMPTY_LINES = "empty-lines"
"""In the place of dialogue ids: empty lines separate dialogues."""
UNNAMED = "system"
"""The system of responses without a name."""

_Content: TypeAlias = TextColumn | dict[str | None, Records]
"""The content of a source: lines, or lists of rows by name (None: without a name)."""

_INDEX, _SIMULATIONS = "results.json", "simulations"
"""The file and the folder in a run of tau2-bench."""
_NO_RESPONSES = re.compile(
    r"\.(md|rst|html?|pdf|png|jpe?g|svg|py|ipynb|sh|ya?ml|toml|cfg|ini|log|zip|tar|tgz|bz2|xz|pkl|pickle|npy|npz|pt|bin)$",
    re.IGNORECASE,
)
"""Files that may be in a folder of responses and hold none."""


MOST_SYSTEMS = 1_000


def read_responses(
    source: object,
    fields: Mapping[str, str] | None = None,
    name: str | None = None,
    keep: Sequence[str] = (),
    optional: Sequence[str] = (),
    **reading: object,
) -> list[Rows]:
    """Read the rows of every system in a source, in order of appearance; `keep` names further fields that they keep.

    With `name`, a single system is called that, and several are called `name/system`. A field in `optional` is kept
    where rows have it. `reading`: the settings of `FieldNames`, such as `system_prompts`.
    """
    names = FieldNames.of(fields, (*keep, *optional), **reading)
    systems = _check_names(_read_systems(source, names, name))
    remedy = "check its name; only files and tables of rows have further fields"
    problems = [
        Problem(rows.where, None, f"no row of {rows.system} has a value in the field {each!r}", remedy)
        for rows in systems
        for each in keep
        if each not in rows.fields
    ]
    if problems:
        raise DataError(problems)
    return systems


def read_files(
    paths: Iterable[PathSource], fields: Mapping[str, str] | None = None, keep: Sequence[str] = ()
) -> list[Rows]:
    """Read the rows of every system in files and folders; a system must not be in two of them."""
    names = FieldNames.of(fields, keep)
    return _check_names(_chain(partial(_read_systems, path, names, None) for path in paths))


def check(
    path: PathSource, fields: Mapping[str, str] | None = None, **reading: Any
) -> tuple[list[Rows], Sequence[Problem], Iterable[str]]:
    """Read a file, or every file of a folder by itself, to check it.

    Returns:
        The rows of every system, or every problem; and what was guessed in reading.
    """
    names = FieldNames.of(fields, **reading)
    with collect_warnings() as notes:
        try:
            files = find_response_files(path) if is_folder(path) and not _is_simulations(path) else [path]
            systems = _chain(partial(read_responses, file, fields, **reading) for file in files)
            return join_parts(systems), [], notes
        except DataError as error:
            return _account_for_others(path, names), error.problems, notes


def _account_for_others(path: PathSource, names: FieldNames) -> list[Rows]:
    """Return the account of a file with rows that other commands read, such as pairs and ratings; else nothing."""
    if is_folder(path) or format_of(path) == LINES:
        return []
    total, title = Account(), ""
    try:
        for records in read_records(path, names, None).values():
            for _, row in records.rows:
                row_fields: dict[str, Any] = row if isinstance(row, dict) else {}
                shape = find_shape(row_fields)
                if shape is None or not shape.counts:
                    return []
                counts: Any = {name: count_values(row_fields, paths) for name, paths in shape.counts.items()}
                total += Account(**{"conversations": 1, **counts})
                title = shape.name
    except DataError:
        return []
    nothing = TextColumn.from_strings([])
    account = replace(total, fields={"shape": title})
    return [Rows(stem_of(path), {inputs.RESPONSE: nothing}, where=os.fspath(path), account=account)]


def read_texts(source: Any, need: Input, fields: Mapping[str, str] | None = None, **reading: Any) -> RaggedColumn:
    """Return references or contexts from a source of their own.

    Rows give the field of the need; if there is none, their response or their only column. `None` in a list is a row
    without a text. A mapping holds several sets, each with more texts for every row.
    """
    return _read_texts(source, need, FieldNames.of(fields, **reading), need.argument)


def attach(rows: Rows, need: Input, column: RaggedColumn, where: str) -> Rows:
    """Return the rows with a column from `where`, in place of one of their own; both must have as many rows."""
    if len(column) != len(rows):
        raise DataError(length_problem(rows.where, len(rows), where, len(column)))
    columns = {each: kept for each, kept in rows.columns.items() if each != inputs.ROLES or need != inputs.CONTEXT}
    return account_for([replace(rows, columns={**columns, need: column})])[0]


def name_dialogues(rows: Rows, source: Any) -> Rows:
    """Return lines with the dialogue of each: ids, one per line, of a file or list; or empty lines between dialogues.

    Empty lines are no rows then. An empty id is that of a dialogue of one line.
    """
    if rows.dialogues is not None:
        raise DataError(
            Problem(rows.where, None, "has dialogues of its own", "name their field: --field dialog_id=NAME")
        )
    if source == EMPTY_LINES:
        texts: Mapping[Input, ColumnData] = {
            need: column for need, column in rows.columns.items() if need != inputs.OUTCOME
        }
        columns = [column for column in texts.values() if isinstance(column, TextColumn | RaggedColumn)]
        filled = np.array(
            [any(text.strip() for texts in line for text in texts) for line in zip(*columns, strict=True)]
        )
        kept = np.flatnonzero(filled)
        starts = filled & ~np.concatenate(([False], filled[:-1]))
        places = (kept[starts[kept]] + 1)[np.cumsum(starts[kept]) - 1].tolist()
        rows = replace(rows, columns=texts)
        return replace(rows.take(kept), dialogues=TextColumn.from_strings([f"line {place}" for place in places]))
    where = os.fspath(source) if isinstance(source, str | os.PathLike) else "dialogues"
    named = read_lines(source) if isinstance(source, str | os.PathLike) else [str(name) for name in source]
    if len(named) != len(rows):
        raise DataError(length_problem(rows.where, len(rows), where, len(named)))
    return replace(rows, dialogues=TextColumn.from_strings([name or f"line {at}" for at, name in enumerate(named, 1)]))


def join_scores(systems: Sequence[Rows], source: Any, key: str, asked: Sequence[str]) -> list[Rows]:
    """Return the rows with the scores of a table: a row per dialogue, or per reply.

    A reply is found by its own id, where the rows have a field `key` next to the ids of dialogues, or by its turn.

    Args:
        systems: The rows of every system.
        source: A file or a list of rows with the key and scores, and with `system` where there are several systems.
        key: The column with the id of the dialogue or of the reply.
        asked: The names of the scores; `*` for all.
    """
    where = os.fspath(source) if isinstance(source, str | os.PathLike) else "scores"
    names = FieldNames(dialog_id=key, scores=tuple(asked))
    content = read_records(source, names, None) if isinstance(source, str | os.PathLike) else None
    records = Records(where, enumerate(source, 1)) if content is None else next(iter(content.values()))
    reader, found = FieldReader(where, names, records.problems), dict[tuple[str | None, str, int | None], Any]()
    for reader.line, row in records.rows:
        if not isinstance(row, dict) or (dialogue := reader.read_dialogue(row)) is None:
            reader.add_problem(f"has no {key}", "name the column with the ids of dialogues: --key NAME")
            continue
        place = (reader.read_identifier(row, "system"), dialogue, reader.read_turn(row))
        if place in found:
            reader.add_problem(f"has scores of {dialogue} a second time", "keep one row per dialogue, or number turns")
        fields = {
            name: value for name, value in row.items() if name not in (key, "id", "system", "turn", *DIALOGUE_IDS)
        }
        found[place] = reader.read_columns({**fields, "scores": fields} if "*" in asked else fields).get(inputs.SCORES)
    records.raise_problems()
    return [_add_scores(rows, found, where, key, several=len(systems) > 1) for rows in systems]


def _add_scores(
    rows: Rows, found: Mapping[tuple[str | None, str, int | None], Any], where: str, key: str, several: bool
) -> Rows:
    """Return the rows of a system with the scores of its dialogues and turns, or of its replies by id."""
    offsets = rows.dialogue_offsets()
    dialogues, unit = list(rows.names().take(offsets[:-1])), "dialogues"
    by_system = any(system is not None for system, _, _ in found)
    mine = {place[1:]: scores for place, scores in found.items() if place[0] in (None, rows.system)}
    if (ids := rows.fields.get(key)) is not None and (names := [" ".join(texts) for texts in ids]) != list(
        rows.names()
    ):
        offsets, dialogues, unit = np.arange(len(rows) + 1), names, "replies"
        mine = {(name, None): scores for (name, _), scores in mine.items()}
        if len(named := list(filter(None, names))) > len(set(named)):
            what = f"has several replies with the same {key}, such as {Counter(named).most_common(1)[0][0]}"
            raise DataError(Problem(rows.where, None, what, "join scores by a field that is unique: --key NAME"))
    joined = {dialogue for dialogue, _ in mine}.intersection(dialogues)
    if not joined:
        what = f"names none of the {len(dialogues):,} {unit} of {rows.system}"
        remedy = "check --key, and name the ids of the log: --field dialog_id=NAME"
        raise DataError(Problem(where, None, what, remedy))
    if several and not by_system:
        raise DataError(Problem(where, None, "does not say of which system its scores are", "add a column system"))
    if unknown := len({dialogue for dialogue, _ in mine} - joined):
        add_warning(f"{where}: scores of {unit} that are not in {rows.system} are unused ({unknown:,})")
    column = rows.columns.get(inputs.SCORES)
    values: list[Any] = [None] * len(rows) if column is None else list(column)
    counted = np.zeros(len(rows), np.bool_)
    for name, start, stop in zip(dialogues, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        turns = {} if rows.turns is None else {int(turn): at for at, turn in enumerate(rows.turns[start:stop], start)}
        places = {at: mine[name, turn] for turn, at in turns.items() if (name, turn) in mine}
        if (name, None) in mine or not places:
            places[stop - 1] = {**(places.get(stop - 1) or {}), **(mine.get((name, None)) or {})}
        counted[list(places)] = True
        for at, scores in places.items():
            values[at] = {**(values[at] or {}), **(scores or {})} or None
    return replace(rows, columns={**rows.columns, inputs.SCORES: FieldColumn.of(values, counted)})


def find_response_files(folder: PathSource) -> list[Path]:
    """Return the files of a folder that hold responses, in the order of their names."""
    entries = _list_files(folder)
    run_files: set[str] = set()
    if any(entry.name == RUN_FILE for entry in entries):
        from dialeval.core.result import files_of  # loads msgspec

        run_files = {path.name for path in files_of(folder)}
    files = [entry for entry in entries if _is_response_file(entry) and entry.name not in run_files]
    if run_files and not files:
        remedy = "pass the files that were scored, or give the run to `dialeval compare` or `dialeval report`"
        raise DataError(Problem(os.fspath(folder), None, "is a saved run and no folder of responses", remedy))
    if not files:
        raise DataError(_no_responses(folder))
    return files


def _list_files(folder: PathSource) -> list[Path]:
    try:
        return sorted(filter(Path.is_file, Path(folder).iterdir()), key=lambda entry: entry.name)
    except OSError as error:
        what = f"cannot be listed ({error.strerror})"
        raise DataError(Problem(os.fspath(folder), None, what, "grant read permission")) from None


def read_any_lines(source: PathSource, passed_over: Collection[str]) -> tuple[dict[str, TextColumn], list[str]]:
    """Read a file, or every file of a folder, as lines of text whatever its suffix is.

    Args:
        source: A file or a folder.
        passed_over: Names of files in a folder that are not read; hidden files are not read either.

    Returns:
        The lines by path, and the paths of the files that were passed over.
    """
    files = _list_files(source) if is_folder(source) else [Path(source)]
    skipped = [file for file in files if is_folder(source) and (file.name in passed_over or file.name[:1] == ".")]
    read = [file for file in files if file not in skipped]
    if not read:
        raise DataError(_no_responses(source))
    lines = read_each(partial(read_lines, file) for file in read)
    return dict(zip(map(str, read), lines, strict=True)), list(map(str, skipped))


def _no_responses(folder: PathSource) -> Problem:
    return Problem(os.fspath(folder), None, "holds no file of responses", "put one file per system into it")


def _is_response_file(file: Path) -> bool:
    return not (file.name.startswith(".") or file.name == "metrics.txt" or _NO_RESPONSES.search(file.name))


def is_folder(source: PathSource) -> bool:
    """Return whether a path leads to a folder; what cannot be a path, such as a long text, does not."""
    return os.path.isdir(source)  # noqa: PTH112  (Path.is_dir raises for some, and takes an empty one for ".")


def _read_systems(source: object, names: FieldNames, name: str | None) -> list[Rows]:
    """Return the rows of every system in a source; those of a named source are called by its name."""
    if isinstance(source, Mapping):
        if not source:
            raise DataError(Problem(name or "responses", None, "is an empty mapping", "name at least one system"))
        if name is None and (rows := _list_rows(source, names)) is not None:
            return read_source(rows, "responses", names, UNNAMED)
        named = ((escape_surrogates(str(key)), value) for key, value in source.items())
        systems = _chain(partial(_read_systems, value, names, key) for key, value in named)
    elif not isinstance(source, str | os.PathLike):
        systems = read_source(source, name or "responses", names, name or UNNAMED)
    elif is_folder(source) and _is_simulations(source):
        systems = _read_simulations(source, names)
    elif is_folder(source):
        systems = _chain(partial(_read_systems, file, names, None) for file in find_response_files(source))
    else:
        systems = read_source(source, os.fspath(source), names, name or stem_of(source))
    if name is None:
        return systems
    if len(systems) == 1:
        return [replace(systems[0], system=name)]
    return [replace(rows, system=f"{name}/{rows.system}") for rows in systems]


def _list_rows(columns: Mapping[Any, Any], names: FieldNames) -> list[dict[str, Any]] | None:
    """Return the rows of a mapping of columns, such as a slice of a Hugging Face dataset; None for one of systems.

    Columns are lists of one length, one of them holds responses or messages, and another one is a field of rows too.
    """
    texts = {names.response, names.messages, names.context, names.reference}
    held = {*texts, names.system, *names.dialog_ids, *names.kept} & columns.keys()
    if len(held) < 2 or not {names.response, names.messages} & held:
        return None
    values = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()]
    if not all(isinstance(column, Sequence) and not isinstance(column, str | bytes) for column in values):
        return None
    sizes = {str(key): len(column) for key, column in zip(columns, values, strict=True)}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{key}: {size:,}" for key, size in sizes.items())
        raise DataError(Problem("responses", None, f"columns differ in length ({shown})", "pass columns of one length"))
    return [dict(zip(map(str, columns), row, strict=True)) for row in zip(*values, strict=True)]


def _is_simulations(folder: PathSource) -> bool:
    """Return whether a folder is a run of tau2-bench, and not one with a file for each system."""
    return Path(folder, _INDEX).is_file() and Path(folder, _SIMULATIONS).is_dir()


def _read_simulations(folder: PathSource, names: FieldNames) -> list[Rows]:
    """Return the rows of a run of tau2-bench that is a folder: an index, and a file for each simulation."""
    index, *simulations = read_each(
        partial(json.load, file) for file in [Path(folder, _INDEX), *sorted(Path(folder, _SIMULATIONS).glob("*.json"))]
    )
    document = {**(index if isinstance(index, dict) else {}), "simulations": simulations}
    _, rows = find_document_rows(document) or ("", simulations)
    name = escape_surrogates(Path(folder).resolve().name)
    return gather_rows(Records(os.fspath(folder), enumerate(rows, 1)), names, name)


def read_source(source: object, where: str, names: FieldNames, system: str) -> list[Rows]:
    """Return the rows of every system in a file or an object; `system` is the name of those that give none."""
    content = _read_content(source, where, names)
    if isinstance(content, TextColumn):
        return account_for(
            [mark_outcomes(Rows(system, {inputs.RESPONSE: content}, where=where), {}, names.keep_reasoning)]
        )
    return _chain(partial(gather_rows, records, names, inner or system) for inner, records in content.items())


def _read_texts(source: object, need: Input, names: FieldNames, where: str) -> RaggedColumn:
    if isinstance(source, Mapping):
        sets = read_each(partial(_read_texts, value, need, names, f"{where} {key!r}") for key, value in source.items())
        return join_rowwise(dict(zip(map(str, source), sets, strict=True)), where)
    where = os.fspath(source) if isinstance(source, str | os.PathLike) else where
    content = _read_content(source, where, names, need)
    if isinstance(content, TextColumn):
        return RaggedColumn.from_texts(content)
    sets = read_each(partial(gather_texts, records, names, need) for records in content.values())
    return join_rowwise(dict(zip(map(str, content), sets, strict=True)), where)


def _read_content(source: object, where: str, names: FieldNames, need: Input = inputs.RESPONSE) -> _Content:
    """Return what a file or an object holds."""
    if isinstance(source, TextColumn):
        return source
    if isinstance(source, str | os.PathLike):
        return read_lines(source) if format_of(source) == LINES else read_records(source, names, need)
    if isinstance(source, np.ndarray) and source.ndim == 1:
        source = source.tolist()
    elif isinstance(source, Sequence) and not isinstance(source, (bytes, bytearray, memoryview, *LISTS)):
        source = list(source)  # such as a column of a Hugging Face dataset, which reads its values when asked
    if isinstance(source, LISTS):
        return {None: Records(where, enumerate(source, 1))}
    table = tables.to_table(source, where, names, need)
    if table is None:
        remedy = "pass a path, a list of strings, a list of rows, a mapping of these, or a table"
        raise DataError(Problem(where, None, f"cannot read rows from {kind_of(source)}", remedy))
    return {None: tables.make_records(table, where, names, need)}


def read_records(
    path: PathSource, names: FieldNames, need: Input | None = inputs.RESPONSE
) -> dict[str | None, Records]:
    """Return the parsed rows of a file that is not lines: one list or, in a JSON document, several named ones.

    Of a table only the columns are read that can matter to the need; all of them where it is None.
    """
    return _READERS[format_of(path)](path, names, need)


_READERS: dict[str, Callable[[PathSource, FieldNames, Input | None], dict[str | None, Records]]] = {
    "json": lambda path, *_: json.read_json(path),
    "markdown": lambda path, *_: {None: read_markdown(path)},
    "eval": lambda path, *_: json.read_archive(path),
    "jsonl": lambda path, *_: {None: json.read_jsonl(path)},
    "csv": lambda path, names, _: {None: tables.read_delimited(path, names, ",")},
    "tsv": lambda path, names, _: {None: tables.read_delimited(path, names, "\t")},
    "parquet": lambda path, *rest: {None: tables.read_parquet(path, *rest)},
}
"""The reader of each format in `opening.FORMATS` that is not lines."""


def read_objects(
    sources: PathSource | Iterable[object],
    what: str,
    fields: str,
    names: FieldNames,
    read: Callable[[FieldReader, RowObject, str], Iterable[T]],
    check: Callable[[list[T]], tuple[str, str] | None] = lambda _: None,
    remedy: str = "give .jsonl, .json, .csv, .tsv or .parquet",
) -> list[T]:
    """Read objects other than responses, such as ratings: from files, or from a list of objects.

    Args:
        sources: Paths, lists that were parsed already, or one list of objects.
        what: What the objects are, for messages.
        fields: The fields that they have, for messages.
        names: What the fields are called.
        read: Makes something of one object; its last argument is the name of the file.
        check: Returns what is wrong with all that one list gives, and the remedy.
        remedy: What to do about a file of plain lines.

    Returns:
        What `read` returned for all objects, one after the other.
    """

    def read_list(records: Records, name: str) -> list[T]:
        reader = FieldReader(records.where, names, records.problems)
        found: list[T] = []
        for reader.line, row in records.rows:
            if isinstance(row, dict):
                found += read(reader, row, name)
            else:
                reader.add_problem(f"the row is {kind_of(row)}", f"make it an object with {fields}")
        if not records.problems and (wrong := check(found)):
            records.problems.append(Problem(records.where, None, *wrong))
        records.raise_problems()
        return found

    def read_list_or_file(source: PathSource | Records) -> list[T]:
        if isinstance(source, Records):
            return read_list(source, source.where)
        if format_of(source) == LINES:
            raise DataError(Problem(os.fspath(source), None, f"plain lines hold no {what}", remedy))
        return _chain(partial(read_list, each, stem_of(source)) for each in read_records(source, names, None).values())

    if isinstance(sources, list) and sources and all(isinstance(row, dict) for row in sources):
        return read_list(Records(what, enumerate(sources, 1)), what)
    several = list(sources) if isinstance(sources, Iterable) and not isinstance(sources, str) else [sources]
    for each in several:
        if not isinstance(each, str | os.PathLike | Records):
            raise SettingError(f"{each!r:.40} is not a path")
    return _chain(partial(read_list_or_file, each) for each in several)  # type: ignore[arg-type]


def join_rowwise(sets: Mapping[str, RaggedColumn], where: str) -> RaggedColumn:
    """Join sets of texts row by row: the texts of the first set, then those of the second, and so on."""
    if not sets:
        raise DataError(Problem(where, None, "is an empty mapping", "name at least one set"))
    if len(sets) == 1:
        return next(iter(sets.values()))
    (first, column), *others = sets.items()
    for name, other in others:
        if len(other) != len(column):
            what = f"{first!r} has {len(column)} rows, {name!r} has {len(other)}"
            raise DataError(Problem(where, None, what, "every set must have one row per response"))
    values = join_texts([each.values for each in sets.values()])
    counts = [np.diff(each.offsets) for each in sets.values()]
    rows = np.concatenate([np.repeat(np.arange(len(column)), each) for each in counts])
    return RaggedColumn(values.take(np.argsort(rows, kind="stable")), offsets_of(np.sum(counts, axis=0)))


def _chain(readers: Iterable[Callable[[], list[T]]]) -> list[T]:
    return list(chain.from_iterable(read_each(readers)))


def check_number_of_systems(number: int, where: str) -> None:
    """Raise DataError where there are more systems than a run may have: each costs a row of every table and test."""
    if number > MOST_SYSTEMS:
        what = f"holds {number:,} systems, and a run has at most {MOST_SYSTEMS:,}"
        raise DataError(Problem(where, None, what, "check the field of systems, or score some of them at a time"))


def _check_names(systems: list[Rows]) -> list[Rows]:
    """Return the systems; DataError where two have the same name, or there are too many."""
    first: dict[str, str] = {}
    problems = []
    for rows in systems:
        if rows.system in first:
            what = f"the system {rows.system!r} is also in {first[rows.system]}"
            remedy = "rename one, or name them: NAME=PATH on the command line, {name: path} in Python"
            problems.append(Problem(rows.where, None, what, remedy))
        first.setdefault(rows.system, rows.where)
    if problems:
        raise DataError(problems)
    check_number_of_systems(len(systems), systems[0].where if systems else "responses")
    return systems
