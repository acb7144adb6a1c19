"""Kernels over n-gram keys, all linear: counts of equal keys, distinct keys per row, two sorted counts merged.

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


@njit(nogil=True, cache=True)
def merge_counts(left, left_counts, right, right_counts, merged, counts):  # type: ignore[no-untyped-def]
    """Merge two lists of rows in ascending order, adding the counts of equal rows; gives the number of merged rows."""
    i = j = size = 0
    while i < left.shape[0] or j < right.shape[0]:
        order = 0  # below 0: the left row comes first
        if i == left.shape[0]:
            order = 1
        elif j == right.shape[0]:
            order = -1
        else:
            for k in range(left.shape[1]):
                if left[i, k] != right[j, k]:
                    order = -1 if left[i, k] < right[j, k] else 1
                    break
        for k in range(merged.shape[1]):
            merged[size, k] = left[i, k] if order <= 0 else right[j, k]
        count = 0
        if order <= 0:
            count += left_counts[i]
            i += 1
        if order >= 0:
            count += right_counts[j]
            j += 1
        counts[size] = count
        size += 1
    return size
