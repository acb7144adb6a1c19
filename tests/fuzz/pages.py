"""What is written for people: the HTML report of rows that hold anything."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import dialeval
from fuzz.harness import Files, checked_in, target
from fuzz.row_files import only

TEXTS = (
    "</script><script>x</script>",
    "<img src=x onerror=x>",
    "<!--",
    "]]>",
    "&lt;u&gt;",
    "\u202ex",
    "\x1b[31m",
    "'\"",
)
"""What the seeds say beside sound text: mutators then take it apart."""


def hostile_rows() -> list[Files]:
    """Rows with markup in every field, among sound ones."""
    import orjson

    fields = ("dialog_id", "context", "response", "reference")
    rows = [{"system": system, **dict.fromkeys(fields, text)} for system in ("a", "<u>") for text in TEXTS]
    lines = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    return [checked_in("jsonl")[0], {"rows.jsonl": lines}]


class Tags(HTMLParser):
    """The elements of a page, and the attributes that could run something."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.handlers += [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")]


def tags_of(path: Path) -> Tags:
    found = Tags()
    with tempfile.TemporaryDirectory() as place:
        run = dialeval.evaluate(path, metrics="length,distinct", execution=dialeval.Execution(threads=1))
        page = dialeval.report(run, Path(place, "page.html"), compared=False)
        found.feed(page.read_text(encoding="utf-8"))
        found.close()
    return found


@cache
def sound_tags() -> Counter[str]:
    """The elements of a page about sound rows of two systems."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "rows.jsonl")
        path.write_bytes(
            b"".join(b'{"system":"%s","response":"x","reference":"y"}\n' % name for name in (b"a", b"b") * 2)
        )
        return tags_of(path).tags


OWN = {"bdi", "br", "details", "summary", "ul", "li", "title", "small", "b", "i", "dl", "dt", "dd", "figure"} | {
    *("figcaption", "polyline", "polygon", "rect", "circle", "path", "line", "text", "tspan", "svg", "g")
}
"""Elements of longer pages and of figures."""


@target("pages", seeds=hostile_rows, seconds=10.0)
def pages(folder: Path) -> None:
    """No text becomes an element or a handler."""
    found = tags_of(only(folder))
    assert not found.handlers, found.handlers
    assert set(found.tags) <= set(sound_tags()) | OWN
    assert found.tags["script"] == sound_tags()["script"]
    assert not {"img", "u", "iframe", "object", "link", "base", "form"} & set(found.tags)
