"""Grouped columns against lists of lists of lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.columns import TextColumn
from dialeval.suites.lsdscc.data import GroupedColumn

Rows = list[list[list[str]]]
texts = st.sampled_from(["", "a", "é b", "longer text"])
rows = st.lists(st.lists(st.lists(texts, max_size=3), max_size=3), max_size=5)


def column(rows: Rows) -> GroupedColumn:
    groups = [group for row in rows for group in row]
    values = TextColumn.from_strings([text for group in groups for text in group])
    return GroupedColumn.of(values, [len(group) for group in groups], [len(row) for row in rows])


def lists(column: GroupedColumn) -> Rows:
    return [column.list_groups(row) for row in range(len(column))]


@given(rows, st.data())
def test_rows_slices_and_selections(rows: Rows, data: st.DataObject) -> None:
    whole = column(rows)
    assert lists(whole) == rows
    assert list(whole) == [[text for group in row for text in group] for row in rows]
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    assert lists(whole.slice(start, stop)) == rows[start:stop]
    assert lists(whole.slice(start, stop).slice(0, 1)) == rows[start:stop][:1]
    order = data.draw(st.permutations(range(len(rows))))[: data.draw(st.integers(0, 5))]
    assert lists(whole.take(np.array(order, np.int64))) == [rows[row] for row in order]


@given(st.lists(rows, min_size=1, max_size=3))
def test_joined_columns_have_all_rows(parts: list[Rows]) -> None:
    joined = GroupedColumn.join([column(part) for part in parts])
    assert lists(joined) == [row for part in parts for row in part]


@given(rows, rows)
def test_digests_tell_columns_apart(left: Rows, right: Rows) -> None:
    assert (column(left).digest == column(right).digest) == (left == right)
    assert column(left).slice(0, len(left)).digest == column(left).digest


def test_groups_have_a_digest_and_no_fingerprint() -> None:
    one, other = column([[["a"], ["b"]]]), column([[["a", "b"]]])
    assert one.digest != other.digest
    with pytest.raises(TypeError, match="no fingerprint"):
        _ = one.fingerprint
