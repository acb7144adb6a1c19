"""Student's intervals and tests from values without one dialogue each, shared by agreement and ranking.

With T the value of K dialogues and T(k) the value without dialogue k, both on a scale g without ends:

    error     the jackknife's standard error of g(T) (`influence`)
    freedom   the smaller of Kish's effective number of dialogues and the effective number by the kurtosis of the
              influences (`Influence.worth`), less 1, at least 1
    interval  g^-1(g(T) -+ t error), t of Student's distribution
    p         that g(T) is 0: two-sided, g(T) / error

The scales are that of the value itself (strengths, which are logarithms of odds), the logarithm of the odds (scores,
which lie between 0 and 1) and Fisher's z = artanh(r) (correlations). In simulations with 10 dialogues percentiles of a
bootstrap cover 86 to 89% where these intervals cover 95 to 98% (docs/people.md).

Papers: Efron and Stein 1981, "The Jackknife Estimate of Variance", Annals of Statistics; Fisher 1915, "Frequency
Distribution of the Values of the Correlation Coefficient", Biometrika; Kish 1965, "Survey Sampling".

Edge cases: a value at the end of its range (a correlation of 1, a score of 0) is taken to be 1e-12 away from it. A
value that cannot be computed without one of the dialogues has no error: the interval is NaN, and so is p. Where no
dialogue changes the value nothing is known of its spread: there is no interval, and p is 2 / 2^K, the least that K
dialogues allow without an assumption about how they vary (`significance.least_p`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dialeval.analysis.influence import Influence
from dialeval.analysis.significance import least_p
from dialeval.core.arrays import Floats
from dialeval.core.student import t_factor, two_sided_p

_AT_END = 1e-12
"""Correlations and scores are kept that far from the ends of their range, which have no place on the scale."""


class Scale(NamedTuple):
    """A scale without ends, and the way back from it."""

    to: Callable[[Floats], Floats]
    back: Callable[[float], float]


def _log_odds(shares: Floats) -> Floats:
    within = np.clip(shares, _AT_END, 1 - _AT_END)
    odds: Floats = np.log(within / (1 - within))
    return odds


def _fisher(correlations: Floats) -> Floats:
    z: Floats = np.arctanh(np.clip(correlations, _AT_END - 1, 1 - _AT_END))
    return z


PLAIN = Scale(lambda values: values, lambda value: value)
LOG_ODDS = Scale(_log_odds, lambda value: (1 + math.tanh(value / 2)) / 2)
FISHER = Scale(_fisher, math.tanh)


class Jackknifed(NamedTuple):
    """A value on a scale, its standard error there, and the degrees of freedom of that."""

    value: float
    error: float
    freedom: float
    clusters: int
    scale: Scale

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


def jackknife(value: float, without: Floats, sizes: Floats, scale: Scale = PLAIN) -> Jackknifed:
    """Return the standard error of a value over dialogues.

    Args:
        value: The value of all dialogues.
        without: The values without one dialogue or group each, in the order of `influence.leaving_out`.
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
    return Jackknifed(whole, influence.error, max(min(kish, influence.worth) - 1, 1.0), len(parts), scale)
