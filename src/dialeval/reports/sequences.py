"""Differences that are watched as dialogues come in, as a table: for the terminal, for pages, for other programs.

FORMATS["md"](watch)             json, csv, md, latex, each a str
console.print(table(watch))      the terminal
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from dialeval.reports import formats
from dialeval.reports.figures import BETTER, DIFFERENT, MISSING, WORSE, plain, shorten, show_rounded
from dialeval.reports.formats import LaidOut, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from dialeval.analysis.sequences import Watch, Watched

_CSV = ("system", "key", "dialogues", "difference", "low", "high", "by", "decided", "better", "reason")


def table(watch: Watch) -> LaidOut:
    """The differences for a rich console."""
    return LaidOut(partial(_laid_out, watch))


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


def to_markdown(watch: Watch) -> str:
    """A table as GitHub renders it, and what it means."""
    below = "".join(f"{formats.markdown(line)}\n\n" for line in notes(watch)).rstrip("\n")
    return f"{formats.markdown_table(_table(watch), formats.markdown)}\n{below}\n"


def to_latex(watch: Watch) -> str:
    """A tabular with booktabs rules."""
    made = _table(watch)
    lines = formats.latex_lines(len(made.head), made, figure=formats.latex)
    return "\n".join([*lines, *(f"% {line}" for line in notes(watch)), ""])


FORMATS: Mapping[str, Callable[[Watch], str]] = {
    "json": formats.to_json,
    "csv": to_csv,
    "md": to_markdown,
    "latex": to_latex,
}
"""Every format that is a text, by its name on the command line."""


def notes(watch: Watch) -> list[str]:
    """What the figures are, a line each."""
    what = f"Differences to {plain(watch.baseline)} per {watch.unit.removesuffix('s')}, in the order of the run"
    lines = [
        f"{what}, with {100 * (1 - watch.alpha):g}% confidence sequences.",
        "Look as often as you like, and stop when you like.",
        "betting: exact for values with bounds; asymptotic: for many dialogues.",
    ]
    if watch.tests > 1:
        lines.append(f"Divided by {watch.tests}, so that all of them hold together.")
    lines += dict.fromkeys(f"{plain(row.key)}: {row.reason}." for row in watch.rows if row.reason)
    return [*lines, *(f"Forced: {plain(what)}." for what in watch.forced)]


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


def _laid_out(watch: Watch, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    head, rows = _table(watch)
    names, *columns = zip(head, *rows, strict=True)
    for part in formats.fitting_tables(names, columns, width):
        yield part
        yield Text()
    yield from map(Text, notes(watch))
