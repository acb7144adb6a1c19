"""Kernels' way to look at many bytes and bits at once, written so that LLVM makes single instructions of them."""

from __future__ import annotations

import numpy as np
from numpy import int64, uint64

from dialeval.core.kernels import kernel

_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_UNITS = np.uint64(0x0101010101010101)


@kernel
def load8(data, place):  # type: ignore[no-untyped-def]
    """Return the eight bytes from a place on as one little-endian integer."""
    i = uint64(place)  # unsigned, for an index that could be negative is checked for that
    low = uint64(data[i]) | uint64(data[i + uint64(1)]) << uint64(8)
    low |= uint64(data[i + uint64(2)]) << uint64(16) | uint64(data[i + uint64(3)]) << uint64(24)
    high = uint64(data[i + uint64(4)]) | uint64(data[i + uint64(5)]) << uint64(8)
    high |= uint64(data[i + uint64(6)]) << uint64(16) | uint64(data[i + uint64(7)]) << uint64(24)
    return low | high << uint64(32)


@kernel
def count_ones(value):  # type: ignore[no-untyped-def]
    """Return the number of set bits: sums in ever wider fields, which LLVM knows as one instruction."""
    value -= (value >> uint64(1)) & _PAIRS
    value = (value & _FOURS) + ((value >> uint64(2)) & _FOURS)
    value = (value + (value >> uint64(4))) & _BYTES
    return (value * _UNITS) >> uint64(56)


@kernel
def trailing_zeros(value):  # type: ignore[no-untyped-def]
    """Return the number of zero bits below the lowest set bit of a non-zero integer."""
    return int64(count_ones(~value & (value - uint64(1))))
