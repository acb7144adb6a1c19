"""Sums of clusters: what an interval that respects dialogues is made of, in a form that merges exactly.

Turns of one dialogue are alike, so that a hundred turns of ten dialogues say less than a hundred dialogues would. How
much a value moves when one cluster (a dialogue, or a single row where rows stand alone) is left out tells how far it
would move with other clusters:

    value          f(S), S = sum of the clusters' sums c_k (a mean: f = sum of values / number of values)
    change by k    d_k = -(gradient of f . c_k) * N / (N - n_k)        with n_k of the N scored rows in cluster k
    error          sqrt((K - 1) / K * sum of d_k^2)                    with K clusters that have a scored row
    freedom        N^2 / (sum of n_k^2) - 1, at least 1

That is the jackknife over clusters, linearised; for a mean it is the jackknife itself. Where every row is a cluster,
the error is that of Student's interval, with N - 1 degrees of freedom. Few long dialogues among many short ones are
worth fewer clusters than there are, which the effective number N^2 / (sum of n_k^2) says.

The sums needed are those of c_k and of its products, apart for each number n_k of scored rows (`BySize`). These are
whole numbers, there are few different n_k, and no batch holds part of a dialogue: merging is plain addition.

Papers: Efron and Stein 1981, "The Jackknife Estimate of Variance", Annals of Statistics; Cameron and Miller 2015, "A
Practitioner's Guide to Cluster-Robust Inference", Journal of Human Resources; Kish 1965, "Survey Sampling".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.gate import UnfitError

BySize: TypeAlias = dict[int, tuple[int, ...]]
"""By the scored rows of a cluster: how many clusters have so many, the sums over these of each number of c_k, and of
the product of each two of them, those of (0, 0), (0, 1) ... (1, 1) and so on."""

_SPARE_BITS = 64
"""More bits than the sums have, for what is divided and for the root."""

_EXACT_FLOAT = 1 << 53
"""Whole numbers below it have no rounding as floats."""

_NO_SPREAD = 1e-12
"""A variance smaller than that share of the terms it is the difference of is rounding."""


def merged(left: BySize, right: BySize) -> BySize:
    """Return the sums of both sets of clusters."""
    both = dict(left)
    for size, sums in right.items():
        own = both.get(size)
        both[size] = sums if own is None else tuple(map(int.__add__, own, sums))
    return both


def check_clusters(clusters: object, width: int, scored: int) -> None:
    """Raise UnfitError unless these are sums of clusters: `width` numbers each, `scored` rows in all."""
    length = 1 + width + width * (width + 1) // 2
    if not isinstance(clusters, dict):
        raise UnfitError("sums of clusters are not by size")
    for size, sums in clusters.items():
        whole = type(size) is int and type(sums) is tuple and all(type(each) is int for each in sums)
        if not whole or len(sums) != length or size < 1 or sums[0] < 1:
            raise UnfitError("sums of clusters are not of that form")
    if clusters and sum(size * sums[0] for size, sums in clusters.items()) != scored:
        raise UnfitError("clusters do not have as many rows as are scored")


def by_size(sums: Ints, sizes: Ints) -> BySize:
    """Return the sums of clusters by their scored rows (`sizes`); `sums` has a line of numbers per cluster."""
    largest = max(abs(int(sums.min(initial=0))), abs(int(sums.max(initial=0))))
    bound = largest * largest * max(len(sums), 1)
    left, right = np.triu_indices(sums.shape[1])
    if bound < _EXACT_FLOAT:  # then a product of matrices is exact, in whatever order it is added up
        added = {}
        for size in np.flatnonzero(np.bincount(sizes, minlength=1)[1:]) + 1:
            alike = sizes == size
            own = sums if alike.all() else sums[alike]
            numbers = own.astype(np.float64)
            products = (numbers.T @ numbers)[left, right].astype(np.int64)
            added[int(size)] = (len(own), *own.sum(axis=0).tolist(), *products.tolist())
        return added
    # Plain Python numbers where products might not fit.
    wide = sums if bound < 1 << 63 else sums.astype(object)
    lines = np.concatenate((wide, wide[:, left] * wide[:, right]), axis=1)
    return {size: tuple(own) for size, own in added_by_size(lines, sizes).items()}


def added_by_size(lines: Ints, sizes: Ints) -> dict[int, list[int]]:
    """Lines of numbers, one a cluster, with 1 before them, added up for each size above 0."""
    order = np.argsort(sizes, kind="stable")
    values, starts = np.unique(sizes[order], return_index=True)
    if not len(values):
        return {}
    ones = np.ones((len(lines), 1), lines.dtype)
    sums = np.add.reduceat(np.concatenate((ones, lines), axis=1)[order], starts)
    return {size: own for size, own in zip(values.tolist(), sums.tolist(), strict=True) if size > 0}


@dataclass(frozen=True, slots=True)
class ClusterError:
    """How far a value would move with other clusters."""

    error: float
    """The standard error."""
    clusters: int
    freedom: float
    scored: int
    """The scored rows of all clusters."""
    yes_no: bool = False
    """Whether it is a mean of values that are all at one end of their range or at the other."""
    values: tuple[tuple[float, int], ...] = ()
    """The different values of the clusters and how many clusters have each; only where an interval needs them."""

    @property
    def over_dialogues(self) -> bool:
        """Whether some cluster has several rows."""
        return self.clusters < self.scored


def mean_error(sums: Mapping[int, Sequence[int]], unit_exponent: int, yes_no: bool = False) -> ClusterError | None:
    """Return the error of a mean from the sums of its clusters, in units of 2**-unit_exponent; None below two."""
    clusters, scored, freedom = _counted(sums)
    if clusters < 2:
        return None
    total = sum(each[1] for each in sums.values())
    squared = 0
    for size, (count, own, squares) in sums.items():
        # The squares of Y_k N - T n_k, exact: a difference of rounded sums would lose the digits that matter.
        away = squares * scored**2 - 2 * own * size * total * scored + count * (size * total) ** 2
        squared += (away << 2 * _SPARE_BITS) // (scored - size) ** 2
    root = math.isqrt(squared * (clusters - 1) // (clusters * scored**2))
    return ClusterError(float(Fraction(root, 1 << (unit_exponent + _SPARE_BITS))), clusters, freedom, scored, yes_no)


def formula_error(sums: Mapping[int, Sequence[int]], gradient: Floats) -> ClusterError | None:
    """Return the error of a formula of counts from the sums of its clusters and the formula's gradient."""
    clusters, scored, freedom = _counted(sums)
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


def _counted(sums: Mapping[int, Sequence[int]]) -> tuple[int, int, float]:
    """Return the number of clusters, the number of scored rows, and the degrees of freedom."""
    clusters = sum(each[0] for each in sums.values())
    scored = sum(size * each[0] for size, each in sums.items())
    squares = sum(size * size * each[0] for size, each in sums.items())
    return clusters, scored, max(1.0, scored * scored / squares - 1) if scored else 1.0
