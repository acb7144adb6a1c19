from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import UserList
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from dialeval.core import inputs
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.io import reading
from dialeval.io.parquet import to_table
from dialeval.io.reading import attach, check, read_files, read_responses, read_texts

Caught = Callable[[Callable[[], object]], list[Problem]]
Write = Callable[[str, "bytes | str"], Path]

RATED = sorted((Path(__file__).parents[3] / "shared" / "data" / "ratings").glob("*.jsonl.gz"))
NO_RATED = "the folder of human ratings does not lie beside the checkout"


def systems(source: Any, **settings: Any) -> list[str]:
    return [rows.system for rows in read_responses(source, **settings)]


def test_a_list_is_called_system_unless_named() -> None:
    assert systems(["a", "b"]) == ["system"]
    assert systems(["a", "b"], name="damd") == ["damd"]
    assert systems([{"response": "a"}, {"response": "b", "system": "x"}], name="damd") == ["damd/damd", "damd/x"]
    assert systems([{"response": "b", "system": "x"}]) == ["x"]


def test_a_file_is_called_by_its_name_or_the_one_given(write: Write) -> None:
    path = write("damd.txt", "a\n")
    assert systems(path) == ["damd"]
    assert systems(str(path), name="mine") == ["mine"]
    assert systems(write("no-suffix", "a\n")) == ["no-suffix"]
    assert read_responses(path)[0].where == str(path)


def test_a_mapping_names_its_values(write: Write) -> None:
    two = [{"response": "a", "system": "x"}, {"response": "b", "system": "y"}]
    source = {"damd": write("other.txt", "a\n"), "list": ["a"], "two": two, "nested": {"p": ["a"], "q": ["b"]}}
    assert systems(source) == ["damd", "list", "two/x", "two/y", "nested/p", "nested/q"]


