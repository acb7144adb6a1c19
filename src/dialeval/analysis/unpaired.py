"""Differences between systems that are independent samples: logs of different users, weeks or channels.

Clusters are dialogues, or rows that are not part of dialogues. With s_k the sum and n_k the number of the scored rows
of cluster k, N = sum of n_k and R = (sum of s_k) / N the mean of a system:

    d_k   = (s_k - R n_k) / (N - n_k)                         what leaving out cluster k changes (jackknife)
    v     = (K - 1) / K * sum of d_k^2                        squared clustered standard error
    f     = N^2 / (sum of n_k^2) - 1, at least 1              degrees of freedom (Kish's effective number of clusters)

- Means: R_2 - R_1 -+ t sqrt(v_1 + v_2), with Welch's degrees of freedom (v_1 + v_2)^2 / (v_1^2 / f_1 + v_2^2 / f_2).
  The p-value is that of a permutation test: whole dialogues are reassigned to the two systems at random, and the
  studentized difference is computed again. Studentizing keeps the level where the logs have different sizes and
  spreads. Every reassignment is made once where there are no more than the number of trials.
- Proportions (all values at one end of the range or the other): Newcombe's interval, from the clustered Wilson
  intervals of both systems; the same permutation test.
- Corpus values: both systems are resampled independently; interval and p-value are those of the studentized bootstrap.
- Corpus values that count distinct things (distinct-n) depend on the amount of text, so that the larger log is thinned
  to as many dialogues as the smaller one (the mean of `THINNINGS` random subsets); jackknife errors of both, and
  Student's distribution with Welch's degrees of freedom.

With `strata` (post-stratification), each mean is a weighted sum of its means per stratum, with the fractions of the
strata in both logs together as weights. Strata that only one log has are left out. The error follows from the weighted
changes d_k within strata; the only cluster of a stratum has the pooled variance of the others. p is Student's with
Welch's degrees of freedom.

Papers: Welch 1947, "The Generalization of 'Student's' Problem When Several Different Population Variances Are
Involved", Biometrika; Janssen 1997, "Studentized Permutation Tests for Non-i.i.d. Hypotheses and the Generalized
Behrens-Fisher Problem", Statistics & Probability Letters; Newcombe 1998, "Interval Estimation for the Difference
Between Independent Proportions", Statistics in Medicine; Holt and Smith 1979, "Post Stratification", JRSS A; Sanders
1968, "Marine Benthic Diversity", American Naturalist (rarefaction).

Edge cases: a system with fewer than two clusters has no error, and nothing is tested. Clusters without a scored row do
not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dialeval.analysis import significance
from dialeval.analysis.difference import FEW, LEAST_WORTH, Difference, Settings, untested
from dialeval.analysis.draws import draws
from dialeval.analysis.influence import Influence, leaving_out, studentised
from dialeval.analysis.intervals import interval_of_changes, largest_of
from dialeval.analysis.values import Values, cluster_sums, metric_of
from dialeval.core.arrays import Floats, Ints, Mask
from dialeval.core.exact import Moments
from dialeval.core.fold import ANY_NUMBER, Bounds, Estimate
from dialeval.core.intervals import clustered
from dialeval.core.ragged import row_numbers
from dialeval.core.result import Result
from dialeval.core.student import t_factor, two_sided_p

THINNINGS = 50
MOST_PERMUTED = 20_000
"""With more clusters than that, Student's distribution stands in for permutations, which it equals by then."""
_CHUNK_CELLS = 1 << 21
_EQUAL = 1e-9
Strata = tuple[Sequence[str], Sequence[str]]
"""The stratum of each row of the baseline and of the system."""


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """The scored clusters of one system: sums and numbers of rows."""

    sums: Floats
    counts: Floats

    @classmethod
    def of(cls, values: Values, key: str) -> ClusterSums:
        """Sum the values of a key by cluster."""
        both = cluster_sums(values.items[key], values.rows.offsets)
        both = both[both[:, 1] > 0]
        return cls(both[:, 0], both[:, 1])

    @property
    def rows(self) -> int:
        """The number of scored rows."""
        return int(self.counts.sum())

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
        """What leaving out each cluster changes."""
        changes: Floats = (self.sums - self.mean * self.counts) / (self.counts.sum() - self.counts)
        return changes

    @property
    def spread(self) -> Spread:
        """The error of the mean."""
        return Spread.of(self.changes, self.counts) if len(self.sums) > 1 else Spread(math.nan, 1.0, len(self.sums))


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
        """Compute the jackknife variance of changes by leaving out clusters of so many rows."""
        clusters = len(changes)
        effective = float(counts.sum() ** 2 / (counts**2).sum())
        influence = Influence(0.0, changes - changes.mean(), counts)
        few = clusters < FEW or influence.worth < LEAST_WORTH or influence.few
        variance = (clusters - 1) / clusters * float((changes**2).sum())
        return cls(variance, max(1.0, effective - 1), clusters, few)


