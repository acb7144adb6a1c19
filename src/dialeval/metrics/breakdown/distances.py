"""Breakdown distributions: how far a detector's probabilities are from the annotators' shares.

    jsd  = (KL(p, m) + KL(q, m)) / 2   with m = (p + q) / 2 and logarithms to base 2
    mse  = sum((p - q)^2) / number of labels

for the probabilities p and the shares q of a turn, over the labels O, T, X (`o-t-x`), with T and X as one (`o-tx`), or
with O and T as one (`ot-x`); then the mean over turns. Lower is better. The thresholds of hard labels play no part.

Paper: Higashinaka et al. 2017, "Overview of Dialogue Breakdown Detection Challenge 3", DSTC6 workshop. The figures are
those of the challenge's eval.py.

Edge cases: probabilities are used as they are, whatever their sum (reading complains about a sum away from 1). A turn
without labels or reference, or with a probability that is below 0 or not finite (or beyond 1e9), is not scored; the
original ends there or prints nan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.fold import RowMetric
from dialeval.core.needs import Need
from dialeval.metrics.breakdown.reference import O, T, X, shares_of

Grouping = Literal["o-t-x", "o-tx", "ot-x"]

LARGEST = 1e9
"""What is larger is no probability on any scale, and would swallow all other turns."""

_GROUPS = {"o-t-x": ((O,), (T,), (X,)), "o-tx": ((O,), (T, X)), "ot-x": ((O, T), (X,))}


@dataclass(frozen=True)
class BreakdownDistance(RowMetric):
    """Distance of a detector's probabilities from the annotators' shares."""

    family = "breakdown-distance"
    presets = {
        f"{measure}-{grouping}": {"measure": measure, "grouping": grouping}
        for measure in ("jsd", "mse")
        for grouping in _GROUPS
    }
    subject = Need.LABELS
    needs = frozenset({Need.LABELS, Need.ANNOTATIONS})
    better = "lower"
    bounds = (0.0, math.inf)

    measure: Literal["jsd", "mse"] = "jsd"
    grouping: Grouping = "o-t-x"

    def score(self, batch: Batch) -> Floats:
        share, probabilities = shares_of(batch), batch.numbers(Need.LABELS)[:, 1:]
        distance = jensen_shannon if self.measure == "jsd" else squared_error
        with np.errstate(all="ignore"):  # what cannot be scored is sorted out below
            values = distance(grouped(probabilities, self.grouping), grouped(share, self.grouping))
            usable = ((probabilities >= 0) & (probabilities <= LARGEST)).all(axis=1) & np.isfinite(values)
        return np.where(usable, values, np.nan)


def grouped(distribution: Floats, grouping: Grouping) -> list[Floats]:
    """A column per label of the grouping, added up from left to right as the original does."""
    return [
        sum((distribution[:, label] for label in group[1:]), distribution[:, group[0]]) for group in _GROUPS[grouping]
    ]


def jensen_shannon(left: list[Floats], right: list[Floats]) -> Floats:
    """The Jensen-Shannon divergence of each row, in bits."""
    middle = [(p + q) / 2 for p, q in zip(left, right, strict=True)]
    return (divergence(left, middle) + divergence(right, middle)) / 2


def squared_error(left: list[Floats], right: list[Floats]) -> Floats:
    """The mean squared difference of each row."""
    squares = [(p - q) ** 2 for p, q in zip(left, right, strict=True)]
    return sum(squares[1:], squares[0]) / len(squares)


def divergence(left: list[Floats], right: list[Floats]) -> Floats:
    """Return the Kullback-Leibler divergence of each row, in bits; 0 counts as 0 times any logarithm."""
    parts = [np.where(p == 0, 0.0, p * np.log2(p / q)) for p, q in zip(left, right, strict=True)]
    return sum(parts[1:], parts[0])