def test_a_folder_is_many_systems(write: Write, tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt.gz", "metrics.txt", ".hidden.txt", "README.md", "c.d.jsonl", "plain"):
        write(name, '"x"\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner.txt").write_text("x\n")
    assert systems(tmp_path) == ["a", "b", "c.d", "plain"]
    assert systems({"all": tmp_path}) == ["all/a", "all/b", "all/c.d", "all/plain"]


def test_a_folder_without_responses_is_a_problem(write: Write, tmp_path: Path, problems_of: Caught) -> None:
    write("metrics.txt", "x\n")
    [problem] = problems_of(lambda: read_responses(tmp_path))
    assert (problem.where, problem.what) == (str(tmp_path), "holds no file of responses")


def test_one_name_for_two_systems_is_a_problem(write: Write, tmp_path: Path, problems_of: Caught) -> None:
    first, second = write("a.txt", "x\n"), write("a.txt.gz", "y\n")
    for call in (lambda: read_responses(tmp_path), lambda: read_files([first, second])):
        [problem] = problems_of(call)
        assert problem.where == str(second)
        assert problem.what == f"the system 'a' is also in {first}"
        assert "NAME=PATH" in problem.remedy
    assert systems({"one": first, "two": second}) == ["one", "two"]


def test_several_files_and_folders(write: Write, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    found = read_files([write("b.txt", "x\n"), write("more/a.txt", "y\n").parent])
    assert [rows.system for rows in found] == ["b", "a"]


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


def test_texts_of_files(write: Write) -> None:
    assert list(read_texts(write("a.txt", "x\n\n"), inputs.REFERENCE)) == [["x"], [""]]
    rows = write("a.jsonl", '{"response": "a", "reference": ["x", "y"], "context": "c"}\n{"response": "b"}\n')
    assert list(read_texts(rows, inputs.REFERENCE)) == [["x", "y"], []]
    assert list(read_texts(rows, inputs.CONTEXT)) == [["c"], []]
    assert list(read_texts(rows, inputs.REFERENCE, {"reference": "response"})) == [["a"], ["b"]]
    assert list(read_texts(write("b.jsonl", '"x"\nnull\n["y", "z"]\n'), inputs.REFERENCE)) == [["x"], [], ["y", "z"]]


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


def test_attach_adds_a_column_and_changes_nothing() -> None:
    [rows] = read_responses([{"response": "a", "reference": "old"}])
    column = RaggedColumn.from_lists([["new"]])
    more = attach(rows, inputs.REFERENCE, column, "refs")
    assert list(more.columns[inputs.REFERENCE]) == [["new"]]
    assert list(rows.columns[inputs.REFERENCE]) == [["old"]]
    assert list(attach(rows, inputs.CONTEXT, column, "c").columns) == [
        inputs.RESPONSE,
        inputs.REFERENCE,
        inputs.CONTEXT,
    ]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_column_that_only_happens_to_be_known_is_not_taken_for_texts(
    write: Write, tmp_path: Path, problems_of: Caught, suffix: str
) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    path = write("gold.csv", "gold,dialog_id\nx,d\n")
    if suffix == "parquet":
        path = tmp_path / "gold.parquet"
        pa.parquet.write_table(pa.table({"gold": ["x"], "dialog_id": ["d"]}), path)
    [problem] = problems_of(lambda: read_texts(path, inputs.REFERENCE))
    assert problem.what == "has no field 'reference', only gold, dialog_id"


def test_only_tables_are_tables() -> None:
    from dialeval.io.rows import FieldNames

    assert to_table(object(), "x", FieldNames(), inputs.RESPONSE) is None


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


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_further_fields_are_kept_of_every_format(name: str, write: Write, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = tmp_path / name
        pq.write_table(pa.table({"response": ["a", "b"], "topic": ["x", None], "stars": [1, 2]}), path)
    else:
        csv = "response,topic,stars\na,x,1\nb,,2\n"
        jsonl = '{"response": "a", "topic": "x", "stars": 1}\n{"response": "b", "topic": null, "stars": 2}\n'
        path = Path(write(name, csv if name.endswith("csv") else jsonl))
    [rows] = read_responses(path, keep=["topic", "stars"])
    assert {field: list(column) for field, column in rows.fields.items()} == {
        "topic": [["x"], []],
        "stars": [["1"], ["2"]],
    }
    assert read_responses(path)[0].fields == {}


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
            dialeval.evaluate(tmp_path if shards else path, metrics="length", shards=shards)
    path.write_text("".join(f'{{"response": "a", "system": "s{number}"}}\n' for number in range(3)))
    assert len(dialeval.evaluate(path, metrics="length")) == 3


def test_every_problem_of_every_file(write: Write, tmp_path: Path) -> None:
    paths = [
        write("a.txt", b"ok\n\xff\n\xfe\n"),
        write("good.txt", "x\n"),
        write("b.jsonl", '{"response": 1}\nnope\n{"answer": "x"}\n'),
        write("c.csv", "answer\nx\n"),
        write("d.json", "[1,\n2"),
        write("e.txt", ""),
        write("f.parquet", "x"),
        write("g.txt.gz", "x\n"),
        tmp_path / "missing.txt",
    ]
    paths[7].write_bytes(b"not packed")
    found = [(Path(problem.where).name, problem.line) for path in paths for problem in check(path)[1]]
    assert found == [
        ("a.txt", 2),
        ("a.txt", 3),
        ("b.jsonl", 1),
        ("b.jsonl", 2),
        ("b.jsonl", 3),
        ("c.csv", 1),
        ("d.json", 2),
        ("e.txt", None),
        ("f.parquet", None),
        ("g.txt.gz", None),
        ("missing.txt", None),
    ]


def test_good_files_have_no_problems_even_if_they_share_a_name(write: Write, tmp_path: Path) -> None:
    write("a.txt", "x\n")
    write("a.txt.gz", "x\n")
    systems, problems, _ = check(tmp_path)
    assert ([rows.system for rows in systems], problems) == (["a", "a"], [])


def test_fields_are_mapped(write: Write) -> None:
    path = write("a.jsonl", '{"answer": "x"}\n')
    assert not check(path, {"response": "answer"})[1]
    with pytest.raises(SettingError):
        check(path, {"answers": "answer"})


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


def test_which_files_of_a_folder_hold_responses(write: Write, tmp_path: Path, problems_of: Caught) -> None:
    for name in (
        "b.txt",
        "a.jsonl",
        ".hidden.txt",
        "metrics.txt",
        "README.md",
        "plot.PNG",
        "x.yml",
        "x.yaml",
        "x.html",
        "noext",
    ):
        write(name, "x\n")
    (tmp_path / "folder.txt").mkdir()
    assert [file.name for file in reading.find_response_files(tmp_path)] == ["a.jsonl", "b.txt", "noext"]
    write("dataset_info.json", "{}")
    assert [file.name for file in reading.find_response_files(tmp_path)][2] == "dataset_info.json"
    write("state.json", "{}")
    assert [file.name for file in reading.find_response_files(tmp_path)] == ["a.jsonl", "b.txt", "noext"]


def test_a_folder_with_one_file_of_a_dataset_is_none(write: Write, tmp_path: Path) -> None:
    write("a.txt", "x\n")
    write("state.json", '["y"]')
    assert [rows.system for rows in read_responses(tmp_path)] == ["a", "state"]


def test_a_saved_dataset_is_one_table(write: Write, tmp_path: Path, problems_of: Caught) -> None:
    for name in ("dataset_info.json", "state.json"):
        write(name, "{}")
    with pytest.raises(DataError, match="holds no file of responses"):
        reading.find_response_files(tmp_path)
    pa.feather.write_feather(pa.table({"response": ["a"]}), str(tmp_path / "data-0.arrow"))
    pa.feather.write_feather(pa.table({"response": ["b"]}), str(tmp_path / "data-1.arrow"))
    [rows] = read_responses(tmp_path)
    assert (rows.system, list(rows.responses), rows.where) == (tmp_path.name, ["a", "b"], str(tmp_path))
    pa.feather.write_feather(pa.table({"response": [1]}), str(tmp_path / "data-1.arrow"))
    [problem] = problems_of(lambda: read_responses(tmp_path))
    assert problem.what.startswith("its files do not have the same columns (")
    assert len(problem.what) <= len("its files do not have the same columns ()") + 200


def test_any_file_as_lines(write: Write, tmp_path: Path) -> None:
    for name in ("b.txt", "a.jsonl", ".hidden", "skip.txt"):
        write(name, f"{name}\n")
    lines, skipped = reading.read_any_lines(tmp_path, ["skip.txt"])
    assert {Path(path).name: list(column) for path, column in lines.items()} == {
        "a.jsonl": ["a.jsonl"],
        "b.txt": ["b.txt"],
    }
    assert [Path(path).name for path in skipped] == [".hidden", "skip.txt"]
    lines, skipped = reading.read_any_lines(tmp_path / "skip.txt", ["skip.txt"])
    assert (list(lines), skipped) == ([str(tmp_path / "skip.txt")], [])
    with pytest.raises(DataError, match="holds no file of responses"):
        reading.read_any_lines(tmp_path, ["b.txt", "a.jsonl", "skip.txt"])


def test_roles_go_with_the_contexts_that_they_are_of() -> None:
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    [rows] = read_responses([{"messages": chat}])
    column = RaggedColumn.from_lists([["x"]])
    assert set(attach(rows, inputs.CONTEXT, column, "x").columns) == {inputs.RESPONSE, inputs.CONTEXT}
    both = attach(rows, inputs.REFERENCE, column, "x")
    assert set(both.columns) == {inputs.RESPONSE, inputs.CONTEXT, inputs.ROLES, inputs.REFERENCE}
    assert list(both.columns[inputs.REFERENCE]) == [["x"]]
    with pytest.raises(DataError, match=r"^responses: has 1 rows, but x has 2; "):
        attach(rows, inputs.REFERENCE, RaggedColumn.from_lists([[], []]), "x")


def test_sets_are_joined_row_by_row() -> None:
    one, two, three = (
        RaggedColumn.from_lists(lists) for lists in ([["a"], [], ["b", "c"]], [["d"], ["e"], []], [[], [], ["f"]])
    )
    assert list(reading.join_rowwise({"1": one, "2": two, "3": three}, "x")) == [["a", "d"], ["e"], ["b", "c", "f"]]
    assert reading.join_rowwise({"1": one}, "x") is one
    with pytest.raises(DataError, match=r"^x: '1' has 3 rows, '2' has 1; every set must have one row per response"):
        reading.join_rowwise({"1": one, "2": RaggedColumn.from_lists([["a"]])}, "x")
    with pytest.raises(DataError, match=r"^x: is an empty mapping; name at least one set"):
        reading.join_rowwise({}, "x")


def test_objects_that_are_arrays_and_other_sequences(problems_of: Caught) -> None:
    assert list(read_responses(np.array(["a", "b"]))[0].responses) == ["a", "b"]
    assert list(read_responses(UserList(["a", "b"]))[0].responses) == ["a", "b"]
    assert list(read_responses(("a", "b"))[0].responses) == ["a", "b"]
    assert list(read_responses(TextColumn.from_strings(["a", "b"]))[0].responses) == ["a", "b"]
    for source in (np.array([["a"]]), b"ab", bytearray(b"ab"), memoryview(b"ab"), 7):
        [problem] = problems_of(lambda source=source: read_responses(source))  # type: ignore[misc]
        assert problem.what.startswith("cannot read rows from ")


def test_places_of_sources_in_memory(problems_of: Caught) -> None:
    assert [rows.where for rows in read_responses(["a"])] == ["responses"]
    assert [rows.where for rows in read_responses({"m": ["a"]})] == ["m"]
    [problem] = problems_of(lambda: read_responses({}))
    assert (problem.where, problem.what) == ("responses", "is an empty mapping")
    [problem] = problems_of(lambda: read_responses({"m": {}}))
    assert (problem.where, problem.what) == ("m", "is an empty mapping")


def test_names_of_systems_in_a_named_source() -> None:
    rows = [{"response": "a", "system": "x"}, {"response": "b", "system": "y"}]
    assert [each.system for each in read_responses(rows, name="n")] == ["n/x", "n/y"]
    assert [each.system for each in read_responses(rows[:1], name="n")] == ["n"]
    assert [each.system for each in read_responses({"m": rows, "k": ["c"]})] == ["m/x", "m/y", "k"]
    assert [each.system for each in read_responses({"m": {"k": ["c"], "l": ["d"]}})] == ["m/k", "m/l"]