def unpaired_differences(
    baseline: str,
    system: str,
    left: Result,
    right: Result,
    keys: Sequence[str],
    settings: Settings,
    strata: Strata | None = None,
) -> Iterator[Difference]:
    """Compare two independent systems under some keys, not yet adjusted for the number of tests."""
    values = Values.of(left, keys, alone=True), Values.of(right, keys, alone=True)
    for key in keys:
        metric = metric_of(left[key])
        plain = untested(baseline, system, left[key], right[key], key)
        reason = values[0].reasons.get(key) or values[1].reasons.get(key)
        if reason is None and min(each.clusters for each in values) < 2:
            reason = "a comparison of independent systems needs at least two dialogues or rows of each"
        if reason is not None:
            yield replace(plain, reason=reason)
        elif key in values[0].items:
            bounds = ANY_NUMBER if metric is None else metric.bounds_of(key)
            yield _compare_means(plain, *values, settings, bounds, strata)
        else:
            compare = _compare_thinned if values[0].metrics[key].counts_kinds else _compare_resampled
            found = compare(plain, *values, settings)
            notes = filter(None, (found.note, "not adjusted, since it is a corpus value" if strata else None))
            yield replace(found, note="; ".join(notes) or None)


def _compare_means(
    plain: Difference,
    left: Values,
    right: Values,
    settings: Settings,
    bounds: Bounds,
    strata: Strata | None,
) -> Difference:
    key = plain.key
    samples = ClusterSums.of(left, key), ClusterSums.of(right, key)
    spreads = samples[0].spread, samples[1].spread
    if any(math.isnan(spread.variance) for spread in spreads):
        return replace(plain, reason="too little could be scored")
    found = _with_student(plain, *spreads, settings)
    ends = [
        clustered(Estimate.of_moments(Moments.of(each.items[key], _offsets(each, key)), bounds), bounds, settings.level)
        for each in (left, right)
    ]
    if all(end is not None and end[1].method == "wilson" for end in ends):
        interval = _join_intervals(plain.baseline_mean, plain.mean, *(end[0] for end in ends if end is not None))
        found = replace(found, interval=interval, interval_by="newcombe")
    if settings.test == "bootstrap":
        found = _with_bootstrap(found, *samples, settings)
    elif sum(spread.clusters for spread in spreads) <= MOST_PERMUTED:
        found = replace(found, p=_permute(*samples, settings))
    if strata is None:
        return found
    adjusted = _post_stratify(plain, left, right, settings, strata)
    return replace(adjusted, unadjusted=found.difference, unadjusted_interval=found.interval)


def _offsets(values: Values, key: str) -> Ints | None:
    return values.rows.offsets if len(values.items[key]) == values.rows.offsets[-1] else None


def _join_intervals(
    first: float, second: float, here: tuple[float, float], there: tuple[float, float]
) -> tuple[float, float]:
    """Combine the intervals of two independent values into that of their difference (Newcombe)."""
    difference = second - first
    low = math.hypot(second - there[0], here[1] - first)
    high = math.hypot(there[1] - second, first - here[0])
    return difference - low, difference + high


