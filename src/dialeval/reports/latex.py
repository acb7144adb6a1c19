"""Tables in LaTeX for papers: the one writer of all commands.

    format_float([grid], ["Mean scores."], "tab:scores", PaperStyle(width="column"), comments)

A table is set in `\\small` with booktabs rules and fits the column or the text: columns that do not fit are in further
panels below, with the names repeated, and a name that leaves no room for a value is shortened in its middle. Widths are
those of Computer Modern; the column is that of two-column conference styles, the text that of `article` in 10 points,
the narrowest of the usual classes. Texts are escaped here, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from dialeval.core.errors import SettingError, escape_controls
from dialeval.reports.formatting import BETTER, DIFFERENT, MISSING, UNTESTED, WORSE

Width = Literal["column", "text"]
Spread = Literal["interval", "pm", "none"]
LIMITS: Mapping[Width, float] = {"column": 219.0, "text": 345.0}
"""Widths in points."""
_PAGE, _FRAME = 42, 3
"""Lines of a float below its caption, and those that a panel takes besides its rows."""
_SMALL, _TINY, _BOLD, _GAP = 0.925, 0.8, 1.15, 8.0
"""Sizes of small, script-size and bold letters against normal ones, and points between two columns."""
_INTERVAL = re.compile(r" \[[^\]]*\]$")
_WIDTHS = {
    **dict.fromkeys("ftrijl.,:;'![]()- ", 4.0),
    **dict.fromkeys("0123456789acoesz*/", 5.0),
    **dict.fromkeys("bdghknpquvxy", 5.6),
    **dict.fromkeys("ABCDEFGHIJKLNOPQRSTUVXYZmw−+±=<>", 8.4),
}
"""Letters of Computer Modern Roman in 10 points, in groups and rounded up; all others are as wide as the widest."""
_WIDEST = 10.3

_LATEX = str.maketrans(
    {char: f"\\{char}" for char in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "…": r"\dots{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "↑": r"$\uparrow$", "↓": r"$\downarrow$"}
    | {BETTER: "$^{+}$", WORSE: "$^{-}$", DIFFERENT: r"$^{\ast}$", UNTESTED: r"$\cdot$", MISSING: "--"}
    | {"−": "$-$", "×": r"$\times$", "±": r"$\pm$", "·": r"$\cdot$", "√": r"$\surd$", "∞": r"$\infty$"}
)
_EXPONENTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


class PaperStyle(NamedTuple):
    """How a table looks in a paper."""

    width: Width = "text"
    label: str | None = None
    rename: Mapping[str, str] = {}
    """By a name of dialeval (a metric, a system, a data set), the name in the paper."""
    spread: Spread = "interval"
    """How a value shows its uncertainty: its interval, half of its width, or not at all."""

    def name(self, text: str) -> str:
        """Return the name in the paper; an arrow after it stays."""
        base = text.rstrip(" ↑↓")
        return self.rename.get(base, base) + text[len(base) :]


class Grid(NamedTuple):
    """A table of plain texts; the first column has names."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    bold: Collection[tuple[int, int]] = ()
    """Row and column of the values that are bold, both counted from 0."""
    groups: Sequence[str] = ()
    """By column after the first, what it belongs to, such as a data set; none unless given."""

    def transpose(self, corner: str) -> Grid:
        """Swap rows and columns; `corner` is the head of the names."""
        head, *rows = zip(self.head, *self.rows, strict=True)
        bold = {(column - 1, row + 1) for row, column in self.bold}
        return Grid([corner, *head[1:]], rows, bold)


def make_style(
    width: Width = "text",
    label: str | None = None,
    rename: Mapping[str, str] | None = None,
    spread: Spread = "interval",
) -> PaperStyle:
    """Return a style, after its values were checked."""
    for value, allowed, name in ((width, LIMITS, "width"), (spread, ("interval", "pm", "none"), "spread")):
        if value not in allowed:
            raise SettingError(f"{name} is {' or '.join(map(repr, allowed))}, not {value!r}")
    if label is not None and not re.fullmatch(r"[\w:.\-]+", label):
        raise SettingError(f"a label has letters, digits, and : . - _ only, such as tab:main; it is {label!r}")
    return PaperStyle(width, label, rename or {}, spread)


