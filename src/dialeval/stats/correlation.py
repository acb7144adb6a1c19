"""Correlation of two columns: Pearson's r, Spearman's rho (midranks) and Kendall's tau-b, and all of them resampled.

`Points` are pairs of values, each in a cluster (a dialogue, or a system). A resample draws whole clusters (`draws`), so
that replies to one context, or turns of one dialogue, are not taken for independent of each other.

    tau-b = (concordant - discordant) / sqrt((pairs - ties of the first) * (pairs - ties of the second))

A constant column has no correlation: NaN. It counts as constant where its spread is below 1e-12 of its size, so that no
correlation is made of rounding errors.

`measure_ceiling`: how far people agree with each other about what a metric is to predict.

- Krippendorff's alpha of the annotators' values: nominal, ordinal and interval, with an interval (jackknife).
- The ceiling: the highest expected Pearson correlation of anything with the mean ratings y of some points, which is the
  square root of their reliability

      reliability = 1 - error / variance of y,    error = s^2 * mean over points of (sum of 1 / k_i) / n^2

  where a point is the mean of n responses with k_i annotators each and s^2 is the variance of single values around the
  mean of their response (pooled). With one response per point and k annotators each this is ICC(1, k) of Shrout and
  Fleiss. Where the same named annotators rated every response, their means are subtracted first, since a strict
  annotator changes no correlation: ICC(3, k), which is Cronbach's alpha.

Responses with fewer than two annotators say nothing about agreement. Where there are none with more (a mean, a majority
and a single label are one value each), there is no ceiling, and `reason` says so.

Papers: Shrout and Fleiss 1979, "Intraclass Correlations: Uses in Assessing Rater Reliability", Psychological Bulletin;
Spearman 1904, "The Proof and Measurement of Association between Two Things" (attenuation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from msgspec import Struct

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.core.kernels import kernel
from dialeval.stats.intervals import DEFAULT_LEVEL
from dialeval.stats.resampling import FISHER, jackknife, leave_out_clusters

# Kernel: Spearman's rho and Kendall's tau-b of many resamples, each in one walk along the sorted first column.
#
# A resample takes point `i` as often as its cluster is drawn, which makes it a weight; a point that is drawn twice is
# tied with itself, as it would be if it stood there twice. Points come sorted by the first column, in groups of equal
# values; values of the second column are numbered upwards from 0. Ranks are midranks. Pairs are counted by a Fenwick
# tree over the second column (Knight 1966 does it by merge sort): it holds the points of smaller first value.
#
# Scratch comes from the caller: `weights` per point, `tree`, `level_weights` and `level_ranks` per value of the second
# column.


@kernel
def _count_weights(counts, clusters, levels, weights, tree, level_weights):  # type: ignore[no-untyped-def]
    """Fill in the weights of points and of values of the second column, and return their sum."""
    for level in range(level_weights.shape[0]):
        tree[level] = level_weights[level] = 0
    total = 0
    for point in range(clusters.shape[0]):
        weight = counts[clusters[point]]
        weights[point] = weight
        level_weights[levels[point]] += weight
        total += weight
    return total


@kernel
def _rank(total, level_weights, level_ranks):  # type: ignore[no-untyped-def]
    """Fill in centered midranks of the values of the second column; return their sum of squares and the tied pairs."""
    below = ties = 0
    squares = 0.0
    for level in range(level_weights.shape[0]):
        weight = level_weights[level]
        rank = below + 0.5 * (weight - total)  # the midrank less (total + 1) / 2
        level_ranks[level] = rank
        squares += weight * rank * rank
        ties += weight * (weight - 1) // 2
        below += weight
    return squares, ties


@kernel
def _count_order(start, stop, levels, weights, tree, level_weights, taken):  # type: ignore[no-untyped-def]
    """Return concordant minus discordant pairs of a group with all points before it, and add the group to the tree."""
    size = tree.shape[0]  # place 0 is not used, and nothing lies above the last value
    score = 0
    for point in range(start, stop):
        weight = weights[point]
        if weight == 0:
            continue
        below = 0
        place = levels[point]  # 1-based: everything up to the value before this one
        while place > 0:
            below += tree[place]
            place -= place & -place
        score += weight * (2 * below + level_weights[levels[point]] - taken)
    for point in range(start, stop):
        weight = weights[point]
        if weight == 0:
            continue
        level_weights[levels[point]] += weight
        place = levels[point] + 1
        while place < size:
            tree[place] += weight
            place += place & -place
    return score


@kernel(
    "(i4[:, ::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], f8[::1], f8[::1])",
    "(i8[:, ::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], f8[::1], f8[::1])",
)
def rank_correlations(counts, clusters, groups, levels, weights, tree, level_weights, level_ranks, rho, tau):  # type: ignore[no-untyped-def]
    """Fill `rho` and `tau` with a value per resample, a row of `counts` each; NaN where a column is constant.

    Group `g` of the first column is the points `groups[g]` to `groups[g + 1]`.
    """
    for resample in range(counts.shape[0]):
        total = _count_weights(counts[resample], clusters, levels, weights, tree, level_weights)
        second, second_ties = _rank(total, level_weights, level_ranks)
        for level in range(level_weights.shape[0]):
            level_weights[level] = 0  # from here on: of the points that were taken in
        first = product = 0.0
        below = first_ties = score = 0
        for group in range(groups.shape[0] - 1):
            start, stop = groups[group], groups[group + 1]
            weight = 0
            ranks = 0.0
            for point in range(start, stop):
                weight += weights[point]
                ranks += weights[point] * level_ranks[levels[point]]
            if weight == 0:
                continue
            rank = below + 0.5 * (weight - total)
            first += weight * rank * rank
            product += rank * ranks
            first_ties += weight * (weight - 1) // 2
            score += _count_order(start, stop, levels, weights, tree, level_weights, below)
            below += weight
        pairs = total * (total - 1) // 2
        free = float(pairs - first_ties) * float(pairs - second_ties)
        rho[resample] = product / np.sqrt(first * second) if first * second > 0 else np.nan
        tau[resample] = score / np.sqrt(free) if free > 0 else np.nan


# Krippendorff's alpha: how far annotators agree beyond chance.
#
#     alpha = 1 - (n - 1) * sum_ck o_ck d_ck / sum_ck n_c n_k d_ck
#
# over the coincidences o_ck of two values in one unit (a turn, a reply), the totals n_c of values, and a distance
# d_ck: 1 between any two values (nominal), the number of values between them, squared (ordinal), or their squared
# difference (interval). Units with fewer than two annotators say nothing about agreement and are left out; any others
# may have any number of them.
#
# Paper: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability". The package `krippendorff` computes the same
# and is the oracle of the tests; as a dependency of every installation it would cost more than these lines.

Distance = Literal["nominal", "ordinal", "interval"]


def compute_krippendorff_alpha(counts: Floats, distance: Distance = "nominal", values: Floats | None = None) -> float:
    """Compute Krippendorff's alpha, the agreement of annotators beyond chance.

    Args:
        counts: How many annotators gave each value: a row per unit, a column per value, in ascending order.
        distance: `"nominal"`, `"ordinal"` or `"interval"`.
        values: The values themselves, for the interval distance; None: 0, 1, 2 and so on.

    Returns:
        1 for perfect agreement, 0 for chance; NaN where all values are the same.

    Raises:
        SettingError: The distance does not exist.

    Examples:
        >>> import numpy as np
        >>> from dialeval.breakdown import compute_krippendorff_alpha
        >>> round(compute_krippendorff_alpha(np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])), 3)
        0.444
    """
    units = counts[counts.sum(axis=1) >= 2]
    return float(compute_alpha(count_coincidences(units), units.sum(axis=0), distance, values))


def count_coincidences(units: Floats) -> Floats:
    """Return how often two values are in one unit: a row per value, a column per value."""
    shares = units / (units.sum(axis=1) - 1)[:, None]
    return np.asarray(shares.T @ units - np.diag(shares.sum(axis=0)))


def compute_alpha(together: Floats, totals: Floats, distance: Distance, values: Floats | None = None) -> Floats:
    """Compute alpha from coincidences, the last two axes, and totals of values, the last axis."""
    apart = 1 - np.eye(totals.shape[-1])
    if distance != "nominal":
        places = np.arange(totals.shape[-1], dtype=np.float64) if values is None else values
        if distance == "ordinal":
            # The values up to and with one, each end counted half: |difference| is what lies between the two.
            places = np.cumsum(totals, axis=-1) - totals / 2
        elif distance != "interval":
            raise SettingError(f"alpha is nominal, ordinal or interval, not {distance!r}")
        apart = (places[..., :, None] - places[..., None, :]) ** 2
    by_chance = (totals[..., :, None] * totals[..., None, :] * apart).sum(axis=(-2, -1))
    observed = (together * apart).sum(axis=(-2, -1))
    return np.asarray(1 - (totals.sum(axis=-1) - 1) * observed / np.where(by_chance, by_chance, np.nan))


NAMES = ("pearson", "spearman", "kendall")

FEWEST_POINTS = 3
"""Two points always lie on a line."""

_NO_SPREAD = 1e-12


@dataclass(frozen=True, eq=False)
class Points:
    """Pairs of values and the cluster of each."""

    first: Floats
    second: Floats
    clusters: Ints

    def __len__(self) -> int:
        return len(self.first)

    def correlate(self) -> Floats:
        """Return the three coefficients of the points as they are."""
        once = np.ones((1, int(self.clusters.max(initial=-1)) + 1), np.int64)
        return np.asarray(self.correlate_resamples(once)[0])

    def correlate_resamples(self, counts: Ints) -> Floats:
        """Return the three coefficients of each resample, a row each; `counts`: how often it takes each cluster."""
        rho, tau = _resample_rank_correlations(self, counts)
        return np.column_stack((_resample_pearson(self, counts), rho, tau))


def pearson(first: Floats, second: Floats) -> float:
    """Return Pearson's r; NaN where a column is constant."""
    if not len(first) or _is_constant(first) or _is_constant(second):
        return math.nan
    one, other = first - first.mean(), second - second.mean()
    return max(-1.0, min(1.0, float(one @ other / math.sqrt(float(one @ one) * float(other @ other)))))


