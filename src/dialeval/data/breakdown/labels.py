"""The labels of one detector: found by dialogue, matched with its annotated turns, checked, one row of numbers each.

A row holds the code of the label (O 0, T 1, X 2, anything else 3) and the three probabilities; NaN for what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import UNSET, ValidationError

from dialeval.core.errors import DataError
from dialeval.data.breakdown.documents import Entry, Label, Labels, decoded, parse
from dialeval.data.breakdown.faults import (
    BAD_ENTRY,
    MISSING_TURNS,
    NO_LABELS,
    NOT_PROBABLE,
    ODD_SUM,
    OTHER_DIALOGUE,
    REPEATED_LABELS,
    UNKNOWN_LABEL,
    UNREADABLE_LABELS,
    Findings,
    Kind,
    named_turns,
)
from dialeval.data.breakdown.files import LABELS, Document, Files, Listed, Store

if TYPE_CHECKING:
    from dialeval.core.arrays import Floats, Ints
    from dialeval.data.breakdown.logs import Annotated

Match = Literal["turn-index", "position"]

SUM_TOLERANCE = 0.02
"""How far a sum of probabilities may be from 1: three that are rounded to two decimals can be off by 0.015."""

_CODES = {"O": 0.0, "T": 1.0, "X": 2.0}
_OTHER = 3.0
_KEYS = ("breakdown", "prob-O", "prob-T", "prob-X")
_NONE = (np.nan, np.nan, np.nan, np.nan)
_SHOWN_DIALOGUES = 3

_MATCHED = {
    "turn-index": "Labels are matched by turn-index here; the original would match them by position "
    "(--match position).",
    "position": "Labels are matched by position here, as in the original: if turn-index is right, labels are taken "
    "for other turns. Leave --match position out.",
}

_Placed = tuple[Document, Any]
"""A document and what it holds: `Labels`, the parsed document where it is not quite that, None if it is no JSON."""


@dataclass
class LabelsReader:
    """Reads the labels of one detector into one row of numbers per annotated turn."""

    annotated: Annotated
    findings: Findings
    match: Match
    name: str
    places: list[tuple[str, int | None]] = field(default_factory=list)
    """Where the labels of each dialogue stand."""
    differing: list[str] = field(default_factory=list)
    unused: int = 0
    several: int = 0

    def read(self, source: Store) -> Floats:
        """The labels column."""
        wanted = self.annotated.turns.tolist()
        ends = self.annotated.offsets.tolist()
        rows: list[tuple[Any, ...]] = []
        listed = self._by_dialogue(source) if isinstance(source, Listed) else {}
        for at, dialogue in enumerate(self.annotated.dialogues):
            turns = wanted[ends[at] : ends[at + 1]]
            placed = self._of_file(source, dialogue) if isinstance(source, Files) else listed.get(dialogue)
            if placed is None:
                what = f"there are no labels for the dialogue {dialogue!r}"
                self.findings.add(NO_LABELS, source.where, None, what, len(turns))
            document, content = placed or (Document(source.where, None, None), None)
            self.places.append((document.where, document.line))
            rows += [_NONE] * len(turns) if content is None else self._matched(dialogue, turns, document, content)
        self._remark()
        values = _numbers(rows)
        self._check(values)
        return values

    def _by_dialogue(self, source: Listed) -> dict[str, _Placed]:
        """The documents of a list by their dialogue-id."""
        documents: dict[str, _Placed] = {}
        for document in source.documents():
            content = self._content(document)
            dialogue = _dialogue(content)
            if not isinstance(dialogue, str):
                if content is not None:
                    self._note(UNREADABLE_LABELS, document, "has no dialogue-id")
            elif dialogue in documents:
                self._note(REPEATED_LABELS, document, f"there are labels for the dialogue {dialogue!r} before")
            else:
                documents[dialogue] = document, content
        return documents

    def _of_file(self, source: Files, dialogue: str) -> _Placed | None:
        """The labels file of a dialogue; None if there is no such file."""
        name = dialogue + LABELS
        if name not in source.names:
            return None
        try:
            document = source.document(name)
        except DataError as error:
            self.findings.add_error(UNREADABLE_LABELS, f"{source.where}/{name}", None, error)
            return Document(source.where, None, None), None
        content = self._content(document)
        other = _dialogue(content)
        if content is not None and other != dialogue:
            called = "no dialogue" if other is None else f"the dialogue {other!r}"
            self._note(OTHER_DIALOGUE, document, f"holds the labels of {called}, not {dialogue!r}")
        return document, content

    def _content(self, document: Document) -> Any:
        try:
            return decoded(document, Labels, self.findings)
        except ValidationError:
            return parse(document, Findings())  # what is to say about its bytes has been said
        except DataError as error:
            self.findings.add_error(UNREADABLE_LABELS, document.where, document.line, error)
            return None

    def _matched(self, dialogue: str, turns: list[int], document: Document, content: Any) -> list[tuple[Any, ...]]:
        """The labels of each annotated turn of a dialogue."""
        entries = content.turns if isinstance(content, Labels) else self._usable(document, content)
        indices = [entry.index for entry in entries]
        values = self._values(document, entries)
        if indices == turns:
            return values
        by_position = [at if at < len(values) else None for at in range(len(turns))]
        by_index = self._by_index(indices, turns, document)
        if any(one != other for one, other in zip(by_position, by_index, strict=True) if one is not None):
            self.differing.append(dialogue)
        chosen = by_position if self.match == "position" else by_index
        missing = [turn for turn, at in zip(turns, chosen, strict=True) if at is None]
        if missing:
            what = f"{named_turns(missing)}: no labels ({len(values)} entries for {len(turns)} annotated turns)"
            self._note(MISSING_TURNS, document, what, len(missing))
        self.unused += len(values) - sum(at is not None for at in chosen)
        return [_NONE if at is None else values[at] for at in chosen]

    def _usable(self, document: Document, content: Any) -> list[Entry]:
        """The entries of a document that is not quite as it should be; the first label of each, if it can be used."""
        given = content.get("turns") if isinstance(content, dict) else None
        if not isinstance(given, list):
            self._note(UNREADABLE_LABELS, document, 'has no list of "turns"')
            return []
        entries = []
        for entry in given:
            index, labels = (entry.get("turn-index"), entry.get("labels")) if isinstance(entry, dict) else (None, None)
            given_labels = labels if isinstance(labels, list) else []
            self.several += len(given_labels) > 1
            firsts = [each for each in given_labels[:1] if isinstance(each, dict)]
            entries.append(Entry([Label(*(first.get(key, UNSET) for key in _KEYS)) for first in firsts], index))
        return entries

    def _values(self, document: Document, entries: list[Entry]) -> list[tuple[Any, ...]]:
        """Code and probabilities of each entry, and a fault for each that lacks one."""
        values: list[tuple[Any, ...]] = []
        for at, entry in enumerate(entries):
            if not entry.labels:
                self._note(BAD_ENTRY, document, f"entry {at}: no labels", 1)
                values.append(_NONE)
                continue
            first = entry.labels[0]
            self.several += len(entry.labels) > 1
            label = first.breakdown
            code = _CODES.get(label, _OTHER) if isinstance(label, str) else np.nan if label is UNSET else _OTHER
            row = code, first.o, first.t, first.x
            if label is UNSET or UNSET in row:
                given = zip(_KEYS, (label, *row[1:]), strict=True)
                lacking = ", ".join(key for key, value in given if value is UNSET)
                self._note(BAD_ENTRY, document, f"entry {at}: no {lacking}", 1)
            values.append(row)
        return values

    def _by_index(self, indices: list[Any], turns: list[int], document: Document) -> list[int | None]:
        """The entry that names each of the turns, if there is one."""
        first: dict[int, int] = {}
        repeated = []
        for at, index in enumerate(indices):
            if type(index) is int and first.setdefault(index, at) != at:
                repeated.append(index)
        nameless = sum(type(index) is not int for index in indices)
        if self.match == "turn-index":
            if repeated:
                what = f"{named_turns(repeated)}: labels more than once"
                self._note(REPEATED_LABELS, document, what, len(repeated))
            if nameless:
                what = f"{nameless} of {len(indices)} entries have no whole number as turn-index"
                self._note(BAD_ENTRY, document, what, nameless)
        return [first.get(turn) for turn in turns]

    def _remark(self) -> None:
        remarks = self.findings.remarks
        if self.differing:
            more = ", ..." if len(self.differing) > _SHOWN_DIALOGUES else ""
            remarks.append(
                f"MATCHING MATTERS for {self.name}: in {len(self.differing)} of {len(self.annotated.dialogues)} "
                f"dialogues ({', '.join(self.differing[:_SHOWN_DIALOGUES])}{more}) the turn-index and the position of "
                f"labels point to different turns. {_MATCHED[self.match]}"
            )
        if self.unused:
            remarks.append(f"{self.name}: entries that belong to no annotated turn: {self.unused}; not used")
        if self.several:
            remarks.append(f"{self.name}: turns with several labels: {self.several}; the first counts")

    def _check(self, values: Floats) -> None:
        """Note what is wrong with the numbers, by file."""
        code, probabilities = values[:, 0], values[:, 1:]
        there = ~np.isnan(code)
        with np.errstate(invalid="ignore"):
            improbable = there & ~((probabilities >= 0) & np.isfinite(probabilities)).all(axis=1)
            odd = there & ~improbable & ~(np.abs(probabilities.sum(axis=1) - 1) <= SUM_TOLERANCE)
        self._note_rows(code == _OTHER, UNKNOWN_LABEL, "the label is none of O, T and X")
        self._note_rows(improbable, NOT_PROBABLE, "a probability is below 0 or not finite", probabilities)
        self._note_rows(odd, ODD_SUM, "the probabilities do not add up to 1", probabilities)

    def _note_rows(self, bad: Any, kind: Kind, what: str, shown: Floats | None = None) -> None:
        """Note a fault of some rows, once for each of their files."""
        rows: Ints = np.flatnonzero(bad)
        if not len(rows):
            return
        offsets, turns = self.annotated.offsets, self.annotated.turns
        owners, starts = np.unique(np.searchsorted(offsets, rows, side="right") - 1, return_index=True)
        for owner, own in zip(owners.tolist(), np.split(rows, starts[1:]), strict=True):
            first = "" if shown is None else f" (first: {', '.join(f'{p:g}' for p in shown[own[0]])})"
            message = f"{named_turns(turns[own].tolist())}: {what}{first}"
            where, line = self.places[owner]
            self.findings.add(kind, where, line, message, len(own))

    def _note(self, kind: Kind, document: Document, what: str, turns: int = 0) -> None:
        self.findings.add(kind, document.where, document.line, what, turns)


def _dialogue(content: Any) -> Any:
    """The dialogue-id of what a document holds."""
    if isinstance(content, Labels):
        return content.dialogue
    return content.get("dialogue-id") if isinstance(content, dict) else None


def _numbers(rows: list[tuple[Any, ...]]) -> Floats:
    """The matrix of all labels; what is no number becomes NaN and is reported with the other bad probabilities."""
    try:
        return np.fromiter(chain.from_iterable(rows), np.float64, 4 * len(rows)).reshape(-1, 4)
    except (ValueError, TypeError, OverflowError):
        return np.array([[_number(value) for value in row] for row in rows], np.float64).reshape(-1, 4)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        return float("nan")
