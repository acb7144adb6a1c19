from __future__ import annotations

import codecs
import json
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval.core import inputs
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
    assert list(rows.columns[inputs.REFERENCE]) == [["r"]]
    first, second = read_responses(write("c.json", '{"damd": ["x"], "ubar": [{"response": "y"}]}'))
    assert (first.system, second.system) == ("damd", "ubar")
    assert list(second.responses) == ["y"]


def test_named_lists_of_references_are_several_per_row(write: Write) -> None:
    path = write("a.json", '{"one": ["a", "b"], "two": ["c", ["d", "e"]]}')
    assert list(read_texts(path, inputs.REFERENCE)) == [["a", "c"], ["b", "d", "e"]]


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
        ('{"a": "x"}', 1, "has no field 'response', only a"),
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


def test_a_problem_in_a_deeply_nested_document_is_still_a_problem(write: Write, problems_of: Caught) -> None:
    deep = "[" * 1015 + "]" * 1015
    path = write("a.json", f'[3,\n{{"response": "x", "more": {deep}}},\n3]')
    first, second = problems_of(lambda: read_responses(path))
    assert first.where == f"{path}, item 1"
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


def test_problems_name_items_of_documents_of_any_form(write: Write, problems_of: Caught) -> None:
    def items(content: str) -> list[str]:
        path = write("a.json", content)
        problems = problems_of(lambda: read_responses(path))
        assert {problem.line for problem in problems} == {None}
        return [problem.where.removeprefix(f"{path}, ") for problem in problems]

    assert items('[\n  "a", 3,\n {"response": 4\n},\n null, "[,]\\"{"\n,{}]') == [f"item {n}" for n in (2, 3, 4, 6)]
    assert items('{"a": ["x", 1],\n "b": [[\n2], {"c": [3]}]}') == ["item 2 of 'a'", "item 1 of 'b'", "item 2 of 'b'"]
    assert items('{"results": {"results":\n[\n"x",\n1]}}') == ["item 2 of 'results.results'"]
    assert items('{"eval": {},\n"samples": [\n1]}') == ["item 1 of 'samples'"]
    assert items('{"response": "a"}\n\n{"response": 1}\n{"b": ""}') == ["item 2", "item 3"], "one after the other"
    assert items(f'[{{"response": "a", "b": {"9" * 300}}},\n1]') == ["item 2"]


def test_documents_that_hold_no_rows_are_a_row_without_a_reply(write: Write, problems_of: Caught) -> None:
    path = write("a.json", '{"a": 3, "b": {"text": "See you at nine."}, "c": [], "d": null}')
    [problem] = problems_of(lambda: read_responses(path))
    assert (problem.line, problem.what) == (1, "has no field 'response', only a, b, c, d")
    assert "--field response=b.text" in problem.remedy
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
        "samples/b/1_epoch_1.json": sample(1),
        "samples/a_epoch_12.json": sample(2),
        "samples/": b"",
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


def test_each_sample_of_an_archive_has_its_own_problems(tmp_path: Path, problems_of: Caught) -> None:
    names = [f"samples/{number}_epoch_1.json" for number in range(1, 5)]
    path = zipped(tmp_path / "x.eval", {names[0]: b"{", names[1]: sample(1), names[2]: {**sample(2), "target": 7},
                                        names[3]: b""})  # fmt: skip
    problems = problems_of(lambda: read_responses(path))
    assert {(problem.where, problem.line, problem.what) for problem in problems} == {
        (f"{path}: {names[0]}", 1, "not JSON (unexpected end of data)"),
        (f"{path}: {names[3]}", None, "is empty"),
        (str(path), 3, "reference is a number"),
    }


ONE = "samples/1_epoch_1.json"
TWO = "samples/2_epoch_1.json"
LISTED = [{"id": 1, "epoch": 1}, {"id": "2", "epoch": 1}]


