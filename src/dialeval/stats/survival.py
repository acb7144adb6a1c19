"""Survival of conversations: the curve of Kaplan and Meier, and the log-rank test.

    S(t) = product over times s <= t of 1 - d(s) / n(s)     d: failures at s, n: conversations still at risk
    error of log S(t): sums of influences over clusters; one conversation per cluster gives Greenwood's formula
    interval: S(t) ** exp(+-z * error / log S(t)), which stays between 0 and 1 (exponential Greenwood)
    log-rank: observed less expected failures of the second group over the hypergeometric error; with clusters over the
              error of the sums of their influences (as of Lin and Wei)

Papers: Kaplan and Meier 1958, "Nonparametric Estimation from Incomplete Observations", JASA; Kalbfleisch and Prentice
1980, "The Statistical Analysis of Failure Time Data"; Lin and Wei 1989, "The Robust Inference for the Cox Proportional
Hazards Model", JASA.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from msgspec import Struct

from dialeval.core.arrays import Floats, Ints, Mask


class SurvivalCurve(Struct, frozen=True):
    """The fraction of conversations without a failure, turn by turn.

    Attributes:
        turns: The turns at which a conversation failed or ended, in order.
        at_risk: Conversations that reached each of them without a failure.
        failures: Those that failed there.
        survival: The fraction without a failure up to and with each turn.
        low: The lower end of its confidence interval.
        high: The upper end.
        median: The first turn by which half have failed; None where fewer fail.
        median_low: The lower end of its interval.
        median_high: The upper end; None where it is beyond the last turn.
    """

    turns: tuple[int, ...]
    at_risk: tuple[int, ...]
    failures: tuple[int, ...]
    survival: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    median: int | None
    median_low: int | None
    median_high: int | None


def estimate_curve(times: Ints, failed: Mask, clusters: Ints | None = None, level: float = 0.95) -> SurvivalCurve:
    """Estimate the curve of Kaplan and Meier; `failed` is false where a conversation ended without a failure."""
    turns, at_risk, failures = _count(times, failed)
    survival = np.cumprod(1 - failures / at_risk).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(at_risk > failures, 1 / (at_risk - failures), 0.0)
        if clusters is None:
            errors = np.sqrt(np.cumsum(failures * steps / at_risk))
        else:  # by conversation and turn, what it adds to log S: only those at risk do
            reached, here = times[:, None] >= turns, (times[:, None] == turns) & failed[:, None]
            influences = np.cumsum(np.where(reached, failures / at_risk - here, 0.0) * steps, axis=1)
            errors = np.sqrt((_sum_by(influences, clusters) ** 2).sum(axis=0))
        reach = NormalDist().inv_cdf((1 + level) / 2) * errors / np.log(survival)
        inside = (survival > 0) & (survival < 1)
        low, high = (np.where(inside, survival ** np.exp(sign * reach), survival) for sign in (-1, 1))
    return SurvivalCurve(
        turns=tuple(turns.tolist()),
        at_risk=tuple(at_risk.tolist()),
        failures=tuple(failures.tolist()),
        survival=tuple(survival.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        median=_cross(turns, survival),
        median_low=_cross(turns, low),
        median_high=_cross(turns, high),
    )


def _cross(turns: Ints, curve: Floats) -> int | None:
    """Return the first turn at which a curve is at a half or below."""
    below = np.flatnonzero(curve <= 0.5)
    return int(turns[below[0]]) if len(below) else None


def log_rank(times: Ints, failed: Mask, second: Mask, clusters: Ints | None = None) -> tuple[float, float]:
    """Return the standardized difference of two groups and its p-value; above 0 the second group fails earlier."""
    turns, at_risk, failures = _count(times, failed)
    places = np.searchsorted(turns, times)
    at_risk_second = second.sum() - np.append(0, np.bincount(places, second, len(turns)).cumsum()[:-1])
    share = at_risk_second / at_risk
    observed = float((second & failed).sum() - (share * failures).sum())
    if clusters is None:
        more = at_risk > 1
        parts = (failures * share * (1 - share) * (at_risk - failures))[more] / (at_risk - 1)[more]
        variance = float(parts.sum())
    else:
        hazards = failures / at_risk
        expected = second * np.cumsum(hazards)[places] - np.cumsum(hazards * share)[places]
        terms = (second - share[places]) * failed - expected
        variance = float((_sum_by(terms[:, None], clusters) ** 2).sum())
    if not variance:
        return 0.0, 1.0
    z = observed / math.sqrt(variance)
    return z, math.erfc(abs(z) / math.sqrt(2))


def _count(times: Ints, failed: Mask) -> tuple[Ints, Floats, Floats]:
    """Return the turns at which something happened, how many reached them, and how many failed there."""
    turns, places = np.unique(times, return_inverse=True)
    ended = np.bincount(places)
    return turns, len(times) - np.append(0, ended.cumsum()[:-1]), np.bincount(places, failed).astype(np.int64)


def _sum_by(values: Floats, clusters: Ints) -> Floats:
    """Sum the rows of each cluster."""
    names, places = np.unique(clusters, return_inverse=True)
    sums = np.zeros((len(names), values.shape[1]))
    np.add.at(sums, places, values)
    return sums