def _with_student(plain: Difference, here: Spread, there: Spread, settings: Settings) -> Difference:
    """Add the interval and the p-value of Student's distribution with Welch's degrees of freedom."""
    variance = here.variance + there.variance
    error, freedom = math.sqrt(variance), welch(here, there)
    half = t_factor(settings.level, freedom) * error
    scale = max(abs(plain.mean), abs(plain.baseline_mean))
    same = abs(plain.difference) <= significance.ROUNDING * scale
    p = 1.0 if same else two_sided_p(plain.difference / error, freedom) if error else 0.0
    clusters = here.clusters + there.clusters
    deviation = math.sqrt((here.clusters * here.variance + there.clusters * there.variance) / 2)
    effect = plain.difference / deviation if deviation else 0.0 if same else math.nan
    critical = t_factor(1 - settings.alpha, freedom)
    detect = settings.detect
    return replace(
        plain,
        interval=(plain.difference - half, plain.difference + half),
        interval_by="welch",
        error=error,
        p=max(p, _least_p(here, there)),
        effect=effect,
        detectable=significance.least_difference(error, max(2, round(freedom) + 1), critical),
        needed=None if detect is None else significance.needed_clusters(clusters, error, settings.alpha, detect),
        rough=here.few or there.few,
    )


def welch(*spreads: Spread) -> float:
    """Compute Welch's degrees of freedom of a sum or difference of independent values."""
    total = sum(each.variance for each in spreads)
    parts = sum(each.variance**2 / each.freedom for each in spreads)
    return max(1.0, total**2 / parts) if parts else sum(each.freedom for each in spreads)


def _least_p(here: Spread, there: Spread) -> float:
    """Return the least p-value that an exact permutation test of so many clusters can give."""
    return 2 / math.comb(here.clusters + there.clusters, here.clusters)


def _permute(left: ClusterSums, right: ClusterSums, settings: Settings) -> float:
    """Return the p-value of reassigning whole clusters to the two systems, by the studentized difference."""
    counts = np.concatenate([left.counts, right.counts])
    center = (left.sums.sum() + right.sums.sum()) / counts.sum()
    sums = np.concatenate([left.sums, right.sums]) - center * counts  # from the pooled mean, against cancellation
    lines = np.column_stack([sums, counts, sums**2, sums * counts, counts**2])
    own = np.zeros((1, len(counts)))
    own[0, len(left.sums) :] = 1
    observed = float(_studentize(own @ lines, lines, len(right.sums))[0])
    if math.isnan(observed):
        return math.nan
    beyond = trials = 0
    for chosen in reassign(len(left.sums), len(right.sums), settings.trials, settings.seed):
        found = np.abs(_studentize(chosen @ lines, lines, len(right.sums)))
        beyond += int(np.count_nonzero(found >= abs(observed) * (1 - _EQUAL)))
        trials += len(chosen)
    return (beyond + 1) / (trials + 1)


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
    flat = variance <= _EQUAL**2 * np.abs(lines[:, 2]).sum() / total[1] ** 2
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


def _with_bootstrap(found: Difference, left: ClusterSums, right: ClusterSums, settings: Settings) -> Difference:
    """Replace interval and p-value of a mean by those of independent resamples."""
    changes = []
    for number, sample in enumerate((left, right)):
        lines = np.column_stack([sample.sums, sample.counts])
        drawn = np.concatenate([each @ lines for each in draws(len(lines), settings.resamples, settings.seed + number)])
        values = {"": drawn[:, 0] / drawn[:, 1]}
        influence = {"": Influence(sample.mean, _center(sample), sample.counts / sample.counts.mean())}
        again = draws(len(lines), settings.resamples, settings.seed + number)
        changes.append((influence[""], values[""], studentised(influence, values, again)[""]))
    return _with_changes(found, changes, (len(left.sums), len(right.sums)), settings)


def _center(sample: ClusterSums) -> Floats:
    changes = (len(sample.sums) - 1) * sample.changes
    return changes - float(changes.mean())


