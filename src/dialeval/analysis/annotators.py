"""The ceiling: how far people agree with each other about what a metric is to predict.

- Krippendorff's alpha of the annotators' values: nominal, ordinal and interval.
- One against the others: each annotator's values against the means of the others for the same responses, correlated
  over the responses, then averaged over the annotators. A list holds one value per annotator, and the k-th values of
  all lists are taken for those of one annotator. The mean of several people is less noisy than a single one, so a
  metric may come above this figure without being better than people.

Responses with fewer than two annotators say nothing about agreement. Where there are none with more (a mean, a majority
and a single label are one value each), there is no ceiling, and `reason` says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from dialeval.analysis.correlation import FEWEST_POINTS, NAMES, Points
from dialeval.core.arrays import Floats
from dialeval.core.krippendorff import Distance, krippendorff_alpha

DISTANCES: tuple[Distance, ...] = ("nominal", "ordinal", "interval")


class Ceiling(Struct, frozen=True):
    """How far annotators agree; NaN where that cannot be said."""

    n: int
    """Responses with two annotators or more."""
    annotators: tuple[int, int]
    """The fewest and the most annotators of such a response."""
    alpha: dict[str, float] = {}
    one_against_others: dict[str, float] = {}
    reason: str | None = None


def ceiling(annotations: Sequence[Floats]) -> Ceiling:
    """Compute the agreement of the annotators of a quality, one array of values per response."""
    several = [values for values in annotations if len(values) > 1]
    if not several:
        return Ceiling(0, (0, 0), reason="no response has the values of two annotators or more")
    sizes = [len(values) for values in several]
    distinct, codes = np.unique(np.concatenate(several), return_inverse=True)
    units = np.repeat(np.arange(len(several)), sizes)
    counts = np.zeros((len(several), len(distinct)))
    np.add.at(counts, (units, codes), 1)
    alpha: dict[str, float] = {distance: krippendorff_alpha(counts, distance, distinct) for distance in DISTANCES}
    return Ceiling(len(several), (min(sizes), max(sizes)), alpha, one_against_others(several))


def one_against_others(annotations: Sequence[Floats]) -> dict[str, float]:
    """Return the correlations of each annotator with the mean of the others, averaged over annotators."""
    correlations = []
    for annotator in range(max(map(len, annotations))):
        answered = [values for values in annotations if len(values) > annotator]
        own = np.array([values[annotator] for values in answered])
        others = np.array([(values.sum() - values[annotator]) / (len(values) - 1) for values in answered])
        if len(answered) >= FEWEST_POINTS:
            correlations.append(Points(own, others, np.arange(len(answered))).values())
    known = np.array([values for values in correlations if not np.isnan(values).any()]).reshape(-1, len(NAMES))
    means = known.mean(axis=0) if len(known) else np.full(len(NAMES), np.nan)
    return dict(zip(NAMES, means.tolist(), strict=True))
