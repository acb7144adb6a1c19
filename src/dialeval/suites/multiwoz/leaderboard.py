"""The MultiWOZ leaderboard, published and computed: `dialeval multiwoz leaderboard -i predictions/`.

Published values (`leaderboard.toml`) are those of the README of the MultiWOZ repository. A computed value agrees if it
is the published one when rounded to as many decimals. Where one does not, the notes of its row say what can be behind
it: true states of another version, dialogues or turns that the file lacks. A file without a published row is a system
of the user's own, and is placed among the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from dialeval.core.display import Tabular
from dialeval.core.result import Result, Run
from dialeval.core.run_schema import Record
from dialeval.core.validation import parse_toml
from dialeval.reports.documents import Document, Printer, Table
from dialeval.reports.figures import MISSING, show_interval
from dialeval.suites.multiwoz.data import TaskFiles
from dialeval.suites.multiwoz.pack import STANDARD
from dialeval.suites.multiwoz.predictions import Predictions

PUBLISHED = Path(__file__).with_name("leaderboard.toml")
States = Literal["predicted", "true"]
MEASURES = ("inform", "success", "bleu")


class Published(msgspec.Struct, frozen=True):
    """A row of the published table; values as printed."""

    states: States
    inform: str
    success: str
    bleu: str


class Entry(msgspec.Struct, frozen=True):
    """One value of a system, published and computed; None where there is none."""

    published: str | None
    computed: float | None
    interval: tuple[float, float] | None
    agrees: bool | None
    """Whether the computed value is the published one to the digits that are printed."""


class Row(msgspec.Struct, frozen=True):
    """A system of the leaderboard."""

    system: str
    states: States
    values: Mapping[str, Entry]
    notes: Sequence[str]


class Leaderboard(Tabular, Record, frozen=True):
    """Published and computed values, by published combined score; systems with predicted states come first."""

    data: str | None
    """The version of the data."""
    rows: Sequence[Row]

    def lines(self) -> list[dict[str, Any]]:
        found = []
        for row in self.rows:
            for measure, entry in row.values.items():
                low, high = entry.interval or (None, None)
                value = {"published": entry.published, "computed": entry.computed, "low": low, "high": high}
                own = {"system": row.system, "states": row.states, "measure": measure}
                found.append({**own, **value, "agrees": entry.agrees, "notes": "; ".join(row.notes)})
        return found


def read_published() -> dict[str, Published]:
    """Return the published table by the name of the prediction file."""
    return msgspec.convert(parse_toml(PUBLISHED.read_bytes(), str(PUBLISHED), "install again"), dict[str, Published])


def make_leaderboard(run: Run, systems: Sequence[Predictions], files: TaskFiles) -> Leaderboard:
    """Return the leaderboard of a run with Inform, Success and BLEU of `systems`."""
    published = read_published()
    read = {system.rows.system: system for system in systems}
    rows = [_row(name, published.get(name), read.get(name), run, files) for name in dict.fromkeys((*published, *read))]
    return Leaderboard(files.version, sorted(rows, key=lambda row: (row.states, -_combined(row))))


def _row(name: str, published: Published | None, given: Predictions | None, run: Run, files: TaskFiles) -> Row:
    values = {measure: _entry(measure, published, run.get(name)) for measure in MEASURES}
    own: States = "predicted" if given is not None and 0 < given.turns == given.with_state else "true"
    states = own if published is None else published.states
    differs = any(entry.agrees is False for entry in values.values())
    notes = ["no prediction file"] if given is None else list(_notes(given, files, differs))
    return Row(name, states, values, notes)


def _entry(measure: str, published: Published | None, result: Result | None) -> Entry:
    printed = None if published is None else str(getattr(published, measure))
    key = None if result is None else next((key for key in result if key.split("/")[0] == measure), None)
    if result is None or key is None:
        return Entry(printed, None, None, None)
    value = result[key].mean
    agrees = None if printed is None else f"{value:.{len(printed.partition('.')[2])}f}" == printed
    return Entry(printed, value, result[key].interval, agrees)


def _notes(given: Predictions, files: TaskFiles, differs: bool) -> Iterator[str]:
    if given.with_state < given.turns and differs:
        here = files.version or "the data given"
        yield f"true states are those of {here}, on the leaderboard those of {STANDARD}"
    dialogues, turns = len(files.turns), sum(files.turns.values())
    if given.turns < turns:
        yield f"{given.dialogues:,} of {dialogues:,} dialogues, {given.turns:,} of {turns:,} turns"


def _combined(row: Row) -> float:
    inform, success, bleu = (float(entry.published or entry.computed or 0) for entry in row.values.values())
    return (inform + success) / 2 + bleu


def _document(board: Leaderboard) -> Document:
    head = ["system", *(f"{measure} {what}" for measure in MEASURES for what in ("published", "computed"))]
    tables = []
    for states in ("predicted", "true"):
        rows = [
            [row.system, *(cell for entry in row.values.values() for cell in _cells(entry))]
            for row in board.rows
            if row.states == states
        ]
        tables.append(Table(head, rows))
    every = [entry for row in board.rows for entry in row.values.values() if entry.agrees is not None]
    agree = sum(entry.agrees is True for entry in every)
    said = [f"{agree} of {len(every)} computed values are the published ones to the printed digit."] if every else []
    every_note = dict.fromkeys(note for row in board.rows for note in row.notes)
    notes = [f"{', '.join(r.system for r in board.rows if note in r.notes)}: {note}." for note in every_note]
    marks = "≠: not the published value. Intervals: 95%, over dialogues."
    return Document(said, tables, [marks, *notes], titles=["Predicted states", "True states"])


def _cells(entry: Entry) -> tuple[str, str]:
    decimals = len((entry.published or "0.0").partition(".")[2])
    if entry.computed is None:
        return entry.published or MISSING, MISSING
    other = " ≠" if entry.agrees is False else ""
    interval = f" {show_interval(entry.interval, decimals)}" if entry.interval else ""
    return entry.published or MISSING, f"{entry.computed:.{decimals}f}{other}{interval}"


PRINTER: Printer[Leaderboard] = Printer(_document)
