"""Fingerprints: what a column of texts holds, as a state that merges.

The digest of a column stands in signatures. Where a column is read in parts, on several machines, no part sees the
whole, so its digest is a fold like everything else: the texts are the coefficients of a polynomial, and that of two
parts after each other is the first times a power of the base plus the second. Cut wherever one likes, the digest is
the same. It tells apart what differs by accident (two polynomials modulo 2**61 - 1), and is no seal against forgery.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Bytes, Ints, Number

DIGEST_LENGTH = 12
"""Hexadecimal digits of a SHA-256 that stand in a signature."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of some rows; `+` is that of the rows of both, one after the other."""

    first: int = 0
    second: int = 0
    symbols: int = 0
    texts: int = 0

    @classmethod
    def of(cls, data: Bytes, starts: Ints, ends: Ints, lists: Ints | None = None) -> Fingerprint:
        """That of texts; where rows hold several, `lists` are the offsets of the rows."""
        from dialeval.core import fingerprint_kernel as kernel

        totals = np.zeros(3, np.uint64)
        offsets = np.empty(0, np.int64) if lists is None else lists
        kernel.add_texts(_sealed(data), _sealed(starts), _sealed(ends), _sealed(offsets), totals)
        first, second, symbols = totals.tolist()
        return cls(first, second, symbols, len(starts))

    @classmethod
    def of_shared(cls, data: Bytes, starts: Ints, ends: Ints, firsts: Ints, lasts: Ints) -> Fingerprint:
        """That of rows of several texts, row `i` being the texts `firsts[i]` to `lasts[i]`, each read once."""
        from dialeval.core import fingerprint_kernel as kernel

        totals, before = np.zeros(3, np.uint64), np.zeros((len(starts) + 1, 3), np.uint64)
        texts = (_sealed(data), _sealed(starts), _sealed(ends))
        kernel.add_shared_texts(*texts, _sealed(firsts), _sealed(lasts), before, totals)
        first, second, symbols = totals.tolist()
        return cls(first, second, symbols, int((lasts - firsts).sum()))

    def __add__(self, other: Fingerprint) -> Fingerprint:
        from dialeval.core import fingerprint_kernel as kernel

        prime, count = kernel.PRIME, other.symbols
        return Fingerprint(
            (self.first * pow(kernel.FIRST_BASE, count, prime) + other.first) % prime,
            (self.second * pow(kernel.SECOND_BASE, count, prime) + other.second) % prime,
            self.symbols + count,
            self.texts + other.texts,
        )

    @property
    def digest(self) -> str:
        """What stands in a signature."""
        content = f"{self.first} {self.second} {self.symbols} {self.texts}"
        return hashlib.sha256(content.encode()).hexdigest()[:DIGEST_LENGTH]


def _sealed(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The array as one that is only read: kernels are compiled once and not for both kinds."""
    view: npt.NDArray[Number] = array.view()
    view.flags.writeable = False
    return view