def _compare_resampled(plain: Difference, left: Values, right: Values, settings: Settings) -> Difference:
    """Compare corpus values by resampling both systems independently."""
    key = plain.key
    changes: list[tuple[Influence, Floats, Floats]] = []
    spreads: list[Spread] = []
    for number, side in enumerate((left, right)):
        one = replace(side, items={}, metrics={key: side.metrics[key]})
        value = (plain.baseline_mean, plain.mean)[number]
        without = one.by_key(leaving_out(one.clusters), jackknife=True)[key]
        influence = Influence.of(value, without, one.counted_rows(key))
        if math.isnan(influence.error):
            return replace(plain, reason="too little could be scored")
        drawn = one.by_key(draws(one.clusters, settings.resamples, settings.seed + number))
        again = draws(one.clusters, settings.resamples, settings.seed + number)
        changes.append((influence, drawn[key], studentised({key: influence}, drawn, again)[key]))
        spreads.append(spread_of(influence, one.clusters))
    found = _with_student(plain, spreads[0], spreads[1], settings)
    return _with_changes(found, changes, (left.clusters, right.clusters), settings)


def spread_of(influence: Influence, clusters: int) -> Spread:
    """Return the spread of a corpus value from the influences of its clusters."""
    weights = influence.weights
    effective = clusters * float(weights.sum() ** 2 / (weights**2).sum()) / len(weights)
    few = clusters < FEW or influence.worth < LEAST_WORTH or influence.few
    return Spread(influence.error**2, max(1.0, effective - 1), clusters, few)


