"""A table in every format: what is escaped, which digits are kept, and what fits a width."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dialeval.reports.documents import (
    Document,
    Layout,
    Table,
    escape_latex,
    escape_markdown,
    format_csv,
    format_html_table,
    format_latex_float,
    format_latex_tables,
    format_markdown_table,
    make_rich_table,
    split_to_width,
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


def test_a_lone_carriage_return_is_quoted() -> None:
    assert format_csv(("x", "y"), [("a\rb", "c")]) == 'x,y\n"a\rb",c\n'


def test_no_cell_of_a_terminal_table_is_an_escape() -> None:
    lines = printed(make_rich_table([["a\x1b[31m", "b\x9b1m"], ["c\r", "\u202ed"]]))
    assert lines[0].split() == [r"a\x1b[31m", r"c\r"]
    assert lines[-1].split() == [r"b\x9b1m", r"\u202ed"]


def test_csv_writes_numpy_numbers_as_plain_ones() -> None:
    assert format_csv(("x", "y"), [(np.float64(0.1), np.int64(3)), (np.float64("nan"), True)]) == "x,y\n0.1,3\n,True\n"
    assert format_csv(("x",), [(math.inf,)]) == "x\ninf\n"


def test_markdown_escapes_names_and_leaves_figures() -> None:
    assert format_markdown_table(TABLE).splitlines() == [
        r"| metric | a\|b | c\_d |",
        "| --- | ---: | ---: |",
        "| bleu-4 | 0.5 [0.1] | -1 |",
        "| x&amp;y |  | 2 |",
    ]
    assert r"0.5 \[0.1\]" in format_markdown_table(TABLE, escape_markdown)


def test_a_table_is_transposed_and_back() -> None:
    swapped = TABLE.transpose("other")
    assert swapped.head == ["other", *(row[0] for row in TABLE.rows)]
    assert [row[0] for row in swapped.rows] == list(TABLE.head[1:])
    back = swapped.transpose(TABLE.head[0])
    assert ([*back.head], [[*row] for row in back.rows]) == ([*TABLE.head], [[*row] for row in TABLE.rows])


def test_a_table_that_floats_has_a_caption_and_a_label() -> None:
    text = format_latex_float([TABLE], ["50% of a_b.", "↑"], "tab:x")
    assert r"\caption{50\% of a\_b. $\uparrow$}" in text
    assert r"\label{tab:x}" in text
    inside = text[text.index(r"\begin{tabular}") : text.index(r"\end{table}")]
    assert inside.splitlines() == format_latex_tables(len(TABLE.head), TABLE)
    assert format_latex_float([], []).count(r"\begin{tabular}{l}") == 1


def test_html_escapes_names_and_figures() -> None:
    shown = format_html_table(Table(["<n>", "a\x1b"], [["<b>", "<i>"]]))
    assert shown == (
        "<table><thead><tr><th>&lt;n&gt;</th><th>a\\x1b</th></tr></thead>"
        "<tbody><tr><th>&lt;b&gt;</th><td>&lt;i&gt;</td></tr></tbody></table>"
    )


def test_latex_is_one_tabular_of_all_tables() -> None:
    lines = format_latex_tables(3, TABLE, Table(["n", "p", "q"], []), figure=lambda cell: cell.replace("-", "$-$"))
    assert lines == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"metric & a\textbar{}b & c\_d \\",
        r"\midrule",
        r"bleu-4 & 0.5 [0.1] & $-$1 \\",
        r"x\&y &  & 2 \\",
        r"\midrule",
        r"n & p & q \\",
        r"\midrule",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert format_latex_tables(2) == [r"\begin{tabular}{lr}", r"\toprule", r"\bottomrule", r"\end{tabular}"]


@pytest.mark.parametrize("escape", [escape_markdown, escape_latex])
def test_control_characters_are_written_out(escape: object) -> None:
    assert "\x1b" not in escape("\x1b[31m")  # type: ignore[operator]


def test_cells_of_a_terminal_are_not_markup() -> None:
    lines = printed(make_rich_table([["head", "[bold]x"], ["[i]", "1"]]))
    assert lines[0].split() == ["head", "[i]"]
    assert lines[2].split() == ["[bold]x", "1"]


def test_columns_that_do_not_fit_stand_in_a_table_below() -> None:
    whole = Table(["metric", "one", "two", "a very wide one"], [["a", "1.0", "22.00", "3"]])

    def heads(width: int) -> list[list[str]]:
        tables = split_to_width(whole, width)
        return [[str(column.header).strip() for column in table.columns] for table in tables]

    assert heads(100) == [["metric", "one", "two", "a very wide one"]]
    assert heads(20) == [["metric", "one", "two"], ["metric", "a very wide one"]]
    assert heads(1) == [["metric", "one"], ["metric", "two"], ["metric", "a very wide one"]]
    exact = len("metric") + sum(width + 3 for width in (3, 5, 15))
    assert len(heads(exact)) == 1
    assert len(heads(exact - 1)) == 2


def test_figures_are_aligned_right() -> None:
    (table,) = split_to_width(Table(["m", "head"], [["x", "1"], ["y", "22"]]), 80)
    assert [line.rstrip()[-2:].strip() for line in printed(table)[2:]] == ["1", "22"]
    assert len({len(line.rstrip()) for line in printed(table)[2:]}) == 1


def test_a_console_shows_the_first_layout_that_fits_it() -> None:
    wide, narrow = (Document([], [Table(["metric", text], [["bleu", "1"]])], []) for text in ("a wide head", "head"))
    assert "a wide head" in printed(Layout(wide, narrow), 33)[0]
    assert "a wide" not in printed(Layout(wide, narrow), 16)[0]


@pytest.mark.parametrize("name", ["[9cm]", " [9cm] x", "*", "*[1em]"])
def test_a_name_is_no_option_of_the_line_end_before_it(name: str) -> None:
    table = Table(["system", "length"], [["a", "1"], [name, "2"]])
    lines = format_latex_tables(2, table)
    row = next(line for line in lines if line.endswith(r"& 2 \\"))
    assert row.startswith("{}")
    assert next(line for line in lines if line.endswith(r"& 1 \\")).startswith("a")
