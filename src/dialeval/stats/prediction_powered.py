"""Prediction-powered inference: mean human ratings of all rows, from ratings of some and a judge's scores of all.

With y the human rating and f the judge's score of a row, w = 1 / probability of being sampled, N rows in all:

    ratings alone   Y = sum over rated rows of w y / sum of w, in each stratum; strata weighted by their numbers of rows
    estimate        Y - lambda (f as the rated rows have it, in the same way, minus the mean of f over all N rows)

The judge corrects for sampled rows that are, by chance, easier or harder than all rows. Nothing is assumed of it: it
may be biased, and lambda = 0 gives the ratings alone. lambda is the factor that minimizes the estimated variance (power
tuning, PPI++), so that a judge that does not correlate with ratings costs next to nothing.

The estimate is linear in the rows, but for terms that vanish with more ratings. The contribution of row i is

    psi_i = (Y_h - Y + [drawn] w_i (y_i - Y_h)) / N  -  lambda (F_h - F + [drawn] w_i (f_i - F_h) - (f_i - mean f)) / N

with Y_h and F_h the means of its stratum and w scaled to add up to the rows of the stratum. Two targets, two variances:

- `dialogues`: the mean rating of other dialogues of the same kind. The psi of a dialogue are added up, and the
  variance is the sum of their squares over all dialogues of the run. For n of N independent rows it is
  s^2 / n (1 - r^2 (1 - n / N)), with r the correlation of judge and ratings.
- `run`: the mean rating of just these rows. Only the sampling is random. With T_u the sum of w (e - E_h) / N over the
  drawn rows of a unit u of the design (`human.sample`), e = y - lambda f,

      variance = sum over strata and units of (1 - p_u) (T_u - B_h)^2,   B_h = sum of (1 - p_u) T_u / sum of (1 - p_u)

  which for equal probabilities is the variance of (stratified) simple random sampling without replacement, and for
  unequal ones Hájek's approximation for designs of high entropy. With ratings of all rows it is 0.

Both are sums of squares of columns that are linear in lambda, so that lambda is a least-squares fit. Few clusters, and
unequal ones, vary less around what is fitted to them than around the truth. As in the jackknife (`core.exact`), the
contribution of a cluster is divided by the fraction of the weights that is left without it, times (m - 1) / m for m
clusters, and by 1 less its leverage in the fit of lambda: for equal clusters that is the factor m / (m - 1). Intervals
are Student's, with Kish's effective number of rated clusters as degrees of freedom, less one for each stratum and each
judge.

A difference of two systems has its own factors, one for each system, which make its own variance least: with the same
contexts for both, what is hard for both cancels already, and the factors that are best for each system might bring it
back. So a difference need not be the difference of the two estimates.

Several judges are first made into one: a linear fit of the ratings, made for each fifth of the dialogues from the other
four (cross-fitting), so that no rating is predicted by itself.

Fractions of yes/no answers, and ratings that are all equal, have no Student's interval near the ends of their range: 40
of 40 would have no width. They have that of Clopper and Pearson with an effective sample size (Korn and Graubard):

    m = p (1 - p) / error^2 (z / t)^2, at most the ratings over dialogues; at an end of the range the rated clusters
    interval from the quantiles of Beta(p m, m - p m + 1) and of Beta(p m + 1, m - p m)

and a difference of two fractions is put together from the intervals of both (MOVER), with the correlation that the
three errors imply. With fewer than 10 answers of the rarer kind no factor can be fitted to them: the judge is left out.
Where an interval contains 0, p is at least 1 - level. Other intervals do not go beyond a scale that is known.

Raters are fixed: intervals are for the mean rating by these raters. For other raters as well (`generalize_to_raters`,
from five raters on) the variance is that of two-way clusters,

    V = V(dialogues) + V(raters) - V(rows) / (ratings a row), at least the larger of the first two

with V(raters) of the jackknife that leaves out one rater with all their ratings, and V(rows) that of independent
rows; the degrees of freedom are one less than there are raters.

Effective sample size: as many ratings alone would give the same variance, n V_alone / V for `dialogues`.

Papers: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, "Prediction-powered inference", Science; Angelopoulos,
Duchi and Zrnic 2023, "PPI++: Efficient Prediction-Powered Inference"; Zrnic and Candès 2024, "Cross-prediction-powered
inference", PNAS; Fisch et al. 2024, "Stratified Prediction-Powered Inference"; Särndal, Swensson and Wretman 1992,
"Model Assisted Survey Sampling" (the difference estimator); Hájek 1981, "Sampling from a Finite Population"; Korn and
Graubard 1998, "Confidence Intervals for Proportions with Small Expected Number of Positive Counts Estimated from Survey
Data", Survey Methodology; Zou and Donner 2008, "Construction of confidence limits about effect measures", Statistics in
Medicine (MOVER); Cameron, Gelbach and Miller 2011, "Robust Inference with Multiway Clustering", Journal of Business and
Economic Statistics (raters).

Edge cases: a row that the judge cannot score has the judge's mean. A row that was drawn and not rated is taken for
missing by chance within its stratum, and a warning counts them. A stratum without any rating is an error. Ratings of
one dialogue have no interval over dialogues. Ratings that are all equal have no interval unless their scale is known,
and their p is 2 / 2^K, the least that K clusters allow without an assumption about how they vary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.stats.intervals import Bounds, incomplete_beta, t_factor, two_sided_p
from dialeval.stats.significance import least_p

Target = Literal["dialogues", "run"]
FOLDS = 5
_MOST_LEVERAGE = 0.9
"""A cluster that decides the factors all alone counts ten times, and not without end."""
_FLAT = 1e-9
"""A judge that varies less than this fraction of its size counts as constant, and so do ratings."""
RARE = 10
"""Yes/no answers of the rarer kind without which no factor is fitted."""
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class RatedSystem:
    """The rows of one system: ratings of some, scores by judges of all, and the sampling design."""

    people: Floats
    """NaN where nobody rated the row."""
    judges: Floats
    """A column per judge, NaN where it has no value."""
    probability: Floats
    """Of having been drawn; matters where a row is rated."""
    stratum: Ints
    """The number of each row's stratum."""
    unit: Ints
    """What was sampled together has the same number, also across systems."""
    dialogue: Ints
    """The number of each row's dialogue, the same for all systems."""
    answered: Mapping[int, float] = field(default_factory=dict)
    """By stratum: the fraction of sampled rows that were rated; 1 by default."""

    @property
    def rated(self) -> Ints:
        """The rows with a rating."""
        return np.flatnonzero(~np.isnan(self.people))


