"""Significance tests of the difference of two systems, Holm's correction, and power.

All work on clusters: dialogues, or single rows that are not part of one. With d the difference of two values:

- approximate randomization (permutation) test: dialogues are swapped between the systems, each with probability one
  half; p = (trials with |d'| >= |d|, plus 1) / (trials + 1). Where there are no more ways to swap dialogues than
  trials, every way is tried once and p is exact.
- bootstrap, of corpus values of independent systems: both are computed again in resamples; p = (resamples whose
  studentized change (`resampling`) is at least |d|, plus 1) / (resamples + 1), two-sided. Without studentizing,
  resamples of ten dialogues vary so little that a test would reject in 9 to 15% of cases without a difference, at 5%.
- Holm: with m tests, the smallest p is multiplied by m, the next by m - 1, and so on, never below one before it.
- Westfall-Young: as Holm, but instead of m times the smallest p, the probability that the permutations give any of the
  m tests so small a p. Metrics of the same dialogues are correlated, so that it is less than m times as likely.
- power: a difference D is detected if (d / error) is beyond the critical value t. d / error is (Z + D / sigma) / U,
  with Z normal, U^2 a chi-square over its K - 1 degrees of freedom, and sigma the true standard error, of which the
  data gives an estimate sigma V, V like U. So D = c error is detected with

      power(c) = P(|Z + c V| > t U)

  and the minimum detectable difference has the c for which that is 80%. With many dialogues c is 1.96 + 0.84; with
  eight, 3.7. As many dialogues are needed for another difference as bring its power to 80%.

Papers: Noreen 1989, "Computer-Intensive Methods for Testing Hypotheses"; Riezler and Maxwell 2005, "On Some Pitfalls
in Automatic Evaluation and Significance Testing for MT", ACL workshop; Holm 1979, "A Simple Sequentially Rejective
Multiple Test Procedure", Scandinavian Journal of Statistics; Westfall and Young 1993, "Resampling-Based Multiple
Testing"; Julious and Owen 2006, "Sample size calculations for
clinical studies allowing for uncertainty about the variance", Pharmaceutical Statistics.

Edge cases: a trial or resample without a value is left out. Systems that are equal in every row have p = 1. Where
no dialogue changes a difference its p is the least there is.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence, Set
from functools import lru_cache
from itertools import combinations_with_replacement
from string import ascii_lowercase

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.stats.intervals import two_sided_p, two_sided_t

POWER = 0.8
"""The power of minimum detectable differences and of numbers of dialogues."""

MOST_CLUSTERS = 10**9
"""No larger number is searched."""

_TAIL, _STEPS, _HALVINGS = 6.0, 40, 30
"""The grid of relative errors: its half width in standard deviations, and its steps; then the halvings of a search."""

_EXACT = 1000
"""Above so many, a sign test is that of the normal distribution."""
_EQUAL = 1e-9
"""Permuted differences that are equal but for that, relative to their size, count as equal."""
ROUNDING = 1e-11
"""Differences that are equal but for rounding count as equal, relative to the values that they are made of."""


def tail_p(difference: float, by_chance: Floats, scale: float) -> float:
    """Return the p-value of a difference from permuted or resampled ones; `scale`: the size of the compared values."""
    sizes = np.abs(by_chance[~np.isnan(by_chance)])
    if math.isnan(difference) or not len(sizes):
        return math.nan
    beyond = np.count_nonzero(sizes >= abs(difference) - ROUNDING * scale)
    return (int(beyond) + 1) / (len(sizes) + 1)


def student_p(difference: float, error: float, clusters: int, scale: float) -> float:
    """Return Student's p-value of a difference with its standard error over `clusters` clusters."""
    if abs(difference) <= ROUNDING * scale:
        return 1.0
    return two_sided_p(difference / error, clusters - 1) if error else 0.0


def least_p(clusters: int) -> float:
    """Return the least p-value of an exact test over `clusters` clusters: all of them on one side."""
    return 2.0 ** (1 - clusters)


