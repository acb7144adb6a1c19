"""What is said of a result, in every format: sentences above, tables of texts, notes below.

    document = Document(["People do not tell b from a."], [table], ["95% intervals."])
    console.print(laid_out(document))       the terminal
    to_markdown(document), to_latex(document), to_html(document)

A report module makes the document of its result; `text_formats` makes the formats of the command line of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, TypeVar

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


def text_formats(document: Callable[[T], Document], csv: Callable[[T], str]) -> dict[str, Callable[[T], str]]:
    """Every format that is a text, by its name on the command line."""
    return {
        "json": formats.to_json,
        "csv": csv,
        "md": lambda value: to_markdown(document(value)),
        "latex": lambda value: to_latex(document(value)),
    }


def laid_out(document: Document) -> LaidOut:
    """The document for a rich console."""
    return LaidOut(partial(_parts, document))


def to_markdown(document: Document) -> str:
    """Paragraphs, and tables as GitHub renders them."""
    said, notes = ([f"{formats.markdown(line)}\n" for line in lines] for lines in (document.said, document.notes))
    return "\n".join([*said, *(formats.markdown_table(each, formats.markdown) for each in document.tables), *notes])


def to_latex(document: Document) -> str:
    """One tabular with booktabs rules, tables one below the other; all sentences are comments."""
    columns = max((len(each.head) for each in document.tables), default=1)
    lines = formats.latex_lines(columns, *document.tables, figure=formats.latex)
    return "\n".join([*lines, *(f"% {plain(line)}" for line in (*document.said, *document.notes)), ""])


def to_html(document: Document) -> str:
    """Paragraphs and tables without style, as a notebook shows its own."""
    said = "".join(f"<p>{escape(plain(line))}</p>" for line in document.said)
    tables = "".join(map(formats.html_table, document.tables))
    return said + tables + small(document.notes)


def small(notes: Iterable[str]) -> str:
    """Notes below a table, for a notebook."""
    lines = "<br>".join(escape(plain(line)) for line in notes)
    return f"<p><small>{lines}</small></p>" if lines else ""


def _parts(document: Document, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    yield from formats.paragraphs(map(plain, document.said))
    for head, rows in document.tables:
        names, *columns = zip(head, *rows, strict=True)
        for part in formats.fitting_tables(names, columns, width):
            yield part
            yield Text()
    yield from map(Text, map(plain, document.notes))
