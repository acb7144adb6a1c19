"""A document in every format: nothing is lost, and texts stay texts."""

from __future__ import annotations

from dialeval.reports.documents import Document, Table, to_html, to_latex, to_markdown

HOSTILE = "<b>&_\x1b[2J"
DOCUMENT = Document(
    ["b is better."],
    [Table(["system", "value"], [[HOSTILE, "0.5"]]), Table(["metric", "p", "effect"], [["bleu", "0.01", "2"]])],
    ["first note", f"about {HOSTILE}"],
)


def test_markup_is_escaped() -> None:
    assert "<b>" not in to_html(DOCUMENT)
    assert "<b>" not in to_markdown(DOCUMENT)
    assert r"\textless{}b\textgreater{}\&\_" in to_latex(DOCUMENT)
