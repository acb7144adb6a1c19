"""Agreement with people as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["csv"](agreement)        json, csv, md, latex, each a str
    console.print(table(agreement))  the terminal

A table per level, a row per metric: the three coefficients with their intervals. Where every dialogue has one rated
turn, the level of dialogues would repeat that of turns and is left out of tables. `*` marks a metric that is not above
the length of the response. JSON and CSV hold every digit.
"""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from dialeval.analysis.control import CONTROL
from dialeval.analysis.correlation import NAMES
from dialeval.analysis.levels import LEVELS
from dialeval.reports.figures import MISSING, plain
from dialeval.reports.tables import _latex, _markdown, _table

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
    for level, lines in _tables(agreement):
        parts += [Text(f"{level} level", style="bold"), _table(list(zip(*lines, strict=True))), Text()]
    return Group(*parts, *map(Text, notes(agreement)))  # type: ignore[arg-type]


def to_json(agreement: Agreement) -> str:
    """Everything that was found."""
    import orjson

    return orjson.dumps(agreement.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def to_csv(agreement: Agreement) -> str:
    """One line per metric and level, all digits; a field without a value is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*_CSV_FIELDS, "reason"))
    for key, levels in agreement.metrics.items():
        for level, each in levels.items():
            figures: list[float] = []
            for name in NAMES:
                bounds = each.intervals.get(name, (math.nan, math.nan))
                figures += [each.values.get(name, math.nan), *bounds, each.p.get(name, math.nan)]
            shown = ("" if math.isnan(figure) else repr(figure) for figure in figures)
            writer.writerow((key, level, each.n, *shown, each.reason or ""))
    return out.getvalue()


def to_markdown(agreement: Agreement) -> str:
    """A table per level as GitHub renders it, and what to read it against."""
    parts = []
    for level, (head, *lines) in _tables(agreement):
        rows = [[f"{level}: {head[0]}", *head[1:]], ["---", *("---:" for _ in head[1:])], *lines]
        parts.append("".join(f"| {' | '.join([_markdown(name), *cells])} |\n" for name, *cells in rows))
    return "\n".join([*parts, "".join(f"{_markdown(note)}  \n" for note in notes(agreement))])


def to_latex(agreement: Agreement) -> str:
    """One tabular with booktabs rules, the levels below each other."""
    lines = [r"\begin{tabular}{lrrrr}", r"\toprule"]
    for number, (level, (head, *rows)) in enumerate(_tables(agreement)):
        lines += [r"\midrule"] if number else []
        lines.append(" & ".join(map(_latex, [f"{level}: {head[0]}", *head[1:]])) + r" \\")
        lines += [r"\midrule", *(" & ".join(map(_latex, cells)) + r" \\" for cells in rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *(f"% {note}" for note in notes(agreement)), ""])


FORMATS: Mapping[str, Callable[[Agreement], str]] = {
    "json": to_json,
    "csv": to_csv,
    "md": to_markdown,
    "latex": to_latex,
}
"""Every format that is a text, by its name on the command line."""


def notes(agreement: Agreement) -> list[str]:
    """What the figures are to be read against, a line each."""
    found = [f"{agreement.rated} rated rows, quality {agreement.quality}; {_bootstrap(agreement)}"]
    people = agreement.ceiling
    if people.reason is not None:
        found.append(f"no ceiling: {people.reason}")
    else:
        one = ", ".join(f"{HEADS[name]} {_figure(value)}" for name, value in people.one_against_others.items())
        alpha = ", ".join(f"{name} {_figure(value)}" for name, value in people.alpha.items())
        found += [f"one annotator against the others ({people.n} rows): {one}", f"Krippendorff's alpha: {alpha}"]
    if agreement.not_above_control:
        found.append(f"{NOT_ABOVE} not above {CONTROL} at {agreement.level} level (Williams' test, 0.05)")
    return [plain(note) for note in found]


def _bootstrap(agreement: Agreement) -> str:
    level = f"{100 * agreement.confidence:g}%"
    return f"{level} intervals of {agreement.resamples} resamples of dialogues, seed {agreement.seed}"


def _tables(agreement: Agreement) -> Iterator[tuple[str, list[list[str]]]]:
    """The cells of each level that some metric has figures for."""
    for level in LEVELS:
        here = {key: levels[level] for key, levels in agreement.metrics.items() if level in levels}
        repeated = level == "dialogue" and all(each.n == _turns(agreement, key) for key, each in here.items())
        if any(each.values for each in here.values()) and not repeated:
            lines = [_cells(_marked(agreement, key), each) for key, each in here.items()]
            yield level, [["metric", "n", *HEADS.values()], *lines]


def _turns(agreement: Agreement, key: str) -> int | None:
    """The number of turns that a metric is correlated over; None where that level is not there."""
    turns = agreement.metrics[key].get("turn")
    return None if turns is None else turns.n


def _marked(agreement: Agreement, key: str) -> str:
    return plain(key) + (f" {NOT_ABOVE}" if key in agreement.not_above_control else "")


def _cells(name: str, each: Correlation) -> list[str]:
    if not each.values:
        return [name, str(each.n), *(MISSING for _ in NAMES)]
    shown = []
    for coefficient in NAMES:
        low, high = each.intervals[coefficient]
        shown.append(f"{_figure(each.values[coefficient])} [{_bound(low)}, {_bound(high)}]")
    return [name, str(each.n), *shown]


def _bound(value: float) -> str:
    """A bound in few characters, so that three intervals fit a terminal."""
    return MISSING if math.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)


def _figure(value: float) -> str:
    return MISSING if math.isnan(value) else f"{value:.3f}"
