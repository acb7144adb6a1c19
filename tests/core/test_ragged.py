"""Ragged arrays against loops over lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.ragged import offsets_of, ranges, row_numbers

rows = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)))


@given(rows)
def test_as_loops(made: list[tuple[int, int]]) -> None:
    starts, lengths = (np.array([row[side] for row in made], np.int64) for side in (0, 1))
    offsets = offsets_of(lengths)
    assert offsets.tolist() == offsets_of(length for _, length in made).tolist()
    assert offsets.tolist() == [sum(length for _, length in made[:row]) for row in range(len(made) + 1)]
    assert row_numbers(offsets).tolist() == [row for row, (_, length) in enumerate(made) for _ in range(length)]
    assert ranges(starts, lengths).tolist() == [start + k for start, length in made for k in range(length)]
