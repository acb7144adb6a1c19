"""Kernels over n-gram keys, all linear: sorted keys, distinct keys per row, two sorted counts merged, hashes.

Keys are non-negative int64. Tables are open-addressed, made by the caller, their length a power of two and at least
twice the number of keys they may hold. The hashes of n-grams are made of the bytes of their words and of nothing else,
so they are the same in every process and on every machine; their arithmetic is modulo 2**64.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from dialeval.core.numba_kernel import njit

_ODD = np.uint64(0x9E3779B97F4A7C15)
_TOP = np.uint64(20)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
_LOWER = 0xFFFFFFFF


@njit()
def sort_counts(keys, counts, spare_keys, spare_counts, places):  # type: ignore[no-untyped-def]
    """Sort keys, each with its count, by one digit after the other; digits that all keys share are left out.

    Gives whether the result is in the spare arrays. `places` has one element for every digit.
    """
    digits = uint64(places.shape[0] - 1)
    differs = uint64(0)
    for i in range(1, keys.shape[0]):
        differs |= uint64(keys[i]) ^ uint64(keys[0])
    shift, in_spare = uint64(0), False
    while differs >> shift != 0:
        if (differs >> shift) & uint64(1) == 0:
            shift += uint64(1)
            continue
        if in_spare:
            _sort_digit(spare_keys, spare_counts, keys, counts, places, shift, digits)
        else:
            _sort_digit(keys, counts, spare_keys, spare_counts, places, shift, digits)
        in_spare = not in_spare
        differs &= ~(digits << shift)
    return in_spare


@njit()
def _sort_digit(keys, counts, sorted_keys, sorted_counts, places, shift, digits):  # type: ignore[no-untyped-def]
    """Sort by the digit at a shift; keys of the same digit stay in order."""
    places[:] = 0
    for i in range(keys.shape[0]):
        places[(uint64(keys[i]) >> shift) & digits] += 1
    place = 0
    for digit in range(places.shape[0]):
        place, places[digit] = place + places[digit], place
    for i in range(keys.shape[0]):
        digit = (uint64(keys[i]) >> shift) & digits
        sorted_keys[places[digit]], sorted_counts[places[digit]] = keys[i], counts[i]
        places[digit] += 1


@njit()
def add_equal(keys, counts):  # type: ignore[no-untyped-def]
    """Make one of equal neighbours, with the sum of their counts, in place; gives how many are left."""
    size = 0
    for i in range(keys.shape[0]):
        if size > 0 and keys[i] == keys[size - 1]:
            counts[size - 1] += counts[i]
        else:
            keys[size], counts[size] = keys[i], counts[i]
            size += 1
    return size


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
def is_ascending(keys):  # type: ignore[no-untyped-def]
    """Whether every row comes after the one before."""
    row = 1
    while row < keys.shape[0] and _compared(keys, row - 1, keys, row) < 0:
        row += 1
    return row >= keys.shape[0]


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


@njit()
def _mixed(value):  # type: ignore[no-untyped-def]
    """Every bit of the value spread over all bits (the finaliser of SplitMix64)."""
    value = (value ^ (value >> uint64(30))) * _FIRST
    value = (value ^ (value >> uint64(27))) * _SECOND
    return value ^ (value >> uint64(31))


@njit()
def hash_words(data, starts, ends, hashes):  # type: ignore[no-untyped-def]
    """Fill `hashes` with one of each word: its bytes eight at a time, then its length."""
    for word in range(starts.shape[0]):
        total = _ODD
        place = starts[word]
        while place < ends[word]:
            piece = uint64(0)
            for byte in range(place, min(place + 8, ends[word])):
                piece = piece << uint64(8) | uint64(data[byte])
            total = _mixed(total ^ piece) + _ODD
            place += 8
        hashes[word] = _mixed(total ^ uint64(ends[word] - starts[word]))


@njit()
def _word(keys, row, number):  # type: ignore[no-untyped-def]
    """One of the halves of a row of keys: half 0 is the upper one of the first key."""
    key = keys[row, number // 2]
    return key & _LOWER if number % 2 else key >> 32


@njit()
def mark_words(keys, n, used):  # type: ignore[no-untyped-def]
    """Set `used` for every word of n-grams in packed keys."""
    for row in range(keys.shape[0]):
        for half in range(n % 2, n + n % 2):
            used[_word(keys, row, half)] = True


@njit()
def renumber_words(keys, n, numbers, renumbered):  # type: ignore[no-untyped-def]
    """Fill `renumbered` with the packed keys, each word replaced by its number."""
    for row in range(keys.shape[0]):
        for k in range(keys.shape[1]):
            upper = 0 if k == 0 and n % 2 else numbers[_word(keys, row, 2 * k)]
            renumbered[row, k] = upper << 32 | numbers[_word(keys, row, 2 * k + 1)]


@njit()
def are_words(keys, n, words):  # type: ignore[no-untyped-def]
    """Whether packed keys hold n words each, and all of these are below `words`."""
    for row in range(keys.shape[0]):
        for half in range(2 * keys.shape[1]):
            word = _word(keys, row, half)
            if word < 0 or word >= (words if half >= n % 2 else 1):
                return False
    return True


@njit()
def hash_of(keys, row, n, hashes):  # type: ignore[no-untyped-def]
    """The hash of an n-gram, a row of packed places in `hashes`."""
    total = _ODD
    for half in range(n % 2, n + n % 2):
        total = _mixed(total ^ hashes[_word(keys, row, half)]) + _ODD
    return _mixed(total)


@njit()
def choose_parts(keys, n, hashes, chosen, sizes):  # type: ignore[no-untyped-def]
    """Fill `chosen` with the part of each n-gram, by its hash, and `sizes` (zeros before) with how many a part has."""
    parts = uint64(sizes.shape[0])
    for row in range(keys.shape[0]):
        half = hash_of(keys, row, n, hashes) & uint64(0xFFFFFFFF)
        chosen[row] = (half * parts) >> _HALF
        sizes[chosen[row]] += 1


@njit()
def cut_parts(keys, counts, chosen, places, part_keys, part_counts):  # type: ignore[no-untyped-def]
    """Bring n-grams to their parts, in order; `places` is where the next one of each part goes."""
    for row in range(keys.shape[0]):
        place = places[chosen[row]]
        places[chosen[row]] += 1
        part_counts[place] = counts[row]
        for k in range(keys.shape[1]):
            part_keys[place, k] = keys[row, k]
