"""Annotated dialogues of the breakdown challenge: which system turns were judged, and how often as O, T and X.

Turns of the user and turns without annotations are passed over. Annotations other than O, T and X do not count. Where
reading is lenient, turns of any other speaker count as the system's, and a `turn-index` may be anything: the original
looks only for the user's turns, and never at an index.

A large folder is skimmed by a kernel, which builds no objects and takes only documents that are beyond doubt; every
other one is decoded like those of a small folder, so that the result and the faults are the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET, ValidationError

from dialeval.core.errors import DataError
from dialeval.core.ragged import offsets_of
from dialeval.core.rowtable import NO_TURN
from dialeval.data.breakdown.documents import SYSTEM, USER, Annotation, Dialogue, Judgement, decoded
from dialeval.data.breakdown.faults import (
    BAD_INDEX,
    NO_REFERENCE,
    OTHER_SPEAKER,
    REPEATED_DIALOGUE,
    UNREADABLE_LOG,
    Findings,
    Kind,
    named_turns,
)
from dialeval.data.breakdown.files import Document, Files, Store, open_logs

if TYPE_CHECKING:
    from dialeval.core.arrays import Floats, Ints
    from dialeval.data.formats.opening import PathSource

SKIMMED_FILES = 2_000
"""A folder from this number of files on is skimmed: below it, loading the compiler costs more than it saves."""
_LARGEST_INDEX = 1 << 62
_judgement = attrgetter("breakdown")


@dataclass(frozen=True, eq=False, slots=True)
class Annotated:
    """All annotated turns, dialogue after dialogue."""

    where: str
    dialogues: list[str]
    offsets: Ints
    """Dialogue `k` has the turns `offsets[k]` to `offsets[k + 1]`."""
    turns: Ints
    """The turn-index of each; `NO_TURN` where there is none."""
    counts: Floats
    """O, T and X of each."""
    source: Any = ()
    """What was read."""
    places: list[tuple[str, int | None]] = field(default_factory=list)
    """Where each dialogue stands."""


@dataclass
class Gathered:
    """Dialogues as they are read: where each stands and its annotated turns."""

    places: list[tuple[str, int | None]] = field(default_factory=list)
    dialogues: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    judgements: list[str] = field(default_factory=list)
    """The judgements of each turn that is not yet counted, a letter per annotator."""
    counts: list[Floats] = field(default_factory=lambda: [np.empty((0, 4), np.float64)])
    """O, T, X and others of the turns that are counted."""

    def add(self, document: Document, dialogue: Dialogue, findings: Findings) -> None:
        """One more dialogue; a `ValidationError` if one of its annotated turns cannot be used."""
        turns: list[int] = []
        judgements: list[str] = []
        unnumbered: list[int] = []
        others: list[int] = []
        for at, turn in enumerate(dialogue.turns):
            if turn.speaker == USER:
                continue
            if turn.annotations is UNSET:
                raise ValidationError(f"Object missing required field `annotations` - at `$.turns[{at}]`")
            if not turn.annotations:
                continue
            if turn.speaker is UNSET:
                raise ValidationError(f"Object missing required field `speaker` - at `$.turns[{at}]`")
            numbered = type(turn.index) is int and -1 <= turn.index < _LARGEST_INDEX
            turns.append(turn.index if numbered else NO_TURN)
            judgements.append(_joined(turn.annotations))
            if not numbered:
                unnumbered.append(at)
            if turn.speaker != SYSTEM:
                others.append(at)
        _note(findings, document, BAD_INDEX, unnumbered, "the turn-index is no whole number from 0 on")
        _note(findings, document, OTHER_SPEAKER, others, "the speaker is neither S nor U")
        self.places.append((document.where, document.line))
        self.dialogues.append(dialogue.name)
        self.sizes.append(len(turns))
        self.turns += turns
        self.judgements += judgements

    def count(self) -> Floats:
        """O, T, X and others of all turns."""
        if self.judgements:
            self.counts.append(_counts(self.judgements))
            self.judgements = []
        return np.concatenate(self.counts)


def _note(findings: Findings, document: Document, kind: Kind, places: list[int], what: str) -> None:
    """Note what is odd about the turns at some places of a dialogue, counted from 0."""
    if places:
        findings.add(kind, document.where, document.line, f"{named_turns(places)} of the list: {what}", len(places))


def _joined(annotations: list[Annotation]) -> str:
    """The judgements of a turn, a letter each: joined, they are counted ten times as fast as one by one."""
    try:
        return "".join(map(_judgement, annotations))
    except TypeError:  # some are null
        return "".join(_judgement(each) or Judgement.OTHER for each in annotations)


def read_logs(source: PathSource | Iterable[Mapping[str, Any]], findings: Findings) -> Annotated:
    """The annotated turns of a folder, a file, an archive, or of documents that are parsed already."""
    gathered = Gathered()
    if not isinstance(source, str | os.PathLike | Mapping) and isinstance(source, Iterable):
        source = list(source)  # what is read once may be read again, see `utterances`
    try:
        for store in open_logs(source):
            for document in _undecided(store, gathered):
                _add(gathered, document, findings)
    except DataError as error:
        findings.refuse(*error.faults)
        raise DataError(findings.faults) from None
    where = os.fspath(source) if isinstance(source, str | os.PathLike) else "data"
    return _together(where, source, gathered, findings)


def _undecided(store: Store, gathered: Gathered) -> Iterator[Document]:
    """The documents of a store that are still to be decoded."""
    if isinstance(store, Files) and len(store.names) >= SKIMMED_FILES and Path(store.where).is_dir():
        from dialeval.data.breakdown.skim import skim_folder

        return skim_folder(store, gathered)
    return store.documents()


def _add(gathered: Gathered, document: Document, findings: Findings) -> None:
    """Add what a document holds, or a fault."""
    try:
        dialogue = decoded(document, Dialogue, findings)
        dialogue.name.encode()  # it becomes a column of texts
        gathered.add(document, dialogue, findings)
    except UnicodeEncodeError:
        findings.add(UNREADABLE_LOG, document.where, document.line, "the dialogue-id holds half a character")
    except ValidationError as error:
        findings.add(UNREADABLE_LOG, document.where, document.line, f"is no annotated dialogue: {error}")
    except DataError as error:
        findings.add_error(UNREADABLE_LOG, document.where, document.line, error)


def _together(where: str, source: Any, gathered: Gathered, findings: Findings) -> Annotated:
    """The columns of all dialogues, and what is wrong with them as a whole."""
    if len(set(gathered.dialogues)) < len(gathered.dialogues):
        first: dict[str, str] = {}
        for (place, line), dialogue in zip(gathered.places, gathered.dialogues, strict=True):
            if dialogue in first:
                what = f"the dialogue {dialogue!r} is also in {first[dialogue]}"
                findings.add(REPEATED_DIALOGUE, place, line, what)
            first.setdefault(dialogue, place)
    offsets, turns = offsets_of(gathered.sizes), np.array(gathered.turns, np.int64)
    counted = gathered.count()
    counts, others = counted[:, :3].copy(), int(counted[:, 3].sum())
    if others:
        findings.remarks.append(f"{others} annotations are none of O, T and X and do not count")
    bare = counts.sum(axis=1) == 0
    for at in np.unique(np.searchsorted(offsets, np.flatnonzero(bare), side="right") - 1).tolist():
        rows = slice(offsets[at], offsets[at + 1])
        unjudged = turns[rows][bare[rows]].tolist()
        what = f"{named_turns(unjudged)}: no annotation is O, T or X"
        place, line = gathered.places[at]
        findings.add(NO_REFERENCE, place, line, what, len(unjudged))
    return Annotated(where, gathered.dialogues, offsets, turns, counts, source, gathered.places)


def _counts(judgements: list[str]) -> Floats:
    """How often each turn was judged as O, T, X and other; every turn has at least one judgement."""
    letters = np.frombuffer("".join(judgements).encode(), np.uint8)
    starts = offsets_of(map(len, judgements))[:-1]
    return np.stack([np.add.reduceat(letters == ord(label), starts, dtype=np.float64) for label in "OTX?"], axis=1)
