"""Row groups as tables of whole dialogues: a dialogue belongs to the chunk with its first row."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.core.errors import DataError
from dialeval.io.chunks import Span, read_row_groups
from dialeval.io.rows import FieldNames

NAMES = FieldNames()


def rows(path: str, start: int, stop: int, size: int = 100) -> list[tuple[int, list[str]]]:
    found = read_row_groups(Span(path, start, stop), NAMES, size)
    return [(before, table.column("response").to_pylist()) for before, table in found]


def test_two_columns_of_dialogues_are_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table([["d"], ["e"], ["x"]], ["dialog_id", "dialog_id", "response"]), path)
    with pytest.raises(DataError, match="has several columns 'dialog_id'"):
        list(read_row_groups(Span(str(path), 0, 1), NAMES, 10))