class RatingEstimate(Struct, frozen=True):
    """An estimate with its interval, from ratings and judge together and from ratings alone."""

    value: float
    error: float
    interval: tuple[float, float]
    alone: float
    alone_error: float
    alone_interval: tuple[float, float]
    factors: tuple[float, ...]
    """How much of the judge counts: one for each system."""
    ratings: int
    """Rated rows."""
    clusters: int
    """Dialogues (or units of the design) that have some."""
    freedom: float
    effective_ratings: float
    """How many ratings alone would give the same variance."""
    p: float
    """That the value is 0, two-sided."""


@dataclass(frozen=True, eq=False)
class _Linear:
    """The contributions of the rows of a system: to the value of ratings alone, and to the judge's correction."""

    value: float
    shifts: Floats
    columns: Floats
    """Of each row: for the value, then for each judge."""
    weights: Floats
    """Of each row in the value; 0 where it is not rated."""


@dataclass(frozen=True)
class RatingScale:
    """The ends of the scale of ratings, and whether all answers are at one of them (yes or no)."""

    bounds: Bounds
    yes_no: bool = False


def estimate_mean(
    system: RatedSystem,
    other: RatedSystem | None = None,
    target: Target = "dialogues",
    level: float = 0.95,
    scale: RatingScale | None = None,
) -> RatingEstimate:
    """Estimate the mean human rating of a system, or its difference to that of another one.

    Args:
        system: The rows of the system.
        other: The rows of the system that it is compared with.
        target: Other dialogues of the same kind, or just the rows of the run.
        level: The level of the intervals.
        scale: The scale of the ratings, where it is known.

    Returns:
        The estimate with its interval, and the one from ratings alone.
    """
    systems = [system] if other is None else [system, other]
    linear = [_linearize(each, target) for each in systems]
    if other is not None:
        linear[1] = _Linear(-linear[1].value, -linear[1].shifts, -linear[1].columns, linear[1].weights)
    columns = np.zeros((sum(len(each.columns) for each in linear), 1 + sum(len(each.shifts) for each in linear)))
    row, judge = 0, 1
    for each in linear:
        rows = slice(row, row + len(each.columns))
        columns[rows, 0], columns[rows, judge : judge + len(each.shifts)] = each.columns[:, 0], each.columns[:, 1:]
        row, judge = rows.stop, judge + len(each.shifts)
    weights = np.concatenate([each.weights for each in linear])
    group = _sum_over_dialogues if target == "dialogues" else _sum_over_units
    sums, clusters, freedom = group(systems, columns, weights)
    judged = scale is None or not scale.yes_no or all(_has_both(each, scale.bounds) for each in systems)
    alone, shifts = sum(each.value for each in linear), np.concatenate([each.shifts for each in linear])
    found = _tune(sums, alone, shifts, weights, clusters, freedom, level, target, judged)
    if target == "run" and found.ratings == len(weights):
        return found  # nothing is left open
    if other is None:
        return _keep_on_scale(found, target, level, scale)
    flat = found.alone_error <= _FLAT * max(abs(each.value) for each in linear)
    if scale is None or not (scale.yes_no or flat):
        return _without_intervals(found) if flat else found
    singles = [_sides(estimate_mean(each, None, target, level, scale)) for each in systems]
    interval, alone_interval = (_join(*each) for each in zip(_sides(found), *singles, strict=True))
    p = max(found.p, 1 - level) if interval[0] <= 0 <= interval[1] else found.p
    return replace(found, interval=interval, alone_interval=alone_interval, p=p)


