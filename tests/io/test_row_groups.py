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


def test_two_columns_of_dialogues_are_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table([["d"], ["e"], ["x"]], ["dialog_id", "dialog_id", "response"]), path)
    with pytest.raises(DataError, match="has several columns 'dialog_id'"):
        list(read_row_groups(Span(str(path), 0, 1), NAMES, 10))
