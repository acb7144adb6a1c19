"""The ceiling: how well people do at what a detector does, and how far they agree at all.

- `annotator`: every annotator in turn as a detector, against the other annotators of the turn. The label is what the
  annotator said, with probability 1. A bound for hard labels; it is none for distances, because one person has no
  distribution.
- `oracle`: a detector that knows the shares of a turn, against as many new annotators drawn at random (from a fixed
  seed) from these shares: what chance in the choice of annotators leaves even to a perfect detector. A bound for labels
  and distances alike; single turns of a real detector may be luckier.
- Krippendorff's alpha, 1 - observed disagreement / disagreement by chance:

      alpha = 1 - (n - 1) * sum_ck o_ck d_ck / sum_ck n_c n_k d_ck

  over the coincidences o_ck of two labels in one turn, the totals n_c of labels, and a distance d_ck that is 1 between
  any two labels (nominal) or grows with the labels between them, O < T < X (ordinal).

Turns with fewer than two annotators say nothing about agreement and are left out of it.

Paper: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.metrics.breakdown.reference import LABELS, shares

SEED = 6
"""Of the drawn annotators; fixed, so that the same data gives the same ceiling."""

Distance = Literal["nominal", "ordinal"]


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


def krippendorff_alpha(counts: Floats, distance: Distance = "nominal") -> float:
    """Agreement of the annotators: 1 if they always agree, 0 if as by chance; NaN where chance leaves no choice."""
    units = counts[counts.sum(axis=1) >= 2]
    sizes = units.sum(axis=1)
    together = (units / (sizes - 1)[:, None]).T @ units - np.diag((units / (sizes - 1)[:, None]).sum(axis=0))
    totals = units.sum(axis=0)
    apart = _distances(totals, distance)
    by_chance = float((np.outer(totals, totals) * apart).sum())
    if not by_chance:
        return float("nan")
    return 1 - (float(sizes.sum()) - 1) * float((together * apart).sum()) / by_chance


def _distances(totals: Floats, distance: Distance) -> Floats:
    if distance == "nominal":
        return 1 - np.eye(len(totals))
    if distance != "ordinal":
        raise SettingError(f"alpha is nominal or ordinal, not {distance!r}")
    found = np.zeros((len(totals), len(totals)))
    for low in range(len(totals)):
        for high in range(low + 1, len(totals)):
            between = totals[low : high + 1].sum() - (totals[low] + totals[high]) / 2
            found[low, high] = found[high, low] = between**2
    return found
