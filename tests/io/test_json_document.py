from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval.core.batch import Need
from dialeval.core.errors import DataError, Problem
from dialeval.io.json import load
from dialeval.io.reading import read_responses, read_texts

Caught = Callable[[Callable[[], object]], list[Problem]]
Write = Callable[[str, "bytes | str"], Path]


def test_forms(write: Write) -> None:
    [texts] = read_responses(write("a.json", codecs.BOM_UTF8 + b'["x", ""]'))
    assert (texts.system, list(texts.responses)) == ("a", ["x", ""])
    [rows] = read_responses(write("b.json", '[{"response": "x", "reference": "r"}]'))
    assert list(rows.columns[Need.REFERENCE]) == [["r"]]
    first, second = read_responses(write("c.json", '{"damd": ["x"], "ubar": [{"response": "y"}]}'))
    assert (first.system, second.system) == ("damd", "ubar")
    assert list(second.responses) == ["y"]


def test_named_lists_of_references_are_several_per_row(write: Write) -> None:
    path = write("a.json", '{"one": ["a", "b"], "two": ["c", ["d", "e"]]}')
    assert list(read_texts(path, Need.REFERENCE)) == [["a", "c"], ["b", "d", "e"]]


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ('[\n"a",\n"b"\n"c"]', 4, "not JSON ("),
        ('[\n"a"', 2, "not JSON ("),
        ("[" * 100_000, 1, "not JSON (depth limit"),
        ("3", 1, "is a number"),
        ("{}", 1, "is an empty object"),
        (" \n", None, "is empty"),
        ("", None, "is empty"),
        ("[]", None, "holds no rows"),
        ('{"a": "x"}', None, "'a' is a string, not a list of rows"),
        ('{"a": ["x"], "b": []}', None, "'b' is an empty list, not a list of rows"),
        (b'[\n"a",\n"\xff"]', 3, "byte 0xff at position 2 of the line is not UTF-8"),
    ],
)
def test_problems_of_documents(
    write: Write, problems_of: Caught, content: bytes | str, line: int | None, what: str
) -> None:
    path = write("a.json", content)
    [problem] = problems_of(lambda: read_responses(path))
    assert (problem.where, problem.line) == (str(path), line)
    assert problem.what.startswith(what)


def test_problems_of_items_name_their_lines(write: Write, problems_of: Caught) -> None:
    path = write("a.json", '[\n  "a", 3,\n  {\n    "response": 4\n  }\n,\n null, "[,]\\"{"\n,{}]')
    assert [problem.line for problem in problems_of(lambda: read_responses(path))] == [2, 3, 7, 8]


def test_problems_of_items_in_named_lists_name_their_lines(write: Write, problems_of: Caught) -> None:
    path = write("a.json", '{\n"a": ["x",\n1],\n"b" : [\n\n2]}')
    found = problems_of(lambda: read_responses(path))
    assert [(problem.line, problem.what) for problem in found] == [
        (3, "the row is a number"),
        (6, "the row is a number"),
    ]


def test_a_problem_in_a_deeply_nested_document_is_still_a_problem(write: Write, problems_of: Caught) -> None:
    deep = "[" * 1015 + "]" * 1015
    path = write("a.json", f'[3,\n{{"response": "x", "more": {deep}}},\n3]')
    first, second = problems_of(lambda: read_responses(path))
    assert first.line == 1
    assert second.what == "the row is a number"


def test_a_document_is_loaded_or_refused_with_its_form(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": [1]}')
    assert load(path) == {"a": [1]}
    path.write_text("")
    with pytest.raises(DataError, match=r"a.json: is empty; write a JSON document$"):
        load(path)
    with pytest.raises(DataError, match=r"a.json: is empty; give a list$"):
        load(path, "give a list")