def _with_changes(
    found: Difference,
    sides: Sequence[tuple[Influence, Floats, Floats]],
    clusters: tuple[int, int],
    settings: Settings,
) -> Difference:
    """Take interval and p-value from the studentized changes of the difference in independent resamples."""
    away, errors = [], []
    for influence, drawn, changes in sides:
        moved = drawn - influence.value
        with np.errstate(divide="ignore", invalid="ignore"):
            # A studentized change is the change times the error over the resample's own error.
            ratio = np.where((changes == 0) | np.isnan(changes), 1.0, moved / changes)
        away.append(moved)
        errors.append(ratio * influence.error)
    own = np.hypot(errors[0], errors[1])
    moved = away[1] - away[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.where(own > 0, moved * found.error / own, np.where(moved == 0, 0.0, np.copysign(np.inf, moved)))
    joint = Influence(found.difference, np.array([-1.0, 1.0]) * found.error, np.ones(2))
    interval, by = interval_of_changes(joint, changes, settings.level, min(clusters))
    scale = max(abs(found.mean), abs(found.baseline_mean))
    p = max(significance.tail_p(found.difference, changes, scale), 2 / math.comb(sum(clusters), clusters[0]))
    critical = largest_of(changes, 1 - settings.alpha) / found.error if found.error else math.nan
    freedom = max(2, min(clusters))
    detectable = significance.least_difference(found.error, freedom, critical)
    return replace(found, interval=interval, interval_by=by, p=p, detectable=detectable)


def _compare_thinned(plain: Difference, left: Values, right: Values, settings: Settings) -> Difference:
    """Compare values that count distinct things at equal numbers of clusters."""
    key, sizes = plain.key, (left.clusters, right.clusters)
    least = min(sizes)
    means: list[float] = []
    spreads: list[Spread] = []
    for number, side in enumerate((left, right)):
        one = replace(side, items={}, metrics={key: side.metrics[key]})
        value = (plain.baseline_mean, plain.mean)[number]
        subset = np.arange(side.clusters)
        if side.clusters > least:
            generator = np.random.default_rng(settings.seed)
            subsets = [np.sort(generator.choice(side.clusters, least, replace=False)) for _ in range(THINNINGS)]
            taken = np.zeros((THINNINGS, side.clusters), np.int64)
            np.put_along_axis(taken, np.array(subsets), 1, axis=1)
            value, subset = float(one.by_key([taken])[key].mean()), subsets[0]
        whole_log = len(subset) == side.clusters
        without = one.by_key(_within(side.clusters, subset), jackknife=whole_log)[key]
        whole = float(one.by_key([_within_all(side.clusters, subset)])[key][0])
        influence = Influence.of(whole, without, one.counted_rows(key)[subset])
        if math.isnan(influence.error) or math.isnan(value):
            return replace(plain, reason="too little could be scored")
        means.append(value)
        spreads.append(spread_of(influence, least))
    thinned = replace(plain, baseline_mean=means[0], mean=means[1], difference=means[1] - means[0])
    found = replace(_with_student(thinned, spreads[0], spreads[1], settings), interval_by="jackknife")
    if sizes[0] == sizes[1]:
        return found
    units = f"compared at {least:,} dialogues or rows of each system"
    return replace(found, note=f"{units}, since it depends on the amount of text")


def _within_all(clusters: int, subset: Ints) -> Ints:
    counts = np.zeros((1, clusters), np.int64)
    counts[0, subset] = 1
    return counts


def _within(clusters: int, subset: Ints) -> Iterator[Ints]:
    """Yield counts that leave out a cluster, or a group of clusters, of a subset each."""
    for inner in leaving_out(len(subset)):
        counts = np.zeros((len(inner), clusters), np.int64)
        counts[:, subset] = inner
        yield counts


def _post_stratify(plain: Difference, left: Values, right: Values, settings: Settings, strata: Strata) -> Difference:
    """Compare means that are standardized to the mix of strata of both logs together."""
    key = plain.key
    sides = [_by_stratum(side, key, labels) for side, labels in zip((left, right), strata, strict=True)]
    names = [name for name in sides[0] if all(name in side and side[name][1].any() for side in sides)]
    if not names or not all(any(np.count_nonzero(side[name][1]) > 1 for name in names) for side in sides):
        return replace(plain, difference=math.nan, reason="no stratum of both logs has two dialogues of each system")
    # Per side: sums and numbers of rows, clusters by strata.
    tables = [[np.column_stack([side[name][part] for name in names]) for part in (0, 1)] for side in sides]
    used = [numbers.sum(axis=0) for _, numbers in tables]
    weights = (used[0] + used[1]) / (used[0] + used[1]).sum()
    by_stratum = [sums.sum(axis=0) / numbers.sum(axis=0) for sums, numbers in tables]
    spreads = [
        _spread_stratified(sums, numbers, means, weights)
        for (sums, numbers), means in zip(tables, by_stratum, strict=True)
    ]
    left_out = 1 - float(used[0].sum() + used[1].sum()) / max(plain.rows, 1)
    note = f"{100 * left_out:.0f}% of the rows are in strata that only one log has" if left_out > 0.005 else None
    first, second = (float(weights @ means) for means in by_stratum)
    adjusted = replace(plain, baseline_mean=first, mean=second, difference=second - first, note=note)
    return replace(_with_student(adjusted, spreads[0], spreads[1], settings), interval_by="post-stratified")


def _spread_stratified(sums: Floats, numbers: Floats, means: Floats, weights: Floats) -> Spread:
    """Return the spread of a weighted sum of the means of strata; columns are strata, lines are clusters.

    The only cluster of a stratum says nothing about its spread: it has the pooled variance of the cluster means within
    the other strata.
    """
    there = numbers > 0
    alone = there.sum(axis=0) == 1
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.where(there & ~alone, (sums - means * numbers) / (numbers.sum(axis=0) - numbers), 0.0)
        away = np.where(there, sums / numbers - means, 0.0)
    counts = numbers.sum(axis=1)
    spread = Spread.of((changes @ weights)[counts > 0], counts[counts > 0])
    pooled = float((away**2).sum()) / float((there.sum(axis=0) - 1).sum())
    variance = spread.variance + pooled * float((weights[alone] ** 2).sum())
    return replace(spread, variance=variance, freedom=max(1.0, spread.freedom - len(weights) + 1))


def _by_stratum(values: Values, key: str, labels: Sequence[str]) -> dict[str, tuple[Floats, Floats]]:
    """Sum the rows of each stratum by cluster: sums and numbers of scored rows."""
    items, offsets = values.items[key], values.rows.offsets
    if len(items) != len(labels):  # values of dialogues: a dialogue is in the stratum of its first row
        labels = [labels[at] for at in offsets[:-1].tolist()]
        clusters = np.arange(len(items))
    else:
        clusters = row_numbers(offsets)
    known: Mask = ~np.isnan(items)
    names, codes = np.unique(np.array(labels, np.str_), return_inverse=True)
    found = {}
    for code, name in enumerate(names.tolist()):
        here = known & (codes == code)
        size = len(offsets) - 1
        found[name] = (
            np.bincount(clusters[here], items[here], minlength=size).astype(np.float64),
            np.bincount(clusters[here], minlength=size).astype(np.float64),
        )
    return found