def _is_constant(column: Floats) -> bool:
    spread = float(np.ptp(column)) if len(column) else 0.0
    return spread <= _NO_SPREAD * float(np.abs(column).max(initial=0))


def scale_to_unit(column: Floats) -> Floats:
    """Return the values divided by a power of two, so that they lie within -1 and 1.

    No correlation changes by that, and no square of a value is too large or too small to be a number.
    """
    return np.ldexp(column, -int(np.frexp(np.abs(column).max(initial=0.0))[1]))


def _resample_pearson(points: Points, counts: Ints) -> Floats:
    """Compute r from sums per cluster: what a resample needs of them is one product of matrices."""
    if not len(points) or _is_constant(points.first) or _is_constant(points.second):
        return np.full(len(counts), np.nan)
    # Standardized before, so that sums of squares lose no digits.
    x, y = (standardize(column) for column in (points.first, points.second))
    terms = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    clusters = counts.shape[1]
    sums = np.column_stack([np.bincount(points.clusters, term, minlength=clusters) for term in terms])
    n, sx, sy, sxx, syy, sxy = (counts.astype(np.float64) @ sums).T
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample may be empty or constant
        free_x, free_y = sxx - sx * sx / n, syy - sy * sy / n
        r = (sxy - sx * sy / n) / np.sqrt(free_x * free_y)
        r[(free_x <= _NO_SPREAD * sxx) | (free_y <= _NO_SPREAD * syy)] = np.nan
    return np.asarray(np.clip(r, -1, 1))


