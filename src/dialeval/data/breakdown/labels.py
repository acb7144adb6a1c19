"""The labels of one detector: found by dialogue, matched with its annotated turns, checked, one line of numbers each.

    {"dialogue-id": ..., "turns": [{"turn-index": 2, "labels": [{"breakdown": "O", "prob-O": 0.8, ...}]}, ...]}

A line holds the code of the label (O 0, T 1, X 2, anything else 3) and the three probabilities; NaN where there are
none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.core.errors import DataError
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
from dialeval.data.breakdown.files import LABELS, Folder, Lines, Members, Store
from dialeval.data.breakdown.logs import Annotated, NotJsonError, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dialeval.core.arrays import Floats, Ints

Match = Literal["turn-index", "position"]

SUM_TOLERANCE = 0.02
"""How far a sum of probabilities may be from 1: three that are rounded to two decimals can be off by 0.015."""

_CODES = {"O": 0.0, "T": 1.0, "X": 2.0}
_OTHER = 3.0
_NONE = (np.nan, np.nan, np.nan, np.nan)
_SHOWN_DIALOGUES = 3

_MATCHED = {
    "turn-index": "Labels are matched by turn-index here; the original would match them by position "
    "(--match position).",
    "position": "Labels are matched by position here, as in the original: if turn-index is right, labels are taken "
    "for other turns. Leave --match position out.",
}

_Placed = tuple[str, int | None, Any]
"""File, line and parsed content of a document; the content is None where it cannot be used."""


@dataclass(frozen=True)
class Documents:
    """Labels that are parsed already."""

    documents: Sequence[Any]
    where: str = "labels"


_LISTS = (Lines, Documents)


@dataclass
class LabelsReader:
    """Reads the labels of one detector into one line of numbers per annotated turn."""

    annotated: Annotated
    findings: Findings
    match: Match
    name: str
    places: list[tuple[str, int | None]] = field(default_factory=list)
    """Where the labels of each dialogue stand."""
    differing: list[str] = field(default_factory=list)
    unused: int = 0
    several: int = 0

    def read(self, source: Store | Documents) -> Floats:
        """The labels column."""
        wanted = self.annotated.turns.tolist()
        ends = self.annotated.offsets.tolist()
        found: list[tuple[Any, ...]] = []
        listed = self._listed(source) if isinstance(source, _LISTS) else {}
        for at, dialogue in enumerate(self.annotated.dialogues):
            turns = wanted[ends[at] : ends[at + 1]]
            placed = listed.get(dialogue) if isinstance(source, _LISTS) else self._filed(source, dialogue)
            if placed is None:
                what = f"there are no labels for the dialogue {dialogue!r}"
                self.findings.add(NO_LABELS, source.where, None, what, len(turns))
            where, line, document = placed or (source.where, None, None)
            self.places.append((where, line))
            found += [_NONE] * len(turns) if document is None else self._matched(dialogue, turns, where, line, document)
        self._remark()
        values = self._numbers(found)
        self._check(values)
        return values

    def _listed(self, source: Lines | Documents) -> dict[str, _Placed]:
        """The documents of a list by their dialogue-id."""
        found: dict[str, _Placed] = {}
        for where, line, document in self._parsed(source):
            dialogue = document.get("dialogue-id") if isinstance(document, dict) else None
            if not isinstance(dialogue, str):
                self.findings.add(UNREADABLE_LABELS, where, line, "has no dialogue-id")
            elif dialogue in found:
                what = f"there are labels for the dialogue {dialogue!r} before"
                self.findings.add(REPEATED_LABELS, where, line, what)
            else:
                found[dialogue] = where, line, document
        return found

    def _parsed(self, source: Lines | Documents) -> Iterator[_Placed]:
        if isinstance(source, Documents):
            yield from ((source.where, at, document) for at, document in enumerate(source.documents, 1))
            return
        for document in source.documents():
            try:
                yield document.where, document.line, parse(document, self.findings)
            except NotJsonError as error:
                self.findings.add(UNREADABLE_LABELS, document.where, document.line, str(error))

    def _filed(self, source: Folder | Members, dialogue: str) -> _Placed | None:
        """Place and content of the labels file of a dialogue; None if there is no such file."""
        name = dialogue + LABELS
        if name not in source.names:
            return None
        try:
            document = source.document(name)
            parsed = parse(document, self.findings)
        except (NotJsonError, DataError) as error:
            what = str(error) if isinstance(error, NotJsonError) else error.faults[0].what
            self.findings.add(UNREADABLE_LABELS, f"{source.where}/{name}", None, what)
            return source.where, None, None
        if not isinstance(parsed, dict) or parsed.get("dialogue-id") != dialogue:
            other = repr(parsed.get("dialogue-id")) if isinstance(parsed, dict) else "none"
            what = f"holds the labels of the dialogue {other}, not {dialogue!r}"
            self.findings.add(OTHER_DIALOGUE, document.where, None, what)
        return document.where, None, parsed

    def _matched(
        self, dialogue: str, turns: list[int], where: str, line: int | None, document: Any
    ) -> list[tuple[Any, ...]]:
        """The labels of each annotated turn of a dialogue."""
        try:
            entries, codes = document["turns"], _CODES
            indices = [entry.get("turn-index") for entry in entries]
            lists = [entry["labels"] for entry in entries]
            values = [
                (codes.get(one["breakdown"], _OTHER), one["prob-O"], one["prob-T"], one["prob-X"])
                for one in [labels[0] for labels in lists]
            ]
            if sum(map(len, lists)) != len(lists):
                self.several += sum(len(labels) > 1 for labels in lists)
        except (KeyError, TypeError, IndexError, AttributeError):
            indices, values = self._careful(where, line, document)
        if indices == turns:
            return values
        by_position = [at if at < len(values) else None for at in range(len(turns))]
        by_index = self._by_index(indices, turns, where, line)
        if any(one != other for one, other in zip(by_position, by_index, strict=True) if one is not None):
            self.differing.append(dialogue)
        chosen = by_position if self.match == "position" else by_index
        missing = [turn for turn, at in zip(turns, chosen, strict=True) if at is None]
        if missing:
            what = f"{named_turns(missing)}: no labels ({len(values)} entries for {len(turns)} annotated turns)"
            self.findings.add(MISSING_TURNS, where, line, what, len(missing))
        self.unused += len(values) - sum(at is not None for at in chosen)
        return [_NONE if at is None else values[at] for at in chosen]

    def _by_index(self, indices: list[Any], turns: list[int], where: str, line: int | None) -> list[int | None]:
        first: dict[Any, int] = {}
        repeated, nameless = [], []
        for at, index in enumerate(indices):
            if type(index) is not int:
                nameless.append(at)
            elif index in first:
                repeated.append(index)
            first.setdefault(index if type(index) is int else (at,), at)
        if self.match == "turn-index":
            if repeated:
                self.findings.add(
                    REPEATED_LABELS, where, line, f"{named_turns(repeated)}: labels more than once", len(repeated)
                )
            if nameless:
                what = f"{len(nameless)} of {len(indices)} entries have no whole number as turn-index"
                self.findings.add(BAD_ENTRY, where, line, what, len(nameless))
        return [first.get(turn) for turn in turns]

    def _careful(self, where: str, line: int | None, document: Any) -> tuple[list[Any], list[tuple[Any, ...]]]:
        """Indices and values of what can be used of a document, and a fault for the rest."""
        entries = document.get("turns") if isinstance(document, dict) else None
        if not isinstance(entries, list):
            self.findings.add(UNREADABLE_LABELS, where, line, 'has no list of "turns"')
            return [], []
        indices: list[Any] = []
        values: list[tuple[Any, ...]] = []
        for at, entry in enumerate(entries):
            labels = entry.get("labels") if isinstance(entry, dict) else None
            index = entry.get("turn-index") if isinstance(entry, dict) else None
            first = labels[0] if isinstance(labels, list) and labels and isinstance(labels[0], dict) else None
            lacking = [key for key in ("breakdown", "prob-O", "prob-T", "prob-X") if first is None or key not in first]
            if lacking:
                what = f"entry {at}: no {', '.join(lacking)}" if first is not None else f"entry {at}: no labels"
                self.findings.add(BAD_ENTRY, where, line, what, 1)
            indices.append(index)
            label = None if first is None else first.get("breakdown")
            code = np.nan if label is None else _CODES.get(label, _OTHER) if isinstance(label, str) else _OTHER
            values.append((code, *((first or {}).get(key) for key in ("prob-O", "prob-T", "prob-X"))))
        return indices, values

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

    def _numbers(self, found: list[tuple[Any, ...]]) -> Floats:
        """The matrix of all labels; what is no number becomes NaN and is complained about with the others."""
        try:
            return np.fromiter(chain.from_iterable(found), np.float64, 4 * len(found)).reshape(-1, 4)
        except (ValueError, TypeError, OverflowError):
            return np.array([[_number(value) for value in row] for row in found], np.float64).reshape(-1, 4)

    def _check(self, values: Floats) -> None:
        """Note what is wrong with the numbers, by file."""
        code, probabilities = values[:, 0], values[:, 1:]
        there = ~np.isnan(code)
        with np.errstate(invalid="ignore"):
            improbable = there & ~((probabilities >= 0) & np.isfinite(probabilities)).all(axis=1)
            odd = there & ~improbable & ~(np.abs(probabilities.sum(axis=1) - 1) <= SUM_TOLERANCE)
        self._note(code == _OTHER, UNKNOWN_LABEL, "the label is none of O, T and X")
        self._note(improbable, NOT_PROBABLE, "a probability is below 0 or not finite", probabilities)
        self._note(odd, ODD_SUM, "the probabilities do not add up to 1", probabilities)

    def _note(self, bad: Any, kind: Kind, what: str, shown: Floats | None = None) -> None:
        rows: Ints = np.flatnonzero(bad)
        if not len(rows):
            return
        offsets, turns = self.annotated.offsets, self.annotated.turns
        owners, starts = np.unique(np.searchsorted(offsets, rows, side="right") - 1, return_index=True)
        for owner, mine in zip(owners.tolist(), np.split(rows, starts[1:]), strict=True):
            where, line = self.places[owner]
            first = "" if shown is None else f" (first: {', '.join(f'{p:g}' for p in shown[mine[0]])})"
            self.findings.add(kind, where, line, f"{named_turns(turns[mine].tolist())}: {what}{first}", len(mine))


def _number(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        return float("nan")
