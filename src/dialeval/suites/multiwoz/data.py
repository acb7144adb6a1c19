"""The files of a task: what users wanted in each dialogue, what was booked, the true states, the references.

A folder holds

    goals.json             dialogue id -> domain -> informable (slot: value), requestable (words), booking (slot: value)
    booked_domains.json    id -> per system turn the domains booked by then; without the file all count as booked
    gold_states.json       id -> per system turn domain -> slot -> value; for systems that predict no states
    references/NAME.json   id -> per system turn one text; any number of sets
    user_turns.json        id -> per system turn what the user said before it; only for people who read a report
    version.json           a text that names the version of the data, for signatures

or `splits.json` (split -> ids) and a folder with those files for each split; each file also `.gz` or `.zst`. Every
problem of every file is reported at once, with its path inside the JSON.

Predictions for task dialogues, in the form of the MultiWOZ evaluation.

    {"sng0073": [{"response": "[taxi_type] is booked.",
                  "state": {"taxi": {"leave": "17:15"}}, "active_domains": ["taxi"]}, ...], ...}

`state` and `active_domains` may be left out. The document becomes one row per turn of the data, dialogues in the data's
order, so that the rows of all systems line up: a turn or a whole dialogue that the document lacks is a row without a
response. `position` keeps the place in the document; `listed` says whether the document has the dialogue, if only as an
empty list. What the document holds is never changed.

Every problem is reported at once, each with its path inside the JSON, such as `pmul1635[3].state.hotel`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

import numpy as np
from msgspec import Meta, Struct

from dialeval import sample_data
from dialeval.core.arrays import offsets_of, row_numbers
from dialeval.core.columns import DIGEST_LENGTH, ColumnData, ObjectColumn, RaggedColumn, TextColumn
from dialeval.core.display import list_some
from dialeval.core.errors import DataError, NeedError, Problem, SettingError
from dialeval.core.inputs import Input
from dialeval.core.validation import JsonObject
from dialeval.io import json
from dialeval.io.opening import PathSource, read_bytes, stem_of, strip_mark
from dialeval.io.reading import find_response_files, is_folder
from dialeval.io.rows import LISTS, Rows, read_each
from dialeval.io.schemas import check_types
from dialeval.suites.multiwoz import GOALS, ONTOLOGY, REFERENCE_SETS, STATES, TASK_TURNS, TRUE_STATES, VENUES
from dialeval.suites.multiwoz.metrics import MAIN_REFERENCES
from dialeval.suites.multiwoz.turns import TurnCounts, find_slot_domains, make_normalizer
from dialeval.suites.multiwoz.venues import (
    MULTIWOZ,
    Alternatives,
    Ontology,
    State,
    Venues,
    find_file,
    load_ontology,
    load_venues,
)

DEFAULT_SPLIT = "test"
VERSION_FILE = "version.json"

_FORM = "docs/own-task.md shows the form"

Goal: TypeAlias = Mapping[str, Any]
"""By domain what the user wants: `informable`, `requestable` and `booking`, as in `_Wishes`."""


class _Wishes(Struct):
    informable: dict[str, str] = {}
    requestable: list[str] = []
    booking: dict[str, str] | Annotated[list[object], Meta(max_length=0)] | None = (
        None  # MultiWOZ has empty lists there
    )


@dataclass(frozen=True, slots=True)
class Goals:
    """What the user of each dialogue wants, and by which turn each domain is booked."""

    goals: Mapping[str, Goal]
    booked: Mapping[str, Sequence[Sequence[str]]] | None
    digest: str

    @property
    def domains(self) -> list[str]:
        """Every domain that some goal has."""
        return sorted({domain for goal in self.goals.values() for domain in goal})

    def is_booked(self, dialogue: str, turn: int, domain: str) -> bool:
        """Return whether the ground truth has the domain booked by a turn."""
        return self.booked is None or domain in self.booked[dialogue][turn]


@dataclass(frozen=True, slots=True)
class TrueStates:
    """The true state of each turn, as the file spells it; `states` has the first of several values."""

    alternatives: Mapping[str, Sequence[Alternatives]]
    """As the file has it: a value may be several, as in MultiWOZ 2.2."""
    digest: str
    states: Mapping[str, Sequence[State]] = field(init=False)
    """With the first value of each slot."""

    def __post_init__(self) -> None:
        states = {name: [_take_first(state) for state in turns] for name, turns in self.alternatives.items()}
        object.__setattr__(self, "states", states)


@dataclass(frozen=True, slots=True)
class ReferenceSets:
    """The reference sets by name, each with one text per turn."""

    sets: Mapping[str, Mapping[str, Sequence[str]]]
    digest: str


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """All that a folder holds about a task but for its ontology and its venues."""

    where: str
    goals: Goals
    states: TrueStates | None
    references: ReferenceSets | None
    turns: Mapping[str, int]
    """The dialogues of the split in order, each with its number of system turns."""
    split: str | None
    other_splits: Mapping[str, str]
    """Dialogue ids of other splits -> the split."""
    users: Mapping[str, Sequence[str]] | None = None
    """What the user said before each system turn."""
    version: str | None = None
    """The name of the data's version, such as multiwoz-2.4, where the folder states one."""


