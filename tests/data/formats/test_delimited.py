from __future__ import annotations

import codecs
import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.core.errors import Fault
from dialeval.core.needs import Need
from dialeval.data.rows.reading import read_responses, read_texts

Caught = Callable[[Callable[[], object]], list[Fault]]
Write = Callable[[str, "bytes | str"], Path]


def test_fields_of_a_table(write: Write) -> None:
    content = (
        "response,reference,context,system,dialog_id,turn,response_is_reference\r\n"
        'hi,"r, s","a ""b""\nc",damd,d1,0,\r\n'
        ",,,damd,d1,1,\r\n"
        "same,same,x,damd,,,TRUE\r\n"
    )
    [rows] = read_responses(write("a.csv", codecs.BOM_UTF8 + content.encode()))
    assert rows.system == "damd"
    assert list(rows.responses) == ["hi", "", "same"]
    assert list(rows.columns[Need.REFERENCE]) == [["r, s"], [], []]
    assert list(rows.columns[Need.CONTEXT]) == [['a "b"\nc'], [], ["x"]]
    assert rows.turns is not None
    assert rows.turns.tolist() == [0, 1, -1]
    assert rows.dialogues is not None
    assert list(rows.dialogues) == ["d1", "d1", "row 3"]


def test_tabs(write: Write) -> None:
    [rows] = read_responses(write("a.tsv", 'response\treference\na, b\t"c\td"\n'))
    assert list(rows.responses) == ["a, b"]
    assert list(rows.columns[Need.REFERENCE]) == [["c\td"]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(*[st.text(st.one_of(st.sampled_from('\r\n",\0\t\ue000é'), st.characters(codec="utf-8")))] * 2))
)
def test_any_text_survives_quoting(write: Write, cells: list[tuple[str, str]]) -> None:
    # Quoted by hand: the writer of the standard library refuses a NUL before Python 3.11.
    table = [("response", "more"), *cells, ("end", "")]
    content = "".join(",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row) + "\r\n" for row in table)
    [rows] = read_responses(write("a.csv", content))
    assert list(rows.responses) == [*(first for first, _ in cells), "end"]


def test_a_lone_return_is_part_of_an_unquoted_cell(write: Write) -> None:
    [rows] = read_responses(write("a.csv", "response,x\na\rb,\ue000\r\nc,\r\r\n,1\n"))
    assert list(rows.responses) == ["a\rb", "c", ""]


def test_a_long_cell(write: Write) -> None:
    before = csv.field_size_limit()
    [rows] = read_responses(write("a.csv", "response\n" + "x" * 300_000))
    assert len(rows.responses[0]) == 300_000
    assert csv.field_size_limit() == before


def test_blank_lines_are_skipped_unless_they_are_rows(write: Write) -> None:
    [wide] = read_responses(write("a.csv", "response,x\n\na,1\n\n"))
    assert list(wide.responses) == ["a"]
    [narrow] = read_responses(write("b.csv", "response\n\na\n"))
    assert list(narrow.responses) == ["", "a"]


def test_texts_come_from_their_column_or_the_only_one(write: Write) -> None:
    assert list(read_texts(write("a.csv", "reference,x\na,1\n,2\n"), Need.REFERENCE)) == [["a"], []]
    assert list(read_texts(write("b.csv", "gold\na\nb\n"), Need.REFERENCE)) == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        ("answer,id\nx,1\ny,2\n", [(1, "has no column 'response', only answer, id")]),
        ("", [(1, "has no header")]),
        ("response,response\nx,y\n", [(1, "the header names 'response' more than once")]),
        ("response,x\n", [(None, "holds no rows")]),
        ("response,x\na,1\nb\nc,1,2\n", [(3, "has 1 cells"), (4, "has 3 cells")]),
        ('response,x\n"a\nb",1\n"c"d,1\ne\n', [(4, "is not quoted correctly"), (5, "has 1 cells")]),
        ('response,x\na,1\n"b,\n2\n', [(3, "is not quoted correctly")]),
        ('response,turn\n"a\nb",1\nc,x\n', [(4, "turn is 'x'")]),
        (b"response,x\na,1\n\xe9,2\n", [(3, "byte 0xe9 at position 1")]),
    ],
)
def test_faults(write: Write, faults_of: Caught, content: bytes | str, faults: list[tuple[int | None, str]]) -> None:
    path = write("a.csv", content)
    found = faults_of(lambda: read_responses(path))
    assert [(fault.where, fault.line) for fault in found] == [(str(path), line) for line, _ in faults]
    assert all(fault.what.startswith(what) for fault, (_, what) in zip(found, faults, strict=True))


def test_texts_without_a_column_are_a_fault(write: Write, faults_of: Caught) -> None:
    [fault] = faults_of(lambda: read_texts(write("a.csv", "x,y\n1,2\n"), Need.CONTEXT))
    assert (fault.line, fault.what) == (1, "has no field 'context', only x, y")
