"""Sums without rounding, so that a result is the same for every batch size, thread count and order.

A float is an integer times a power of two. `exact_sums` adds those integers, and their squares, in integer arithmetic;
`Moments` keeps both and merges by plain addition, which is associative to the last bit. Mean and standard deviation are
then rounded once, at the end, from exact fractions: a column of equal values has standard deviation 0, not 1e-9. The
sums of each dialogue and their squares, which intervals need (`clusters`), are kept in the same way.

Missing is never zero: NaN marks a row that could not be scored; it counts in `rows` and not in `scored`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dialeval.core.clusters import BySize, check_clusters, grouped, merged
from dialeval.core.errors import DialevalError
from dialeval.core.gate import UnfitError
from dialeval.core.ragged import row_numbers

if TYPE_CHECKING:
    from dialeval.core.arrays import Floats, Ints

UNIT_EXPONENT = 1126
"""Sums are integers in units of 2**-UNIT_EXPONENT: the lowest bit that a subnormal's 53-bit mantissa can carry here."""

_MANTISSA = 2.0**53
_LIMB_BITS = 18
_LIMB_MASK = (1 << _LIMB_BITS) - 1
_CHUNK = 1 << 14
"""Limb products stay below 2**38, so this many of them add up exactly inside a float64 (below 2**53)."""


def exact_sums(values: Floats) -> tuple[int, int]:
    """The sum of finite values in units of 2**-U and of their squares in units of 2**-2U, U = UNIT_EXPONENT."""
    total = squares = 0
    for start in range(0, len(values), _CHUNK):
        fraction, exponent = np.frexp(values[start : start + _CHUNK])
        mantissa = (fraction * _MANTISSA).astype(np.int64)
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


def exact_sums_by_cluster(values: Floats, clusters: Ints, sizes: Ints) -> BySize:
    """The sums of finite values and of their squares as `exact_sums` has them, of whole clusters instead of rows.

    Row `i` is of cluster `clusters[i]`, and cluster `k` has `sizes[k]` rows.
    """
    digits, base = _cluster_digits(values, clusters, len(sizes))
    width = digits.shape[1]
    # Products of numbers below 2**18, added up by their weight: exact for far more clusters than a batch has.
    products = np.zeros((len(sizes), 2 * width - 1), np.int64)
    for at in range(width):
        products[:, 2 * at] += digits[:, at] ** 2
        products[:, 2 * at + 1 : at + width] += 2 * digits[:, at, None] * digits[:, at + 1 :]
    return {
        size: (len(own), _whole(digits[own]) << base, _whole(products[own]) << (2 * base))
        for size, own in grouped(sizes)
    }


def _whole(digits: Ints) -> int:
    """Numbers of 18 bits a digit, one a line, added up."""
    total = 0
    for digit in reversed(digits.sum(axis=0).tolist()):
        total = (total << _LIMB_BITS) + digit
    return total


def _cluster_digits(values: Floats, clusters: Ints, count: int) -> tuple[Ints, int]:
    """The exact sum of every cluster in digits of 18 bits, the lowest first, and the exponent of the lowest digit.

    Only the highest digit may be negative. There are two more than the values have, for what is carried.
    """
    fraction, exponent = np.frexp(values)
    mantissa = (fraction * _MANTISSA).astype(np.int64)
    lowest = int(exponent.min())
    place, shift = (part[exponent - lowest] for part in np.divmod(np.arange(np.ptp(exponent) + 1), _LIMB_BITS))
    width = int(place.max()) + 5
    digits = np.zeros(count * width, np.int64)
    for start in range(0, len(values), _CHUNK):  # so that weights below 2**37 add up exactly
        part = slice(start, start + _CHUNK)
        whole, spot = mantissa[part], clusters[part] * width + place[part]
        limbs = (whole & _LIMB_MASK, (whole >> _LIMB_BITS) & _LIMB_MASK, whole >> (2 * _LIMB_BITS))
        for at, limb in enumerate(limbs):
            sums = np.bincount(spot + at, weights=limb << shift[part], minlength=len(digits))
            digits += sums.astype(np.int64)
    lines = digits.reshape(count, width)
    for at in range(width - 1):
        lines[:, at + 1] += lines[:, at] >> _LIMB_BITS
        lines[:, at] &= _LIMB_MASK
    return lines, UNIT_EXPONENT - 53 + lowest


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, sum and sum of squares of the scored rows, exact; the state of every metric that is a mean over rows."""

    rows: int = 0
    scored: int = 0
    total: int = 0
    squares: int = 0
    clusters: BySize = field(default_factory=dict)
    """The sums of dialogues and their squares."""

    @classmethod
    def of(cls, items: Floats, dialogues: Ints | None = None) -> Moments:
        """The moments of a column in which NaN marks a row without a score.

        Dialogue `k` is the rows `dialogues[k]` to `dialogues[k + 1]`; None: every row stands alone.
        """
        known = ~np.isnan(items)
        scored = items[known]
        if np.isinf(scored).any():
            raise DialevalError("a metric gave an infinite value for a row; NaN is the mark of a row without a score")
        if not len(scored):
            return cls(len(items))
        total, squares = exact_sums(scored)
        clusters: BySize = {1: (len(scored), total, squares)}
        if dialogues is not None and len(dialogues) <= len(items):
            numbers = row_numbers(dialogues)[known]
            sizes = np.bincount(numbers, minlength=len(dialogues) - 1)
            clusters = exact_sums_by_cluster(scored, numbers, sizes)
        return cls(len(items), len(scored), total, squares, clusters)

    @classmethod
    def from_plain(cls, rows: int, scored: int, total: int, squares: int, clusters: BySize) -> Moments:
        """Moments out of a file; UnfitError where no column has them."""
        check_clusters(clusters, 1, scored)
        sums = [(scored, total, squares), *clusters.values()]
        if not 0 <= scored <= rows or any(each[2] * each[0] < each[1] ** 2 for each in sums):
            raise UnfitError("no values have these sums")
        return cls(rows, scored, total, squares, clusters)

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.rows + other.rows,
            self.scored + other.scored,
            self.total + other.total,
            self.squares + other.squares,
            merged(self.clusters, other.clusters),
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
