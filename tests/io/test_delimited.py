from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.errors import DataError, Problem, SettingError, collect_warnings
from dialeval.io.reading import read_responses, read_texts

Caught = Callable[[Callable[[], object]], list[Problem]]
Write = Callable[[str, "bytes | str"], Path]


def test_a_quote_that_swallows_rows_is_refused(write: Write) -> None:
    """Rows 2 and 3 would be one: its quotes are a text's own."""
    text = 'response\treference\none\tfirst\n"two\tsecond\nthree"\tthird\nfour\tfourth\n'
    with pytest.raises(DataError, match=r"a\.tsv:3: has a quoted cell with tabs and line ends in it"):
        read_responses(write("a.tsv", text))
    [rows] = read_responses(write("b.tsv", 'response\treference\n"one\ttab"\tfirst\n"two\nlines"\tsecond\n'))
    assert list(rows.responses) == ["one\ttab", "two\nlines"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            *[st.text(st.one_of(st.sampled_from('\r\n",\t\ue000é'), st.characters(codec="utf-8", min_codepoint=1)))] * 2
        )
    )
)
def test_any_text_survives_quoting(write: Write, cells: list[tuple[str, str]]) -> None:
    # Without NUL, which the standard library takes for an error before Python 3.11.
    table = [("response", "more"), *cells, ("end", "")]
    content = "".join(",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row) + "\r\n" for row in table)
    [rows] = read_responses(write("a.csv", content))
    assert list(rows.responses) == [*(first for first, _ in cells), "end"]


def test_blank_lines_are_skipped_unless_they_are_rows(write: Write) -> None:
    [wide] = read_responses(write("a.csv", "response,x\n\na,1\n\n"))
    assert list(wide.responses) == ["a"]
    [narrow] = read_responses(write("b.csv", "response\n\na\n"))
    assert list(narrow.responses) == ["", "a"]


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        ("answer,id\nx,1\ny,2\n", [(2, "has no field 'response', only answer, id")]),
        ("", [(1, "has no header")]),
        ("response,response\nx,y\n", [(1, "the header names 'response' more than once")]),
        ("response,x\n", [(None, "holds no rows")]),
        ("response,x\na,1\nb\nc,1,2\n", [(3, "has 1 cells"), (4, "has 3 cells")]),
        ('response,x\n"a\nb",1\n"c"d,1\ne\n', [(4, "is not quoted correctly"), (5, "has 1 cells")]),
        ('response,x\na,1\n"b,\n2\n', [(3, "is not quoted correctly")]),
        ('response,x\n"a\rb",1\r\nc\rd,2\n', [(3, "is not quoted correctly")]),
        ('response,turn\n"a\nb",1\nc,x\n', [(4, "turn is 'x'")]),
        ("sep=;\nresponse,x\na,1\n", [(3, "has no field 'response', only response,x")]),
        ("sep=;\nresponse;x\na;1\nb\n", [(4, "has 1 cells")]),
        ("answer;id\nx;1\n", [(2, "has no field 'response', only answer, id")]),
        ("prompt|more\nx|1\n", [(2, "has no field 'response', only prompt, more")]),
        ("é\n".encode() + b"response,x\n\xe9,2\n", [(3, "byte 0xe9 at position 1")]),
        (b"response,x\n\xe9\x81,2\n", [(2, "byte 0xe9 at position 1")]),
        (b"\xff\xfer\x00e", [(None, "begins as UTF-16 and is not")]),
    ],
)
def test_problems(
    write: Write, problems_of: Caught, content: bytes | str, problems: list[tuple[int | None, str]]
) -> None:
    path = write("a.csv", content)
    found = problems_of(lambda: read_responses(path))
    assert [(problem.where, problem.line) for problem in found] == [(str(path), line) for line, _ in problems]
    assert all(problem.what.startswith(what) for problem, (_, what) in zip(found, problems, strict=True))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "response;reference\r\na, b;c\r\n"),
        ("a.csv", "response\treference\na, b\tc\n"),
        ("a.csv", "response|reference\na, b|c\n"),
        ("a.tsv", 'response,reference\n"a, b",c\n'),
        ("a.csv", "sep=;\r\nresponse;reference\r\na, b;c\r\n"),
        ("a.csv", 'SEP=\t\n"response"\t"reference"\na, b\tc\n'),
        ("a.csv", codecs.BOM_UTF8 + b"sep=;\r\nresponse;reference\r\na, b;c\r\n"),
        ("a.csv", "\ufeffresponse;reference\r\na, b;c\r\n".encode("utf-16-le")),
        ("a.csv", "\ufeffresponse\treference\r\na, b\tc\r\n".encode("utf-16-be")),
        ("a.csv", 'response;"more;\nand more";reference\na, b;;c\n'),
    ],
)
def test_what_stands_between_cells_is_found(write: Write, name: str, content: bytes | str) -> None:
    [rows] = read_responses(write(name, content))
    assert list(rows.responses) == ["a, b"]
    assert list(rows.columns[inputs.REFERENCE]) == [["c"]]


def test_the_separator_can_be_said(write: Write) -> None:
    path = write("a.csv", "response;reference,x\na;b,c\n")
    [rows] = read_responses(path, fields={"response": "response;reference"}, separator=",")
    assert list(rows.responses) == ["a;b"]
    [rows] = read_responses(write("b.csv", "response#x\na,b#c\n"), separator="#")
    assert list(rows.responses) == ["a,b"]
    with pytest.raises(SettingError, match="one character"):
        read_responses(path, separator=";;")


def test_windows_1252_is_read_and_told(write: Write) -> None:
    path = write("a.csv", "response;reference\r\nGrüße – ja;„gut“ €\r\n".encode("cp1252"))
    with collect_warnings() as notes:
        [rows] = read_responses(path)
    assert list(rows.responses) == ["Grüße – ja"]
    assert list(rows.columns[inputs.REFERENCE]) == [["„gut“ €"]]
    told = [f"{path} is not UTF-8 (line 2) and was read as Windows-1252; save it as UTF-8 to be sure"]
    assert list(notes) == told
    with collect_warnings() as notes:
        assert list(read_texts(path, inputs.REFERENCE)) == [["„gut“ €"]]
    assert list(notes) == told


def test_a_table_of_very_many_columns_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(["response", *(f"c{number}" for number in range(100_000))]) + "\n")
    with pytest.raises(DataError, match="names 100,001 columns, and at most 10,000 are read; leave out columns"):
        read_responses(path)
    path.write_text(",".join(["response", *(f"c{number}" for number in range(9_999))]) + "\n")
    with pytest.raises(DataError, match="holds no rows"):
        read_responses(path)
    path.write_text(",".join(["response", *["twice"] * 9_000]) + "\n")
    with pytest.raises(DataError, match="the header names 'twice' more than once"):
        read_responses(path)
