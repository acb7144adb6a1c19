"""Kernel of HyperLogLog: n-grams into registers, by their hashes (`text.ngrams_kernel`)."""

from __future__ import annotations

from numba import uint64

from dialeval.core.numba_kernel import njit
from dialeval.text.ngrams import hash_of


@njit()
def enter_ngrams(keys, n, hashes, precision, registers):  # type: ignore[no-untyped-def]
    """Enter n-grams, packed places in `hashes`: first bits choose a register, which keeps the longest run of zeros."""
    rest = uint64(64 - precision)
    for row in range(keys.shape[0]):
        total = hash_of(keys, row, n, hashes)
        register = total >> rest
        tail = total << uint64(precision)
        rank = 1
        while rank <= 64 - precision and tail >> uint64(63) == uint64(0):
            tail = tail << uint64(1)
            rank += 1
        if rank > registers[register]:
            registers[register] = rank
