"""The machine instructions behind kernels, against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.kernels import count_ones, load8, trailing_zeros


@given(st.binary(min_size=16, max_size=40), st.integers(0, 8))
def test_eight_bytes_at_any_position(data: bytes, place: int) -> None:
    assert load8(np.frombuffer(data, np.uint8), place) == int.from_bytes(data[place : place + 8], "little")


@given(st.integers(1, 2**64 - 1))
def test_zero_bits_below_the_lowest_set_bit(value: int) -> None:
    assert trailing_zeros(np.uint64(value)) == (value & -value).bit_length() - 1


@given(st.integers(0, 2**64 - 1))
def test_set_bits(value: int) -> None:
    assert count_ones(np.uint64(value)) == value.bit_count()
