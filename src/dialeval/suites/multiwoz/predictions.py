"""Predictions for task dialogues, in the form of the MultiWOZ evaluation.

    {"sng0073": [{"response": "[taxi_type] is booked.",
                  "state": {"taxi": {"leave": "17:15"}}, "active_domains": ["taxi"]}, ...], ...}

`state` and `active_domains` may be left out. The document becomes one row per turn of the data, dialogues in the data's
order, so that the rows of all systems line up: a turn or a whole dialogue that the document lacks is a row without a
response. `position` keeps the place in the document; `listed` says whether the document has the dialogue, if only as an
empty list. What the document holds is never changed.

Every problem is reported at once, each with its path inside the JSON, such as `pmul1635[3].state.hotel`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from dialeval.core.arrays import offsets_of, row_numbers, without_garbage_collection
from dialeval.core.batch import Need
from dialeval.core.columns import ObjectColumn, RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Problem
from dialeval.io import json
from dialeval.io.checking import type_problems
from dialeval.io.opening import PathSource, stem_of
from dialeval.io.reading import files_in, is_folder
from dialeval.io.rows import Rows, all_of
from dialeval.suites.multiwoz.data import TaskFiles

UNNAMED = "predictions"
"""The system of predictions that come without a name."""
DOMAIN = "domain"
"""The field of a row with the domains of its dialogue's goal, by which results can be cut into slices."""
SHOWN_UNKNOWN = 20
"""Unknown dialogue ids are named one by one up to this number, and then counted."""

_FORM = "give an object of dialogue id -> list of turns, each an object with a response"
_REMEDIES = {
    "response": "give every turn one; an empty one if the system said nothing",
    "state": "give domains with their slots and values, or leave it out where there is none",
    "active_domains": 'leave it out, or give it so: ["hotel"]',
}


class _Turn(Struct):
    response: str
    state: dict[str, dict[str, str]] = {}
    active_domains: list[str] = []


@dataclass(frozen=True, slots=True)
class Predictions:
    """One system's rows, and how much of the data it covers."""

    rows: Rows
    dialogues: int
    """Dialogues of the data that are there, with or without turns."""
    without_turns: int
    turns: int
    """Turns that are there."""
    with_state: int
    with_domains: int
    short: int
    """Turns that are missing in dialogues that are there."""
    report: str | None = None
    """A sentence on the values that became placeholders, where replies were lexicalized."""

    @property
    def turn_rows(self) -> list[dict[str, Any]]:
        """The rows of all turns of the data."""
        rows: Iterable[dict[str, Any]] = self.rows.columns[Need.TASK_TURNS]  # type: ignore[assignment]
        return list(rows)

    @property
    def given(self) -> list[dict[str, Any]]:
        """The rows of the turns that are there."""
        return [row for row in self.turn_rows if row["response"] is not None]

    def document(self) -> dict[str, list[dict[str, Any]]]:
        """Return the predictions in the form in which they are read."""
        turns: dict[str, list[dict[str, Any]]] = {row["dialogue"]: [] for row in self.turn_rows if row["listed"]}
        for row in self.given:
            given = {name: row[name] for name in ("response", "state", "active_domains") if row[name] is not None}
            turns[row["dialogue"]].append(given)
        return turns


def read_predictions(source: Any, task: TaskFiles) -> list[Predictions]:
    """Return the predictions of every system in a source: a path, a folder, a document, or a mapping of names to these.

    Predictions that are read already are given back.
    """
    if isinstance(source, list) and source and all(isinstance(each, Predictions) for each in source):
        return source
    documents = list(_documents(source))
    names = Counter(system for system, _, _ in documents)
    remedy = "rename a file, or write NAME=FILE"
    problems = [Problem(name, None, "two systems have this name", remedy) for name, count in names.items() if count > 1]
    if problems:
        raise DataError(problems)
    with without_garbage_collection():
        return all_of(partial(_read, read, task, system, where) for system, where, read in documents)


def _read(read: Callable[[], Any], task: TaskFiles, system: str, where: str) -> Predictions:
    return predictions_of(read(), task, system, where)


def _documents(source: Any) -> Iterator[tuple[str, str, Any]]:
    """System, place and reader of each document."""
    if isinstance(source, str | os.PathLike):
        paths: Sequence[PathSource] = files_in(source) if is_folder(source) else [source]
        for path in paths:
            yield stem_of(path), os.fspath(path), partial(json.load, path, _FORM)
    elif isinstance(source, Mapping) and source and all(_names_a_system(value) for value in source.values()):
        for name, value in source.items():
            is_path = isinstance(value, str | os.PathLike)
            for system, where, read in _documents(value):
                shown = f"{name}/{system}" if is_path and is_folder(value) else str(name)
                yield shown, where if is_path else str(name), read
    else:
        yield UNNAMED, UNNAMED, lambda: source


