"""Statistics of independent samples of clusters: clustered errors, Welch's t, permutation tests, post-stratification.

Clusters are dialogues, or rows that are not part of dialogues. With s_k the sum and n_k the number of the scored rows
of cluster k, N = sum of n_k and R = (sum of s_k) / N the mean of a system:

    d_k   = (s_k - R n_k) / (N - n_k)                         what leaving out cluster k changes (jackknife)
    v     = (K - 1) / K * sum of d_k^2                        squared clustered standard error
    f     = N^2 / (sum of n_k^2) - 1, at least 1              degrees of freedom (Kish's effective number of clusters)

The difference of two means has the error sqrt(v_1 + v_2) and Welch's degrees of freedom
(v_1 + v_2)^2 / (v_1^2 / f_1 + v_2^2 / f_2).

Permutation test: whole clusters are reassigned to the two systems at random, and the studentized difference is computed
again. Studentizing keeps the level where the samples have different sizes and spreads. Every reassignment is made once
where there are no more than the number of trials.

Post-stratification: each mean is a weighted sum of its means per stratum, with the fractions of the strata in both
samples together as weights. The error follows from the weighted changes d_k within strata; the only cluster of a
stratum has the pooled variance of the cluster means within the other strata.

Papers: Welch 1947, "The Generalization of 'Student's' Problem When Several Different Population Variances Are
Involved", Biometrika; Janssen 1997, "Studentized Permutation Tests for Non-i.i.d. Hypotheses and the Generalized
Behrens-Fisher Problem", Statistics & Probability Letters; Newcombe 1998, "Interval Estimation for the Difference
Between Independent Proportions", Statistics in Medicine; Holt and Smith 1979, "Post Stratification", JRSS A.

Edge cases: a system with fewer than two clusters has no error. Clusters without a scored row do not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.stats.resampling import GROUPS, Influence

FEW, LEAST_EFFECTIVE = 20, 10
"""With fewer clusters, or fewer effective clusters (`Influence.effective_clusters`), errors are rough."""
_CHUNK_CELLS = 1 << 21
_EQUAL, _ROUNDING = 1e-9, 1e-14


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """The scored clusters of one system: sums and numbers of rows."""

    sums: Floats
    counts: Floats

    @property
    def is_even(self) -> bool:
        """Whether all clusters have the same number of rows."""
        return len(self.counts) == 0 or bool((self.counts == self.counts[0]).all())

    @property
    def mean(self) -> float:
        """The mean over rows."""
        return float(self.sums.sum() / self.counts.sum()) if len(self.sums) else math.nan

    @property
    def changes(self) -> Floats:
        """Leave-one-cluster-out deviations of the mean."""
        return np.asarray((self.sums - self.mean * self.counts) / (self.counts.sum() - self.counts))

    @property
    def spread(self) -> Spread:
        """The error of the mean."""
        return Spread.of(self.changes, self.counts) if len(self.sums) > 1 else Spread(math.nan, 1.0, len(self.sums))

    def group(self) -> ClusterSums:
        """Join neighboring clusters to groups, where there are more than `GROUPS`; their order is random."""
        if len(self.sums) <= GROUPS:
            return self
        starts = np.arange(GROUPS) * len(self.sums) // GROUPS
        return ClusterSums(np.add.reduceat(self.sums, starts), np.add.reduceat(self.counts, starts))


@dataclass(frozen=True)
class Spread:
    """The squared standard error of a value, its degrees of freedom and its clusters."""

    variance: float
    freedom: float
    clusters: int
    few: bool = False
    """Whether the clusters are few for how skewed their influences are."""

    @classmethod
    def of(cls, changes: Floats, counts: Floats) -> Spread:
        """Compute the jackknife variance of changes by leaving out clusters, which have `counts` rows."""
        clusters = len(changes)
        effective = float(counts.sum() ** 2 / (counts**2).sum())
        few = is_rough(Influence(0.0, changes - changes.mean(), counts), clusters)
        variance = (clusters - 1) / clusters * float((changes**2).sum())
        return cls(variance, max(1.0, effective - 1), clusters, few)

    @classmethod
    def of_influence(cls, influence: Influence, clusters: int) -> Spread:
        """Compute the spread of a corpus value from the influences of its clusters."""
        weights = influence.weights
        effective = clusters * float(weights.sum() ** 2 / (weights**2).sum()) / len(weights)
        return cls(influence.error**2, max(1.0, effective - 1), clusters, is_rough(influence, clusters))


class Resampled(NamedTuple):
    """A value in bootstrap resamples."""

    influence: Influence
    values: Floats
    changes: Floats
    """The studentized changes."""


def is_rough(influence: Influence, clusters: int) -> bool:
    """Return whether clusters are few, or few for how skewed or unequal their influences are."""
    return clusters < FEW or influence.effective_clusters < LEAST_EFFECTIVE or influence.few


def welch(*spreads: Spread) -> float:
    """Compute Welch's degrees of freedom of a sum or difference of independent values."""
    total = sum(each.variance for each in spreads)
    parts = sum(each.variance**2 / each.freedom for each in spreads)
    return max(1.0, total**2 / parts) if parts else sum(each.freedom for each in spreads)


