"""Kernels over n-gram keys, all linear: counts of equal keys, distinct keys per row, two sorted counts merged.

Keys are non-negative int64. Tables are open-addressed, made by the caller, their length a power of two and at least
twice the number of keys they may hold.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from dialeval.core.numba_kernel import njit

_ODD = np.uint64(0x9E3779B97F4A7C15)
_TOP = np.uint64(20)


@njit()
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


@njit()
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


@njit()
def _compared(left, i, right, j):  # type: ignore[no-untyped-def]
    """Below 0, 0 or above 0 as row `i` of the one comes before, equals or comes after row `j` of the other."""
    for k in range(left.shape[1]):
        if left[i, k] != right[j, k]:
            return -1 if left[i, k] < right[j, k] else 1
    return 0


@njit()
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
            order = _compared(left, i, right, j)
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


@njit()
def _up_to(keys, start, stop, other, row):  # type: ignore[no-untyped-def]
    """The first of the rows from `start` to `stop` that comes after a row of `other`."""
    while start < stop:
        middle = (start + stop) // 2
        if _compared(keys, middle, other, row) <= 0:
            start = middle + 1
        else:
            stop = middle
    return start


@njit()
def merge_ends(left, i, right, j, most):  # type: ignore[no-untyped-def]
    """How far from `i` and `j` on, at most `most` rows on either side, two lists can be merged by themselves."""
    left_end = min(i + most, left.shape[0])
    right_end = min(j + most, right.shape[0])
    if i < left_end and j < right_end:
        if _compared(left, left_end - 1, right, right_end - 1) <= 0:
            right_end = _up_to(right, j, right_end, left, left_end - 1)
        else:
            left_end = _up_to(left, i, left_end, right, right_end - 1)
    return left_end, right_end
