from __future__ import annotations

import codecs
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval.core.batch import Need
from dialeval.core.errors import DataError, Problem
from dialeval.io import json as documents
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


def test_lines_of_items_in_documents_of_any_form(write: Write, problems_of: Caught) -> None:
    def lines(content: str) -> list[int | None]:
        path = write("a.json", content)
        return [problem.line for problem in problems_of(lambda: read_responses(path))]

    assert lines('\n\n [ 1,\n2 , "x",\n\n3]') == [3, 4, 6]
    assert lines('{"a": ["x", 1],\n "b": [[\n2], {"c": [3]}]}') == [1, 2, 3]
    assert lines('{"a": [1],\n "b": ["x"],\n "a": ["y",\n 2]}') == [4], "the last list of a name"
    assert lines('\n{"b": ["x"],\n"a"\n:\n[\n1]}') == [6]
    assert lines('{"results": {"results":\n[\n"x",\n1]}}') == [2], "items of an inner list are only numbered"
    assert lines('{"eval": {},\n"samples": [\n1]}') == [3]


def test_documents_that_hold_no_rows_say_what_each_name_holds(write: Write, problems_of: Caught) -> None:
    path = write("a.json", '{"a": 3, "b": ["x"], "c": [], "d": null}')
    assert [(problem.line, problem.what) for problem in problems_of(lambda: read_responses(path))] == [
        (None, "'a' is a number, not a list of rows"),
        (None, "'c' is an empty list, not a list of rows"),
        (None, "'d' is null, not a list of rows"),
    ]
    odd = write("c.json", '{"prompt": "a",\n"completion": 3}')
    assert [problem.line for problem in problems_of(lambda: read_responses(odd))] == [1]
    one = write("b.json", '{"prompt": "a", "completion": "b"}')
    assert list(read_responses(one)[0].responses) == ["b"]


def zipped(path: Path, members: dict[str, object]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


def sample(number: int) -> dict[str, object]:
    choices = [{"message": {"role": "assistant", "content": f"a{number}"}}]
    return {"id": number, "epoch": 1, "input": "q", "output": {"choices": choices}}


def test_samples_of_an_archive_are_in_the_order_of_names(tmp_path: Path) -> None:
    samples: dict[str, object] = {
        "samples/b.json": sample(1),
        "samples/a.json": sample(2),
        "samples/c.txt": b"x",
        "summaries.json": [],
    }
    for name in ("header.json", "_journal/start.json"):
        header: dict[str, object] = {name: {"eval": {"model": "m"}}}
        [rows] = read_responses(zipped(tmp_path / "x.eval", {**samples, **header}))
        assert (rows.system, list(rows.responses)) == ("m", ["a2", "a1"])
    first: dict[str, object] = {
        "header.json": {"eval": {"model": "h"}},
        "_journal/start.json": {"eval": {"model": "j"}},
    }
    assert read_responses(zipped(tmp_path / "x.eval", samples | first))[0].system == "h"
    for nameless in ({}, {"eval": None}):
        found = read_responses(zipped(tmp_path / "x.eval", {**samples, "header.json": nameless}))
        assert found[0].system == "x"
    assert read_responses(zipped(tmp_path / "x.eval", samples))[0].system == "x"


def test_samples_of_an_archive_are_counted_from_one(tmp_path: Path, problems_of: Caught) -> None:
    path = zipped(tmp_path / "x.eval", {"samples/a.json": sample(1), "samples/b.json": {**sample(2), "target": 7}})
    assert [(problem.line, problem.what) for problem in problems_of(lambda: read_responses(path))] == [
        (2, "reference is a number")
    ]


def test_archives_that_hold_no_samples(tmp_path: Path, problems_of: Caught, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(path: Path) -> tuple[str, str]:
        [problem] = problems_of(lambda: read_responses(path))
        return problem.where, problem.what

    path = str(tmp_path / "x.eval")
    nothing = (path, "holds no samples of inspect_ai")
    assert told(zipped(tmp_path / "x.eval", {"header.json": {}})) == nothing
    assert told(zipped(tmp_path / "x.eval", {"header.json": [], "samples/a.json": sample(1)})) == nothing
    empty = zipped(tmp_path / "x.eval", {"samples/a.json": b""})
    [problem] = problems_of(lambda: read_responses(empty))
    assert (problem.what, problem.remedy) == ("is empty", "write a JSON document")
    broken = zipped(tmp_path / "x.eval", {"samples/a.json": b"{"})
    assert told(broken)[0] == f"{path}: samples/a.json"
    (tmp_path / "x.eval").write_bytes(b"PK\x03\x04")
    assert told(tmp_path / "x.eval")[1].startswith("is not a readable log of inspect_ai (")
    large = zipped(tmp_path / "x.eval", {"samples/a.json": sample(1), "more": b"x" * 1000})
    size = len(json.dumps(sample(1))) + 1000
    monkeypatch.setattr(documents, "unpacked_limit", lambda _: size)
    assert len(read_responses(large)) == 1
    monkeypatch.setattr(documents, "unpacked_limit", lambda _: size - 1)
    assert told(large) == (path, "unpacks to far more than its size")