def read_task(folder: Path, split: str | None = None) -> TaskFiles:
    """Read the files of a folder; of one with splits those of `split` (`test` unless given)."""
    if not folder.is_dir():
        raise DataError(Problem(str(folder), None, "there is no such folder", "check the path"))
    whole, (split, others) = folder, _choose_split(folder, split)
    folder = whole / split if split else whole
    problems: list[Problem] = []
    shas: dict[str, str] = {}

    def load(name: str, kind: object, place: Path = folder) -> Any:
        try:
            if (path := find_file(place / name)) is None:
                return None
            document, shas[name] = _read_file(path, kind)
        except DataError as error:
            problems.extend(error.problems)
            return None
        return document

    goals = load("goals.json", dict[str, dict[str, _Wishes]])
    if goals is None and not problems:
        problems.append(Problem(str(folder), None, "holds no goals.json", "name a folder with the files of a task"))
    booked = load("booked_domains.json", dict[str, list[list[str]]])
    states = load("gold_states.json", dict[str, list[dict[str, dict[str, str | list[str]]]]])
    for turns in (states or {}).values():
        turns[:] = map(_freeze_values, turns)
    users = load("user_turns.json", dict[str, list[str]])
    version = load(VERSION_FILE, str, whole)
    names = sorted(_find_reference_names(folder), key=lambda name: (name != MAIN_REFERENCES, name))
    sets = {name: load(f"references/{name}.json", dict[str, list[str]]) for name in names}
    if problems:
        raise DataError(problems)
    by_turn = {"booked_domains": booked, "gold_states": states, "user_turns": users, **sets}
    turns = _count_turns(folder, list(goals), {name: file for name, file in by_turn.items() if file is not None})
    nothing: dict[str, object] = {"informable": {}, "requestable": [], "booking": {}}
    whole_goals = {
        dialogue: {domain: nothing | wishes for domain, wishes in goal.items()} for dialogue, goal in goals.items()
    }
    return TaskFiles(
        str(whole),
        Goals(whole_goals, booked, _digest_files(shas, "goals.json", "booked_domains.json")),
        None if states is None else TrueStates(states, _digest_files(shas, "gold_states.json")),
        ReferenceSets(sets, _digest_files(shas, *(f"references/{name}.json" for name in sets))) if sets else None,
        turns,
        split,
        others,
        users,
        version,
    )


def _freeze_values(state: Mapping[str, Mapping[str, Any]]) -> dict[str, JsonObject]:
    """Return a state whose lists of values are tuples; an empty list is no value."""
    return {
        domain: {
            slot: value if isinstance(value, str) else tuple(value) for slot, value in slots.items() if value != []
        }
        for domain, slots in state.items()
    }


def _take_first(state: Alternatives) -> State:
    return {
        domain: {slot: value if isinstance(value, str) else value[0] for slot, value in slots.items()}
        for domain, slots in state.items()
    }


def _read_file(path: Path, kind: object, remedy: str = _FORM) -> tuple[Any, str]:
    """Return the document in a file, checked for its type, and its digest."""
    data = strip_mark(read_bytes(path))
    document = json.parse_bytes(data, str(path))
    if problems := check_types(document, kind, str(path), remedy):
        raise DataError(problems)
    return document, hashlib.sha256(data.data).hexdigest()


def _digest_files(shas: Mapping[str, str], *names: str) -> str:
    lines = "".join(f"{shas[name]}  {name}\n" for name in names if name in shas)
    return hashlib.sha256(lines.encode()).hexdigest()[:DIGEST_LENGTH]


def _find_reference_names(folder: Path) -> set[str]:
    place = folder / "references"
    return {stem_of(file) for file in place.iterdir() if ".json" in file.suffixes} if place.is_dir() else set()


