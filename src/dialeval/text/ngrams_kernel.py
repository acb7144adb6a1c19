"""Kernels over n-gram keys: counts of equal keys, and distinct keys per row, both linear in the number of keys.

Keys are non-negative int64. Tables are open-addressed, made by the caller, their length a power of two and at least
twice the number of keys they may hold.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

_ODD = np.uint64(0x9E3779B97F4A7C15)
_TOP = np.uint64(20)


@njit(nogil=True, cache=True)
def count_keys(keys, table, counts):  # type: ignore[no-untyped-def]
    """Count every key: slot by slot, `table` gets the key and `counts` (zeros before) how often it occurs."""
    mask = uint64(table.shape[0] - 1)
    for i in range(keys.shape[0]):
        key = keys[i]
        slot = ((uint64(key) * _ODD) >> _TOP) & mask
        while counts[slot] != 0 and table[slot] != key:
            slot = (slot + uint64(1)) & mask
        table[slot] = key
        counts[slot] += 1


@njit(nogil=True, cache=True)
def distinct_per_row(keys, offsets, table, seen, distinct):  # type: ignore[no-untyped-def]
    """Number of distinct keys in every row; `seen` (zeros before) holds the last row that used a slot, plus one."""
    mask = uint64(table.shape[0] - 1)
    for row in range(distinct.shape[0]):
        types = 0
        for i in range(offsets[row], offsets[row + 1]):
            key = keys[i]
            slot = ((uint64(key) * _ODD) >> _TOP) & mask
            while seen[slot] == row + 1 and table[slot] != key:
                slot = (slot + uint64(1)) & mask
            if seen[slot] != row + 1:
                seen[slot] = row + 1
                table[slot] = key
                types += 1
        distinct[row] = types
