"""Interim looks in every format: `SEQUENTIAL` prints them."""

from __future__ import annotations

from dialeval.analysis.sequential import SequentialDifference, SequentialTest
from dialeval.reports.documents import Document, Printer, Table
from dialeval.reports.figures import BETTER, DIFFERENT, MISSING, WORSE, plain, shorten, show_rounded


def sequential_document(test: SequentialTest) -> Document:
    """Describe the differences at an interim look."""
    designs = (design.describe(plain(test.baseline), plain(name)) for name, design in test.designs.items())
    head = ["metric", "system", test.unit, "difference", "by", "decided after"]
    what = f"Differences to {plain(test.baseline)}, {test.unit} in the order of the run"
    notes = [
        f"{what}, with {100 * (1 - test.alpha):g}% confidence sequences.",
        "Valid at every interim look, with any stopping rule.",
        "Assumes independent dialogues from one source.",
        "betting: exact for values with bounds where all dialogues count equally.",
    ]
    if any(row.by == "asymptotic" for row in test.rows):
        notes.append("asymptotic: for many dialogues; invalid if rare large differences have not occurred yet.")
    if test.tests > 1:
        notes.append(f"Alpha is divided by {test.tests}, so that all intervals hold simultaneously (Bonferroni).")
    notes += dict.fromkeys(f"{plain(row.key)}: {row.reason}." for row in test.rows if row.reason)
    return Document(list(dict.fromkeys(designs)), [Table(head, [_difference_cells(row) for row in test.rows])], notes)


def _difference_cells(row: SequentialDifference) -> list[str]:
    mark = "" if row.decided is None else DIFFERENT if row.better is None else BETTER if row.better else WORSE
    return [
        shorten(row.key),
        shorten(row.system),
        f"{row.dialogues:,}",
        f"{show_rounded(row.difference, row.interval, signed=True)} {mark}".strip(),
        row.by or MISSING,
        MISSING if row.decided is None else f"{row.decided:,}",
    ]


SEQUENTIAL = Printer(sequential_document)
