"""Sums without rounding, so that a result is the same for every batch size, thread count and order.

A float is an integer times a power of two. `exact_sums` adds those integers, and their squares, in integer arithmetic;
`Moments` keeps both and merges by plain addition, which is associative to the last bit. Mean and standard deviation are
then rounded once, at the end, from exact fractions: a column of equal values has standard deviation 0, not 1e-9. The
sums of each dialogue and their squares, which intervals need (`clusters`), are kept in the same way.

Missing is never zero: NaN marks a row that could not be scored; it counts in `rows` and not in `scored`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import DialevalError

# Sums of clusters, from which clustered standard errors are computed, in a form that merges exactly.
#
# Turns of one dialogue are correlated, so that a hundred turns of ten dialogues hold less information than a hundred
# dialogues. The standard error follows from the changes of a value when one cluster (a dialogue, or a single row where
# rows are independent) is left out:
#
#     value          f(S), S = sum of the clusters' sums c_k (a mean: f = sum of values / number of values)
#     change by k    d_k = -(gradient of f . c_k) * N / (N - n_k)        with n_k of the N scored rows in cluster k
#     error          sqrt((K - 1) / K * sum of d_k^2)                    with K clusters that have a scored row
#     freedom        N^2 / (sum of n_k^2) - 1, at least 1
#
# That is the linearized jackknife over clusters; for a mean it is the jackknife itself. Where every row is a cluster,
# the error is that of Student's interval, with N - 1 degrees of freedom. Where few dialogues are long and many short,
# Kish's effective number of clusters, N^2 / (sum of n_k^2), is smaller than their number.
#
# The sums needed are those of c_k and of its products, separately for each number n_k of scored rows (`BySize`). These
# are whole numbers, there are few different n_k, and no batch holds part of a dialogue: merging is plain addition.
#
# Papers: Efron and Stein 1981, "The Jackknife Estimate of Variance", Annals of Statistics; Cameron and Miller 2015, "A
# Practitioner's Guide to Cluster-Robust Inference", Journal of Human Resources; Kish 1965, "Survey Sampling".

BySize: TypeAlias = dict[int, tuple[int, ...]]
"""By the number of scored rows of a cluster: the number of such clusters, the sums over these of each number of c_k,
and of the product of each two of them: (0, 0), (0, 1) ... (1, 1) and so on."""

_SPARE_BITS = 64
"""Additional bits of the sums for the division and the root."""

_EXACT_FLOAT = 1 << 53
"""Whole numbers below it are exact as floats."""

_NO_SPREAD = 1e-12
"""A variance smaller than that fraction of the terms that it is the difference of is a rounding error."""


def merge_sums(left: BySize, right: BySize) -> BySize:
    """Return the sums of both sets of clusters."""
    both = dict(left)
    for size, sums in right.items():
        sums_before = both.get(size)
        both[size] = sums if sums_before is None else tuple(map(int.__add__, sums_before, sums))
    return both


def sum_by_size(sums: Ints, sizes: Ints) -> BySize:
    """Return the sums of clusters by their scored rows (`sizes`); `sums` has a line of numbers per cluster."""
    largest = max(abs(int(sums.min(initial=0))), abs(int(sums.max(initial=0))))
    bound = largest * largest * max(len(sums), 1)
    left, right = np.triu_indices(sums.shape[1])
    if bound < _EXACT_FLOAT:  # then a product of matrices is exact, in whatever order it is added up
        added = {}
        for size in np.flatnonzero(np.bincount(sizes, minlength=1)[1:]) + 1:
            alike = sizes == size
            selected = sums if alike.all() else sums[alike]
            numbers = selected.astype(np.float64)
            products = (numbers.T @ numbers)[left, right].astype(np.int64)
            added[int(size)] = (len(selected), *selected.sum(axis=0).tolist(), *products.tolist())
        return added
    # Plain Python numbers where products might not fit.
    wide = sums if bound < 1 << 63 else sums.astype(object)
    lines = np.concatenate((wide, wide[:, left] * wide[:, right]), axis=1)
    return {size: tuple(numbers) for size, numbers in add_by_size(lines, sizes).items()}


def add_by_size(lines: Ints, sizes: Ints) -> dict[int, list[int]]:
    """Return the sums of lines of numbers, one per cluster and with 1 prepended, for each size above 0."""
    order = np.argsort(sizes, kind="stable")
    values, starts = np.unique(sizes[order], return_index=True)
    if not len(values):
        return {}
    ones = np.ones((len(lines), 1), lines.dtype)
    sums = np.add.reduceat(np.concatenate((ones, lines), axis=1)[order], starts)
    return {size: numbers for size, numbers in zip(values.tolist(), sums.tolist(), strict=True) if size > 0}


@dataclass(frozen=True, slots=True)
class ClusterError:
    """The standard error of a value over clusters."""

    error: float
    """The standard error."""
    clusters: int
    freedom: float
    scored: int
    """The scored rows of all clusters."""
    yes_no: bool = False
    """Whether it is a mean of values that are all at one of the two ends of their range."""
    values: tuple[tuple[float, int], ...] = ()
    """The different values of the clusters and the number of clusters of each; only where an interval needs them."""

    @property
    def over_dialogues(self) -> bool:
        """Whether some cluster has several rows."""
        return self.clusters < self.scored


def mean_error(sums: Mapping[int, Sequence[int]], unit_exponent: int, yes_no: bool = False) -> ClusterError | None:
    """Return the error of a mean from the sums of its clusters, in units of 2**-unit_exponent; None below two."""
    clusters, scored, freedom = _count_clusters(sums)
    if clusters < 2:
        return None
    total = sum(numbers[1] for numbers in sums.values())
    squared = 0
    for size, (count, total_of_size, squares) in sums.items():
        # The exact squares of Y_k N - T n_k: a difference of rounded sums would lose the significant digits.
        away = squares * scored**2 - 2 * total_of_size * size * total * scored + count * (size * total) ** 2
        squared += (away << 2 * _SPARE_BITS) // (scored - size) ** 2
    root = math.isqrt(squared * (clusters - 1) // (clusters * scored**2))
    return ClusterError(float(Fraction(root, 1 << (unit_exponent + _SPARE_BITS))), clusters, freedom, scored, yes_no)


def formula_error(sums: Mapping[int, Sequence[int]], gradient: Floats) -> ClusterError | None:
    """Return the error of a formula of counts from the sums of its clusters and the formula's gradient."""
    clusters, scored, freedom = _count_clusters(sums)
    if clusters < 2:
        return None
    width = len(gradient)
    weights = np.outer(gradient, gradient) * (2 - np.eye(width))
    upper = weights[np.triu_indices(width)]
    squared, terms = [], []
    for size in sorted(sums):
        products = upper * np.array(sums[size][1 + width :], np.float64)
        factor = (scored / (scored - size)) ** 2
        squared.append(factor * math.fsum(products))
        terms.append(factor * math.fsum(np.abs(products)))
    total = math.fsum(squared)
    variance = (clusters - 1) / clusters * total if total > _NO_SPREAD * math.fsum(terms) else 0.0
    return ClusterError(math.sqrt(variance), clusters, freedom, scored)


