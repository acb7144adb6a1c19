"""Files of items: the same values come back, by system and level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dialeval.core import arrow
from dialeval.core.arrow import write_tables
from dialeval.core.fold import Level
from dialeval.core.rowtable import items_of, items_table, join_items


@pytest.mark.parametrize("group_rows", [1, 3, 100])
def test_blocks_below_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_rows: int) -> None:
    monkeypatch.setattr(arrow, "_GROUP_ROWS", group_rows)
    x = np.array([1.0, np.nan, 3.0, 4.0])
    turns = join_items([{"x": x[:1], "y": x[:1]}, {}, {"x": x[1:3]}, {"x": x[3:]}])
    tables = [items_table("a", Level.TURN, turns), items_table("a", Level.DIALOGUE, {"z": x[:2]})]
    write_tables(tables, tmp_path / "items.parquet")
    table = pq.ParquetFile(tmp_path / "items.parquet").read()
    assert table.column_names == ["system", "level", "row", "x", "y", "z"]
    assert table["row"].to_pylist() == [1, 2, 3, 4, 1, 2]
    assert table["level"].to_pylist() == ["turn"] * 4 + ["dialogue"] * 2
    np.testing.assert_array_equal(items_of(table, "a", Level.TURN)["x"], x)
    np.testing.assert_array_equal(items_of(table, "a", Level.TURN)["y"], [1, np.nan, np.nan, np.nan])
    dialogues = items_of(table, "a", Level.DIALOGUE)
    assert list(dialogues) == ["z"]
    np.testing.assert_array_equal(dialogues["z"], x[:2])
