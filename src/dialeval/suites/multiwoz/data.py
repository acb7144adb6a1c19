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
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from dialeval import sample_data
from dialeval.core.arrays import without_garbage_collection
from dialeval.core.batch import Need
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, NeedError, Problem, SettingError
from dialeval.io import json
from dialeval.io.checking import type_problems
from dialeval.io.opening import PACKINGS, read_bytes, stem_of, without_mark
from dialeval.suites.multiwoz.ontology import MULTIWOZ, Ontology, load_ontology
from dialeval.suites.multiwoz.states import MAIN_REFERENCES, Normalizer
from dialeval.suites.multiwoz.venues import Venues, load_venues

if TYPE_CHECKING:
    from dialeval.io.packs import Pack

DEFAULT_SPLIT = "test"
VERSION_FILE = "version.json"

_FORM = "docs/own-task.md shows the form"


class _Wishes(Struct):
    informable: dict[str, str] = {}
    requestable: list[str] = []
    booking: dict[str, str] | Annotated[list[Any], Meta(max_length=0)] | None = None  # MultiWOZ has empty lists there


@dataclass(frozen=True, slots=True)
class Goals:
    """What the user of each dialogue wants, and by which turn each domain is booked."""

    goals: Mapping[str, Mapping[str, Any]]
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
    """The true state of each turn, as the file spells it."""

    states: Mapping[str, Sequence[Mapping[str, Mapping[str, str]]]]
    digest: str

    @property
    def frames(self) -> set[tuple[str, ...]]:
        """Each domain with the slots that it has in some state."""
        given = (state for turns in self.states.values() for state in turns)
        return {(domain, *slots) for state in given for domain, slots in state.items()}


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
    whole, (split, others) = folder, _split(folder, split)
    folder = whole / split if split else whole
    problems: list[Problem] = []
    version: Any = None
    shas: dict[str, str] = {}

    def load(name: str, kind: Any) -> Any:
        path = _existing(folder / name)
        if path is None:
            return None
        try:
            document, shas[name] = _document(path)
        except DataError as error:
            problems.extend(error.problems)
            return None
        wrong = type_problems(document, kind, str(path), _FORM)
        problems.extend(wrong)
        return None if wrong else document

    goals = load("goals.json", dict[str, dict[str, _Wishes]])
    if goals is None and not problems:
        problems.append(Problem(str(folder), None, "holds no goals.json", "name a folder with the files of a task"))
    booked = load("booked_domains.json", dict[str, list[list[str]]])
    states = load("gold_states.json", dict[str, list[dict[str, dict[str, str]]]])
    users = load("user_turns.json", dict[str, list[str]])
    if (stated := _existing(whole / VERSION_FILE)) is not None:
        version, _ = _document(stated)
        problems.extend(type_problems(version, str, str(stated), _FORM))
    names = sorted(_reference_names(folder), key=lambda name: (name != MAIN_REFERENCES, name))
    sets = {name: load(f"references/{name}.json", dict[str, list[str]]) for name in names}
    if problems:
        raise DataError(problems)
    counts = {
        "booked_domains": _lengths(booked),
        "gold_states": _lengths(states),
        "user_turns": _lengths(users),
        **{name: _lengths(texts) for name, texts in sets.items()},
    }
    turns = _turn_counts(folder, list(goals), counts)
    return TaskFiles(
        str(whole),
        Goals(_whole(goals), booked, _digest(shas, "goals.json", "booked_domains.json")),
        None if states is None else TrueStates(states, _digest(shas, "gold_states.json")),
        ReferenceSets(sets, _digest(shas, *(f"references/{name}.json" for name in sets))) if sets else None,
        turns,
        split,
        others,
        users,
        version,
    )


