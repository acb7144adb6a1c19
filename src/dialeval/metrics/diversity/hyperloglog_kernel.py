"""Kernels of HyperLogLog: a hash of each word, of each n-gram from those, and the registers.

The hashes are made of the bytes of words and of nothing else, so they are the same in every process and on every
machine. All arithmetic is modulo 2**64.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from dialeval.core.numba_kernel import njit

_SEED = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


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
        total = _SEED
        place = starts[word]
        while place < ends[word]:
            piece = uint64(0)
            for byte in range(place, min(place + 8, ends[word])):
                piece = piece << uint64(8) | uint64(data[byte])
            total = _mixed(total ^ piece) + _SEED
            place += 8
        hashes[word] = _mixed(total ^ uint64(ends[word] - starts[word]))


@njit()
def enter_ngrams(grams, hashes, precision, registers):  # type: ignore[no-untyped-def]
    """Enter n-grams, rows of places in `hashes`: first bits choose a register, which keeps the longest run of zeros."""
    rest = uint64(64 - precision)
    for row in range(grams.shape[0]):
        total = _SEED
        for k in range(grams.shape[1]):
            total = _mixed(total ^ hashes[grams[row, k]]) + _SEED
        total = _mixed(total)
        register = total >> rest
        tail = total << uint64(precision)
        rank = 1
        while rank <= 64 - precision and tail >> uint64(63) == uint64(0):
            tail = tail << uint64(1)
            rank += 1
        if rank > registers[register]:
            registers[register] = rank