@pytest.mark.parametrize(
    ("members", "where", "what"),
    [
        ([(ONE, sample(1)), ("sbmples/2_epoch_1.json", sample(2))], "sbmples/2_epoch_1.json", "no member of a log"),
        ([(ONE, sample(1)), ("samples/2_epoch_1.jsoo", sample(2))], "samples/2_epoch_1.jsoo", "no member of a log"),
        ([(ONE, sample(1)), ("more", b"")], "more", "no member of a log"),
        ([(ONE, sample(1)), (ONE, sample(2))], ONE, "is in the archive 2 times"),
        ([(ONE, sample(1)), ("summaries.json", LISTED)], TWO, "is listed by the log and missing"),
        ([(ONE, sample(1)), (TWO, sample(2)), ("summaries.json", LISTED[:1])], TWO, "is not listed by the log"),
        ([(ONE, sample(1)), ("header.json", {"results": {"completed_samples": 2}})], "", "1 samples, and its header"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_whose_members_are_not_those_of_a_whole_log_is_refused(
    tmp_path: Path, problems_of: Caught, members: list[tuple[str, object]], where: str, what: str
) -> None:
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members:
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    [problem] = problems_of(lambda: read_responses(path))
    assert problem.where == (f"{path}: {where}" if where else str(path))
    assert what in problem.what
    assert "inspect log convert" in str(problem.remedy)


def test_no_changed_byte_of_an_archive_loses_a_row(tmp_path: Path) -> None:
    """Any single byte: the same rows, or an error of ours."""
    whole: dict[str, object] = {ONE: sample(1), TWO: sample(2), "summaries.json": LISTED}
    path = zipped(tmp_path / "x.eval", whole)
    content, expected = path.read_bytes(), list(read_responses(path)[0].responses)
    refused = 0
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ (1 << place % 8)]) + content[place + 1 :])
        try:
            [rows] = read_responses(path)
        except DataError:
            refused += 1
        else:
            assert list(rows.responses) == expected, place
    assert refused > len(content) // 2


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_that_are_packed_otherwise_are_refused_unread(tmp_path: Path, problems_of: Caught, method: int) -> None:
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(ONE, b" " * (1 << 24))
    [problem] = problems_of(lambda: read_responses(path))
    assert "only stored and deflated members are read" in problem.what


def test_sizes_that_members_state_are_not_trusted(
    tmp_path: Path, problems_of: Caught, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 members that state 10 bytes and hold 60 MB each: little is unpacked, and none is a row."""
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(300):
            archive.writestr(f"samples/{number}_epoch_1.json", b" " * 10)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b" " * 60_000_000) + packer.flush()
    content = bytearray()
    directory = bytearray()
    for number in range(300):
        name = f"samples/{number}_epoch_1.json".encode()
        fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, 0, len(packed), 10, len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, len(content)) + name
        content += b"PK\3\4" + fields + name + packed
    end = struct.pack("<HHHHIIH", 0, 0, 300, 300, len(directory), len(content), 0)
    path.write_bytes(content + directory + b"PK\5\6" + end)
    tracemalloc.start()
    problems = problems_of(lambda: read_responses(path))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(problems) == 300
    assert most < 3 * path.stat().st_size + (1 << 25)


def test_archives_that_hold_no_samples(tmp_path: Path, problems_of: Caught, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(path: Path) -> tuple[str, str]:
        [problem] = problems_of(lambda: read_responses(path))
        return problem.where, problem.what

    path = str(tmp_path / "x.eval")
    nothing = (path, "holds no samples of inspect_ai")
    assert told(zipped(tmp_path / "x.eval", {"header.json": {}})) == nothing
    assert told(zipped(tmp_path / "x.eval", {"header.json": [], ONE: sample(1)})) == nothing
    empty = zipped(tmp_path / "x.eval", {ONE: b""})
    [problem] = problems_of(lambda: read_responses(empty))
    assert (problem.what, problem.remedy) == ("is empty", "write a JSON document")
    broken = zipped(tmp_path / "x.eval", {ONE: b"{"})
    assert told(broken)[0] == f"{path}: {ONE}"
    (tmp_path / "x.eval").write_bytes(b"PK\x03\x04")
    assert told(tmp_path / "x.eval")[1].startswith("is not a readable log of inspect_ai (")
    large = zipped(tmp_path / "x.eval", {ONE: sample(1), "reductions.json": b"x" * 1000})
    size = len(json.dumps(sample(1))) + 1000
    monkeypatch.setattr(documents, "unpacked_limit", lambda _: size)
    assert len(read_responses(large)) == 1
    monkeypatch.setattr(documents, "unpacked_limit", lambda _: size - 1)
    assert told(large) == (path, "unpacks to far more than its size")
