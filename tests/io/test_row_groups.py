"""Row groups as tables of whole dialogues: a dialogue belongs to the chunk with its first row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.core.errors import DataError
from dialeval.io.chunks import Span, read_row_groups
from dialeval.io.rows import FieldNames

NAMES = FieldNames()


def written(path: Path, dialogues: list[Any], group: int) -> str:
    columns = {"response": [f"r{number}" for number in range(len(dialogues))], "dialog_id": dialogues}
    pq.write_table(pa.table(columns), path, row_group_size=group)
    return str(path)


def rows(path: str, start: int, stop: int, size: int = 100) -> list[tuple[int, list[str]]]:
    found = read_row_groups(Span(path, start, stop), NAMES, size)
    return [(before, table.column("response").to_pylist()) for before, table in found]


def test_an_open_dialogue_is_read_to_its_end(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", ["a", "b", "b", "b", "b", "c"], 2)
    assert rows(path, 0, 1) == [(0, ["r0"]), (1, ["r1", "r2", "r3", "r4"])]
    assert rows(path, 1, 2) == [], "its rows belong to a dialogue that began before"
    assert rows(path, 2, 3) == [(5, ["r5"])]


@pytest.mark.parametrize("nothing", [None, ""])
def test_rows_without_a_dialogue_stand_alone(tmp_path: Path, nothing: str | None) -> None:
    path = written(tmp_path / "a.parquet", ["a", nothing, nothing, nothing], 2)
    assert [row for _, found in rows(path, 0, 1) for row in found] == ["r0", "r1"]
    assert [row for _, found in rows(path, 1, 2) for row in found] == ["r2", "r3"]


def test_tables_have_about_the_rows_that_are_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", list("aabbccddee"), 10)
    found = rows(path, 0, 1, size=3)
    assert [row for _, each in found for row in each] == [f"r{number}" for number in range(10)]
    assert [before for before, _ in found] == [0, *(int(each[0][1:]) for _, each in found[1:])]
    assert max(len(each) for _, each in found) <= 4


def test_a_file_without_dialogues_is_read_as_it_is(tmp_path: Path) -> None:
    pq.write_table(pa.table({"response": ["x", "y", "z"]}), tmp_path / "a.parquet", row_group_size=2)
    assert rows(str(tmp_path / "a.parquet"), 1, 2) == [(2, ["z"])]


def test_two_columns_of_dialogues_are_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table([["d"], ["e"], ["x"]], ["dialog_id", "dialog_id", "response"]), path)
    with pytest.raises(DataError, match="has several columns 'dialog_id'"):
        list(read_row_groups(Span(str(path), 0, 1), NAMES, 10))
