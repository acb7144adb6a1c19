"""Floors: detectors that look at nothing, below which a submission has learnt nothing.

- `best-constant`: the label that is right most often at the threshold, with probability 1;
- `always-X`: X with probability 1, the best recall there is;
- `mean`: the annotators' mean distribution for every turn, its largest label as the hard one. It comes from the
  development set, or where none is given from the test set itself, which no honest detector could know.

On the data of the challenge the mean distribution beats most submissions in JS divergence and squared error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dialeval.metrics.breakdown.reference import LABELS, X, hard_reference, shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval.core.arrays import Floats


def floors(counts: Floats, thresholds: Sequence[float], development: Floats | None = None) -> dict[str, Floats]:
    """The labels column of each floor by its name; `counts` are the annotations of the test set."""
    found = {}
    for threshold in thresholds:
        best = best_constant(counts, threshold)
        found[f"floor/best-constant-{LABELS[best]}"] = constant(best, len(counts))
    found["floor/always-X"] = constant(X, len(counts))
    mean = mean_distribution(counts if development is None else development)
    name = "floor/mean-of-test-set" if development is None else "floor/mean-of-development-set"
    found[name] = np.tile([float(np.argmax(mean)), *mean], (len(counts), 1))
    return found


def best_constant(counts: Floats, threshold: float) -> int:
    """The code of the most frequent reference (ties: O before T before X)."""
    reference = hard_reference(shares(counts), threshold)
    known = reference[~np.isnan(reference)].astype(np.int64)
    return int(np.argmax(np.bincount(known, minlength=len(LABELS))))


def constant(code: int, turns: int) -> Floats:
    """The labels column of a detector that always says the same, and is sure of it."""
    return np.tile([float(code), *np.eye(len(LABELS))[code]], (turns, 1))


def mean_distribution(counts: Floats) -> Floats:
    """The mean of the turns' shares."""
    share = shares(counts)
    known = share[~np.isnan(share[:, 0])]
    mean: Floats = known.mean(axis=0) if len(known) else np.full(len(LABELS), 1 / len(LABELS))
    return mean
