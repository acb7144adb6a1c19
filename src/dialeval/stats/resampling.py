"""Resampling of clusters: bootstrap, permutations, jackknife, and the confidence intervals made from them.

A cluster is what was sampled as a whole: a dialogue with all its turns, or a single row that is not part of a dialogue.
A resample takes as many clusters as there are, with replacement, and is stored as how often it takes each. Equal seeds
give equal resamples for every metric and every system, which makes a comparison paired.

Influence. With T the value of K clusters and T(k) the value without cluster k (jackknife):

    u(k)  = (K - 1) (T - T(k)), less their mean     the influence of cluster k
    error = sqrt(sum of u(k)^2 / (K (K - 1)))       the standard error of T

A resample that takes cluster k c(k) times and has the value T* has a standard error of its own. With w(k) the rows of
cluster k over their mean:

    error* = sqrt(sum of c(k) (u(k) - (T* - T) w(k))^2 / (K (K - 1))) / (sum of c(k) w(k) / K)

For a mean over the rows of unequal dialogues this is the usual error of a ratio of sums; for a corpus value it is that
of its linear part, which needs no further evaluation. `studentize` returns the changes (T* - T) error / error*: how
far T* is from T, in units of the resample's own error. They vary as T does from one data set to the next, also with few
and unequal dialogues, where T* - T varies too little.

More than `GROUPS` clusters are left out, resampled and swapped in that many groups, drawn at random with a fixed seed.
That leaves the error as it is on average, and the cost of a comparison grows no faster than that of adding up rows. A
test of groups is exact where one of clusters is: it makes some of the same exchanges. With 1,000 groups the t of a 95%
interval is 0.1% larger than with any number (docs/simulations.md). Groups of neighbors would not do: where rows are
sorted, neighbors are alike.

Student's interval of a jackknifed value, on a scale g without ends (`jackknife`):

    error     the jackknife's standard error of g(T)
    freedom   the smaller of Kish's effective number of clusters and the effective number by the kurtosis of the
              influences (`Influence.effective_clusters`), less 1, at least 1
    interval  g^-1(g(T) -+ t error), t of Student's distribution
    p         that g(T) is 0: two-sided, g(T) / error

The scales are that of the value itself (strengths, which are logarithms of odds), the logarithm of the odds (scores,
which lie between 0 and 1) and Fisher's z = artanh(r) (correlations). In simulations with 10 dialogues percentiles of a
bootstrap cover 86 to 89% where these intervals cover 95 to 98% (docs/simulation-tables.md).

Papers: Efron 1982, "The Jackknife, the Bootstrap and Other Resampling Plans"; Efron and Stein 1981, "The Jackknife
Estimate of Variance", Annals of Statistics; Hall 1988, "Theoretical Comparison of Bootstrap Confidence Intervals",
Annals of Statistics; Cameron, Gelbach and Miller 2008, "Bootstrap-Based Improvements for Inference with Clustered
Errors", Review of Economics and Statistics; Cameron, Gelbach and Miller 2011, "Robust Inference with Multiway
Clustering", Journal of Business and Economic Statistics; Fisher 1915, "Frequency Distribution of the Values of the
Correlation Coefficient", Biometrika; Kish 1965, "Survey Sampling".

Edge cases: where the value cannot be computed without one of the clusters, the error is unknown (NaN), and so are
interval and p. A resample in which nothing varies has no error: its change is infinite, or 0 where it has the value
itself. A value at the end of its range (a correlation of 1, a score of 0) is taken to be 1e-12 away from it. Where no
cluster changes a value nothing is known of its spread: `jackknife` gives no interval, and p is 2 / 2^K, the least that
K clusters allow without an assumption about how they vary (`significance.least_p`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.stats.intervals import DEFAULT_LEVEL, t_factor, two_sided_p, two_sided_t
from dialeval.stats.significance import least_p

DEFAULT_RESAMPLES = 1000
DEFAULT_SEED = 12345

_CHUNK_CELLS = 1 << 21
"""Counts of one chunk of resamples: 16 MB, whatever the number of clusters."""

_KEPT_CELLS = 1 << 24
"""Draws of so many cells are kept: 16 MB of exchanges (64 MB of resamples)."""

MOST_RESAMPLES = 1_000_000
"""A limit of time: more resamples change no digit that is printed."""


def check_resampling(level: float, resamples: int) -> None:
    """Refuse settings that make no interval."""
    if not 0 < level < 1:
        raise SettingError(f"a confidence level must be between 0 and 1, such as 0.95; it is not {level}")
    if resamples < 1:
        raise SettingError(f"at least one resample is needed, not {resamples}")
    if resamples > MOST_RESAMPLES:
        raise SettingError(f"{resamples:,} resamples would take too long; {MOST_RESAMPLES:,} are the most")


def draw_resamples(clusters: int, resamples: int = DEFAULT_RESAMPLES, seed: int = DEFAULT_SEED) -> Iterator[Ints]:
    """Yield bootstrap resamples: how often each cluster is drawn, resamples by clusters, in chunks of rows."""
    yield from _draw_once(_draw_counts, clusters, resamples, seed)


def draw_swaps(clusters: int, trials: int, seed: int = DEFAULT_SEED) -> Iterator[Ints]:
    """Yield permutations: which clusters two systems swap (1) or keep (0), trials by clusters, in chunks of rows.

    Where there are no more than `trials` ways to swap some (`has_all_swaps`), these are all of them, each once; else
    they are drawn.
    """
    yield from _draw_once(_draw_bits, clusters, trials, seed)


Draw: TypeAlias = Callable[[int, int, int], Iterator[Ints]]


def _draw_once(draw: Draw, clusters: int, number: int, seed: int) -> Iterable[Ints]:
    """Return draws; few enough ones are kept for the next systems and metrics."""
    few = clusters * number <= _KEPT_CELLS
    return _keep(draw, clusters, number, seed) if few else draw(clusters, number, seed)


@lru_cache(maxsize=2)
def _keep(draw: Draw, clusters: int, number: int, seed: int) -> Sequence[Ints]:
    chunks = list(draw(clusters, number, seed))
    for chunk in chunks:
        chunk.flags.writeable = False
    return chunks


def _draw_counts(clusters: int, resamples: int, seed: int) -> Iterator[Ints]:
    generator = _seed_generator(seed)
    for rows in _split_rows(resamples, clusters):
        taken = generator.integers(clusters, size=(rows, clusters))
        taken += clusters * np.arange(rows)[:, None]
        yield np.bincount(taken.ravel(), minlength=rows * clusters).reshape(rows, clusters).astype(np.int32)


def _draw_bits(clusters: int, trials: int, seed: int) -> Iterator[Ints]:
    generator = _seed_generator(seed)
    if has_all_swaps(clusters, trials):
        first = 1  # in trial 0 nobody would exchange anything
        for rows in _split_rows(2**clusters - 1, clusters):
            yield (np.arange(first, first + rows)[:, None] >> np.arange(clusters) & 1).astype(np.int8)
            first += rows
        return
    for rows in _split_rows(trials, clusters):
        yield generator.integers(2, size=(rows, clusters), dtype=np.int32).astype(np.int8)


def _seed_generator(seed: int) -> np.random.Generator:
    if seed < 0:
        raise SettingError(f"a seed is 0 or more, not {seed}")
    return np.random.default_rng(seed)


def has_all_swaps(clusters: int, trials: int) -> bool:
    """Return whether some trials are enough for every way in which two systems may swap clusters."""
    return clusters < 63 and (1 << clusters) - 1 <= trials


def _split_rows(total: int, clusters: int) -> Iterator[int]:
    """Return the numbers of rows of the chunks."""
    step = max(1, _CHUNK_CELLS // max(clusters, 1))
    return (min(step, total - start) for start in range(0, total, step))


def percentiles(values: Floats, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
    """Return the percentile interval of resampled values; resamples without a value (NaN) are left out."""
    finite = values[~np.isnan(values)]
    if not len(finite):
        return math.nan, math.nan
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


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
        """Compute influences from the values without one cluster or group each; `rows`: scored rows of each cluster."""
        groups = len(without)
        changes = (groups - 1) * (value - without)
        changes = changes - changes.mean()
        if np.abs(without - value).max() <= _NO_SPREAD * abs(value):
            changes = np.zeros(groups)
        sizes = _sum_by_group(rows)
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
    def effective_clusters(self) -> float:
        """The effective number of clusters by the kurtosis of their influences; normal ones count fully."""
        spread = float((self.units**2).mean())
        excess = float((self.units**4).mean()) / spread**2 - 3 if spread > 0 else 0.0
        return len(self.changes) * 2 / (2 + max(excess, 0.0))

    @property
    def few(self) -> bool:
        """Whether there are too few clusters for influences as skewed as these, so that intervals may be too narrow."""
        return len(self.changes) < SKEWED * self.skewness**2


def studentize(
    influences: Mapping[str, Influence], drawn: Mapping[str, Floats], draws: Iterable[Ints]
) -> dict[str, Floats]:
    """Return the studentized changes of values in resamples, by key; `drawn` has the values, `draws` the resamples."""
    keys = [key for key in influences if key in drawn]
    if not keys:
        return {}
    sums = np.concatenate([_sum_influences(counts, [influences[key] for key in keys]) for counts in draws], axis=1)
    return {key: _studentize_changes(influences[key], drawn[key], sums[number]) for number, key in enumerate(keys)}


def _sum_influences(counts: Ints, influences: list[Influence]) -> Floats:
    """Return, by influence and resample, the means of u^2, u w, w^2 and w over the clusters taken, u in units."""
    terms = [(each.units**2, each.units * each.weights, each.weights**2, each.weights) for each in influences]
    by_cluster = np.array(terms).reshape(4 * len(influences), -1).T / counts.shape[1]
    return np.asarray((counts @ by_cluster).reshape(len(counts), len(influences), 4).transpose(1, 0, 2))


def _studentize_changes(influence: Influence, drawn: Floats, sums: Floats) -> Floats:
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


def leave_out_clusters(clusters: int) -> Iterator[Ints]:
    """Yield counts that leave out one cluster each, or a group of clusters each where there are many."""
    order, bounds = _group_clusters(clusters)
    groups = len(bounds) - 1
    for start in range(0, groups, 64):
        here = range(start, min(start + 64, groups))
        counts = np.ones((len(here), clusters), np.int64)
        for row, group in enumerate(here):
            counts[row, order[bounds[group] : bounds[group + 1]]] = 0
        yield counts


def _sum_by_group(numbers: Numbers) -> Numbers:
    """Return the sums over the clusters of each group, along the last axis."""
    order, bounds = _group_clusters(numbers.shape[-1])
    return np.add.reduceat(numbers[..., order], bounds[:-1], axis=-1)


def _group_clusters(clusters: int) -> tuple[Ints, Ints]:
    """Return the clusters in the order in which they are split into groups, and the offsets of the groups."""
    groups = min(clusters, GROUPS)
    order = np.arange(clusters) if clusters <= GROUPS else np.random.default_rng(DEFAULT_SEED).permutation(clusters)
    return order, np.arange(groups + 1) * clusters // groups


def make_curve(
    influence: Influence, changes: Floats | None, level: float, clusters: int
) -> tuple[Callable[[float], tuple[float, float]], Literal["studentized", "jackknife"]]:
    """Return the interval that a fraction of the studentized changes stay within, by level, and its method at a level.

    It is the jackknife's where there are no changes (counts of distinct things), or where too many are infinite: with
    two systems that differ in one dialogue only, a third of all resamples lack it and do not vary. At a level for which
    too many are infinite alone the interval is infinite.
    """
    known = math.inf if changes is None or math.isnan(influence.error) else absolute_quantile(changes, level)

    def curve(level: float) -> tuple[float, float]:
        half = two_sided_t(level, clusters) * influence.error
        if changes is not None and math.isfinite(known):
            half = absolute_quantile(changes, level)
        return influence.value - half, influence.value + half

    return curve, "studentized" if math.isfinite(known) else "jackknife"


def absolute_quantile(changes: Floats, level: float) -> float:
    """Return the size that a fraction `level` of some changes stay within; NaN if there are none."""
    sizes = np.sort(np.abs(changes[~np.isnan(changes)]))
    # Of n changes and the true one, each is as likely to be the largest: the rank is among n + 1.
    rank = math.ceil(level * (len(sizes) + 1)) if len(sizes) else 0
    return math.nan if not rank else float(sizes[min(rank, len(sizes)) - 1])


_AT_END = 1e-12
"""Correlations and scores are kept that far from the ends of their range, which have no place on the scale."""


class Transformation(NamedTuple):
    """Variance-stabilizing transform and its inverse (logit, Fisher z)."""

    to: Callable[[Floats], Floats]
    back: Callable[[float], float]


def _log_odds(fractions: Floats) -> Floats:
    within = np.clip(fractions, _AT_END, 1 - _AT_END)
    return np.asarray(np.log(within / (1 - within)))


PLAIN = Transformation(lambda values: values, lambda value: value)
LOG_ODDS = Transformation(_log_odds, lambda value: (1 + math.tanh(value / 2)) / 2)
FISHER = Transformation(lambda values: np.arctanh(np.clip(values, _AT_END - 1, 1 - _AT_END)), math.tanh)


class Jackknifed(NamedTuple):
    """A value on a scale, its standard error there, and the degrees of freedom of that."""

    value: float
    error: float
    freedom: float
    clusters: int
    scale: Transformation

    def interval(self, level: float) -> tuple[float, float]:
        """Return Student's interval, on the scale that the value came from."""
        if not self.error > 0:
            return math.nan, math.nan
        half = t_factor(level, self.freedom) * self.error
        return self.scale.back(self.value - half), self.scale.back(self.value + half)

    @property
    def p(self) -> float:
        """The two-sided p of the hypothesis that the value on the scale is 0."""
        if math.isnan(self.error):
            return math.nan
        if not self.error:
            return least_p(self.clusters) if self.value else 1.0
        return two_sided_p(self.value / self.error, self.freedom)

    def cross(self, other: Jackknifed, both: Jackknifed) -> Jackknifed:
        """Return the value with the error of two-way clusters; `both`: over what has both clusters in common.

        The variances of both ways are added, less the part that is in both, and are at least the larger of the two
        (Cameron, Gelbach and Miller 2011). The degrees of freedom are the smaller of the two.
        """
        one, two = self.error**2, other.error**2
        error = math.sqrt(max(one + two - both.error**2, one, two))
        return self._replace(error=error, freedom=min(self.freedom, other.freedom))


def jackknife(value: float, without: Floats, sizes: Floats, scale: Transformation = PLAIN) -> Jackknifed:
    """Return the standard error of a value over dialogues.

    Args:
        value: The value of all dialogues.
        without: The values without one dialogue or group each, in the order of `leave_out_clusters`.
        sizes: How many rows of every dialogue count.
        scale: The scale that the error is computed on.

    Returns:
        The value on the scale, its error and the degrees of freedom.
    """
    whole, parts = float(scale.to(np.array([value]))[0]), scale.to(without)
    if math.isnan(whole) or np.isnan(parts).any():
        return Jackknifed(whole, math.nan, math.nan, len(parts), scale)
    influence = Influence.of(whole, parts, sizes)
    kish = len(parts) / float((influence.weights**2).mean())
    return Jackknifed(whole, influence.error, max(min(kish, influence.effective_clusters) - 1, 1.0), len(parts), scale)
