"""The pieces of HTML that the sections of the report share: names, texts, tables, figures.

Functions have the names of the elements that they return. Every text that comes from outside goes through `text` or
`name`: control characters are written out, the rest is escaped and isolated in `<bdi>`, so that it can neither become
markup nor change the direction of the line around it.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from dialeval.reports.formatting import plain, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dialeval.core.fold import Better
    from dialeval.reports.documents import Document, Table


_ARROWS = {"higher": "↑", "lower": "↓"}


class Section(NamedTuple):
    """A part of the page with a heading of its own."""

    name: str
    title: str
    content: str


def text(text: str, *, lines: bool = False, most: int | None = None) -> str:
    """Return a text from outside as markup; `lines`: keep its line ends, `most`: characters that are shown."""
    shown = "\n".join(map(plain, text.split("\n"))) if lines else plain(text)
    shown = shown if most is None or len(shown) <= most else shown[: most - 1] + "…"
    return f'<bdi dir="auto">{escape(shown)}</bdi>'


def name(name: str) -> str:
    """Return the name of a system or metric, shortened if it is long."""
    return f'<bdi class="name">{escape(shorten(name))}</bdi>'


def count(number: int, noun: str) -> str:
    """Return `1 system`, `2 systems`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def span(kind: str, content: str) -> str:
    """Return markup of a kind: `hidden` is read aloud and not shown, `aside` is smaller and paler."""
    return f'<span class="{kind}">{content}</span>'


def note(content: str) -> str:
    """Return a paragraph of markup that explains what is below."""
    return f'<p class="note">{content}</p>'


def bullets(lines: Iterable[str], kind: str = "") -> str:
    """Return texts from outside as a list; nothing where there is none."""
    items = "".join(f"<li>{text(line, lines=True)}</li>" for line in lines)
    attribute = f' class="{kind}"' if kind else ""
    return f"<ul{attribute}>{items}</ul>" if items else ""


def notice(lines: Iterable[str]) -> str:
    """Return texts from outside as a list that should not be overlooked; nothing where there is none."""
    shown = bullets(lines)
    return f'<div class="notice">{shown}</div>' if shown else ""


def details(summary: str, content: str, kind: str = "") -> str:
    """Return markup that is shown when its summary is clicked."""
    attribute = f' class="{kind}"' if kind else ""
    return f"<details{attribute}><summary>{summary}</summary>{content}</details>"


def row(title: str, cells: str) -> str:
    """Return a line of a table: its title and its cells, both markup."""
    return f'<tr><th scope="row">{title}</th>{cells}</tr>'


def cells(*contents: str, kind: str = "") -> str:
    """Return the cells of a line, each from its markup."""
    opening = f'<td class="{kind}">' if kind else "<td>"
    return "".join(f"{opening}{content}</td>" for content in contents)


def heads(*titles: str, sortable: bool = False) -> str:
    """Return the head line of a table; titles are markup. `sortable`: columns sort by a click."""
    opening = f'<th scope="col"{" data-sort" if sortable else ""}>'
    return "<tr>" + "".join(f"{opening}{title}</th>" for title in titles) + "</tr>"


def section(identity: str, title: str, content: str, about: str = "") -> str:
    """Return a section of the page; `about` is a line of markup below its heading."""
    line = f'<p class="sub">{about}</p>' if about else ""
    head = f'<h2 id="{identity}-title">{title}</h2>'
    return f'<section id="{identity}" aria-labelledby="{identity}-title">{head}{line}{content}</section>'


def system_name(number: int, system: str) -> str:
    """Return the name of a system with the mark of its side: the baseline, or the other one."""
    return f'<span class="sys{"AB"[min(number, 1)]}">{name(system)}</span>'


def attribute(text: str) -> str:
    """Return a text from outside for an attribute."""
    return escape(plain(text))


def table(kind: str, caption: str, head: str, lines: Iterable[str]) -> str:
    """Return a table that scrolls by itself where it is wider than the window, by keyboard as well."""
    caption = f"<caption><span>{caption}</span></caption>" if caption else ""
    inside = f"{caption}<thead>{head}</thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="wide" tabindex="0"><table class="{kind}">{inside}</table></div>'


def plain_table(kind: str, shown: Table, caption: str = "") -> str:
    """Return a table of texts from outside."""
    lines = [row(text(name), cells(*map(text, values))) for name, *values in shown.cells]
    return table(kind, text(caption) if caption else "", heads(*map(text, shown.head)), lines)


def document(shown: Document, kind: str, captions: Sequence[str]) -> str:
    """Return sentences, tables and notes; the last of the captions is that of all further tables."""
    parts = [f"<p>{text(line)}</p>" for line in shown.sentences]
    parts += [plain_table(kind, part, captions[min(at, len(captions) - 1)]) for at, part in enumerate(shown.tables)]
    return "".join([*parts, *(note(text(line)) for line in shown.notes)])


def arrow(better: Better | None) -> str:
    """Return ↑ or ↓ as markup, with its spoken text; nothing where neither direction is better."""
    if better is None:
        return ""
    aloud = span("hidden", f"{better} is better")
    return f' <span class="way" aria-hidden="true">{_ARROWS[better]}</span>{aloud}'


def embed_json(identity: str, data: object) -> str:
    """Return plain data for the page's scripts; nothing in it can end the element that holds it."""
    import orjson

    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    written = orjson.dumps(data, option=options).decode()
    for char in "<>&\u2028\u2029":
        written = written.replace(char, f"\\u{ord(char):04x}")
    return f'<script type="application/json" id="{identity}">{written}</script>\n'