_Side = tuple[float, float, tuple[float, float]]
"""A value, its standard error and its interval."""


def _sides(found: RatingEstimate) -> tuple[_Side, _Side]:
    """Return the estimate from ratings and judge together, and the one from ratings alone."""
    return (found.value, found.error, found.interval), (found.alone, found.alone_error, found.alone_interval)


def _has_both(system: RatedSystem, bounds: Bounds) -> bool:
    """Return whether there are enough answers of both kinds for a judge to be fitted to."""
    shares = (system.people[system.rated] - bounds[0]) / (bounds[1] - bounds[0])
    return min(float(shares.sum()), float((1 - shares).sum())) >= RARE


def _keep_on_scale(found: RatingEstimate, target: Target, level: float, scale: RatingScale | None) -> RatingEstimate:
    """Return the estimate of a system with intervals that hold at the ends of its scale."""
    flat = found.alone_error <= _FLAT * max(abs(found.alone), 1.0)
    if scale is None:
        return _without_intervals(found) if flat else found
    low, high = scale.bounds
    if scale.yes_no or flat:
        most = float(found.ratings) if target == "dialogues" else math.inf
        # The judge's factor makes ratings worth more than they are.
        worth = most * (found.alone_error / found.error) ** 2 if found.error > 0 else most
        ends = [
            _clopper_pearson(value, error, found.clusters, found.freedom, limit, scale.bounds, level)
            for (value, error, _), limit in zip(_sides(found), (worth, most), strict=True)
        ]
    else:
        ends = [(max(start, low), min(end, high)) for _, _, (start, end) in _sides(found)]
    return replace(found, interval=ends[0], alone_interval=ends[1])


def _without_intervals(found: RatingEstimate) -> RatingEstimate:
    """Return an estimate of ratings that are all equal, of whose spread nothing is known."""
    return replace(found, interval=(math.nan, math.nan), alone_interval=(math.nan, math.nan))


