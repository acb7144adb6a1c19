"""Fingerprints: digests of columns of texts that merge.

The digest of a column is in signatures. Where a column is read in parts, on several machines, no worker has the whole,
so its digest is a fold: the texts are the coefficients of a polynomial, and that of two consecutive parts is the first
times a power of the base plus the second. The digest does not depend on where the column is split. It detects
accidental differences (two polynomials modulo 2**61 - 1) and is not cryptographic.

A text is a sequence of symbols: its bytes, seven to a symbol, and one symbol with its length, which no seven bytes can
equal. The end of a row of several texts is a symbol of its own. So no two columns have the same symbols.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy import uint64

from dialeval.core.arrays import Bytes, Ints
from dialeval.core.kernels import kernel

PRIME = (1 << 61) - 1
FIRST_BASE = 0x12D687E5A3B9F04C
SECOND_BASE = 0x0B4C6F9D81E7A253
DIGEST_LENGTH = 12
"""Hexadecimal digits of a SHA-256 that are in a signature."""


def short_digest(*parts: str | bytes | memoryview) -> str:
    """Return the SHA-256 of texts or bytes, one after the other, as signatures have it."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part.encode() if isinstance(part, str) else part)
    return sha.hexdigest()[:DIGEST_LENGTH]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of some rows; `+` is that of the rows of both, one after the other."""

    first: int = 0
    second: int = 0
    symbols: int = 0
    texts: int = 0

    @classmethod
    def of(cls, data: Bytes, starts: Ints, ends: Ints, rows: tuple[Ints, Ints] | None = None) -> Fingerprint:
        """Compute the fingerprint of texts; where rows hold several, `rows` are the first and the last of each row."""
        totals, number = np.zeros(3, np.uint64), len(starts)
        if rows is None:
            add_texts(data, starts, ends, totals)
        else:
            add_lists(data, starts, ends, *rows, np.zeros((number + 1, 3), np.uint64), totals)
            number = int((rows[1] - rows[0]).sum())
        first, second, symbols = totals.tolist()
        return cls(first, second, symbols, number)

    def __add__(self, other: Fingerprint) -> Fingerprint:
        count = other.symbols
        return Fingerprint(
            (self.first * pow(FIRST_BASE, count, PRIME) + other.first) % PRIME,
            (self.second * pow(SECOND_BASE, count, PRIME) + other.second) % PRIME,
            self.symbols + count,
            self.texts + other.texts,
        )

    @property
    def digest(self) -> str:
        """The digest as in signatures."""
        return short_digest(f"{self.first} {self.second} {self.symbols} {self.texts}")


_PRIME = np.uint64(PRIME)
_FIRST = np.uint64(FIRST_BASE)
_SECOND = np.uint64(SECOND_BASE)
_BITS_30 = np.uint64((1 << 30) - 1)
_BITS_31 = np.uint64((1 << 31) - 1)
_END_OF_TEXT = np.uint64(1 << 56)
_END_OF_ROW = np.uint64(1 << 60)


@kernel
def _step(total, base, symbol):  # type: ignore[no-untyped-def]
    """Return (total * base + symbol) mod PRIME; factors are split at bit 31, so that products fit 64 bits."""
    high, low = total >> uint64(31), total & _BITS_31
    base_high, base_low = base >> uint64(31), base & _BITS_31
    middle = low * base_high + high * base_low
    product = (
        high * base_high * uint64(2) + (middle >> uint64(30)) + ((middle & _BITS_30) << uint64(31)) + low * base_low
    )
    product = (product & _PRIME) + (product >> uint64(61)) + symbol
    product = (product & _PRIME) + (product >> uint64(61))
    return product - _PRIME if product >= _PRIME else product


@kernel
def _with_text(data, start, end, first, second, symbols):  # type: ignore[no-untyped-def]
    """Return the two sums and the number of symbols after one more text."""
    place = start
    while place < end:
        symbol = uint64(0)
        for byte in range(place, min(place + 7, end)):
            symbol = symbol << uint64(8) | uint64(data[byte])
        first, second = _step(first, _FIRST, symbol), _step(second, _SECOND, symbol)
        symbols += uint64(1)
        place += 7
    symbol = _END_OF_TEXT + uint64(end - start)
    return _step(first, _FIRST, symbol), _step(second, _SECOND, symbol), symbols + uint64(1)


@kernel("(u1[::1], i8[::1], i8[::1], u8[::1])")
def add_texts(data, starts, ends, totals):  # type: ignore[no-untyped-def]
    """Add texts to `totals` (two sums, and the number of symbols)."""
    first, second, symbols = totals[0], totals[1], totals[2]
    for text in range(starts.shape[0]):
        first, second, symbols = _with_text(data, starts[text], ends[text], first, second, symbols)
    totals[0], totals[1], totals[2] = first, second, symbols


@kernel
def _power(base, exponent):  # type: ignore[no-untyped-def]
    """Return base ** exponent mod PRIME."""
    power = uint64(1)
    while exponent > uint64(0):
        if exponent & uint64(1):
            power = _step(power, base, uint64(0))
        base = _step(base, base, uint64(0))
        exponent >>= uint64(1)
    return power


@kernel
def _between(before, after, power):  # type: ignore[no-untyped-def]
    """Return the sum of some texts, from the sums before and after them and the base to the power of their symbols."""
    return (after + _PRIME - _step(before, power, uint64(0))) % _PRIME


@kernel("(u1[::1], i8[::1], i8[::1], i8[::1], i8[::1], u8[:, ::1], u8[::1])")
def add_lists(data, starts, ends, firsts, lasts, before, totals):  # type: ignore[no-untyped-def]
    """Add rows of several texts to `totals`; row `i` has the texts `firsts[i]` to `lasts[i]`, and rows may share texts.

    Each text is read once; `before` is filled with the sums and the symbols of all texts before each one. Two such sums
    give that of the texts between them, as a polynomial without its first coefficients.
    """
    for text in range(starts.shape[0]):
        first, second, symbols = before[text, 0], before[text, 1], before[text, 2]
        first, second, symbols = _with_text(data, starts[text], ends[text], first, second, symbols)
        before[text + 1, 0], before[text + 1, 1], before[text + 1, 2] = first, second, symbols
    first, second, symbols = totals[0], totals[1], totals[2]
    for row in range(firsts.shape[0]):
        start, end = firsts[row], lasts[row]
        length = before[end, 2] - before[start, 2]
        power = _power(_FIRST, length)
        first = _step(first, power, _between(before[start, 0], before[end, 0], power))
        first = _step(first, _FIRST, _END_OF_ROW)
        power = _power(_SECOND, length)
        second = _step(second, power, _between(before[start, 1], before[end, 1], power))
        second = _step(second, _SECOND, _END_OF_ROW)
        symbols += length + uint64(1)
    totals[0], totals[1], totals[2] = first, second, symbols
