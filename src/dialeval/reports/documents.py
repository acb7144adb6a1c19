"""A result in every format: sentences, tables of texts and notes.

    document = Document(["No significant difference between b and a."], [table], ["95% intervals."])
    console.print(Layout(document))         the terminal
    to_markdown(document), to_latex(document), to_html(document)

A report module makes the document of its result; `make_formats` makes the formats of the command line of that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from dialeval.core.display import Tabular
from dialeval.core.errors import SettingError, escape_controls
from dialeval.core.features import find_place, list_known
from dialeval.core.validation import dump
from dialeval.reports.formatting import BETTER, DIFFERENT, MISSING, UNTESTED, WORSE, shorten

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table as RichTable

    from dialeval.core.result import Run


# A table in every format that reports are written in: CSV, Markdown, LaTeX, HTML, and the terminal.
#
# Tables to be read are a `Table` of texts, whose first column holds names; CSV and JSON take values and keep every
# digit. Names are escaped for their format here; the other cells are values in that format already, unless `figure`
# formats them.

GAP = 3
"""Spaces between two columns in the terminal."""

_LEAST_NAME = 10
"""A name is not shortened further in a narrow terminal."""
_COLORS = {BETTER: "green", WORSE: "red"}
_HTML_COLORS = {BETTER: "#00796b", WORSE: "#ab2e0a"}
"""Colors with enough contrast on the page of a notebook."""


class Table(NamedTuple):
    """A head and rows of equally many cells, names first."""

    head: Sequence[str]
    cells: Sequence[Sequence[str]]


def to_json(subject: Any) -> str:
    """Return what the `to_dict` of a run, a comparison or an agreement gives, as indented JSON with every digit."""
    return dump(subject.to_dict()).decode()


_QUOTED = re.compile('[",\r\n]')


def format_csv(fields: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a line of fields and a line per row, all digits; what is None or NaN is empty.

    A text that begins like a formula has an apostrophe before it; numbers, the negative ones too, stay as they are.
    """
    return "".join(f"{','.join(map(_format_csv_cell, row))}\n" for row in (fields, *rows))


def to_csv(subject: Tabular) -> str:
    """Return the rows of a result as CSV, all digits."""
    lines = subject.lines()
    return format_csv(lines[0], (line.values() for line in lines)) if lines else ""


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a spreadsheet may take for the start of a formula (OWASP, CSV injection)."""


def _format_csv_cell(value: object) -> str:
    """Return a number with all digits, or a text that no spreadsheet takes for a formula."""
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    if not isinstance(value, str):
        return "" if value is None else str(value)
    cell = f"'{value}" if value.startswith(_FORMULA) else value
    # The csv module of some Pythons leaves a lone carriage return bare, which ends a row for most readers.
    return '"{}"'.format(cell.replace('"', '""')) if _QUOTED.search(cell) else cell


def escape_markdown(text: str) -> str:
    """Return a text in which nothing is markup."""
    # Entities rather than backslashes for what could open a tag: some renderers of tables ignore backslashes there.
    text = escape_controls(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~$!])", r"\\\1", text)


def format_markdown_table(table: Table, figure: Callable[[str], str] = str) -> str:
    """Return a table as GitHub renders it, values at the right."""
    lines = [[escape_markdown(cell) for cell in table.head], ["---", *("---:" for _ in table.head[1:])]]
    lines += [[escape_markdown(name), *map(figure, cells)] for name, *cells in table.cells]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def format_html_table(table: Table, figure: Callable[[str], str] | None = None) -> str:
    """Return a table without style, as a notebook shows its own; `figure` escapes a value."""
    from dialeval.reports import markup

    def color_marks(cell: str) -> str:
        shown = markup.attribute(cell)
        for mark, color in _HTML_COLORS.items():
            shown = shown.replace(mark, f'<span style="color:{color}">{mark}</span>')
        return shown

    lines = (
        markup.row(markup.attribute(name), markup.cells(*map(figure or color_marks, c))) for name, *c in table.cells
    )
    head = markup.heads(*map(markup.attribute, table.head))
    return f"<table><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"


def make_rich_table(columns: Iterable[Sequence[str]]) -> RichTable:
    """Return a table for a rich console from its columns, each with its head."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    heads, *lines = zip(*columns, strict=True)
    # Text, not str: a name such as [bold] is a name, not markup.
    drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for head in heads:
        drawn.add_column(Text(escape_controls(head)), overflow="fold")
    for name, *figures in lines:
        colors = (next((color for mark, color in _COLORS.items() if mark in cell), "") for cell in figures)
        cells = (Text(escape_controls(cell), style=color) for cell, color in zip(figures, colors, strict=True))
        drawn.add_row(Text(escape_controls(name)), *cells)
    return drawn


