"""The ceiling: how well people do at what a detector does, and how far they agree at all.

- `annotator`: every annotator in turn as a detector, against the other annotators of the turn. The label is what the
  annotator said, with probability 1. A bound for hard labels; it is none for distances, because one person has no
  distribution.
- `oracle`: a detector that knows the shares of a turn, against as many new annotators drawn at random (from a fixed
  seed) from these shares: what chance in the choice of annotators leaves even to a perfect detector. A bound for labels
  and distances alike; single turns of a real detector may be luckier.
- Krippendorff's alpha of the labels (`core.krippendorff`), nominal and, with O < T < X, ordinal.

Turns with fewer than two annotators say nothing about agreement and are left out of it.
"""

from __future__ import annotations

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.metrics.breakdown.reference import LABELS, shares

SEED = 6
"""Of the drawn annotators; fixed, so that the same data gives the same ceiling."""


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