def _clopper_pearson(
    value: float, error: float, clusters: int, freedom: float, most: float, bounds: Bounds, level: float
) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson with an effective sample size of at most `most`."""
    low, width = bounds[0], bounds[1] - bounds[0]
    share = (value - low) / width
    if math.isnan(error):
        return math.nan, math.nan
    if share < _FLAT or share > 1 - _FLAT or error <= _FLAT * width:
        share, size = min(max(share, 0.0), 1.0), float(clusters)
        share = round(share) if abs(share - round(share)) < _FLAT else share
    else:
        size = min(share * (1 - share) / (error / width) ** 2, most)
        size *= (t_factor(level, math.inf) / t_factor(level, freedom)) ** 2
    yes, no, tail = share * size, (1 - share) * size, (1 - level) / 2
    start = _beta_quantile(tail, yes, no + 1) if yes > 0 else 0.0
    end = _beta_quantile(1 - tail, yes + 1, no) if no > 0 else 1.0
    return low + width * start, low + width * end


def _beta_quantile(probability: float, a: float, b: float) -> float:
    """Return the quantile of a beta distribution, by halving."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if incomplete_beta(middle, a, b) < probability else (low, middle)
    return (low + high) / 2


def _join(difference: _Side, first: _Side, second: _Side) -> tuple[float, float]:
    """Return the interval of a difference that those of the two systems imply (MOVER)."""
    value, error, _ = difference
    (one, one_error, (one_low, one_high)), (two, two_error, (two_low, two_high)) = first, second
    r = (one_error**2 + two_error**2 - error**2) / (2 * one_error * two_error) if one_error * two_error > 0 else 0.0
    r = min(max(r, 0.0), 1.0)
    below, above = max(one - one_low, 0.0), max(one_high - one, 0.0)
    other_below, other_above = max(two - two_low, 0.0), max(two_high - two, 0.0)
    down = math.sqrt(max(below**2 + other_above**2 - 2 * r * below * other_above, 0.0))
    up = math.sqrt(max(above**2 + other_below**2 - 2 * r * above * other_below, 0.0))
    return value - down, value + up


def _linearize(system: RatedSystem, target: Target) -> _Linear:
    rows, rated = len(system.people), system.rated
    if not len(rated):
        raise SettingError("no row of a system is rated")
    sizes = np.bincount(system.stratum)
    raw = 1 / system.probability[rated]
    found = np.bincount(system.stratum[rated], raw, len(sizes))
    if ((sizes > 0) & (found == 0)).any():
        raise SettingError(
            "a stratum has no rating at all, so its mean cannot be estimated; rate some of each, or use fewer strata"
        )
    weights = np.zeros(rows)
    weights[rated] = raw * (sizes / np.where(found > 0, found, 1))[system.stratum[rated]]
    judges = _fill_missing(system.judges)
    values = np.column_stack([np.where(np.isnan(system.people), 0.0, system.people), judges])
    strata = (
        np.stack([np.bincount(system.stratum, weights * column, len(sizes)) for column in values.T]).T
        / np.where(sizes > 0, sizes, 1)[:, None]
    )
    means = (strata * sizes[:, None]).sum(axis=0) / rows
    brought = weights[:, None] * (values - strata[system.stratum])
    everywhere = judges.mean(axis=0)
    if target == "dialogues":
        brought += strata[system.stratum] - means
        brought[:, 1:] -= judges - everywhere
    return _Linear(float(means[0]), means[1:] - everywhere, brought / rows, weights)


def _fill_missing(judges: Floats) -> Floats:
    """Return the values of judges, with their mean where there is none."""
    judged = ~np.isnan(judges)
    sums, counts = np.where(judged, judges, 0.0).sum(axis=0), judged.sum(axis=0)
    means = np.divide(sums, counts, out=np.zeros(judges.shape[1]), where=counts > 0)
    filled: Floats = np.where(judged, judges, means)
    flat = np.ptp(filled, axis=0) <= _FLAT * np.abs(filled).max(axis=0, initial=0.0) if len(filled) else counts == 0
    filled[:, flat] = 0.0  # and not rounding, to which a factor would be fitted
    return filled


def _sum_over_dialogues(systems: Sequence[RatedSystem], columns: Floats, weights: Floats) -> tuple[Floats, int, float]:
    """Return columns whose squares add up to the variance over dialogues, the rated clusters and degrees of freedom."""
    dialogue = np.concatenate([each.dialogue for each in systems])
    _, codes = np.unique(dialogue, return_inverse=True)
    codes = codes.ravel()
    sums = np.stack([np.bincount(codes, column) for column in columns.T]).T
    held: Floats = np.bincount(codes, weights).astype(np.float64)
    clusters = int(np.count_nonzero(held))
    strata = max(len(np.unique(each.stratum)) for each in systems)
    factor = (clusters - 1) ** 2 / (clusters * (clusters - strata)) if clusters > strata else math.nan
    return sums / _remaining_weights(held)[:, None] * math.sqrt(factor), clusters, _effective_clusters(held) - strata


