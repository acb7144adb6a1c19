"""The data of a task (files, ontology and venues), as the resources of an evaluation.

    load_task()                the installed pack `multiwoz`
    load_task("town")          the invented town of the sample
    load_task("some/folder")   a folder with the files of `data/task/corpus.py`, `database/` and its `ontology.toml`

A folder without an `ontology.toml` is taken for one of MultiWOZ. Without `database/` the tables lie in the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dialeval import sample
from dialeval.core.errors import DataError, Fault, NeedError
from dialeval.core.garbage import without_garbage_collection
from dialeval.core.needs import Need
from dialeval.data.task.corpus import ReferenceSets, TaskFiles, read_task
from dialeval.resources.ontology import MULTIWOZ, Ontology, load_ontology
from dialeval.resources.venues import Venues, load_venues
from dialeval.text.delexicalised import Normaliser

PACK = "multiwoz"
TOWN = "town"
ONTOLOGY_FILE = "ontology.toml"


@dataclass(frozen=True)
class TaskData:
    """Everything that the evaluation of task dialogues takes beside the predictions."""

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
    """The data of a task from a folder, the sample, or the installed pack."""
    folder = _folder(data)
    own = folder / ONTOLOGY_FILE
    ontology = load_ontology(own if own.is_file() else MULTIWOZ)
    with without_garbage_collection():
        files = read_task(folder, split)
        database = folder / "database"
        venues = load_venues(ontology, database if database.is_dir() else folder)
    if faults := list(_misfits(files, ontology)):
        raise DataError(faults)
    return TaskData(replace(files, references=_normalised(files.references, ontology)), ontology, venues)


def _misfits(files: TaskFiles, ontology: Ontology) -> Iterator[Fault]:
    """Domains and words of goals that the ontology does not have: no system could ever meet them."""
    for dialogue, goal in files.goals.goals.items():
        for domain, wishes in goal.items():
            where = f"{files.where}: goals.json: {dialogue}.{domain}"
            if domain not in ontology.domains:
                remedy = f"there are {', '.join(ontology.domains)}"
                yield Fault(where, None, "the ontology has no such domain", remedy)
            for word in wishes["requestable"]:
                if word not in ontology.requested:
                    remedy = f"[requested] has {', '.join(ontology.requested)}"
                    yield Fault(f"{where}.requestable", None, f"no system can give {word!r}", remedy)


def _folder(data: str | os.PathLike[str] | None) -> Path:
    if data is not None:
        return sample.folder() / TOWN if data == TOWN else Path(data)  # a name means the same in every working folder
    from dialeval.resources.packs import find_pack

    pack = find_pack(PACK)
    if pack is None:
        raise NeedError(
            "there is no MultiWOZ data; run `dialeval data add multiwoz`, or pass data=... (--data) with a folder, or "
            f"data={TOWN!r} for the invented town that ships with dialeval"
        )
    for name in pack.files:  # sizes only: `dialeval data verify` reads every byte
        pack.file(name)
    return pack.path


def _normalised(references: ReferenceSets | None, ontology: Ontology) -> ReferenceSets | None:
    """The references as the normalised responses are spelt."""
    if references is None or ontology.normalised_references:
        return references
    normalise = Normaliser(ontology.words)
    sets = {
        name: {dialogue: [normalise(text) for text in texts] for dialogue, texts in dialogues.items()}
        for name, dialogues in references.sets.items()
    }
    return ReferenceSets(sets, references.digest)
