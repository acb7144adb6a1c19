"""A table in every format: what is escaped, which digits are kept, and what fits a width."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dialeval.reports.documents import (
    Document,
    Table,
    escape_latex,
    escape_markdown,
    format_csv,
    format_html_table,
    format_markdown_table,
    make_rich_table,
    to_html,
    to_latex,
    to_markdown,
)

TABLE = Table(["metric", "a|b", "c_d"], [["bleu-4", "0.5 [0.1]", "-1"], ["x&y", "", "2"]])


def printed(drawn: object, width: int = 80) -> list[str]:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(drawn)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


TEXTS = st.text(max_size=5)
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


@given(st.lists(st.tuples(st.floats(allow_infinity=False), TEXTS, st.none() | st.integers()), max_size=4))
def test_csv_reads_back(rows: list[tuple[float, str, int | None]]) -> None:
    head, *lines = csv.reader(io.StringIO(format_csv(("x", "y", "z"), rows), newline=""))
    assert head == ["x", "y", "z"]
    for (number, text, whole), line in zip(rows, lines, strict=True):
        assert float(line[0] or "nan") == pytest.approx(number, rel=0, abs=0, nan_ok=True)
        assert line[1:] == [f"'{text}" if text.startswith(FORMULAS) else text, "" if whole is None else str(whole)]


@pytest.mark.parametrize("start", FORMULAS)
def test_no_text_in_csv_is_a_formula(start: str) -> None:
    """As OWASP describes: an apostrophe before what a spreadsheet would compute; numbers stay numbers."""
    text = format_csv(("x", "=y"), [(f'{start}HYPERLINK("http://x")', -1.5), ("a=b", -3)])
    head, first, second = csv.reader(io.StringIO(text, newline=""))
    assert head == ["x", "'=y"]
    assert first == [f'\'{start}HYPERLINK("http://x")', "-1.5"]
    assert second == ["a=b", "-3"]


def test_no_cell_of_a_terminal_table_is_an_escape() -> None:
    lines = printed(make_rich_table([["a\x1b[31m", "b\x9b1m"], ["c\r", "\u202ed"]]))
    assert lines[0].split() == [r"a\x1b[31m", r"c\r"]
    assert lines[-1].split() == [r"b\x9b1m", r"\u202ed"]


def test_markdown_escapes_names_and_leaves_figures() -> None:
    assert format_markdown_table(TABLE).splitlines() == [
        r"| metric | a\|b | c\_d |",
        "| --- | ---: | ---: |",
        "| bleu-4 | 0.5 [0.1] | -1 |",
        "| x&amp;y |  | 2 |",
    ]
    assert r"0.5 \[0.1\]" in format_markdown_table(TABLE, escape_markdown)


def test_html_escapes_names_and_figures() -> None:
    shown = format_html_table(Table(["<n>", "a\x1b"], [["<b>", "<i>"]]))
    assert shown == (
        '<table><thead><tr><th scope="col">&lt;n&gt;</th><th scope="col">a\\x1b</th></tr></thead>'
        '<tbody><tr><th scope="row">&lt;b&gt;</th><td>&lt;i&gt;</td></tr></tbody></table>'
    )


@pytest.mark.parametrize("escape", [escape_markdown, escape_latex])
def test_control_characters_are_written_out(escape: object) -> None:
    assert "\x1b" not in escape("\x1b[31m")  # type: ignore[operator]


def test_cells_of_a_terminal_are_not_markup() -> None:
    lines = printed(make_rich_table([["head", "[bold]x"], ["[i]", "1"]]))
    assert lines[0].split() == ["head", "[i]"]
    assert lines[2].split() == ["[bold]x", "1"]


ODD = "<b>&_\x1b[2J"
DOCUMENT = Document(
    ["b is better."],
    [Table(["system", "value"], [[ODD, "0.5"]]), Table(["metric", "p", "effect"], [["bleu", "0.01", "2"]])],
    ["first note", f"about {ODD}"],
)


def test_texts_of_documents_are_escaped() -> None:
    assert "<b>" not in to_html(DOCUMENT)
    assert "<b>" not in to_markdown(DOCUMENT)
    assert r"\textless{}b\textgreater{}\&\_" in to_latex(DOCUMENT)