def escape_latex(text: str) -> str:
    """Return a text in which nothing is a command."""
    escaped = escape_controls(text).translate(_LATEX)
    return re.sub("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda power: f"$^{{{power[0].translate(_EXPONENTS)}}}$", escaped)


def format_float(
    grids: Sequence[Grid],
    caption: Iterable[str],
    label: str,
    style: PaperStyle | None = None,
    comments: Iterable[str] = (),
) -> str:
    """Return tables as one float with a caption and a label, and comments below."""
    style = style or PaperStyle()
    environment = "table" if style.width == "column" else "table*"
    panels = [panel for grid in grids for panel in split_to_panels(_rename(grid, style), LIMITS[style.width])]
    start = [rf"\begin{{{environment}}}[t]", r"\centering\small", rf"\setlength{{\tabcolsep}}{{{_GAP / 2:g}pt}}"]
    lines = [r"% \usepackage{booktabs}", *start, rf"\caption{{{' '.join(map(escape_latex, caption))}}}"]
    lines.append(rf"\label{{{style.label or label}}}")
    left = _PAGE
    for number, panel in enumerate(panels):
        left -= len(panel.rows) + _FRAME
        if number and left < 0:  # the float goes on where the page ends
            again = [r"\addtocounter{table}{-1}", r"\caption{(continued)}"]
            lines, left = [*lines, rf"\end{{{environment}}}", *start, *again], _PAGE - len(panel.rows) - _FRAME
        elif number:
            lines.append(r"\par\medskip")
        lines += _format_tabular(panel)
    named = {
        name.rstrip(" ↑↓") for grid in grids for name in (*grid.head, *grid.groups, *(row[0] for row in grid.rows))
    }
    unknown = f"Not in this table, so not renamed: {', '.join(sorted(style.rename.keys() - named))}"
    comments = [*comments, *([unknown] if style.rename.keys() - named else [])]
    lines += [rf"\end{{{environment}}}", *(f"% {escape_controls(line)}" for line in comments), ""]
    return "\n".join(lines)


def measure(text: str, bold: bool = False) -> float:
    """Return how wide a text is at most, in points; an interval at its end is set smaller."""
    value = _INTERVAL.sub("", text)
    tiny = sum(_WIDTHS.get(char, _WIDEST) for char in text[len(value) :]) * _TINY
    return (sum(_WIDTHS.get(char, _WIDEST) for char in value) * _SMALL + tiny) * (_BOLD if bold else 1.0)


def count_panels(grid: Grid, style: PaperStyle) -> int:
    """Return the number of panels of a table."""
    return sum(1 for _ in split_to_panels(_rename(grid, style), LIMITS[style.width]))


def split_to_panels(grid: Grid, limit: float) -> Iterator[Grid]:
    """Yield panels that fit a width: each has the names and as many of the other columns as there is room for."""
    columns = list(zip(grid.head, *grid.rows, strict=True))
    widths = [
        max(measure(cell, (row - 1, at) in grid.bold) for row, cell in enumerate(column))
        for at, column in enumerate(columns)
    ]
    room = limit - max(widths[1:], default=0.0) - _GAP
    names = [_shorten(name, room) for name in columns[0]]
    start = max(map(measure, names))
    parts: list[list[int]] = [[]]
    left = limit - start
    for at, width in enumerate(widths[1:], 1):
        if parts[-1] and width + _GAP > left:
            parts.append([])
            left = limit - start
        parts[-1].append(at)
        left -= width + _GAP
    for part in parts:
        head, *rows = zip(names, *(columns[at] for at in part), strict=True)
        bold = {(row, part.index(at) + 1) for row, at in grid.bold if at in part}
        yield Grid(head, rows, bold, [grid.groups[at - 1] for at in part] if grid.groups else ())


def _shorten(name: str, room: float) -> str:
    """Return a name that fits, shortened in its middle."""
    half = len(name)
    shown = name
    while measure(shown) > room and half > 1:
        half -= 1
        shown = f"{name[: (half + 1) // 2]}…{name[len(name) - half // 2 :]}"
    return shown


def _rename(grid: Grid, style: PaperStyle) -> Grid:
    rows = [[style.name(name), *cells] for name, *cells in grid.rows]
    return grid._replace(
        head=[*map(style.name, grid.head)], rows=rows, groups=[style.rename.get(name, name) for name in grid.groups]
    )


def _format_tabular(grid: Grid) -> list[str]:
    """Return the lines of a tabular with booktabs rules; a head of groups spans their columns."""
    lines = [r"\begin{tabular}{@{}l" + "r" * (len(grid.head) - 1) + "@{}}", r"\toprule"]
    if grid.groups:
        sizes = [(name, len(list(members))) for name, members in groupby(grid.groups)]
        spans = (rf"\multicolumn{{{size}}}{{c}}{{{escape_latex(name)}}}" for name, size in sizes)
        rules, start = [], 2
        for _, size in sizes:
            rules.append(rf"\cmidrule(lr){{{start}-{start + size - 1}}}")
            start += size
        lines += [" & ".join(["", *spans]) + r" \\", " ".join(rules)]
    rows = [
        [escape_latex(name), *(_format_cell(cell, (row, at) in grid.bold) for at, cell in enumerate(cells, 1))]
        for row, (name, *cells) in enumerate(grid.rows)
    ]
    head = list(map(escape_latex, grid.head))
    return [*lines, _format_row(head), r"\midrule", *map(_format_row, rows), r"\bottomrule", r"\end{tabular}"]


def _format_cell(cell: str, bold: bool) -> str:
    """Return a value, bold or not, with its interval in a smaller size."""
    value = _INTERVAL.sub("", cell)
    interval = escape_latex(cell[len(value) :].strip())
    shown = rf"\textbf{{{escape_latex(value)}}}" if bold else escape_latex(value)
    return rf"{shown} {{\scriptsize {interval}}}" if interval else shown


def _format_row(cells: Sequence[str]) -> str:
    r"""Return a row of a tabular; a bracket or a star at its start would be taken for an option of the `\\` before."""
    guard = "{}" if cells and cells[0].lstrip().startswith(("[", "*")) else ""
    return guard + " & ".join(cells) + r" \\"