def standardize(column: Floats) -> Floats:
    """Return the values with mean 0 and standard deviation 1; the column is not constant."""
    centered: Floats = column - column.mean()
    centered /= math.sqrt(float(centered @ centered) / len(column))
    return centered


def _resample_rank_correlations(points: Points, counts: Ints) -> tuple[Floats, Floats]:
    order = np.argsort(points.first, kind="stable")
    first = points.first[order]
    groups = np.append(np.flatnonzero(np.diff(first, prepend=np.nan)), len(first)).astype(np.int64)
    distinct, levels = np.unique(points.second[order], return_inverse=True)
    rho, tau = np.empty(len(counts)), np.empty(len(counts))
    weights = np.empty(len(first), np.int64)
    tree, level_weights = np.empty((2, len(distinct)), np.int64)
    ranks = np.empty(len(distinct))
    scratch = (weights, tree, level_weights, ranks)
    rank_correlations(counts, points.clusters[order], groups, levels.astype(np.int64), *scratch, rho, tau)
    return rho, tau


def kurtosis(column: Floats) -> float:
    """Return the fourth moment over the squared variance: 3 for normal values, more with heavy tails; NaN for none."""
    if _is_constant(column):
        return math.nan
    return float((standardize(column) ** 4).mean())


DISTANCES: tuple[Distance, ...] = ("nominal", "ordinal", "interval")


MOST_VALUES = 100
"""Distinct values above which alpha has no interval: on a continuous scale it would take minutes."""


