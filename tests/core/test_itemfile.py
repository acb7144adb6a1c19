"""The file of items: the same table however the rows are cut into blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.core import itemfile
from dialeval.core.fold import Level
from dialeval.core.itemfile import Blocks, items_of, write_items


def written(path: Path, keys: list[str], blocks: list[Blocks]) -> pa.Table:
    write_items(path, keys, blocks)
    return pq.ParquetFile(path).read()


@pytest.mark.parametrize("group_rows", [1, 3, 100])
def test_blocks_below_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_rows: int) -> None:
    monkeypatch.setattr(itemfile, "_GROUP_ROWS", group_rows)
    x = np.array([1.0, np.nan, 3.0, 4.0])
    turns = [{"x": x[:1], "y": x[:1]}, {}, {"x": x[1:3]}, {"x": x[3:]}]
    blocks: list[Blocks] = [("a", Level.TURN, turns), ("a", Level.DIALOGUE, [{"z": x[:2]}]), ("b", Level.TURN, [])]
    table = written(tmp_path / "items.parquet", ["x", "y", "z", "w"], blocks)
    assert table.column_names == ["system", "level", "row", "x", "y", "z", "w"]
    assert table["row"].to_pylist() == [0, 1, 2, 3, 0, 1]
    assert table["level"].to_pylist() == ["turn"] * 4 + ["dialogue"] * 2
    np.testing.assert_array_equal(items_of(table, "a", Level.TURN)["x"], x)
    dialogues = items_of(table, "a", Level.DIALOGUE)
    assert list(dialogues) == ["z"]
    np.testing.assert_array_equal(dialogues["z"], x[:2])


def test_a_key_without_items_is_left_out(tmp_path: Path) -> None:
    table = written(tmp_path / "items.parquet", ["x", "y"], [("a", Level.TURN, [{"x": np.array([np.nan])}])])
    found = items_of(table, "a", Level.TURN)
    assert list(found) == ["x"]
    np.testing.assert_array_equal(found["x"], [np.nan])


def test_no_items_at_all(tmp_path: Path) -> None:
    table = written(tmp_path / "items.parquet", [], [])
    assert (len(table), table.column_names) == (0, ["system", "level", "row"])
