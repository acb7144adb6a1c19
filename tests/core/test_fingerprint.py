"""The digest of a column is the same wherever it is cut, and tells columns apart."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import fingerprint as kernel
from dialeval.core.columns import RaggedColumn, SharedColumn, TextColumn
from dialeval.core.fingerprint import Fingerprint

texts = st.lists(st.text(max_size=20), max_size=12)
lists = st.lists(st.lists(st.text(max_size=9), max_size=3), max_size=8)


def polynomial(rows: list[list[str]], base: int, ragged: bool) -> int:
    """The naive twin: whole numbers, one symbol after the other."""
    total = 0
    for row in rows:
        for text in row:
            data = text.encode()
            symbols = [int.from_bytes(data[start : start + 7], "big") for start in range(0, len(data), 7)]
            for symbol in [*symbols, (1 << 56) + len(data)]:
                total = (total * base + symbol) % kernel.PRIME
        if ragged:
            total = (total * base + (1 << 60)) % kernel.PRIME
    return total


@given(texts)
def test_texts_against_whole_numbers(rows: list[str]) -> None:
    found = TextColumn.from_strings(rows).fingerprint
    alone = [[row] for row in rows]
    assert found.first == polynomial(alone, kernel.FIRST_BASE, ragged=False)
    assert found.second == polynomial(alone, kernel.SECOND_BASE, ragged=False)
    assert found.texts == len(rows)


@given(lists, st.data())
def test_parts_add_up(rows: list[list[str]], data: st.DataObject) -> None:
    column = RaggedColumn.from_lists(rows)
    assert column.fingerprint.first == polynomial(rows, kernel.FIRST_BASE, ragged=True)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    parts = [column.slice(start, stop).fingerprint for start, stop in pairwise([0, *cuts, len(rows)])]
    assert sum(parts, Fingerprint()) == column.fingerprint


def test_shared_texts_against_whole_numbers() -> None:
    messages = [f"message {'x' * number}" for number in range(40)]
    column = SharedColumn.from_steps(RaggedColumn.from_texts(TextColumn.from_strings(messages)), np.arange(40) % 13 > 0)
    rows = list(column)
    assert column.fingerprint.first == polynomial(rows, kernel.FIRST_BASE, ragged=True)
    assert column.fingerprint.second == polynomial(rows, kernel.SECOND_BASE, ragged=True)
    assert column.fingerprint.texts == sum(map(len, rows))


@given(lists, lists)
def test_different_columns_have_different_digests(left: list[list[str]], right: list[list[str]]) -> None:
    digests = [RaggedColumn.from_lists(rows).digest for rows in (left, right)]
    assert (digests[0] == digests[1]) == (left == right)


def test_near_misses() -> None:
    variants: list[list[list[str]]] = [
        [],
        [[]],
        [[], []],
        [[""]],
        [["", ""]],
        [[""], [""]],
        [["a"]],
        [["\0a"]],
        [["a\0"]],
        [["\0" * 7]],
    ]
    variants += [[["ab"]], [["a", "b"]], [["a"], ["b"]], [["b"], ["a"]], [["a" * 7]], [["a" * 8]], [["a" * 7, "a"]]]
    assert len({RaggedColumn.from_lists(rows).digest for rows in variants}) == len(variants)


def test_many_rows_are_read_in_parts() -> None:
    column = TextColumn.from_strings([f"row {row}" for row in range(140_000)])
    order = np.arange(len(column))
    assert column.take(order).digest == column.digest != column.take(order[::-1]).digest
    whole = Fingerprint.of(column.data, column.starts, column.ends)
    assert column.fingerprint == whole