def _choose_split(folder: Path, asked: str | None) -> tuple[str | None, dict[str, str]]:
    """Return the split that is read, and the dialogues of the others; None for a folder without splits."""
    path = find_file(folder / "splits.json")
    if path is None:
        if asked is not None:
            raise SettingError(f"the data in {folder} has no splits, so there is no split {asked!r}")
        return None, {}
    splits, _ = _read_file(path, dict[str, list[str]], "add the pack again")
    name = asked or DEFAULT_SPLIT
    if name not in splits:
        raise SettingError(f"the data in {folder} has no split {name!r}; it has {', '.join(splits)}")
    return name, {dialogue: other for other, ids in splits.items() if other != name for dialogue in ids}


def _count_turns(
    folder: Path, dialogues: Sequence[str], files: Mapping[str, Mapping[str, Sequence[object]]]
) -> dict[str, int]:
    """Return the number of turns of each dialogue, on which all files have to agree."""
    if not files:
        what = "says nothing about turns"
        remedy = "add booked_domains.json, gold_states.json, user_turns.json or references/NAME.json"
        raise DataError(Problem(str(folder), None, what, remedy))
    problems, turns = [], {}
    for dialogue in dialogues:
        counts = {name: len(turns_of.get(dialogue, ())) for name, turns_of in files.items()}
        if len(set(counts.values())) > 1:
            what = "has " + ", ".join(f"{count} turns in {name}" for name, count in counts.items())
            problems.append(Problem(f"{folder}: {dialogue}", None, what, "every file must have all its system turns"))
        turns[dialogue] = max(counts.values())
    if problems:
        raise DataError(problems)
    return turns


# The data of a task (files, ontology and venues), as the resources of an evaluation.
#
#     load_task()                the installed pack `multiwoz`
#     load_task("multiwoz-2.4")  another installed version
#     load_task("town")          the invented town of the sample
#     load_task("some/folder")   a folder with these files, `database/` and its `ontology.toml`
#
# A folder without an `ontology.toml` is taken for one of MultiWOZ. Without `database/` the tables lie in the folder.

Names = Literal["published", "2023"]
PACK = "multiwoz"
TOWN = "town"
ONTOLOGY_FILE = "ontology.toml"


@dataclass(frozen=True)
class TaskData:
    """Everything that the evaluation of task dialogues takes in addition to the predictions."""

    files: TaskFiles
    ontology: Ontology
    venues: Venues

    @property
    def resources(self) -> Mapping[Input, object]:
        """By the needs that they meet."""
        resources = {
            GOALS: self.files.goals,
            TRUE_STATES: self.files.states,
            REFERENCE_SETS: self.files.references,
            ONTOLOGY: self.ontology,
            VENUES: self.venues,
        }
        return {need: resource for need, resource in resources.items() if resource is not None}

    @cached_property
    def known_slots(self) -> frozenset[tuple[str, str]]:
        """Every (domain, slot) that the venues, the goals or the true states have."""
        columns = {(name, column) for name, table in self.venues.tables.items() for column in table.columns}
        frames = {
            (domain, *wishes["informable"], *(wishes.get("booking") or ()))
            for goal in self.files.goals.goals.values()
            for domain, wishes in goal.items()
        }
        for turns in () if self.files.states is None else self.files.states.states.values():
            frames.update((domain, *slots) for state in turns for domain, slots in state.items())
        slot = self.ontology.states.slot
        return frozenset(columns | {(domain, slot(name)) for domain, *names in frames for name in names})


def load_task(
    data: str | os.PathLike[str] | None = None, split: str | None = None, names: Names = "published"
) -> TaskData:
    """Load the data of a task: goals, references, states, ontology and database.

    Args:
        data: A folder, or `"town"` for the sample; None: the installed data pack `multiwoz`.
        split: A split of the data, where it has several.
        names: How names of venues are spelled: as for the `"published"` results of MultiWOZ, or as the MultiWOZ
            evaluation does since January `"2023"`.

    Returns:
        The data.

    Raises:
        DataError: A file is missing or has another form, or goals do not fit the ontology.

    Examples:
        >>> from dialeval.multiwoz import load_task
        >>> len(load_task("town").files.turns)
        8
    """
    folder = _find_folder(data)
    ontology_file = folder / ONTOLOGY_FILE
    ontology = load_ontology(ontology_file if ontology_file.is_file() else MULTIWOZ)
    if names == "2023":
        ontology = ontology.with_rule("name", "short-name")
    files = read_task(folder, split)
    database = folder / "database"
    venues = load_venues(ontology, database if database.is_dir() else folder)
    if problems := list(_check_goals(files, ontology)):
        raise DataError(problems)
    return TaskData(replace(files, references=_normalize_references(files.references, ontology)), ontology, venues)


