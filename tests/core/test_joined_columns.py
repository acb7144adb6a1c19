"""Columns one below the other have the rows of all, and the digest of a column that was made of all at once."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval.core.columns import (
    ColumnData,
    NumberColumn,
    ObjectColumn,
    RaggedColumn,
    SharedColumn,
    TextColumn,
    join_columns,
)
from dialeval.suites.lsdscc.data import GroupedColumn


def texts(*given: str) -> TextColumn:
    return TextColumn.from_strings(given)


def shared(values: list[str], starts: list[int], ends: list[int]) -> SharedColumn:
    return SharedColumn(texts(*values), np.array(starts), np.array(ends))


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([texts("a", "bé"), texts(), texts("", "c").slice(1, 2)], texts("a", "bé", "c")),
        (
            [RaggedColumn.from_lists([["a"], []]), RaggedColumn.from_lists([["b", "c"]])],
            RaggedColumn.from_lists([["a"], [], ["b", "c"]]),
        ),
        (
            [shared(["x", "y"], [0, 0], [1, 2]), RaggedColumn.from_lists([["z"]]), shared(["q"], [0], [1])],
            RaggedColumn.from_lists([["x"], ["x", "y"], ["z"], ["q"]]),
        ),
        (
            [GroupedColumn.of(texts("a", "b", "c"), [2, 1], [2]), GroupedColumn.of(texts("d"), [1], [0, 1])],
            GroupedColumn.of(texts("a", "b", "c", "d"), [2, 1, 1], [2, 0, 1]),
        ),
        ([ObjectColumn([{"a": 1}]), ObjectColumn([None, "x"])], ObjectColumn([{"a": 1}, None, "x"])),
        (
            [NumberColumn(np.array([[1.0, 2.0]])), NumberColumn(np.array([[3.0, 4.0]]))],
            NumberColumn(np.array([[1.0, 2.0], [3.0, 4.0]])),
        ),
    ],
    ids=["texts", "ragged", "shared", "grouped", "objects", "numbers"],
)
def test_joined_columns_are_the_whole_column(parts: list[ColumnData], whole: ColumnData) -> None:
    joined = join_columns(parts)
    assert [np.array(row).tolist() for row in joined] == [np.array(row).tolist() for row in whole]
    assert joined.digest == whole.digest
