"""Influence: how far each cluster moves a value, and the standard errors that follow from it.

With T the value of K clusters and T(k) the one without cluster k (jackknife):

    u(k)  = (K - 1) (T - T(k)), less their mean     the influence of cluster k
    error = sqrt(sum of u(k)^2 / (K (K - 1)))       the standard error of T

A resample that takes cluster k c(k) times and has the value T* has a standard error of its own. With w(k) the rows of
cluster k over their mean:

    error* = sqrt(sum of c(k) (u(k) - (T* - T) w(k))^2 / (K (K - 1))) / (sum of c(k) w(k) / K)

For a mean over the rows of unequal dialogues this is the usual error of a ratio of sums; for a corpus value it is that
of its linear part, which needs no further evaluation. `studentised` gives the changes (T* - T) error / error*: how far
T* is from T, measured by what the resample itself would have thought of that distance. They vary as T does from one
data set to the next, also with few and unequal dialogues, where T* - T varies too little.

More than `GROUPS` clusters are left out in that many groups, drawn at random with a fixed seed. That leaves the error
as it is on average, and its cost bounded. Groups of neighbors would not: where rows are sorted, neighbors are alike.

Papers: Efron 1982, "The Jackknife, the Bootstrap and Other Resampling Plans"; Hall 1988, "Theoretical Comparison of
Bootstrap Confidence Intervals", Annals of Statistics; Cameron, Gelbach and Miller 2008, "Bootstrap-Based Improvements
for Inference with Clustered Errors", Review of Economics and Statistics.

Edge cases: where the value cannot be computed without one of the clusters, the error is unknown (NaN). A resample in
which nothing varies has no error: its change is infinite, or 0 where it has the value itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from dialeval.analysis.draws import DEFAULT_SEED
from dialeval.core.arrays import Floats, Ints
from dialeval.core.contributions import ClusteredRows, Resamples

Numbers = TypeVar("Numbers", Floats, Ints)

GROUPS = 1000
"""The most jackknife values that are computed."""

SKEWED = 10.0
"""Fewer clusters than this times the squared skewness of their influences are few: see `Influence.few`."""

_NO_SPREAD = 1e-11
"""Values that differ by less than that, relative to their size, are equal but for rounding."""


@dataclass(frozen=True, eq=False)
class Influence:
    """The influence of every cluster, or group of clusters, on a value."""

    value: float
    changes: Floats
    """Their mean is 0."""
    weights: Floats
    """Their mean is 1."""

    @classmethod
    def of(cls, value: float, without: Floats, rows: Floats) -> Influence:
        """From the values without one cluster or group each, and how many rows of every cluster count."""
        groups = len(without)
        changes = (groups - 1) * (value - without)
        changes = changes - changes.mean()
        if np.abs(without - value).max() <= _NO_SPREAD * abs(value):
            changes = np.zeros(groups)
        sizes = _by_group(rows)
        return cls(value, changes, sizes / sizes.mean() if sizes.any() else sizes)

    @cached_property
    def largest(self) -> float:
        """The size of the largest influence."""
        return float(np.abs(self.changes).max(initial=0.0))

    @cached_property
    def units(self) -> Floats:
        """The influences in units of the largest, so that their powers are numbers whatever the size of the values."""
        return self.changes / self.largest if self.largest else self.changes

    @cached_property
    def error(self) -> float:
        """The standard error of the value; NaN if that cannot be said."""
        groups = len(self.changes)
        if groups < 2:
            return math.nan
        return self.largest * math.sqrt(float((self.units**2).sum()) / (groups * (groups - 1)))

    @cached_property
    def skewness(self) -> float:
        """The skewness of the influences; 0 if they are all equal."""
        spread = float((self.units**2).mean())
        return float((self.units**3).mean()) / spread**1.5 if spread > 0 else 0.0

    @property
    def acceleration(self) -> float:
        """How the error of the value changes with it (Efron 1987)."""
        return self.skewness / (6 * math.sqrt(len(self.changes)))

    @property
    def worth(self) -> float:
        """How many clusters of normal influences would tell their spread as well as these do, by their kurtosis."""
        spread = float((self.units**2).mean())
        excess = float((self.units**4).mean()) / spread**2 - 3 if spread > 0 else 0.0
        return len(self.changes) * 2 / (2 + max(excess, 0.0))

    @property
    def few(self) -> bool:
        """Whether there are too few clusters for influences as skewed as these, so that intervals may be too narrow."""
        return len(self.changes) < SKEWED * self.skewness**2


def studentised(
    influences: Mapping[str, Influence], drawn: Mapping[str, Floats], draws: Iterable[Ints]
) -> dict[str, Floats]:
    """The studentised changes of values in resamples, by key; `drawn` has the values, `draws` the resamples."""
    keys = [key for key in influences if key in drawn]
    if not keys:
        return {}
    sums = np.concatenate([_sums(counts, [influences[key] for key in keys]) for counts in draws], axis=1)
    return {key: _changes(influences[key], drawn[key], sums[number]) for number, key in enumerate(keys)}


def _sums(counts: Ints, influences: list[Influence]) -> Floats:
    """For each influence and resample the means of u^2, u w, w^2 and w over the clusters that are taken, u in units."""
    bounds = _bounds(counts.shape[1])
    terms = [(each.units**2, each.units * each.weights, each.weights**2, each.weights) for each in influences]
    by_group = np.array(terms).reshape(4 * len(influences), -1).T / np.diff(bounds)[:, None] / (len(bounds) - 1)
    grouped = _by_group(counts)
    added = Resamples(ClusteredRows({}, np.arange(len(bounds))), grouped).added(by_group)
    by_influence: Floats = added.reshape(len(counts), len(influences), 4).transpose(1, 0, 2)
    return by_influence


def _changes(influence: Influence, drawn: Floats, sums: Floats) -> Floats:
    away = drawn - influence.value
    squares, products, weights_squared, weights = sums.T
    moved = away / influence.largest if influence.largest else away
    terms = np.stack([squares, -2 * moved * products, moved**2 * weights_squared])
    # Where the terms cancel, what is left of them is rounding, and its root would pass for a spread.
    variances = np.where(np.abs(terms).sum(axis=0) * _NO_SPREAD < terms.sum(axis=0), terms.sum(axis=0), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample in which nothing varies, or without rows
        ratio = np.sqrt(variances / float((influence.units**2).mean())) / weights
        changes: Floats = away / ratio
    flat = ~(ratio > _NO_SPREAD)
    same = np.abs(away) <= _NO_SPREAD * np.maximum(np.abs(drawn), abs(influence.value))
    changes[flat] = np.where(same, 0.0, np.copysign(np.inf, away))[flat]
    changes[np.isnan(drawn)] = np.nan
    return changes


def leaving_out(clusters: int) -> Iterator[Ints]:
    """Yield counts that leave out one cluster each, or a group of clusters each where there are many."""
    bounds, order = _bounds(clusters), _order(clusters)
    groups = len(bounds) - 1
    for start in range(0, groups, 64):
        here = range(start, min(start + 64, groups))
        counts = np.ones((len(here), clusters), np.int64)
        for row, group in enumerate(here):
            counts[row, order[bounds[group] : bounds[group + 1]]] = 0
        yield counts


def _by_group(numbers: Numbers) -> Numbers:
    """Return the sums over the clusters of each group, along the last axis."""
    clusters = numbers.shape[-1]
    sums: Numbers = np.add.reduceat(numbers[..., _order(clusters)], _bounds(clusters)[:-1], axis=-1)
    return sums


def _order(clusters: int) -> Ints:
    """Return the clusters in the order in which they are cut into groups."""
    if clusters <= GROUPS:
        return np.arange(clusters)
    return np.random.default_rng(DEFAULT_SEED).permutation(clusters)


def _bounds(clusters: int) -> Ints:
    """Where the groups begin, and where the last one ends."""
    groups = min(clusters, GROUPS)
    bounds: Ints = np.arange(groups + 1) * clusters // groups
    return bounds
