"""The digest of a column is the same wherever it is cut, and tells columns apart."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import fingerprint
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.fingerprint import Fingerprint

PRIME = 2**61 - 1
FIRST, SECOND = 0x12D687E5A3B9F04C, 0x0B4C6F9D81E7A253
"""Saved runs have digests of these, so that they never change."""

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
                total = (total * base + symbol) % PRIME
        if ragged:
            total = (total * base + (1 << 60)) % PRIME
    return total


@given(texts)
def test_texts_against_whole_numbers(rows: list[str]) -> None:
    found = TextColumn.from_strings(rows).fingerprint
    alone = [[row] for row in rows]
    assert found.first == polynomial(alone, FIRST, ragged=False)
    assert found.second == polynomial(alone, SECOND, ragged=False)
    assert found.texts == len(rows)
    assert found.symbols == sum(len(row.encode() + b"123456") // 7 + 1 for row in rows)


@given(lists, st.data())
def test_parts_add_up(rows: list[list[str]], data: st.DataObject) -> None:
    column = RaggedColumn.from_lists(rows)
    assert column.fingerprint.first == polynomial(rows, FIRST, ragged=True)
    assert column.fingerprint.second == polynomial(rows, SECOND, ragged=True)
    assert column.fingerprint.texts == sum(map(len, rows))
    alone = TextColumn.from_strings([text for row in rows for text in row]).fingerprint
    assert column.fingerprint.symbols == alone.symbols + len(rows)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    parts = [column.slice(start, stop).fingerprint for start, stop in pairwise([0, *cuts, len(rows)])]
    assert sum(parts, Fingerprint()) == column.fingerprint


@given(lists, lists)
def test_different_columns_have_different_digests(left: list[list[str]], right: list[list[str]]) -> None:
    digests = [RaggedColumn.from_lists(rows).digest for rows in (left, right)]
    assert (digests[0] == digests[1]) == (left == right)


@given(st.binary(max_size=7), st.integers(0, PRIME - 1), st.integers(0, PRIME - 1), st.booleans())
def test_a_step_after_any_sum(content: bytes, first: int, second: int, is_zero: bool) -> None:
    """Also after the one sum that gives 0."""
    symbols = [int.from_bytes(content, "big")] * bool(content) + [(1 << 56) + len(content)]
    if is_zero:
        first = -symbols[0] * pow(FIRST, -1, PRIME) % PRIME
        second = -symbols[0] * pow(SECOND, -1, PRIME) % PRIME
    totals = np.array([first, second, 5], np.uint64)
    data = np.frombuffer(content + b"!", np.uint8)
    fingerprint.add_texts(data, np.array([0]), np.array([len(content)]), totals)
    for symbol in symbols:
        first, second = (first * FIRST + symbol) % PRIME, (second * SECOND + symbol) % PRIME
    assert totals.tolist() == [first, second, 5 + len(symbols)]


def test_many_rows_are_read_in_parts() -> None:
    column = TextColumn.from_strings([f"row {row}" for row in range(140_000)])
    order = np.arange(len(column))
    assert column.take(order).digest == column.digest != column.take(order[::-1]).digest
    whole = Fingerprint.of(column.data, column.starts, column.ends)
    assert column.fingerprint == whole
