"""Anchors of breakdown detection: detectors that look at nothing (floors), and how well people do (ceilings).

Floors, below which a submission has learnt nothing:

- `best-constant`: the label that is right most often at the threshold, with probability 1;
- `always-X`: X with probability 1, the best recall there is;
- `mean`: the annotators' mean distribution for every turn, its largest label as the hard one. It comes from the
  development set, or where none is given from the test set itself, which no honest detector could know.

On the data of the challenge the mean distribution beats most submissions in JS divergence and squared error.

Ceilings; turns with fewer than two annotators say nothing about agreement and are left out:

- `annotator`: every annotator in turn as a detector, against the other annotators of the turn. The label is what the
  annotator said, with probability 1. A bound for hard labels; it is none for distances, because one person has no
  distribution.
- `oracle`: a detector that knows the shares of a turn, against as many new annotators drawn at random (from a fixed
  seed) from these shares: what chance in the choice of annotators leaves even to a perfect detector. A bound for labels
  and distances alike; single turns of a real detector may be luckier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.metrics.breakdown.reference import LABELS, X, hard_reference, shares

SEED = 6
"""Of the drawn annotators; fixed, so that the same data gives the same ceiling."""


def floors(counts: Floats, thresholds: Sequence[float], development: Floats | None = None) -> dict[str, Floats]:
    """The labels column of each floor by its name; `counts` are the annotations of the test set."""
    columns = {}
    for threshold in thresholds:
        best = best_constant(counts, threshold)
        columns[f"floor/best-constant-{LABELS[best]}"] = constant(best, len(counts))
    columns["floor/always-X"] = constant(X, len(counts))
    mean = mean_distribution(counts if development is None else development)
    name = "floor/mean-of-test-set" if development is None else "floor/mean-of-development-set"
    columns[name] = np.tile([float(np.argmax(mean)), *mean], (len(counts), 1))
    return columns


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


def annotators(counts: Floats) -> tuple[Ints, Floats, Floats]:
    """Each annotator of each turn as a detector: rows of the data, labels column, annotations that are left."""
    usable = np.flatnonzero(counts.sum(axis=1) >= 2)
    repeats = counts[usable].astype(np.int64)
    rows = np.repeat(usable, repeats.sum(axis=1))
    codes = np.repeat(np.tile(np.arange(len(LABELS)), len(usable)), repeats.ravel())
    own = np.eye(len(LABELS))[codes]
    return rows, np.column_stack([codes.astype(np.float64), own]), counts[rows] - own


def oracle(counts: Floats, seed: int = SEED) -> tuple[Ints, Floats, Floats]:
    """A detector that knows the shares: rows of the data, labels column, annotations drawn from the shares."""
    rows = np.flatnonzero(counts.sum(axis=1) >= 1)
    share = shares(counts[rows])
    drawn = np.random.default_rng(seed).multinomial(counts[rows].sum(axis=1).astype(np.int64), share)
    return rows, np.column_stack([np.argmax(share, axis=1).astype(np.float64), share]), drawn.astype(np.float64)
