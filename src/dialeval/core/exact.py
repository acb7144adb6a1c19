"""Sums without rounding, so that a result is the same for every batch size, thread count and order.

A float is an integer times a power of two. `exact_sums` adds those integers, and their squares, in integer arithmetic;
`Moments` keeps both and merges by plain addition, which is associative to the last bit. Mean and standard deviation are
then rounded once, at the end, from exact fractions: a column of equal values has standard deviation 0, not 1e-9.

Missing is never zero: NaN marks a row that could not be scored; it counts in `rows` and not in `scored`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dialeval.core.errors import DialevalError
from dialeval.core.gate import UnfitError

if TYPE_CHECKING:
    from dialeval.core.arrays import Floats, Ints

UNIT_EXPONENT = 1126
"""Sums are integers in units of 2**-UNIT_EXPONENT: the lowest bit that a subnormal's 53-bit mantissa can carry here."""

_LIMB_BITS = 18
_LIMB_MASK = (1 << _LIMB_BITS) - 1
_CHUNK = 1 << 14
"""Limb products stay below 2**38, so this many of them add up exactly inside a float64 (below 2**53)."""


def exact_sums(values: Floats) -> tuple[int, int]:
    """The sum of finite values in units of 2**-U and of their squares in units of 2**-2U, U = UNIT_EXPONENT."""
    total = squares = 0
    for start in range(0, len(values), _CHUNK):
        fraction, exponent = np.frexp(values[start : start + _CHUNK])
        mantissa = np.ldexp(fraction, 53).astype(np.int64)
        lowest = int(exponent.min())
        bins = (exponent - lowest).astype(np.int64)

        # Three signed limbs: mantissa = high * 2**36 + middle * 2**18 + low.
        low = mantissa & _LIMB_MASK
        middle = (mantissa >> _LIMB_BITS) & _LIMB_MASK
        high = mantissa >> (2 * _LIMB_BITS)
        parts = (low, middle, high)
        products = (low * low, 2 * low * middle, 2 * low * high + middle * middle, 2 * middle * high, high * high)
        total += _gather(parts, bins, UNIT_EXPONENT - 53 + lowest, 1)
        squares += _gather(products, bins, 2 * (UNIT_EXPONENT - 53 + lowest), 2)
    return total, squares


def _gather(limbs: tuple[Ints, ...], bins: Ints, base: int, stride: int) -> int:
    """Add up limbs (weights 2**18 apart) whose rows have the exponents `base + stride * bin`."""
    result = 0
    for position, limb in enumerate(limbs):
        for bin_, part in enumerate(np.bincount(bins, weights=limb)):
            if part:
                result += int(part) << (base + stride * bin_ + _LIMB_BITS * position)
    return result


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, sum and sum of squares of the scored rows, exact; the state of every metric that is a mean over rows."""

    rows: int = 0
    scored: int = 0
    total: int = 0
    squares: int = 0

    @classmethod
    def of(cls, items: Floats) -> Moments:
        """The moments of a column in which NaN marks a row without a score."""
        scored = items[~np.isnan(items)]
        if np.isinf(scored).any():
            raise DialevalError("a metric gave an infinite value for a row; NaN is the mark of a row without a score")
        total, squares = exact_sums(scored) if len(scored) else (0, 0)
        return cls(len(items), len(scored), total, squares)

    @classmethod
    def from_plain(cls, rows: int, scored: int, total: int, squares: int) -> Moments:
        """Moments out of a file; UnfitError where no column has them."""
        if not 0 <= scored <= rows or squares * scored < total**2 or (not scored and squares):
            raise UnfitError("no values have these sums")
        return cls(rows, scored, total, squares)

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.rows + other.rows,
            self.scored + other.scored,
            self.total + other.total,
            self.squares + other.squares,
        )

    @property
    def mean(self) -> float:
        """Mean over the scored rows; NaN if there are none."""
        if not self.scored:
            return math.nan
        return float(Fraction(self.total, self.scored << UNIT_EXPONENT))

    @property
    def std(self) -> float:
        """Population standard deviation over the scored rows; NaN if there are none."""
        if not self.scored:
            return math.nan
        spread = self.squares * self.scored - self.total**2
        # A whole-number root with 64 bits to spare: a float could overflow before the root is taken.
        return float(Fraction(math.isqrt(spread << 128), self.scored << (UNIT_EXPONENT + 64)))