def _sum_over_units(systems: Sequence[RatedSystem], columns: Floats, weights: Floats) -> tuple[Floats, int, float]:
    """Return columns whose squares add up to the variance of the draw."""
    rated = weights > 0
    unit = np.concatenate([each.unit for each in systems])[rated]
    _, firsts, codes = np.unique(unit, return_index=True, return_inverse=True)
    codes = codes.ravel()
    stratum = np.concatenate([each.stratum for each in systems])[rated][firsts]
    fractions = [each.answered.get(code, 1.0) for each in systems for code in each.stratum.tolist()]
    answered = np.array(fractions, np.float64)[rated][firsts]
    left = 1 - np.concatenate([each.probability for each in systems])[rated][firsts] * answered
    left = np.maximum(left, 0.0)
    sums = np.stack([np.bincount(codes, column) for column in columns[rated].T]).T
    held: Floats = np.bincount(codes, weights[rated]).astype(np.float64)
    made = np.zeros_like(sums)
    strata = np.unique(stratum)
    for code in strata.tolist():
        in_stratum = stratum == code
        number = int(np.count_nonzero(in_stratum))
        total = left[in_stratum].sum()
        away = sums[in_stratum] - (
            (left[in_stratum][:, None] * sums[in_stratum]).sum(axis=0) / total if total > 0 else 0.0
        )
        factor = (number - 1) / number if number > 1 else math.nan if total > 0 else 0.0
        made[in_stratum] = (np.sqrt(factor * left[in_stratum]) / _remaining_weights(held[in_stratum]))[:, None] * away
    return made, len(held), _effective_clusters(held) - len(strata)


def _remaining_weights(held: Floats) -> Floats:
    """Return the fraction of the weights that is left without each cluster; 1 where there is only one."""
    shares: Floats = 1 - held / held.sum()
    return np.where(shares > 0, shares, 1.0)


def _effective_clusters(held: Floats) -> float:
    """Return Kish's effective number of clusters."""
    return float(held.sum() ** 2 / (held**2).sum())


def generalize_to_raters(
    found: RatingEstimate,
    without: Sequence[RatingEstimate],
    rows: RatingEstimate,
    ratings_per_row: float,
    level: float = 0.95,
    bounds: Bounds | None = None,
) -> RatingEstimate:
    """Return an estimate with intervals for other raters as well, and not only for those who rated.

    Args:
        found: The estimate with the raters as they are.
        without: The estimates without one rater each.
        rows: The estimate as if every row stood alone, for what both kinds of clusters have in common.
        ratings_per_row: How many ratings a rated row has on average.
        level: The level of the intervals.
        bounds: What the intervals do not go beyond.

    Returns:
        The estimate with the error of two-way clusters, dialogues and raters.
    """
    raters = len(without)
    freedom = max(min(found.freedom, raters - 1.0), 1.0)
    low, high = (-math.inf, math.inf) if bounds is None else bounds
    errors, ends = [], []
    parts = zip(_sides(found), _sides(rows), zip(*map(_sides, without), strict=True), strict=True)
    for (value, error, _), (_, row_error, _), left in parts:
        values = np.array([each[0] for each in left])
        of_raters = (raters - 1) / raters * float(((values - values.mean()) ** 2).sum())
        own, common = error**2, row_error**2 / ratings_per_row
        errors.append(math.sqrt(max(own + of_raters - common, own, of_raters)))
        half = t_factor(level, freedom) * errors[-1]
        ends.append((max(value - half, low), min(value + half, high)))
    p = two_sided_p(abs(found.value) / errors[0], freedom) if errors[0] > 0 else found.p
    return replace(
        found,
        error=errors[0],
        interval=ends[0],
        alone_error=errors[1],
        alone_interval=ends[1],
        freedom=freedom,
        p=max(p, found.p),
    )