def split_to_width(table: Table, width: int) -> Iterator[RichTable]:
    """Yield tables of right-aligned columns next to their names; columns that do not fit are in a further table."""
    from rich.cells import cell_len

    names, *columns = zip(table.head, *table.cells, strict=True)
    widest = max((cell_len(cell) for column in columns for cell in column), default=0)
    room = max(_LEAST_NAME, width - widest - GAP)
    names = tuple(name if cell_len(name) <= room else shorten(name, room) for name in names)
    part: list[Sequence[str]] = [names]
    left = start = width - max(map(cell_len, names))
    for column in columns:
        widest = max(map(cell_len, column))
        if len(part) > 1 and widest + GAP > left:
            yield make_rich_table(part)
            part, left = [names], start
        part.append([" " * (widest - cell_len(cell)) + cell for cell in column])
        left -= widest + GAP
    yield make_rich_table(part)


T = TypeVar("T")


@dataclass(frozen=True)
class Document:
    """Plain texts; each format escapes them by itself."""

    sentences: Sequence[str]
    tables: Sequence[Table]
    notes: Sequence[str]
    titles: Sequence[str] = ()
    """Titles of the tables; without, they have none."""
    headline: str = ""
    """The answer in a line, printed bold."""
    glyph: str = ""
    """The mark before it in the terminal."""
    details: Sequence[str] = ()
    """Settings and signatures, which the terminal shows with `-v`."""

    @property
    def paragraphs(self) -> Sequence[str]:
        """The headline and the sentences."""
        return [*filter(None, [self.headline]), *self.sentences]

    @property
    def titled_tables(self) -> Sequence[Table]:
        """The tables, each with its title in the first cell of its head."""
        if not self.titles:
            return self.tables
        pairs = zip(self.titles, self.tables, strict=True)
        return [Table([f"{title}: {table.head[0]}", *table.head[1:]], table.cells) for title, table in pairs]


MOST_ROWS, MOST_CHARACTERS = 10, 80
"""What a notebook shows of a table of rows, and of a text in it."""


def describe_rows(subject: Tabular) -> Document:
    """Describe a table of rows by the first of them."""
    whole = subject.to_arrow()
    rows = [list(map(_show_cell, line.values())) for line in whole.slice(0, MOST_ROWS).to_pylist()]
    notes = [f"{len(rows):,} of {whole.num_rows:,} rows; to_pandas() and to_polars() return all."]
    return Document([], [Table(whole.column_names, rows)], notes)


def _show_cell(value: object) -> str:
    if isinstance(value, float):
        return MISSING if math.isnan(value) else f"{value:.4g}"
    text = "" if value is None else escape_controls(" / ".join(value) if isinstance(value, list) else str(value))
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


class Printer(Generic[T]):
    """The formats of a result: `lay_out` for the terminal, and `FORMATS` that are texts, by name."""

    def __init__(self, document: Callable[[T], Document]) -> None:
        self.document = document
        self.FORMATS = make_formats(document)

    def lay_out(self, value: T) -> Layout:
        """Lay out a result for a rich console."""
        return Layout(self.document(value))


def make_formats(document: Callable[[Any], Document]) -> dict[str, Callable[..., str]]:
    """Return every format that is a text, by its name on the command line."""
    return {
        "json": to_json,
        "csv": to_csv,
        "md": lambda value: to_markdown(document(value)),
        "latex": lambda value, **style: to_latex(document(value), make_style(**style)),
    }