def _count_clusters(sums: Mapping[int, Sequence[int]]) -> tuple[int, int, float]:
    """Return the number of clusters, the number of scored rows, and the degrees of freedom."""
    clusters = sum(numbers[0] for numbers in sums.values())
    scored = sum(size * numbers[0] for size, numbers in sums.items())
    squares = sum(size * size * numbers[0] for size, numbers in sums.items())
    return clusters, scored, max(1.0, scored * scored / squares - 1) if scored else 1.0


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
    added = add_by_size(np.concatenate((digits, products), axis=1), sizes)
    return {
        size: (count, _join_digits(sums[:width]) << base, _join_digits(sums[width:]) << (2 * base))
        for size, (count, *sums) in added.items()
    }


def _join_digits(digits: Sequence[int]) -> int:
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

        Dialogue `k` is the rows `dialogues[k]` to `dialogues[k + 1]`; None: every row is a cluster.
        """
        present = ~np.isnan(items)
        scored = items[present]
        if np.isinf(scored).any():
            raise DialevalError("a metric gave an infinite value for a row; NaN is the mark of a row without a score")
        if not len(scored):
            return cls(len(items))
        total, squares = exact_sums(scored)
        clusters: BySize = {1: (len(scored), total, squares)}
        if dialogues is not None and len(dialogues) <= len(items):
            sizes = np.diff(np.concatenate(([0], np.cumsum(present)))[dialogues])
            clusters = exact_sums_by_cluster(scored, sizes[sizes > 0])
        return cls(len(items), len(scored), total, squares, clusters)

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.rows + other.rows,
            self.scored + other.scored,
            self.total + other.total,
            self.squares + other.squares,
            merge_sums(self.clusters, other.clusters),
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
        # An integer root with 64 additional bits: a float could overflow before the root is taken.
        return float(Fraction(math.isqrt(spread << 128), self.scored << (UNIT_EXPONENT + 64)))