class Ceiling(Struct, frozen=True):
    """The agreement of annotators; NaN where it is not defined."""

    n: int
    """Responses with two annotators or more."""
    annotators: tuple[int, int]
    """The fewest and the most annotators of such a response."""
    alpha: dict[str, float] = {}
    alpha_interval: dict[str, tuple[float, float]] = {}
    highest: dict[str, float] = {}
    """By level: the square root of the reliability of the mean ratings, the highest expected Pearson correlation."""
    highest_interval: dict[str, tuple[float, float]] = {}
    reason: str | None = None


def measure_ceiling(
    annotations: Sequence[Floats], clusters: Ints | None = None, confidence: float = DEFAULT_LEVEL
) -> Ceiling:
    """Compute the agreement of the annotators of a quality, one array of values per response.

    Args:
        annotations: The values of each response.
        clusters: The cluster (dialogue) of each response; None: every response is one.
        confidence: The confidence level of the intervals.
    """
    places = [place for place, values in enumerate(annotations) if len(values) > 1]
    several = [annotations[place] for place in places]
    if not several:
        return Ceiling(0, (0, 0), reason="no response has the values of two annotators or more")
    sizes = [len(values) for values in several]
    distinct, codes = np.unique(np.concatenate(several), return_inverse=True)
    counts = np.zeros((len(several), len(distinct)))
    np.add.at(counts, (np.repeat(np.arange(len(several)), sizes), codes), 1)
    _, cluster = np.unique(places if clusters is None else clusters[places], return_inverse=True)
    together, totals = count_coincidences(counts), counts.sum(axis=0)
    without: list[list[float]] = []
    parts = leave_out_clusters(int(cluster.max()) + 1) if len(distinct) <= MOST_VALUES else ()
    for kept in (row[cluster.ravel()] for part in parts for row in part):
        left = counts[kept == 0]
        rest = together - count_coincidences(left), totals - left.sum(axis=0)
        without.append([float(compute_alpha(*rest, distance, distinct)) for distance in DISTANCES])
    alpha: dict[str, float] = {
        distance: compute_krippendorff_alpha(counts, distance, distinct) for distance in DISTANCES
    }
    held = np.bincount(cluster.ravel()).astype(np.float64)
    intervals: dict[str, tuple[float, float]] = {
        distance: jackknife(alpha[distance], column, held, FISHER).interval(confidence)
        for distance, column in zip(DISTANCES, np.array(without or [[math.nan] * 3]).T, strict=True)
    }
    return Ceiling(len(several), (min(sizes), max(sizes)), alpha, intervals)


def measure_highest_correlation(
    annotations: Sequence[Floats], groups: Ints, clusters: Ints, same_raters: bool, confidence: float = DEFAULT_LEVEL
) -> tuple[float, tuple[float, float]]:
    """Return the highest expected Pearson correlation with mean ratings, and its interval.

    Args:
        annotations: The values of each response, two or more.
        groups: The number of the point that each response belongs to, from 0 on.
        clusters: The cluster of each point.
        same_raters: Whether the same raters rated every response, in one order.
        confidence: The confidence level of the interval.
    """
    k = np.array([len(values) for values in annotations], np.float64)
    means, spent = np.array([values.mean() for values in annotations]), k - 1
    if same_raters:
        offsets = np.mean(np.stack(annotations), axis=0)
        annotations = [values - offsets for values in annotations]
        spent = spent * (1 - 1 / len(k))
    squares = np.array([float(((values - values.mean()) ** 2).sum()) for values in annotations])
    n = np.bincount(groups).astype(np.float64)
    y = np.bincount(groups, means - means.mean()) / n
    of_rows = (squares, spent, 1 / (k * n[groups] ** 2))
    terms = [np.ones(len(n)), y, y * y, *(np.bincount(groups, each) for each in of_rows)]
    codes = np.unique(clusters, return_inverse=True)[1].ravel()
    held = np.bincount(codes).astype(np.float64)
    sums = np.column_stack([np.bincount(codes, term) for term in terms])

    def find_reliability(counts: Ints) -> Floats:
        points, total, square, within, freedom, weight = (counts @ sums).T
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = (square - total * total / points) / (points - 1)
            return np.asarray(1 - within / freedom * weight / points / variance)

    whole = float(find_reliability(np.ones((1, len(held)), np.int64))[0])
    without = np.concatenate([find_reliability(counts) for counts in leave_out_clusters(len(held))])
    low, high = jackknife(whole, without, held, FISHER).interval(confidence)
    root = [math.sqrt(max(each, 0.0)) if not math.isnan(each) else each for each in (whole, low, high)]
    return root[0], (root[1], root[2])