def _check_goals(files: TaskFiles, ontology: Ontology) -> Iterator[Problem]:
    """Yield domains and words of goals that the ontology does not have: no system could ever meet them."""
    for dialogue, goal in files.goals.goals.items():
        for domain, wishes in goal.items():
            where = f"{files.where}: goals.json: {dialogue}.{domain}"
            if domain not in ontology.domains:
                remedy = f"there are {', '.join(ontology.domains)}"
                yield Problem(where, None, "the ontology has no such domain", remedy)
            for word in wishes["requestable"]:
                if word not in ontology.requested:
                    remedy = f"[requested] has {', '.join(ontology.requested)}"
                    yield Problem(f"{where}.requestable", None, f"no system can give {word!r}", remedy)


def _find_folder(data: str | os.PathLike[str] | None) -> Path:
    from dialeval.io.packs import PACK_SOURCES, find_pack, require_pack

    if data == TOWN:  # a name means the same in every working folder
        return sample_data.folder() / TOWN
    if data in (f"{PACK}-2.2", *(name for name in PACK_SOURCES if name.startswith(f"{PACK}-"))):
        pack = require_pack(str(data))
    elif data is not None:
        return Path(data)
    elif (installed := find_pack(PACK)) is not None:
        pack = installed
    else:
        other = f"a folder, or data={TOWN!r} for the invented town that ships with dialeval"
        what = "there is no MultiWOZ data; run `dialeval data add multiwoz`"
        raise NeedError(f"{what}, or pass data=... (--data) with {other}")
    for name in pack.files:  # sizes only: `dialeval data verify` reads every byte
        pack.file(name)
    return pack.path


def _normalize_references(references: ReferenceSets | None, ontology: Ontology) -> ReferenceSets | None:
    """Return the references as the normalized responses are spelled."""
    if references is None or ontology.normalized_references:
        return references
    normalize = make_normalizer(ontology.words)
    sets = {
        name: {dialogue: [normalize(text) for text in texts] for dialogue, texts in dialogues.items()}
        for name, dialogues in references.sets.items()
    }
    return ReferenceSets(sets, references.digest)


UNNAMED = "predictions"
"""The system of predictions that come without a name."""
DOMAIN = "domain"
"""The field of a row with the domains of its dialogue's goal, by which results can be cut into slices."""
SHOWN_UNKNOWN = 20
"""Unknown dialogue ids are named one by one up to this number, and then counted."""

_PREDICTIONS_FORM = "give an object of dialogue id -> list of turns, each an object with a response"
_SYSTEM = (str, os.PathLike, Mapping)
"""What a system is in a mapping of names to systems; a dialogue is a list."""
_REMEDIES = {
    "response": "give every turn one; an empty one if the system said nothing",
    "state": "give domains with their slots and values, or leave it out where there is none",
    "active_domains": 'leave it out, or give it so: ["hotel"]',
}


class _Turn(Struct):
    response: str
    state: dict[str, dict[str, str | list[str]]] = {}
    active_domains: list[str] = []


class TaskRow(TypedDict):
    """A turn of the data, with what a system gives for it; None for what it does not give."""

    dialogue: str
    listed: bool
    """Whether the document has the dialogue."""
    turn: int
    position: int | None
    """The place of the turn in the document."""
    response: str | None
    state: State | None
    active_domains: list[str] | None


TaskTurns: TypeAlias = list[JsonObject]
"""The turns of a dialogue in a document of predictions."""
Document: TypeAlias = Any
"""What a file of predictions holds, until it is checked."""


@dataclass(frozen=True, slots=True)
class TaskPredictions:
    """One system's rows, and how much of the data it covers."""

    rows: Rows
    dialogues: int
    """Dialogues of the data that are there, with or without turns."""
    without_turns: int
    counts: TurnCounts
    short: int
    """Turns that are missing in dialogues that are there."""
    remarks: tuple[str, ...] = ()
    """What the original passes over silently in the document itself."""
    report: str | None = None
    """A sentence on the values that became placeholders, where replies were lexicalized."""

    @property
    def turn_rows(self) -> list[TaskRow]:
        """The rows of all turns of the data."""
        rows: Iterable[TaskRow] = self.rows.columns[TASK_TURNS]  # type: ignore[assignment]
        return list(rows)

    @property
    def given(self) -> list[TaskRow]:
        """The rows of the turns that are there."""
        return [row for row in self.turn_rows if row["response"] is not None]

    def to_document(self) -> dict[str, TaskTurns]:
        """Return the predictions in the form in which they are read."""
        turns: dict[str, TaskTurns] = {row["dialogue"]: [] for row in self.turn_rows if row["listed"]}
        for row in self.given:
            fields = ((name, value) for name, value in row.items() if name in _REMEDIES and value is not None)
            turns[row["dialogue"]].append(dict(fields))
        return turns


