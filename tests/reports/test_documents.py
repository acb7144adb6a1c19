"""A document in every format: nothing is lost, and texts stay texts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import nan
from typing import Any

from dialeval.core.display import Tabular
from dialeval.reports.documents import Document, Layout, Table, make_formats, to_html, to_latex, to_markdown
from human.test_report import printed

HOSTILE = "<b>&_\x1b[2J"
DOCUMENT = Document(
    ["b is better."],
    [Table(["system", "value"], [[HOSTILE, "0.5"]]), Table(["metric", "p", "effect"], [["bleu", "0.01", "2"]])],
    ["first note", f"about {HOSTILE}"],
)


def test_every_format_has_sentences_tables_and_notes_in_this_order() -> None:
    for text in (printed(Layout(DOCUMENT)), to_markdown(DOCUMENT), to_html(DOCUMENT)):
        places = [text.index(words) for words in ("b is better.", "0.5", "0.01", "first note", "about")]
        assert places == sorted(places)
        assert "\x1b" not in text
    latex = to_latex(DOCUMENT)
    assert latex.index("0.5") < latex.index("0.01") < latex.index("% b is better.") < latex.index("% first note")
    assert r"\begin{tabular}{lrr}" in latex  # as wide as the widest table


def test_markup_is_escaped() -> None:
    assert "<b>" not in to_html(DOCUMENT)
    assert "<b>" not in to_markdown(DOCUMENT)
    assert r"\textless{}b\textgreater{}\&\_" in to_latex(DOCUMENT)


def test_without_notes_there_is_no_empty_paragraph() -> None:
    assert to_html(Document([], DOCUMENT.tables, [])).endswith("</table>")


@dataclass
class Subject(Tabular):
    name: str

    def to_dict(self) -> dict[str, str]:
        return vars(self)

    def lines(self) -> list[dict[str, Any]]:
        return [{"name": self.name, "size": 0.1}, {"name": "=x", "size": nan}]


def test_formats_of_a_result() -> None:
    def document(subject: Subject) -> Document:
        return Document([subject.name], [], [])

    made = make_formats(document)
    assert json.loads(made["json"](Subject("x"))) == {"name": "x"}
    assert made["csv"](Subject("x")) == "name,size\nx,0.1\n'=x,\n"
    assert made["md"](Subject("x_")) == "x\\_\n"
    assert "% x" in made["latex"](Subject("x"))