def newcombe(first: float, second: float, here: tuple[float, float], there: tuple[float, float]) -> tuple[float, float]:
    """Combine the intervals of two independent values into that of their difference."""
    difference = second - first
    low = math.hypot(second - there[0], here[1] - first)
    high = math.hypot(there[1] - second, first - here[0])
    return difference - low, difference + high


def join_changes(left: Resampled, right: Resampled, error: float) -> Floats:
    """Return the studentized changes of a difference with this error in independent resamples of both systems."""
    away, errors = [], []
    for influence, values, changes in (left, right):
        moved = values - influence.value
        with np.errstate(divide="ignore", invalid="ignore"):
            # A studentized change is the change times the error over the resample's own error.
            ratio = np.where((changes == 0) | np.isnan(changes), 1.0, moved / changes)
        away.append(moved)
        errors.append(ratio * influence.error)
    own, moved = np.hypot(errors[0], errors[1]), away[1] - away[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(own > 0, moved * error / own, np.where(moved == 0, 0.0, np.copysign(np.inf, moved)))


def rank_first(drawn: Floats) -> float:
    """Return the p-value of the first of some differences among all of them."""
    sizes = np.abs(drawn)
    return math.nan if math.isnan(sizes[0]) else float(np.mean(sizes >= sizes[0] * (1 - _EQUAL)))


def permute(left: ClusterSums, right: ClusterSums, trials: int, seed: int) -> Floats:
    """Return the studentized difference, then those after reassigning whole clusters to the two systems."""
    counts = np.concatenate([left.counts, right.counts])
    center = (left.sums.sum() + right.sums.sum()) / counts.sum()
    sums = np.concatenate([left.sums, right.sums]) - center * counts  # from the pooled mean, against cancellation
    lines = np.column_stack([sums, counts, sums**2, sums * counts, counts**2])
    totals = np.zeros((1, len(counts)))
    totals[0, len(left.sums) :] = 1
    draws = (totals, *reassign(len(left.sums), len(right.sums), trials, seed))
    return np.concatenate([_studentize(chosen @ lines, lines, len(right.sums)) for chosen in draws])


def _studentize(chosen: Floats, lines: Floats, clusters: int) -> Floats:
    """Return the difference over its error where the sums of `chosen` are those of the second system."""
    total = lines.sum(axis=0)
    means, variances = [], []
    for sums, size in ((total - chosen, len(lines) - clusters), (chosen, clusters)):
        value = sums[:, 0] / sums[:, 1]
        squares = sums[:, 2] - 2 * value * sums[:, 3] + value**2 * sums[:, 4]
        means.append(value)
        variances.append(np.maximum(squares, 0.0) * size / (size - 1) / sums[:, 1] ** 2)
    variance = variances[0] + variances[1]
    # What is left of squares that cancel is rounding.
    flat = variance <= _ROUNDING * total[2] / total[1] ** 2
    difference = means[1] - means[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        studentized = np.where(flat, np.copysign(np.inf, difference), difference / np.sqrt(variance))
    scale = np.abs(lines[:, 0]).sum() / total[1]
    return np.where(np.abs(difference) <= _EQUAL * scale, 0.0, studentized)


def reassign(left: int, right: int, trials: int, seed: int) -> Iterator[Floats]:
    """Yield which clusters are the second system's (1), a line per trial; every way once where there are few."""
    clusters = left + right
    if clusters < 60 and math.comb(clusters, right) - 1 <= trials:
        ways = list(combinations(range(clusters), right))[:-1]  # the last one is what was observed
        chosen = np.zeros((len(ways), clusters))
        np.put_along_axis(chosen, np.array(ways, np.int64).reshape(len(ways), right), 1.0, axis=1)
        yield chosen
        return
    generator = np.random.default_rng(seed)
    step = max(1, _CHUNK_CELLS // clusters)
    for start in range(0, trials, step):
        keys = generator.random((min(step, trials - start), clusters))
        cuts = np.partition(keys, right - 1, axis=1)[:, right - 1 : right]
        yield (keys <= cuts).astype(np.float64)


def sum_by_stratum(items: Floats, labels: Sequence[str], clusters: Ints, size: int) -> dict[str, tuple[Floats, Floats]]:
    """Sum the scored rows of each stratum by cluster: sums and numbers of rows."""
    known = ~np.isnan(items)
    names, codes = np.unique(np.array(labels, np.str_), return_inverse=True)
    moments = {}
    for code, name in enumerate(names.tolist()):
        here = known & (codes == code)
        sums, numbers = (np.bincount(clusters[here], part, size) for part in (items[here], None))
        moments[name] = sums.astype(np.float64), numbers.astype(np.float64)
    return moments


def spread_stratified(sums: Floats, numbers: Floats, means: Floats, weights: Floats) -> Spread:
    """Return the spread of a weighted sum of the means of strata; columns are strata, lines are clusters."""
    present = numbers > 0
    alone = present.sum(axis=0) == 1
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.where(present & ~alone, (sums - means * numbers) / (numbers.sum(axis=0) - numbers), 0.0)
        away = np.where(present, sums / numbers - means, 0.0)
    counts = numbers.sum(axis=1)
    spread = Spread.of((changes @ weights)[counts > 0], counts[counts > 0])
    pooled = float((away**2).sum()) / float((present.sum(axis=0) - 1).sum())
    variance = spread.variance + pooled * float((weights[alone] ** 2).sum())
    return replace(spread, variance=variance, freedom=max(1.0, spread.freedom - len(weights) + 1))


def mix_p(counts: Floats, first: int, trials: int, seed: int) -> float:
    """Return the p-value of different distributions of labels in two samples, reassigning whole clusters.

    Args:
        counts: How often each label (column) occurs in each cluster (line), the first sample above the second.
        first: The number of clusters of the first sample.
        trials: Reassignments.
        seed: Of the reassignments.
    """
    counts = np.concatenate([part[np.lexsort(part.T)] for part in np.split(counts, [first])])
    totals = np.zeros((1, len(counts)))
    totals[0, first:] = 1
    observed = _mix_distances(totals, counts)[0]
    chunks = reassign(first, len(counts) - first, trials, seed)
    drawn = np.concatenate([_mix_distances(each, counts) for each in chunks])
    return float((1 + np.count_nonzero(drawn >= observed - 1e-12)) / (1 + len(drawn)))


def _mix_distances(chosen: Floats, counts: Floats) -> Floats:
    """Return the sum of the absolute differences of the fractions of labels, for each choice of clusters."""
    second = chosen @ counts
    first = counts.sum(axis=0) - second
    with np.errstate(invalid="ignore"):
        apart = np.abs(second / second.sum(axis=1, keepdims=True) - first / first.sum(axis=1, keepdims=True))
    return np.asarray(np.nan_to_num(apart.sum(axis=1)))
