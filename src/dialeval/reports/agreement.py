"""Agreement with people as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["csv"](agreement)        json, csv, md, latex, each a str
    console.print(table(agreement))  the terminal

A table per level, a row per metric: the three coefficients with their intervals. Where every dialogue has one rated
turn, the level of dialogues would repeat that of turns and is left out of tables. `*` marks a metric that is not above
the length of the response. JSON and CSV hold every digit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dialeval.analysis.correlation import NAMES
from dialeval.analysis.levels import LEVELS
from dialeval.analysis.metric_differences import CONTROL
from dialeval.reports.figures import MISSING, plain, show_fixed
from dialeval.reports.formats import Table, csv_text, latex_lines, markdown, markdown_table, rich_table, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import Group

    from dialeval.analysis.agreement import Agreement, Correlation

NOT_ABOVE = "*"
HEADS = {"pearson": "Pearson r", "spearman": "Spearman rho", "kendall": "Kendall tau"}
_CSV_FIELDS = ("metric", "level", "n", *(f"{name}{part}" for name in NAMES for part in ("", "_low", "_high", "_p")))


def table(agreement: Agreement) -> Group:
    """The agreement for a rich console."""
    from rich.console import Group
    from rich.text import Text

    parts: list[object] = []
    for level, (head, rows) in _tables(agreement):
        parts += [Text(f"{level} level", style="bold"), rich_table(zip(head, *rows, strict=True)), Text()]
    return Group(*parts, *map(Text, notes(agreement)))  # type: ignore[arg-type]


def to_csv(agreement: Agreement) -> str:
    """One line per metric and level."""
    rows = []
    for key, levels in agreement.metrics.items():
        for level, each in levels.items():
            figures: list[object] = []
            for name in NAMES:
                figures += [each.values.get(name), *each.intervals.get(name, (None, None)), each.p.get(name)]
            rows.append([key, level, each.n, *figures, each.reason])
    return csv_text((*_CSV_FIELDS, "reason"), rows)


def to_markdown(agreement: Agreement) -> str:
    """A table per level as GitHub renders it, and what to read it against."""
    parts = map(markdown_table, _titled(agreement))
    return "\n".join([*parts, "".join(f"{markdown(note)}  \n" for note in notes(agreement))])


def to_latex(agreement: Agreement) -> str:
    """One tabular with booktabs rules, the levels below each other."""
    lines = latex_lines(2 + len(NAMES), *_titled(agreement), figure=lambda cell: cell.replace("-", "$-$"))
    return "\n".join([*lines, *(f"% {note}" for note in notes(agreement)), ""])


FORMATS: Mapping[str, Callable[[Agreement], str]] = {
    "json": to_json,
    "csv": to_csv,
    "md": to_markdown,
    "latex": to_latex,
}
"""Every format that is a text, by its name on the command line."""


def notes(agreement: Agreement) -> list[str]:
    """What the figures are to be read against, a line each."""
    bootstrap = f"{agreement.resamples} resamples of dialogues, seed {agreement.seed}"
    intervals = f"{100 * agreement.confidence:g}% intervals of {bootstrap}"
    lines = [f"{agreement.rated} rated rows, quality {agreement.quality}; {intervals}"]
    people = agreement.ceiling
    if people.reason is not None:
        lines.append(f"no ceiling: {people.reason}")
    else:
        one = ", ".join(f"{HEADS[name]} {show_fixed(value, 3)}" for name, value in people.one_against_others.items())
        alpha = ", ".join(f"{name} {show_fixed(value, 3)}" for name, value in people.alpha.items())
        lines += [f"one annotator against the others ({people.n} rows): {one}", f"Krippendorff's alpha: {alpha}"]
    if agreement.not_above_control:
        lines.append(f"{NOT_ABOVE} not above {CONTROL} at {agreement.level} level (Williams' test, 0.05)")
    return [plain(line) for line in lines]


def _tables(agreement: Agreement) -> Iterator[tuple[str, Table]]:
    """The table of each level that some metric has figures for."""
    for level in LEVELS:
        here = {key: levels[level] for key, levels in agreement.metrics.items() if level in levels}
        turns = {key: levels["turn"].n for key, levels in agreement.metrics.items() if "turn" in levels}
        repeated = level == "dialogue" and all(each.n == turns.get(key) for key, each in here.items())
        if any(each.values for each in here.values()) and not repeated:
            rows = [[_marked(agreement, key), *_cells(each)] for key, each in here.items()]
            yield level, Table(["metric", "n", *HEADS.values()], rows)


def _titled(agreement: Agreement) -> Iterator[Table]:
    for level, (head, rows) in _tables(agreement):
        yield Table([f"{level}: {head[0]}", *head[1:]], rows)


def _marked(agreement: Agreement, key: str) -> str:
    return plain(key) + (f" {NOT_ABOVE}" if key in agreement.not_above_control else "")


def _cells(each: Correlation) -> list[str]:
    if not each.values:
        return [str(each.n), *(MISSING for _ in NAMES)]
    bounds = {name: ", ".join(map(_bound, each.intervals[name])) for name in NAMES}
    return [str(each.n), *(f"{show_fixed(each.values[name], 3)} [{bounds[name]}]" for name in NAMES)]


def _bound(value: float) -> str:
    """A bound in few characters, so that three intervals fit a terminal."""
    return MISSING if math.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)
