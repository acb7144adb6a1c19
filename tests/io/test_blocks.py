"""However a source is cut, its chunks hold every row once, in order, whole dialogues, at their lines."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import RaggedColumn
from dialeval.core.errors import DataError
from dialeval.io.chunks import Chunk, read_blocks, split_sources
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames, Rows
from dialeval.io.sources import Source, find_sources, wrap_systems

NAMES = FieldNames()
in_files = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])

Row = tuple[str, str | None, list[str]]
"""Response, dialogue, references."""


def cut(sources: Sequence[Source], size: int | None = None) -> list[Chunk]:
    return split_sources(sources, 1 << 15, size)


def read(chunks: Sequence[Chunk], rows: int) -> list[list[Rows]]:
    return [block.rows() for chunk in chunks for block in read_blocks(chunk, NAMES, rows)]


def rows_of(batches: Sequence[Sequence[Rows]]) -> list[Row]:
    found: list[Row] = []
    for parts in batches:
        for part in parts:
            references = part.columns.get(inputs.REFERENCE)
            assert references is None or isinstance(references, RaggedColumn)
            for number, response in enumerate(part.responses):
                dialogue = None if part.dialogues is None else part.dialogues[number]
                found.append((response, dialogue, [] if references is None else references[number]))
    return found


def assert_no_dialogue_is_cut(batches: Sequence[Sequence[Rows]]) -> None:
    ends = [(parts[0].dialogues, parts[-1].dialogues) for parts in batches if parts]
    for (_, before), (after, _) in pairwise(ends):
        if before is not None and after is not None and not before[len(before) - 1].startswith("row "):
            assert before[len(before) - 1] != after[0]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=12)
runs = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(1, 4)), min_size=1, max_size=12)


def dialogues(runs: list[tuple[str | None, int]]) -> list[str | None]:
    return [name for name, count in runs for _ in range(count)]


@given(runs, st.integers(5, 400), st.integers(1, 6), st.booleans())
@in_files
def test_json_lines(tmp_path: Path, runs: list[tuple[str | None, int]], size: int, rows: int, blank: bool) -> None:
    names = dialogues(runs)
    lines = [json.dumps({"response": f"r{n}", "dialog_id": name, "reference": "x"}) for n, name in enumerate(names)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\ufeff" + ("\n\n" if blank else "\n").join(lines))
    found = read(cut(find_sources(str(path)), size), rows)
    assert [row[0] for row in rows_of(found)] == [f"r{n}" for n in range(len(names))]
    assert [row[2] for row in rows_of(found)] == [["x"]] * len(names)
    assert_no_dialogue_is_cut(found)


@given(runs, st.integers(1, 200), st.integers(1, 6), st.integers(1, 7), st.booleans())
@in_files
def test_row_groups(
    tmp_path: Path, runs: list[tuple[str | None, int]], size: int, rows: int, group: int, numbers: bool
) -> None:
    names: list[Any] = dialogues(runs)
    if numbers:
        names = [None if name is None else "abc".index(name) for name in names]
    table = pa.table({"response": [f"r{n}" for n in range(len(names))], "dialog_id": names})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=group)
    chunks = cut(find_sources(str(tmp_path / "rows.parquet")), size)
    found = read(chunks, rows)
    assert [row[0] for row in rows_of(found)] == [f"r{n}" for n in range(len(names))]
    assert_no_dialogue_is_cut(found)
    lines = [block.line(0) for chunk in chunks for block in read_blocks(chunk, NAMES, rows)]
    starts = [0, *(sum(map(len, parts)) for parts in found)]
    assert lines == [sum(starts[: number + 1]) + 1 for number in range(len(found))]


@given(st.lists(texts, min_size=1, max_size=30), st.integers(1, 60), st.integers(1, 6), st.booleans(), st.booleans())
@in_files
def test_lines_and_what_stands_beside_them(
    tmp_path: Path, lines: list[str], size: int, rows: int, ended: bool, packed: bool
) -> None:
    end = "\n" if ended or not lines[-1] else ""
    contents = {
        "responses": "\n".join(lines) + end,
        "one": "\r\n".join(f"1{line}" for line in lines) + "\r\n",
        "two": "\n".join(f"2{line}" for line in lines) + "\n",
    }
    paths = {}
    for name, content in contents.items():
        paths[name] = tmp_path / (f"{name}.txt.gz" if packed else f"{name}.txt")
        paths[name].write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    references = {"a": paths["one"], "b": paths["two"]}
    found = read(cut(find_sources(paths["responses"], references, paths["one"]), size), rows)
    expected = [line.removeprefix("\ufeff") if not number else line for number, line in enumerate(lines)]
    assert rows_of(found) == [
        (shown, None, [f"1{line}", f"2{line}"]) for shown, line in zip(expected, lines, strict=True)
    ]


@pytest.mark.parametrize("chunk_bytes", [10, 10_000])
def test_files_of_unequal_length_are_refused(tmp_path: Path, chunk_bytes: int) -> None:
    (tmp_path / "a.txt").write_text("line\n" * 9)
    (tmp_path / "b.txt").write_text("line\n" * 7)
    with pytest.raises(DataError, match=r"a.txt: has 9 rows, but .*b.txt has 7; .*a.txt:8 is the first without"):
        read(cut(find_sources(tmp_path / "a.txt", tmp_path / "b.txt"), chunk_bytes), 2)


def test_lines_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"fine\n" * 50 + b"b\xffd\n" + b"fine\n" * 20)
    with pytest.raises(DataError, match=r"a.txt:51: byte 0xff at position 2"):
        read(cut(find_sources(path), 60), 4)


def test_rows_of_other_formats_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("response,dialog_id\n" + "".join(f"r{n},{n // 3}\n" for n in range(10)))
    found = read(cut(find_sources(tmp_path / "a.csv")), 4)
    assert [len(parts[0]) for parts in found] == [3, 3, 4]
    assert [row[0] for row in rows_of(found)] == [f"r{n}" for n in range(10)]


def test_a_cut_off_archive_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"hello\n" * 10_000)[:-20])
    with pytest.raises(DataError, match=r"not a whole \.gz archive"):
        read(cut(find_sources(path)), 100)


def test_shared_storage(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    storage = fsspec.filesystem("memory")
    rows = [{"response": f"r{n}", "dialog_id": str(n // 3)} for n in range(100)]
    storage.pipe("/logs/a.jsonl", "\n".join(map(json.dumps, rows[:60])).encode())
    storage.pipe("/logs/b.jsonl.gz", gzip.compress("\n".join(map(json.dumps, rows[60:])).encode()))
    storage.pipe("/lines/a.txt", b"one\ntwo\n" * 30)
    with storage.open("/tables/a.parquet", "wb") as file:
        pq.write_table(pa.Table.from_pylist(rows), file, row_group_size=7)
    for pattern in ("memory://logs/*", "memory://tables/*.parquet"):
        found = read(cut(find_sources(pattern), 200), 5)
        assert [row[0] for row in rows_of(found)] == [f"r{n}" for n in range(100)]
        assert_no_dialogue_is_cut(found)
    assert len(rows_of(read(cut(find_sources("memory://lines/a.txt"), 20), 7))) == 60
    (tmp_path / "a b.txt").write_text("x\ny\n")
    assert len(rows_of(read(cut(find_sources((tmp_path / "a b.txt").as_uri())), 7))) == 2
    with pytest.raises(DataError, match="no file matches"):
        find_sources("memory://nowhere/*.jsonl")
    with pytest.raises(DataError, match="there is no such file"):
        cut(find_sources("memory://nowhere/a.jsonl"))


@given(runs, st.integers(1, 6))
def test_rows_in_memory_are_cut_in_the_same_way(runs: list[tuple[str | None, int]], batch_rows: int) -> None:
    names = dialogues(runs)
    rows = [{"response": f"r{n}", "dialog_id": name} for n, name in enumerate(names)]
    (system,) = read_responses(rows)
    chunks = split_sources(wrap_systems([system]), batch_rows)
    found = read(chunks, batch_rows)
    assert [row[0] for row in rows_of(found)] == [f"r{n}" for n in range(len(names))]
    assert_no_dialogue_is_cut(found)
    lines = [block.line(0) for chunk in chunks for block in read_blocks(chunk, NAMES, batch_rows)]
    sizes = [0, *(len(parts[0]) for parts in found)]
    assert lines == [sum(sizes[: number + 1]) + 1 for number in range(len(found))]
    for parts in found:
        (part,) = parts
        assert (part.offsets is None) == (part.dialogues is None)
        assert part.dialogue_offsets().tolist() == replace(part, offsets=None).dialogue_offsets().tolist()
