"""Fingerprints: what a column of texts holds, as a state that merges.

The digest of a column stands in signatures. Where a column is read in parts, on several machines, no part sees the
whole, so its digest is a fold like everything else: the texts are the coefficients of a polynomial, and that of two
parts after each other is the first times a power of the base plus the second. Cut wherever one likes, the digest is
the same. It tells apart what differs by accident (two polynomials modulo 2**61 - 1), and is no seal against forgery.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dialeval.core.arrays import Bytes, Ints
from dialeval.core.kernels import Kernels

_kernel = Kernels("dialeval.core.fingerprint_kernel")


PRIME = (1 << 61) - 1
FIRST_BASE = 0x12D687E5A3B9F04C
SECOND_BASE = 0x0B4C6F9D81E7A253
DIGEST_LENGTH = 12
"""Hexadecimal digits of a SHA-256 that stand in a signature."""


def short_digest(parts: Iterable[bytes | memoryview]) -> str:
    """Return the SHA-256 of some bytes as signatures have it."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part)
    return sha.hexdigest()[:DIGEST_LENGTH]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of some rows; `+` is that of the rows of both, one after the other."""

    first: int = 0
    second: int = 0
    symbols: int = 0
    texts: int = 0

    @classmethod
    def of(cls, data: Bytes, starts: Ints, ends: Ints, lists: Ints | None = None) -> Fingerprint:
        """Compute the fingerprint of texts; where rows hold several, `lists` are the offsets of the rows."""
        totals = np.zeros(3, np.uint64)
        offsets = np.empty(0, np.int64) if lists is None else lists
        _kernel.add_texts(data, starts, ends, offsets, totals)
        first, second, symbols = totals.tolist()
        return cls(first, second, symbols, len(starts))

    @classmethod
    def of_shared(cls, data: Bytes, starts: Ints, ends: Ints, firsts: Ints, lasts: Ints) -> Fingerprint:
        """Compute the fingerprint of rows of several texts: row `i` is the texts `firsts[i]` to `lasts[i]`."""
        totals, before = np.zeros(3, np.uint64), np.zeros((len(starts) + 1, 3), np.uint64)
        _kernel.add_shared_texts(data, starts, ends, firsts, lasts, before, totals)
        first, second, symbols = totals.tolist()
        return cls(first, second, symbols, int((lasts - firsts).sum()))

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
        """What stands in a signature."""
        return short_digest([f"{self.first} {self.second} {self.symbols} {self.texts}".encode()])
