"""Confidence sequences: intervals for a difference that hold at all interim looks and for any stopping rule.

An ordinary 95% interval covers in 95% of cases at one number of dialogues that was chosen before. Looking after every
dialogue and stopping when 0 is outside is in the end wrong almost surely. A confidence sequence covers at all numbers
of dialogues at once, with 95%. The price is width: `docs/simulations.md` says how much wider than Student's interval it
is.

The interval is for the difference of two means over rows, after each dialogue or pair of dialogues:

- `betting_sequence`, where the metric has bounds and all dialogues count equally (the same number of rows in each, or
  `weight="dialogues"`): exact for any distribution, from the first dialogue on. Differences are
  brought to 0..1. For every possible mean m two gamblers bet on it being too low and too high,

      K+_t(m) = product of (1 + l+_s (x_s - m))        l+_s = min(l_s, c / m)
      K-_t(m) = product of (1 - l-_s (x_s - m))        l-_s = min(l_s, c / (1 - m))
      l_s = sqrt(2 log(2 / alpha) / (v_{s-1} s log(1 + s))), c = 1/2

  where v_{s-1} is the variance of the values before. Neither can expect to win if m is the mean, so that the half of
  the larger one exceeds 1 / alpha with a probability of at most alpha, ever (Ville). The interval are those m at which
  it does not.
- `asymptotic_sequence`, elsewhere: mean -+ s_t sqrt(2 (t rho^2 + 1) / (t^2 rho^2) log(sqrt(t rho^2 + 1) / alpha)), a
  normal mixture, from `FIRST` dialogues on. rho is chosen so that it is narrowest at `BEST` dialogues. It is right for
  many dialogues, as Student's interval is without normal values. Skewed differences need more of them: there is no
  interval before `SKEWED` times their squared skewness either. No rule can allow for rare large differences that have
  not occurred yet: with a loss of 99 in one of 100 dialogues and a gain of 1 in all others, most sequences exclude the
  true mean 0 before the first loss. Where that is possible, declare the range of the values (`Metric.bounds`), and the
  sequence is exact.

Intervals are intersected with those before, so that they never grow again.

Papers: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", JRSS B; Waudby-Smith,
Arbour, Sinha, Kennedy and Ramdas 2021, "Time-uniform central limit theory and asymptotic confidence sequences"; Robbins
1970, "Statistical Methods Related to the Law of the Iterated Logarithm", Annals of Mathematical Statistics.

Edge cases: where the intersection is empty, which happens with a probability of at most alpha, the interval is that of
the last look alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats, Mask
from dialeval.stats.independent import ClusterSums

FIRST = 50
"""Dialogues before the first asymptotic interval; with 30, skewed differences were outside in 8% and not in 5%."""
SKEWED = 40.0
"""Fewer dialogues than this times the squared skewness of their differences have no asymptotic interval."""
BEST = 500
"""Dialogues at which the asymptotic interval is narrowest."""
GRID = 2001
"""Possible means that are bet on, from end to end."""
_CAUTION = 0.5
"""The largest fraction of the capital that is bet."""
_CHUNK = 512
"""Dialogues whose bets are made together."""

Kind = Literal["betting", "asymptotic"]


def unpaired_confidence_sequence(
    left: ClusterSums, right: ClusterSums, bounds: tuple[float, float], alpha: float
) -> tuple[Floats, Floats, Kind]:
    """Return the ends of the intervals of a difference of independent means after as many dialogues of each system.

    Both means have a confidence sequence with half of alpha. Where one system has more dialogues, its further ones
    narrow the last interval only.
    """
    width = bounds[1] - bounds[0]
    looks = min(len(left.sums), len(right.sums))
    exact = math.isfinite(width) and left.is_even and right.is_even
    ends = []
    for side in (left, right):
        if exact:
            low, high = betting_sequence((side.sums / side.counts - bounds[0]) / width, alpha / 2)
            low, high = bounds[0] + width * low, bounds[0] + width * high
        else:
            low, high = asymptotic_sequence([(side, 1.0)], alpha / 2)
        low, high = _intersect(low, high)
        keep = [*range(looks - 1), len(low) - 1] if looks else []
        ends.append((low[keep], high[keep]))
    low, high = ends[1][0] - ends[0][1], ends[1][1] - ends[0][0]
    return low, high, "betting" if exact else "asymptotic"


def confidence_sequence(
    left: ClusterSums, right: ClusterSums, bounds: tuple[float, float], alpha: float
) -> tuple[Floats, Floats, Kind]:
    """Return the ends of the intervals of a difference after each pair of dialogues, and how they were made.

    `bounds`: those of the metric, so that a difference lies within their width either way. Bets are on means of
    dialogues, so that they need dialogues with equal numbers of rows.
    """
    width = bounds[1] - bounds[0]
    if not math.isfinite(width) or not (left.is_even and right.is_even):
        low, high = asymptotic_sequence([(left, -1.0), (right, 1.0)], alpha)
        return *_intersect(low, high), "asymptotic"
    values = right.sums / right.counts - left.sums / left.counts
    low, high = betting_sequence((values + width) / (2 * width), alpha)
    return *_intersect(2 * width * low - width, 2 * width * high - width), "betting"


def _intersect(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    inner = np.maximum.accumulate(low), np.minimum.accumulate(high)
    empty = inner[0] > inner[1]
    return np.where(empty, low, inner[0]), np.where(empty, high, inner[1])


def asymptotic_sequence(parts: Sequence[tuple[ClusterSums, float]], alpha: float) -> tuple[Floats, Floats]:
    """Return the ends for a sum of signed means over rows, after each dialogue (or pair of dialogues).

    They are infinite where there are too few dialogues for how skewed they are (`has_enough`). A mean over the rows of
    unequal dialogues is a ratio of sums R = S / N; what dialogue k adds to it is (s_k - R n_k) / (N / t).
    """
    dialogues = len(parts[0][0].sums)
    times = np.arange(1, dialogues + 1, dtype=np.float64)
    values, weights, columns = np.zeros(dialogues), [], []
    added = np.zeros(dialogues)
    for sample, sign in parts:
        # Sums from the mean of all rows, so that little is lost where values are far from 0.
        center = sample.mean if dialogues else 0.0
        sums = sample.sums - center * sample.counts
        total, rows = np.cumsum(sums), np.cumsum(sample.counts)
        ratio, size = total / rows, rows / times
        values += sign * (center + ratio)
        columns += [sums, sample.counts]
        weights += [sign / size, -sign * ratio / size]
        if dialogues:  # by the first mean, so that later dialogues do not change earlier looks
            early = min(FIRST, dialogues) - 1
            added += sign * (sums - ratio[early] * sample.counts) / size[early]
    squares = np.zeros(dialogues)
    for first, column in zip(weights, columns, strict=True):
        for second, other in zip(weights, columns, strict=True):
            squares += first * second * np.cumsum(column * other)
    spread = np.sqrt(np.maximum(squares, 0.0) / np.maximum(times - 1, 1))
    # The mixture that makes the interval narrowest at `BEST` dialogues.
    mixed = times * ((-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / BEST) + 1
    half = spread * np.sqrt(2 * mixed / (times * (mixed - 1)) * np.log(np.sqrt(mixed) / alpha))
    half[~has_enough(added)] = math.inf
    return values - half, values + half


def has_enough(values: Floats) -> Mask:
    """Return whether each value and those before it are enough for an asymptotic interval."""
    times = np.arange(1, len(values) + 1, dtype=np.float64)
    away = values - (values[0] if len(values) else 0.0)
    away = away / max(float(np.abs(away).max(initial=0.0)), np.finfo(np.float64).tiny)
    first, second, third = (np.cumsum(away**power) / times for power in (1, 2, 3))
    variances = np.maximum(second - first**2, 0.0)
    moments = third - 3 * first * second + 2 * first**3
    # The squared skewness is moments^2 / variances^3; multiplied out, so that equal values divide by nothing.
    return np.asarray((times >= FIRST) & (times * variances**3 >= SKEWED * moments**2))


def betting_sequence(values: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return the ends after each value between 0 and 1."""
    possible = np.linspace(0, 1, GRID)
    bets = _compute_bets(values, alpha)
    capital = np.zeros((2, GRID))
    low, high = np.zeros(len(values)), np.ones(len(values))
    with np.errstate(divide="ignore"):
        most = np.stack([_CAUTION / possible, _CAUTION / (1 - possible)])
    for start in range(0, len(values), _CHUNK):
        here, bet = values[start : start + _CHUNK, None], bets[start : start + _CHUNK, None]
        away = here - possible
        for side, sign in enumerate((1.0, -1.0)):
            gains = np.log1p(sign * np.minimum(bet, most[side]) * away)
            gains[0] += capital[side]
            np.cumsum(gains, axis=0, out=gains)
            capital[side] = gains[-1]
            if side == 0:
                upward = gains
        inside = np.maximum(upward, gains) < math.log(2 / alpha)
        low[start : start + _CHUNK], high[start : start + _CHUNK] = _find_ends(inside, possible, upward, gains)
    return low, high


def _compute_bets(values: Floats, alpha: float) -> Floats:
    """Return the bet on each value, from those before it."""
    times = np.arange(1, len(values) + 1)
    means = (0.5 + np.cumsum(values)) / (times + 1)
    variances = (0.25 + np.cumsum((values - means) ** 2)) / (times + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    return np.asarray(np.sqrt(2 * math.log(2 / alpha) / (before * times * np.log(1 + times))))


def _find_ends(inside: Mask, possible: Floats, upward: Floats, downward: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and largest mean that is not excluded, one step of the grid further out."""
    step = possible[1]
    none = ~inside.any(axis=1)
    first, last = inside.argmax(axis=1), GRID - 1 - inside[:, ::-1].argmax(axis=1)
    # Where nothing is left, the mean that both gamblers have least against.
    least = np.maximum(upward, downward).argmin(axis=1)
    first, last = np.where(none, least, first), np.where(none, least, last)
    return np.maximum(possible[first] - step, 0.0), np.minimum(possible[last] + step, 1.0)
