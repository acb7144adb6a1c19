"""Sums without rounding, so that a result is the same for every batch size, thread count and order.

A float is an integer times a power of two. `exact_sums` adds those integers, and their squares, in integer arithmetic;
`Moments` keeps both and merges by plain addition, which is associative to the last bit. Mean and standard deviation are
then rounded once, at the end, from exact fractions: a column of equal values has standard deviation 0, not 1e-9. The
sums of each dialogue and their squares, which intervals need (`clusters`), are kept in the same way.

Missing is never zero: NaN marks a row that could not be scored; it counts in `rows` and not in `scored`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.clusters import BySize, added_by_size, check_clusters, merged
from dialeval.core.errors import DialevalError
from dialeval.core.gate import UnfitError

UNIT_EXPONENT = 1126
"""Sums are integers in units of 2**-UNIT_EXPONENT: the lowest bit that a subnormal's 53-bit mantissa can carry here."""

_MANTISSA = 2.0**53
_LIMB_BITS = 18
_LIMB_MASK = (1 << _LIMB_BITS) - 1
_CHUNK = 1 << 14
"""Limb products stay below 2**38, so this many of them add up exactly inside a float64 (below 2**53)."""


def exact_sums(values: Floats) -> tuple[int, int]:
    """Return the sum of finite values in units of 2**-U and of their squares in units of 2**-2U (U: UNIT_EXPONENT)."""
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


def exact_sums_by_cluster(values: Floats, sizes: Ints) -> BySize:
    """Return the sums of `exact_sums` by the size of clusters, over sums of clusters instead of values.

    The first `sizes[0]` values are those of the first cluster, and so on; every cluster has one.
    """
    digits, base = _cluster_digits(values, np.cumsum(sizes) - sizes)
    width = digits.shape[1]
    # Products of numbers below 2**18, added up by their weight: exact for far more clusters than a batch has.
    products = np.zeros((len(sizes), 2 * width - 1), np.int64)
    for at in range(width):
        products[:, 2 * at] += digits[:, at] ** 2
        products[:, 2 * at + 1 : at + width] += 2 * digits[:, at, None] * digits[:, at + 1 :]
    added = added_by_size(np.concatenate((digits, products), axis=1), sizes)
    return {
        size: (count, _whole(sums[:width]) << base, _whole(sums[width:]) << (2 * base))
        for size, (count, *sums) in added.items()
    }


def _whole(digits: Sequence[int]) -> int:
    """Return the number with these digits of 18 bits, the lowest first; a digit may be larger than that."""
    total = 0
    for digit in reversed(digits):
        total = (total << _LIMB_BITS) + digit
    return total


def _cluster_digits(values: Floats, starts: Ints) -> tuple[Ints, int]:
    """Return the exact sum of every cluster in digits of 18 bits, lowest first, and the exponent of the lowest.

    Only the highest digit may be negative.
    """
    fraction, exponent = np.frexp(values)
    mantissa = (fraction * _MANTISSA).astype(np.int64)
    lowest = int(exponent.min())
    shift = (exponent - lowest).astype(np.int64)
    limbs = (54 + int(shift.max())) // (2 * _LIMB_BITS) + 1
    digits = np.zeros((len(starts), 2 * limbs + 2), np.int64)
    for at in range(limbs):
        # Bits 36 * at and following of mantissa * 2**shift; what is shifted by 63 has nothing left there.
        up = shift - 2 * _LIMB_BITS * at
        part = (mantissa << np.clip(up, 0, 63)) >> np.clip(-up, 0, 63)
        if at < limbs - 1:
            part &= (1 << 2 * _LIMB_BITS) - 1
        digits[:, 2 * at] = np.add.reduceat(part, starts)
    for at in range(digits.shape[1] - 1):
        digits[:, at + 1] += digits[:, at] >> _LIMB_BITS
        digits[:, at] &= _LIMB_MASK
    return digits, UNIT_EXPONENT - 53 + lowest


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
        """Return the moments of a column in which NaN is a row without a score.

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
            sizes = np.diff(np.concatenate(([0], np.cumsum(known)))[dialogues])
            clusters = exact_sums_by_cluster(scored, sizes[sizes > 0])
        return cls(len(items), len(scored), total, squares, clusters)

    @classmethod
    def from_plain(cls, rows: int, scored: int, total: int, squares: int, clusters: BySize) -> Moments:
        """Make moments from a file; UnfitError where no column has them."""
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
