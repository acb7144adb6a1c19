"""A result in every format: sentences, tables of texts and notes.

    document = Document(["People do not tell b from a."], [table], ["95% intervals."])
    console.print(laid_out(document))       the terminal
    to_markdown(document), to_latex(document), to_html(document)

A report module makes the document of its result; `text_formats` makes the formats of the command line of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from dialeval.core.plain_text import plain
from dialeval.reports import formats
from dialeval.reports.formats import LaidOut, Table

if TYPE_CHECKING:
    from rich.console import RenderableType

T = TypeVar("T")


@dataclass(frozen=True)
class Document:
    """Plain texts; each format escapes them by itself."""

    said: Sequence[str]
    tables: Sequence[Table]
    notes: Sequence[str]
    tight: bool = False
    """Whether the terminal prints the notes right below the last table."""


class Printer(Generic[T]):
    """The formats of a result: `table` for the terminal, and `FORMATS` that are texts, by name."""

    def __init__(self, document: Callable[[T], Document], csv: Callable[[T], str]) -> None:
        self.document, self.FORMATS = document, text_formats(document, csv)

    def table(self, value: T) -> LaidOut:
        """Lay out a result for a rich console."""
        return laid_out(self.document(value))


def text_formats(document: Callable[[T], Document], csv: Callable[[T], str]) -> dict[str, Callable[[T], str]]:
    """Return every format that is a text, by its name on the command line."""
    return {
        "json": formats.to_json,
        "csv": csv,
        "md": lambda value: to_markdown(document(value)),
        "latex": lambda value: to_latex(document(value)),
    }


def write_as(format_: str, document: Document) -> str | LaidOut:
    """Write a document as `table`, `md` or `latex`."""
    if format_ == "table":
        return laid_out(document)
    return to_markdown(document) if format_ == "md" else to_latex(document)


def laid_out(*layouts: Document) -> LaidOut:
    """Lay out a document for a rich console: the first of some layouts whose tables fit its width, else the last."""
    return LaidOut(partial(_parts, layouts))


def to_markdown(document: Document) -> str:
    """Return paragraphs, and tables as GitHub renders them."""
    said, notes = ([f"{formats.markdown(line)}\n" for line in lines] for lines in (document.said, document.notes))
    return "\n".join([*said, *(formats.markdown_table(each, formats.markdown) for each in document.tables), *notes])


def to_latex(document: Document) -> str:
    """Return one tabular with booktabs rules, tables one below the other; all sentences are comments."""
    columns = max((len(each.head) for each in document.tables), default=1)
    lines = formats.latex_lines(columns, *document.tables, figure=formats.latex)
    return "\n".join([*lines, *(f"% {formats.latex(line)}" for line in (*document.said, *document.notes)), ""])


def to_html(document: Document) -> str:
    """Return paragraphs and tables without style, as a notebook shows its own."""
    from html import escape

    said = "".join(f"<p>{escape(plain(line))}</p>" for line in document.said)
    tables = "".join(map(formats.html_table, document.tables))
    return said + tables + small(document.notes)


def small(notes: Iterable[str]) -> str:
    """Return the notes below a table, for a notebook."""
    from html import escape

    lines = "<br>".join(escape(plain(line)) for line in notes)
    return f"<p><small>{lines}</small></p>" if lines else ""


def _parts(layouts: Sequence[Document], width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    document = next((each for each in layouts if _fits(each, width)), layouts[-1])
    yield from formats.paragraphs(map(plain, document.said))
    parts = [part for table in document.tables for part in formats.fitting_tables(*table.columns, width)]
    for number, part in enumerate(parts):
        yield from [Text()] if number else []
        yield part
    yield from [Text()] if parts and document.notes and not document.tight else []
    yield from map(Text, map(plain, document.notes))


def _fits(document: Document, width: int) -> bool:
    return all(formats.needed_width(*table.columns) <= width for table in document.tables)