def holm(ps: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-value of each test of a family; NaN (no test) stays NaN and does not count."""
    order = [at for at in np.argsort(ps, kind="stable").tolist() if not math.isnan(ps[at])]
    adjusted, largest = [math.nan] * len(ps), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * ps[at]))
        adjusted[at] = largest
    return adjusted


def westfall_young(ps: Sequence[float], draws: Sequence[tuple[Hashable, Floats] | None]) -> list[float]:
    """Return the adjusted p-value of each test of a family; NaN (no test) stays NaN and does not count.

    `draws`: for a test whose differences were permuted, the name of the permutations and the differences, the observed
    one first; None for another test. What is adjusted is the least p-value that a permutation gives to any test that
    is not rejected before (step-down minP). The probabilities of tests that share no permutations are added up, so that
    without permutations this is Holm's method.
    """
    order = [at for at in np.argsort(ps, kind="stable").tolist() if not math.isnan(ps[at])]
    least: dict[Hashable, Floats] = {}
    adjusted, alone = [math.nan] * len(ps), 0
    for at in reversed(order):
        drawn = draws[at]
        if drawn is None:
            alone += 1
        else:
            own = _rank_sizes(drawn[1])
            least[drawn[0]] = np.minimum(least.get(drawn[0], own), own)
        reached = sum(float(np.mean(each <= ps[at] * (1 + ROUNDING))) for each in least.values())
        adjusted[at] = min(1.0, max(ps[at], reached + alone * ps[at]))
    largest = 0.0
    for at in order:
        largest = adjusted[at] = max(largest, adjusted[at])
    return adjusted


def _rank_sizes(differences: Floats) -> Floats:
    """Return the p-value of each of some permuted differences among all of them."""
    sizes = np.nan_to_num(np.abs(differences), nan=-1.0)
    beyond = len(sizes) - np.searchsorted(np.sort(sizes), sizes * (1 - _EQUAL), "left")
    return np.asarray(beyond / len(sizes))


def find_homogeneous_groups(ordered: Sequence[str], different: Set[frozenset[str]]) -> list[list[str]]:
    """Return groups of which no two members differ, such that any two that do not differ share a group.

    Each pair that does not differ begins a group unless it shares one, and all others that differ from none of the
    group join it, in the given order. Groups overlap where differences are intransitive: a may differ from c, and b
    from neither.
    """
    groups: list[list[str]] = []
    for one, other in combinations_with_replacement(ordered, 2):
        if {one, other} in different or any(one in group and other in group for group in groups):
            continue
        group = {one, other}
        for name in ordered:
            if not any({name, each} in different for each in group):
                group.add(name)
        groups.append([name for name in ordered if name in group])
    return groups


def letter_display(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return the letters of each member (compact letter display): two that share a letter do not differ.

    Letters are a to z, then a2 to z2, and so on. Piepho 2004, "An Algorithm for a Letter-Based Representation of
    All-Pairwise Comparisons", Journal of Computational and Graphical Statistics.
    """
    letters: dict[str, str] = {}
    for number, group in enumerate(groups):
        round_, at = divmod(number, len(ascii_lowercase))
        for name in group:
            letters[name] = letters.get(name, "") + ascii_lowercase[at] + (str(round_ + 1) if round_ else "")
    return letters


def minimum_detectable_difference(error: float, clusters: int, critical: float) -> float:
    """Return the minimum detectable difference at the power `POWER`, from the standard error over `clusters` clusters.

    `critical`: the critical value of a difference over its error.
    """
    if not (error >= 0 and math.isfinite(critical)):
        return math.nan
    return error * _least_ratio(clusters, critical)


@lru_cache(maxsize=1024)
def _least_ratio(clusters: int, critical: float) -> float:
    low, high = 0.0, critical + 1
    while power_of(high, clusters - 1, critical, clusters - 1) < POWER:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = power_of(middle, clusters - 1, critical, clusters - 1) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high


def count_needed_clusters(clusters: int, error: float, alpha: float, difference: float | None) -> int | None:
    """Return the clusters needed to detect a difference at the power `POWER`, from a pilot's error; None if unknown."""
    if difference is None or not (error >= 0 and difference > 0):
        return None

    def is_enough(number: int) -> bool:
        ratio = difference / error * math.sqrt(number / clusters) if error else math.inf
        return power_of(ratio, number - 1, two_sided_t(1 - alpha, number), clusters - 1) >= POWER

    low, high = 1, 2
    while not is_enough(high):
        low, high = high, 2 * high
        if high > MOST_CLUSTERS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def power_of(ratio: float, freedom: int, critical: float, pilot: int) -> float:
    """Return the power for a difference of `ratio` standard errors, estimated with `pilot` degrees of freedom.

    The test has `freedom` degrees of freedom of its own.
    """
    if math.isinf(ratio):
        return 1.0
    (errors, share), (pilots, pilot_share) = _relative_errors(freedom), _relative_errors(pilot)
    apart = ratio * pilots[:, None] - critical * errors[None, :]
    found = _normal_cdf(apart) + _normal_cdf(apart - 2 * ratio * pilots[:, None])
    return float(pilot_share @ found @ share)


@lru_cache(maxsize=256)
def _relative_errors(freedom: int) -> tuple[Floats, Floats]:
    """Return a grid of estimated over true standard errors, and the probability of each."""
    width = _TAIL / math.sqrt(2 * freedom)
    low, high = max(0.0, 1 - width), 1 + width
    values = low + (np.arange(_STEPS) + 0.5) * (high - low) / _STEPS
    logs = (freedom - 1) * np.log(values) - freedom * values**2 / 2
    share = np.exp(logs - logs.max())
    return values, share / share.sum()


def _normal_cdf(values: Floats) -> Floats:
    flat = [math.erfc(-value / math.sqrt(2)) / 2 for value in values.ravel().tolist()]
    return np.array(flat).reshape(values.shape)


def sign_test(first: int, second: int) -> float:
    """Return the exact two-sided p-value of two counts that are equally probable; of many that of the normal one."""
    total, fewer = first + second, min(first, second)
    if total > _EXACT:
        return math.erfc(max(abs(first - second) - 1, 0) / math.sqrt(2 * total))
    return min(1.0, 2 * sum(math.comb(total, count) for count in range(fewer + 1)) / 2**total)
