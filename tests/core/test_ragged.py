"""Ragged arrays against loops over lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.arrays import cut, offsets_of, ranges, row_numbers

rows = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)))


@given(rows)
def test_as_loops(made: list[tuple[int, int]]) -> None:
    starts, lengths = (np.array([row[side] for row in made], np.int64) for side in (0, 1))
    offsets = offsets_of(lengths)
    assert offsets.tolist() == offsets_of(length for _, length in made).tolist()
    assert offsets.tolist() == [sum(length for _, length in made[:row]) for row in range(len(made) + 1)]
    assert row_numbers(offsets).tolist() == [row for row, (_, length) in enumerate(made) for _ in range(length)]
    assert ranges(starts, lengths).tolist() == [start + k for start, length in made for k in range(length)]


@given(st.lists(st.integers(0, 5), max_size=15), st.integers(1, 12))
def test_cut_as_a_loop(lengths: list[int], most: int) -> None:
    expected: list[tuple[int, int]] = []
    first = 0
    while first < len(lengths):
        last = first + 1
        while last < len(lengths) and sum(lengths[first : last + 1]) <= most:
            last += 1
        expected.append((first, last))
        first = last
    assert list(cut(offsets_of(lengths), most)) == expected