def _tune(
    made: Floats,
    alone: float,
    shifts: Floats,
    weights: Floats,
    clusters: int,
    freedom: float,
    level: float,
    target: Target,
    judged: bool,
) -> RatingEstimate:
    own, judges = made[:, 0], made[:, 1:]
    used = np.flatnonzero((judges**2).sum(axis=0) > 0) if judged else np.zeros(0, np.int64)
    factors = np.zeros(len(shifts))
    enough = freedom - len(used) >= 1 and not np.isnan(made).any()
    if len(used) and enough:
        scale = np.sqrt((judges[:, used] ** 2).sum(axis=0))
        fitted, *_ = np.linalg.lstsq(judges[:, used] / scale, own, rcond=1e-10)
        factors[used] = fitted / scale
    spent = len(used) if enough else 0
    held = _leverage(judges[:, used]) if spent else np.zeros(len(own))
    variance = float((((own - judges @ factors) / (1 - held)) ** 2).sum())
    alone_variance = float((own**2).sum())
    ratings = int(np.count_nonzero(weights))
    value = alone - float(factors @ shifts)
    error, alone_error = math.sqrt(variance), math.sqrt(alone_variance)
    left = max(freedom - spent, 1.0)
    half = t_factor(level, left) * error if not math.isnan(error) else math.nan
    alone_half = t_factor(level, max(freedom, 1.0)) * alone_error if not math.isnan(alone_error) else math.nan
    p = two_sided_p(abs(value) / error, left) if error > 0 else least_p(clusters) if abs(value) > _FLAT else 1.0
    p = math.nan if math.isnan(error) else p
    return RatingEstimate(
        value,
        error,
        (value - half, value + half),
        alone,
        alone_error,
        (alone - alone_half, alone + alone_half),
        tuple(factors.tolist()),
        ratings,
        clusters,
        left,
        _equivalent_ratings(ratings, len(weights), variance, alone_variance, target),
        p,
    )


def _leverage(columns: Floats) -> Floats:
    """Return the leverage of each cluster in the fit of the factors; the jackknife's error is larger by as much."""
    left, sizes, _ = np.linalg.svd(columns / np.sqrt((columns**2).sum(axis=0)), full_matrices=False)
    found: Floats = (left[:, sizes > 1e-10 * sizes[0]] ** 2).sum(axis=1)
    return np.minimum(found, _MOST_LEVERAGE)


def _equivalent_ratings(ratings: int, rows: int, variance: float, alone: float, target: Target) -> float:
    """Return how many ratings alone would give the variance; at most all rows."""
    if math.isnan(variance + alone):
        return math.nan
    if not alone:
        return float(ratings)
    if target == "dialogues":
        return min(ratings * alone / variance, float(rows)) if variance else float(rows)
    return 1 / (1 / rows + variance / alone * (1 / ratings - 1 / rows)) if ratings < rows else float(ratings)


def combine_judges(systems: Sequence[RatedSystem], seed: int) -> list[Floats]:
    """Combine several judges into one, by system: a linear fit to the ratings of other dialogues."""
    judges = np.concatenate([_fill_missing(each.judges) for each in systems])
    people = np.concatenate([each.people for each in systems])
    weights = 1 / np.concatenate([each.probability for each in systems])
    dialogue = np.concatenate([each.dialogue for each in systems])
    fold = np.random.default_rng(seed).permutation(int(dialogue.max(initial=0)) + 1)[dialogue] % FOLDS
    centered = judges - judges.mean(axis=0)
    spread = centered.std(axis=0)
    design = np.column_stack([np.ones(len(centered)), centered / np.where(spread > 0, spread, 1)])
    made = np.zeros(len(people))
    rated = ~np.isnan(people)
    for number in range(FOLDS):
        used = rated & (fold != number)
        root = np.sqrt(weights[used])
        fitted, *_ = np.linalg.lstsq(design[used] * root[:, None], people[used] * root, rcond=1e-8)
        made[fold == number] = design[fold == number] @ fitted
    ends = np.cumsum([len(each.people) for each in systems])[:-1]
    return [part[:, None] for part in np.split(made, ends)]
