from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval.core import inputs
from dialeval.core.columns import RaggedColumn
from dialeval.core.errors import DataError, Problem
from dialeval.io import reading
from dialeval.io.reading import attach, check, read_files, read_responses, read_texts

Caught = Callable[[Callable[[], object]], list[Problem]]
Write = Callable[[str, "bytes | str"], Path]

RATED = sorted((Path(__file__).parents[3] / "shared" / "data" / "ratings").glob("*.jsonl.gz"))
NO_RATED = "the folder of human ratings does not lie beside the checkout"


def systems(source: Any, **settings: Any) -> list[str]:
    return [rows.system for rows in read_responses(source, **settings)]


def test_a_folder_is_many_systems(write: Write, tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt.gz", "metrics.txt", ".hidden.txt", "README.md", "c.d.jsonl", "plain"):
        write(name, '"x"\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner.txt").write_text("x\n")
    assert systems(tmp_path) == ["a", "b", "c.d", "plain"]
    assert systems({"all": tmp_path}) == ["all/a", "all/b", "all/c.d", "all/plain"]


def test_one_name_for_two_systems_is_a_problem(write: Write, tmp_path: Path, problems_of: Caught) -> None:
    first, second = write("a.txt", "x\n"), write("a.txt.gz", "y\n")
    for call in (lambda: read_responses(tmp_path), lambda: read_files([first, second])):
        [problem] = problems_of(call)
        assert problem.where == str(second)
        assert problem.what == f"the system 'a' is also in {first}"
        assert "NAME=PATH" in problem.remedy
    assert systems({"one": first, "two": second}) == ["one", "two"]


def test_the_problems_of_all_files_come_together(write: Write, tmp_path: Path, problems_of: Caught) -> None:
    write("a.txt", b"\xff\n"), write("b.jsonl", "{\n"), write("c.txt", "fine\n")
    wheres = [str(tmp_path / "a.txt"), str(tmp_path / "b.jsonl")]
    assert [problem.where for problem in problems_of(lambda: read_responses(tmp_path))] == wheres
    mapping = {"a": tmp_path / "a.txt", "b": tmp_path / "b.jsonl", "c": tmp_path / "c.txt"}
    assert [problem.where for problem in problems_of(lambda: read_responses(mapping))] == wheres


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (3, "cannot read rows from a number"),
        (None, "cannot read rows from null"),
        (b"a.txt", "cannot read rows from a Python bytes"),
        ({}, "is an empty mapping"),
        ([], "holds no rows"),
        ("", "there is no such file"),
        ("no/such/file.txt", "there is no such file"),
        ("a\0b", "is not a path (it contains a NUL character)"),
        ("a text instead of a path " * 300, "cannot be read (File name too long)"),
        (["a", 3], "the row is a number"),
    ],
)
def test_what_cannot_be_read_is_a_problem(source: Any, what: str, problems_of: Caught) -> None:
    [problem] = problems_of(lambda: read_responses(source))
    assert problem.what == what
    if source != ["a", 3]:
        assert problems_of(lambda: read_texts(source, inputs.REFERENCE))[0].what == what


def test_sets_of_references_stand_side_by_side(write: Write, problems_of: Caught) -> None:
    first = write("r1.txt", "a\nb\n")
    sets = {"one": first, "two": [["c", "d"], None], "three": ["é", "f"]}
    assert list(read_texts(sets, inputs.REFERENCE)) == [["a", "c", "d", "é"], ["b", "f"]]
    assert list(read_texts({"one": first}, inputs.REFERENCE)) == [["a"], ["b"]]
    [problem] = problems_of(lambda: read_texts({"one": first, "two": ["x"]}, inputs.REFERENCE))
    assert problem.what == "'one' has 2 rows, 'two' has 1"
    found = problems_of(lambda: read_texts({"one": "no.txt", "two": ["x", 3], "three": [4]}, inputs.REFERENCE))
    assert [problem.where for problem in found] == ["no.txt", "references 'two'", "references 'three'"]


@pytest.mark.parametrize(("references", "line", "place"), [(20, 21, "test_target.txt"), (60, 41, "fewer.txt")])
def test_unequal_lengths_are_a_problem(
    write: Write, problems_of: Caught, references: int, line: int, place: str
) -> None:
    [rows] = read_responses(write("test_target.txt", "x\n" * 40))
    column = RaggedColumn.from_lists([["r"]] * references)
    [problem] = problems_of(lambda: attach(rows, inputs.REFERENCE, column, "fewer.txt"))
    assert problem.where == rows.where
    assert problem.what == f"has 40 rows, but fewer.txt has {references}"
    assert problem.remedy.startswith("both must have one line per response; ")
    assert problem.remedy.endswith(f"{place}:{line} is the first without")


@pytest.mark.skipif(not RATED, reason=NO_RATED)
def test_real_rated_rows_have_no_problem() -> None:
    assert not any(check(path)[1] for path in RATED)


@pytest.mark.skipif(not RATED, reason=NO_RATED)
@pytest.mark.parametrize("path", RATED, ids=lambda path: path.name.partition(".")[0])
def test_real_rated_rows_are_those_of_a_plain_reading(path: Path) -> None:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        plain = [json.loads(line) for line in file]
    name = path.name.partition(".")[0]
    found = {rows.system: rows for rows in read_responses(path)}
    for system, rows in found.items():
        own = [row for row in plain if (row["system"] or name) == system]
        assert list(rows.responses) == [row["response"] for row in own]
        if inputs.CONTEXT in rows.columns:
            assert list(rows.columns[inputs.CONTEXT]) == [[turn["text"] for turn in row["context"]] for row in own]
        if inputs.REFERENCE in rows.columns:
            left_out = [bool(row["response_is_reference"]) if "response_is_reference" in row else False for row in own]
            counts = [0 if left or row["reference"] is None else 1 for left, row in zip(left_out, own, strict=True)]
            assert [min(len(texts), 1) for texts in rows.columns[inputs.REFERENCE]] == counts
    assert sum(map(len, found.values())) == len(plain)


def test_a_field_that_no_row_has_is_a_problem(write: Write, problems_of: Caught) -> None:
    [problem] = problems_of(lambda: read_responses({"bot": ["a", "b"]}, keep=["topic"]))
    assert problem.what == "no row of bot has a value in the field 'topic'"


def test_a_run_has_so_many_systems_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dialeval

    monkeypatch.setattr(reading, "MOST_SYSTEMS", 3)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"response": "a", "system": "s{number}"}}\n' for number in range(4)))
    for shards in (False, True):
        with pytest.raises(DataError, match=r": holds 4 systems, and a run has at most 3"):
            dialeval.evaluate(tmp_path if shards else path, metrics="length", reading=dialeval.Reading(shards=shards))
    path.write_text("".join(f'{{"response": "a", "system": "s{number}"}}\n' for number in range(3)))
    assert len(dialeval.evaluate(path, metrics="length")) == 3


def test_a_folder_without_files_is_a_problem(tmp_path: Path) -> None:
    [problem] = check(tmp_path)[1]
    assert problem.where == str(tmp_path)


def test_importing_the_readers_loads_no_heavy_library() -> None:
    heavy = ("pyarrow", "pandas", "polars", "datasets", "numba")
    code = f"import sys, dialeval.io.reading; print([name for name in {heavy!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_most_systems_of_a_run() -> None:
    reading.check_number_of_systems(1000, "x")
    with pytest.raises(DataError, match=r"^x: holds 1,001 systems, and a run has at most 1,000; check the field"):
        reading.check_number_of_systems(1001, "x")