Predictions: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | list[TaskPredictions]
"""A file, a folder, a document, a mapping of names to these; or predictions that were read."""


def read_predictions(source: Predictions, task: TaskFiles) -> list[TaskPredictions]:
    """Return the predictions of every system in a source; those that were read before as they are."""
    if isinstance(source, list) and source and all(isinstance(one, TaskPredictions) for one in source):
        return source
    documents = list(_list_documents(source))
    names = Counter(system for system, _, _ in documents)
    remedy = "rename a file, or write NAME=FILE"
    problems = [Problem(name, None, "two systems have this name", remedy) for name, count in names.items() if count > 1]
    if problems:
        raise DataError(problems)
    return read_each(partial(_read, task, *document) for document in documents)


def _read(task: TaskFiles, system: str, where: str, read: Callable[[], Document]) -> TaskPredictions:
    document = read()
    predictions = make_predictions(document, task, system, where)
    if isinstance(read, partial) and (repeated := _find_repeated(where, document)):
        what = f"the file has dialogues twice ({list_some(repeated, SHOWN_UNKNOWN)}); the last ones count"
        predictions = replace(predictions, remarks=(*predictions.remarks, f"{system}: {what}"))
    return predictions


_LISTS = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:\s*\[')
"""The keys of a JSON document that have a list as value, dialogue ids among them."""


def _find_repeated(path: PathSource, document: Mapping[str, object]) -> list[str]:
    """Return the dialogue ids that a file has more than once: parsers of JSON keep the last."""
    counts = Counter(_LISTS.findall(strip_mark(read_bytes(path)).data))
    return [name for name in document if counts[name.encode("utf-8", "surrogatepass")] > 1]


def _list_documents(source: Predictions) -> Iterator[tuple[str, str, Callable[[], Document]]]:
    """Yield system, place and reader of each document."""
    if isinstance(source, str | os.PathLike):
        paths: Sequence[PathSource] = find_response_files(source) if is_folder(source) else [source]
        for path in paths:
            yield stem_of(path), os.fspath(path), partial(json.load, path, _PREDICTIONS_FORM)
    elif isinstance(source, Mapping) and source and all(isinstance(value, _SYSTEM) for value in source.values()):
        for name, value in source.items():
            is_path = isinstance(value, str | os.PathLike)
            for system, where, read in _list_documents(value):
                shown = f"{name}/{system}" if is_path and is_folder(value) else str(name)
                yield shown, where if is_path else str(name), read
    else:
        yield UNNAMED, UNNAMED, lambda: source


def read_document(path: PathSource) -> dict[str, TaskTurns]:
    """Return the predictions in a file as they are, checked for their form but not against any data."""
    return _check_document(json.load(path, _PREDICTIONS_FORM), os.fspath(path))


def _check_document(document: Document, where: str) -> dict[str, TaskTurns]:
    """Return predictions as they are; DataError with the problems of their form."""
    if problems := _check_form(document, where):
        raise DataError(problems)
    return dict(document)


def add_slot_domains(
    predictions: Mapping[str, TaskTurns], ontology: str | os.PathLike[str] = MULTIWOZ
) -> dict[str, TaskTurns]:
    """Return a copy of predictions with the active domains that the placeholders of each response name.

    Args:
        predictions: A mapping of dialogue ids to turns.
        ontology: The ontology of the task; that of MultiWOZ unless given.

    Returns:
        The predictions, with `active_domains` in every turn.

    Raises:
        DataError: The predictions have another form.

    Examples:
        >>> from dialeval.multiwoz import add_slot_domains
        >>> add_slot_domains({"d1": [{"response": "the [hotel_name] is nice"}]})["d1"][0]["active_domains"]
        ['hotel']
    """
    domains = load_ontology(ontology).domains
    return {
        dialogue: [{**turn, "active_domains": find_slot_domains(turn["response"], domains)} for turn in turns]
        for dialogue, turns in _check_document(predictions, "predictions").items()
    }


def make_predictions(document: Document, task: TaskFiles, system: str, where: str) -> TaskPredictions:
    """Return the predictions of one document: the turns in the data's order, with a row for each that is missing."""
    misfits = _check_against_data(document, task, where) if isinstance(document, Mapping) else ()
    if problems := [*_check_form(document, where), *misfits]:
        raise DataError(problems)
    starts = dict(zip(document, offsets_of(map(len, document.values())).tolist(), strict=False))
    rows: list[TaskRow] = []
    for dialogue, count in task.turns.items():
        listed, turns, start = dialogue in document, document.get(dialogue, ()), starts.get(dialogue, 0)
        # A turn that is missing has no position and gives nothing.
        rows += [
            {
                "dialogue": dialogue,
                "listed": listed,
                "turn": at,
                "position": start + at if at < len(turns) else None,
                "response": turn.get("response"),
                "state": _take_first(_freeze_values(turn["state"])) if "state" in turn else None,
                "active_domains": turn.get("active_domains"),
            }
            for at, turn in enumerate((*turns, *[{}] * (count - len(turns))))
        ]
    lists = sum(
        not isinstance(value, str)
        for turns in document.values() for turn in turns
        for slots in turn.get("state", {}).values() for value in slots.values()
    )  # fmt: skip
    remarks = (
        (f"{system}: the states have lists of values for {lists:,} slots; the first of each counts",) if lists else ()
    )
    counts = TurnCounts.of(rows)
    columns: dict[Input, ColumnData] = {TASK_TURNS: ObjectColumn(rows)}
    if 0 < counts.turns == counts.states:
        columns[STATES] = ObjectColumn(rows)
    offsets = offsets_of(task.turns.values())
    bounds = offsets_of(count for count in task.turns.values() if count)
    numbers = row_numbers(offsets)
    names = TextColumn.from_strings(list(task.turns)).take(numbers)
    domains = RaggedColumn.from_lists([list(task.goals.goals[dialogue]) for dialogue in task.turns]).take(numbers)
    responses = TextColumn.from_strings([row["response"] or "" for row in rows])
    turn_column = np.arange(len(rows)) - offsets[numbers]
    return TaskPredictions(
        Rows(
            system, columns, names, turn_column, where, bounds, fields={DOMAIN: domains}, shown={"response": responses}
        ),
        dialogues=len(document),
        without_turns=sum(not turns for turns in document.values()),
        counts=counts,
        short=sum(task.turns[dialogue] - len(turns) for dialogue, turns in document.items()),
        remarks=remarks,
    )


def _check_form(document: Document, where: str) -> list[Problem]:
    """Return what is wrong with a document by itself."""
    if isinstance(document, Mapping) and not document:
        return [Problem(where, None, "is an empty object", _PREDICTIONS_FORM)]
    return check_types(document, dict[str, list[_Turn]], where, _PREDICTIONS_FORM, **_REMEDIES)


def _check_against_data(document: Document, task: TaskFiles, where: str) -> Iterator[Problem]:
    """Yield what in a document does not fit the data."""
    unknown = [dialogue for dialogue in document if dialogue not in task.turns]
    for dialogue in unknown[:SHOWN_UNKNOWN]:
        yield Problem(f"{where}: {dialogue}", None, *_explain_unknown(str(dialogue), task))
    if len(unknown) > SHOWN_UNKNOWN:
        what = f"and {len(unknown) - SHOWN_UNKNOWN} more dialogue ids that the data does not have"
        yield Problem(where, None, what, "check that file and data belong together")
    for dialogue, turns in document.items():
        most = task.turns.get(dialogue)
        if most is not None and isinstance(turns, LISTS) and len(turns) > most:
            what = f"one turn too many: the dialogue has {most} system turns in the data, and {len(turns)} here"
            yield Problem(f"{where}: {dialogue}[{most}]", None, what, "give one response per system turn")


def _explain_unknown(dialogue: str, task: TaskFiles) -> tuple[str, str]:
    if dialogue in task.other_splits:
        split = task.other_splits[dialogue]
        return f"the dialogue belongs to the split {split!r}, not to {task.split!r}", f"pass split={split} (--split)"
    plain = Path(dialogue.lower()).name.removesuffix(".json")
    hint = f"write {plain!r}" if plain in task.turns else "leave it out, or check that file and data belong together"
    return "the data has no such dialogue", hint