class Layout:
    """A rich renderable of a document; `verbose`: with its details."""

    def __init__(self, document: Document, verbose: bool = False) -> None:
        self.document, self.verbose = document, verbose

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.console import Group
        from rich.text import Text

        document, width = self.document, options.max_width
        if document.headline:
            color = next((color for mark, color in _COLORS.items() if document.glyph == mark), "")
            yield Text(escape_controls(f"{document.glyph} {document.headline}".strip()), f"bold {color}".strip())
        yield from map(Text, map(escape_controls, document.sentences))
        yield from [Text()] if document.paragraphs else []
        parts: list[RenderableType] = []
        for title, table in zip(document.titles or [""] * len(document.tables), document.tables, strict=True):
            first, *others = split_to_width(table, width)
            parts += [Group(Text(title, "bold"), first) if title else first, *others]
        for number, part in enumerate(parts):
            yield from [Text()] if number else []
            yield part
        notes = [*document.notes, *(document.details if self.verbose else ())]
        yield from [Text()] if parts and notes else []
        yield from map(Text, map(escape_controls, notes))


def to_markdown(document: Document) -> str:
    """Return paragraphs, and tables as GitHub renders them."""
    above = [f"**{escape_markdown(document.headline)}**\n"] if document.headline else []
    above += [f"{escape_markdown(line)}\n" for line in document.sentences]
    below = [f"{escape_markdown(line)}\n" for line in (*document.notes, *document.details)]
    tables = (format_markdown_table(table, escape_markdown) for table in document.titled_tables)
    return "\n".join([*above, *tables, *below])


def to_latex(document: Document, style: PaperStyle | None = None) -> str:
    """Return the tables as one float with the headline as caption; the rest of the texts are comments below."""
    caption, *others = [*document.paragraphs, *document.notes, ""]
    grids = [Grid(table.head, table.cells) for table in document.titled_tables]
    return format_float(grids, [caption], "tab:results", style, [*others[:-1], *document.details])


def to_html(document: Document, figure: str = "") -> str:
    """Return paragraphs, a figure and tables without style, as a notebook shows its own."""
    from dialeval.reports.markup import attribute as quote

    above = f"<p><strong>{quote(document.headline)}</strong></p>" if document.headline else ""
    above += "".join(f"<p>{quote(line)}</p>" for line in document.sentences)
    notes, details = ("<br>".join(map(quote, lines)) for lines in (document.notes, document.details))
    below = f"<p><small>{notes}</small></p>" if notes else ""
    below += f"<details><summary>Settings</summary><small>{details}</small></details>" if details else ""
    return above + figure + "".join(map(format_html_table, document.tables)) + below


WRITERS: Mapping[str, Callable[[Document], str | Layout]] = {"table": Layout, "md": to_markdown, "latex": to_latex}
"""How a document without a result is written, by format."""


def describe_result(result: object) -> Document:
    """Describe the result of an analysis by the function that a feature has for its class."""
    document: Document = find_place("documents", type(result).__name__)(result)
    return document


def lay_out(result: object) -> Layout:
    """Lay out the result of an analysis for a rich console."""
    return Layout(describe_result(result))


FORMATS = make_formats(describe_result)
"""The formats of the result of an analysis that are a text, by name on the command line."""


def find_extensions(run: Run, kind: str) -> Iterator[Callable[..., Any]]:
    """Yield the functions of a kind that features have for what a run holds (`Feature.sections`)."""
    for feature in list_known(everything=kind == "section"):
        for held, functions in feature.sections.items():
            if kind in functions and (held in run.details or any(key.startswith(held) for key in run.keys_in_order)):
                yield resolve_name(functions[kind])


# Tables in LaTeX for papers: the one writer of all commands.
#
# A table is set in `\small` with booktabs rules and fits the column or the text: columns that do not fit are in further
# panels below, with the names repeated, and a name that leaves no room for a value is shortened in its middle. Widths
# are those of Computer Modern; the column is that of two-column conference styles, the text that of `article` in 10
# points, the narrowest of the usual classes. Texts are escaped here, and nowhere else.

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
    shown, width = name, len(name)
    while measure(shown) > room and width > 1:
        width -= 1
        shown = shorten(name, width)
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
