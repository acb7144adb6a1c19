"""Differences that are watched as dialogues come in, as a table: for the terminal, for pages, for other programs.

FORMATS["md"](watch)             json, csv, md, latex, each a str
console.print(table(watch))      the terminal
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.reports import formats
from dialeval.reports.documents import Document, laid_out, text_formats
from dialeval.reports.figures import BETTER, DIFFERENT, MISSING, WORSE, plain, shorten, show_rounded
from dialeval.reports.formats import LaidOut, Table

if TYPE_CHECKING:
    from dialeval.analysis.sequences import Watch, Watched

_CSV = ("system", "key", "dialogues", "difference", "low", "high", "by", "decided", "better", "reason")


def document(watch: Watch) -> Document:
    """The differences, and what the figures are."""
    designs = (design.describe(plain(watch.baseline), plain(name)) for name, design in watch.designs.items())
    return Document(list(dict.fromkeys(designs)), [_table(watch)], notes(watch))


def table(watch: Watch) -> LaidOut:
    """The differences for a rich console."""
    return laid_out(document(watch))


def to_csv(watch: Watch) -> str:
    """A line per system and key."""
    rows = [
        [
            *(row.system, row.key, row.dialogues, row.difference, *(row.interval or (None, None)), row.by),
            *(row.decided, row.better, row.reason),
        ]
        for row in watch.rows
    ]
    return formats.csv_text(_CSV, rows)


FORMATS = text_formats(document, to_csv)


def notes(watch: Watch) -> list[str]:
    """What the figures are, a line each."""
    what = f"Differences to {plain(watch.baseline)}, {watch.unit} in the order of the run"
    lines = [
        f"{what}, with {100 * (1 - watch.alpha):g}% confidence sequences.",
        "Look as often as you like, and stop when you like.",
        "Dialogues are taken as independent draws from one source.",
        "betting: exact for values with bounds where all dialogues count equally.",
    ]
    if any(row.by == "asymptotic" for row in watch.rows):
        lines.append("asymptotic: for many dialogues; wrong if rare large differences have not occurred yet.")
    if watch.tests > 1:
        lines.append(f"Alpha is divided by {watch.tests}, so that all intervals of the panel hold together.")
    lines += dict.fromkeys(f"{plain(row.key)}: {row.reason}." for row in watch.rows if row.reason)
    return lines


def _table(watch: Watch) -> Table:
    head = ["metric", "system", watch.unit, "difference", "by", "decided after"]
    return Table(head, [_cells(row) for row in watch.rows])


def _cells(row: Watched) -> list[str]:
    mark = "" if row.decided is None else DIFFERENT if row.better is None else BETTER if row.better else WORSE
    return [
        shorten(plain(row.key)),
        shorten(plain(row.system)),
        f"{row.dialogues:,}",
        f"{show_rounded(row.difference, row.interval, signed=True)} {mark}".strip(),
        row.by or MISSING,
        MISSING if row.decided is None else f"{row.decided:,}",
    ]