def _whole(goals: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the goals, each with all its parts."""
    return {
        dialogue: {
            domain: {"informable": {}, "requestable": [], "booking": {}, **wishes} for domain, wishes in goal.items()
        }
        for dialogue, goal in goals.items()
    }


def _existing(path: Path) -> Path | None:
    packed = (path.with_name(f"{path.name}{packing}") for packing in sorted(PACKINGS))
    return next((file for file in (path, *packed) if file.is_file()), None)


def _document(path: Path) -> tuple[Any, str]:
    data = without_mark(read_bytes(path))
    return json.parsed(data, str(path)), hashlib.sha256(data.data).hexdigest()


def _digest(shas: Mapping[str, str], *names: str) -> str:
    lines = "".join(f"{shas[name]}  {name}\n" for name in names if name in shas)
    return hashlib.sha256(lines.encode()).hexdigest()[:DIGEST_LENGTH]


def _reference_names(folder: Path) -> set[str]:
    place = folder / "references"
    return {stem_of(file) for file in place.iterdir() if ".json" in file.suffixes} if place.is_dir() else set()


def _split(folder: Path, asked: str | None) -> tuple[str | None, dict[str, str]]:
    """Return the split that is read, and the dialogues of the others; None for a folder without splits."""
    path = _existing(folder / "splits.json")
    if path is None:
        if asked is not None:
            raise SettingError(f"the data in {folder} has no splits, so there is no split {asked!r}")
        return None, {}
    splits, _ = _document(path)
    if problems := type_problems(splits, dict[str, list[str]], str(path), "add the pack again"):
        raise DataError(problems)
    name = asked or DEFAULT_SPLIT
    if name not in splits:
        raise SettingError(f"the data in {folder} has no split {name!r}; it has {', '.join(splits)}")
    return name, {dialogue: other for other, ids in splits.items() if other != name for dialogue in ids}


def _lengths(document: Mapping[str, Sequence[Any]] | None) -> dict[str, int] | None:
    """Return the number of turns of each dialogue in a document."""
    return None if document is None else {dialogue: len(turns) for dialogue, turns in document.items()}


def _turn_counts(
    folder: Path, dialogues: Sequence[str], files: Mapping[str, Mapping[str, int] | None]
) -> dict[str, int]:
    """Return the number of turns of each dialogue, on which all files have to agree."""
    given = {name: turns for name, turns in files.items() if turns is not None}
    if not given:
        what = "says nothing about turns"
        remedy = "add booked_domains.json, gold_states.json, user_turns.json or references/NAME.json"
        raise DataError(Problem(str(folder), None, what, remedy))
    problems, turns = [], {}
    for dialogue in dialogues:
        counts = {name: turns_of.get(dialogue, 0) for name, turns_of in given.items()}
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
    def resources(self) -> Mapping[Need, Any]:
        """By the needs that they meet."""
        given = {
            Need.GOALS: self.files.goals,
            Need.TRUE_STATES: self.files.states,
            Need.REFERENCE_SETS: self.files.references,
            Need.ONTOLOGY: self.ontology,
            Need.VENUES: self.venues,
        }
        return {need: resource for need, resource in given.items() if resource is not None}

    @cached_property
    def known_slots(self) -> frozenset[tuple[str, str]]:
        """Every (domain, slot) that the venues, the goals or the true states have."""
        slot = self.ontology.states.slot
        known = {(name, column) for name, table in self.venues.tables.items() for column in table.columns}
        frames = {
            (domain, *wishes["informable"], *(wishes.get("booking") or ()))
            for goal in self.files.goals.goals.values()
            for domain, wishes in goal.items()
        }
        if self.files.states is not None:
            frames.update(self.files.states.frames)
        return frozenset(known | {(domain, slot(name)) for domain, *names in frames for name in names})


def load_task(data: str | os.PathLike[str] | None = None, split: str | None = None) -> TaskData:
    """Load the data of a task: goals, references, states, ontology and database.

    Args:
        data: A folder, or `"town"` for the sample; None: the installed data pack `multiwoz`.
        split: A split of the data, where it has several.

    Returns:
        The data.

    Raises:
        DataError: A file is missing or has another form, or goals do not fit the ontology.

    Examples:
        >>> from dialeval.multiwoz import load_task
        >>> len(load_task("town").files.turns)
        8
    """
    folder = _folder(data)
    own = folder / ONTOLOGY_FILE
    ontology = load_ontology(own if own.is_file() else MULTIWOZ)
    with without_garbage_collection():
        files = read_task(folder, split)
        database = folder / "database"
        venues = load_venues(ontology, database if database.is_dir() else folder)
    if problems := list(_misfits(files, ontology)):
        raise DataError(problems)
    return TaskData(replace(files, references=_normalized(files.references, ontology)), ontology, venues)


def _misfits(files: TaskFiles, ontology: Ontology) -> Iterator[Problem]:
    """Domains and words of goals that the ontology does not have: no system could ever meet them."""
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


def _folder(data: str | os.PathLike[str] | None) -> Path:
    from dialeval.io.packs import PACK_SOURCES, find_pack, installed_pack

    if data == TOWN:  # a name means the same in every working folder
        return sample_data.folder() / TOWN
    if data in (f"{PACK}-2.2", *(name for name in PACK_SOURCES if name.startswith(f"{PACK}-"))):
        pack: Pack | None = installed_pack(str(data))
    elif data is not None:
        return Path(data)
    else:
        pack = find_pack(PACK)
    if pack is None:
        raise NeedError(
            "there is no MultiWOZ data; run `dialeval data add multiwoz`, or pass data=... (--data) with a folder, or "
            f"data={TOWN!r} for the invented town that ships with dialeval"
        )
    for name in pack.files:  # sizes only: `dialeval data verify` reads every byte
        pack.file(name)
    return pack.path


def _normalized(references: ReferenceSets | None, ontology: Ontology) -> ReferenceSets | None:
    """Return the references as the normalized responses are spelled."""
    if references is None or ontology.normalized_references:
        return references
    normalize = Normalizer(ontology.words)
    sets = {
        name: {dialogue: [normalize(text) for text in texts] for dialogue, texts in dialogues.items()}
        for name, dialogues in references.sets.items()
    }
    return ReferenceSets(sets, references.digest)