def _names_a_system(value: object) -> bool:
    """Return whether a value of a mapping is a whole system and not a dialogue, which is a list."""
    return isinstance(value, str | os.PathLike | Mapping)


def read_document(path: PathSource) -> dict[str, Any]:
    """Return the predictions in a file as they stand, checked for their form but not against any data."""
    return checked_document(json.load(path, _FORM), os.fspath(path))


def checked_document(document: Any, where: str) -> dict[str, Any]:
    """Predictions as they stand, or the problems of their form."""
    if problems := _form_problems(document, where):
        raise DataError(problems)
    return dict(document)


def predictions_of(document: Any, task: TaskFiles, system: str, where: str) -> Predictions:
    """Return the predictions of one document: the turns in the data's order, with a row for each that is missing."""
    if problems := [*_form_problems(document, where), *_data_problems(document, task, where)]:
        raise DataError(problems)
    starts = dict(zip(document, offsets_of(map(len, document.values())).tolist(), strict=False))
    rows: list[dict[str, Any]] = []
    for dialogue, count in task.turns.items():
        listed, turns = dialogue in document, document.get(dialogue, ())
        start, there = starts.get(dialogue, 0), len(turns)
        # A turn that is missing has no position and gives nothing.
        rows += [
            {
                "dialogue": dialogue,
                "listed": listed,
                "turn": at,
                "position": start + at if at < there else None,
                "response": turn.get("response"),
                "state": turn.get("state"),
                "active_domains": turn.get("active_domains"),
            }
            for at, turn in enumerate((*turns, *repeat({}, count - there)))
        ]
    given = [row for row in rows if row["response"] is not None]
    with_state = sum(row["state"] is not None for row in given)
    columns: dict[Need, Any] = {Need.TASK_TURNS: ObjectColumn(rows)}
    if given and with_state == len(given):
        columns[Need.STATES] = ObjectColumn(rows)
    offsets = offsets_of(task.turns.values())
    bounds = offsets_of(count for count in task.turns.values() if count)
    numbers = row_numbers(offsets)
    names = TextColumn.from_strings(list(task.turns)).take(numbers)
    domains = RaggedColumn.from_lists([list(task.goals.goals[dialogue]) for dialogue in task.turns]).take(numbers)
    responses = TextColumn.from_strings([row["response"] or "" for row in rows])
    turn_column = np.arange(len(rows)) - offsets[numbers]
    return Predictions(
        Rows(
            system, columns, names, turn_column, where, bounds, fields={DOMAIN: domains}, shown={"response": responses}
        ),
        dialogues=len(document),
        without_turns=sum(not turns for turns in document.values()),
        turns=len(given),
        with_state=with_state,
        with_domains=sum(row["active_domains"] is not None for row in given),
        short=sum(task.turns[dialogue] - len(turns) for dialogue, turns in document.items()),
    )


def _form_problems(document: Any, where: str) -> list[Problem]:
    """Return what is wrong with a document by itself."""
    if isinstance(document, Mapping) and not document:
        return [Problem(where, None, "is an empty object", _FORM)]
    return type_problems(document, dict[str, list[_Turn]], where, _FORM, **_REMEDIES)


def _data_problems(document: Any, task: TaskFiles, where: str) -> Iterator[Problem]:
    """Yield what in a document does not fit the data."""
    if not isinstance(document, Mapping):
        return
    unknown = [dialogue for dialogue in document if dialogue not in task.turns]
    for dialogue in unknown[:SHOWN_UNKNOWN]:
        yield Problem(f"{where}: {dialogue}", None, *_unknown(str(dialogue), task))
    if len(unknown) > SHOWN_UNKNOWN:
        what = f"and {len(unknown) - SHOWN_UNKNOWN} more dialogue ids that the data does not have"
        yield Problem(where, None, what, "check that file and data belong together")
    for dialogue, turns in document.items():
        most = task.turns.get(dialogue)
        if most is not None and isinstance(turns, list | tuple) and len(turns) > most:
            what = f"one turn too many: the dialogue has {most} system turns in the data, and {len(turns)} here"
            yield Problem(f"{where}: {dialogue}[{most}]", None, what, "give one response per system turn")


def _unknown(dialogue: str, task: TaskFiles) -> tuple[str, str]:
    if dialogue in task.other_splits:
        split = task.other_splits[dialogue]
        return f"the dialogue belongs to the split {split!r}, not to {task.split!r}", f"pass split={split} (--split)"
    plain = Path(dialogue.lower()).name.removesuffix(".json")
    hint = f"write {plain!r}" if plain in task.turns else "leave it out, or check that file and data belong together"
    return "the data has no such dialogue", hint
