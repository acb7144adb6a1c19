"""Breakdown labels of a judge: a label for the shares that it gives a turn, and how it is fitted and tested.

    label = O where T + X < cut, else T or X, whichever the head says is more probable

`fitted` finds how much the head counts beside the mean shares (see `judge`): so that the system that is helped
least is helped most, compared with saying the mean of every turn. The cut is the lowest one that helps that system at
least half as much as the best one, compared with saying X of every turn: a new system may break down more often than
all those known, and then every O costs. `left_out` says what that is worth
on systems that neither head nor scale have seen, beside floors and ceilings (`metrics.breakdown.detection`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.metrics.breakdown.detection import (
    Codes,
    DetectionCounts,
    O,
    T,
    X,
    annotators,
    constant,
    floors,
    grouped,
    jensen_shannon,
    mean_distribution,
    oracle,
    shares,
    squared_error,
)
from dialeval.metrics.learned.judge import shrunk
from dialeval.resources.judge_settings import BreakdownScale

_WEIGHTS = np.arange(0, 1.21, 0.05)
_CUTS = 120
"""Cuts that are tried, up to the one that leaves three turns of ten without a breakdown."""
_MOST_O = 0.6


Figures = dict[str, float]
"""What is reported of a detector, by name."""


def labelled(scale: BreakdownScale, found: Floats) -> Floats:
    """Shares with the code of the label before them, as `Need.LABELS` has them."""
    # The mean would decide between T and X almost everywhere, so it is taken out again.
    _, possible, sure = np.array(scale.mean) ** (1 - scale.weight)
    broken = np.where(found[:, X] * possible >= found[:, T] * sure, X, T)
    codes = np.where(found[:, T] + found[:, X] < scale.cut, O, broken).astype(np.float64)
    return np.column_stack([np.where(np.isnan(found[:, O]), np.nan, codes), found])


def figures(labels: Floats, counts: Floats) -> Figures:
    """What the challenge reports of a detector's labels: JS divergence, squared error, and F of T and X together."""
    share = shares(counts)
    codes = Codes.of(labels, share, 0.0)
    said, real = (codes.label == T) | (codes.label == X), codes.lenient == X
    left, right = grouped(labels[:, 1:], "o-t-x"), grouped(share, "o-t-x")
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 log 0
        far = float(jensen_shannon(left, right).mean())
    found = DetectionCounts(float((said & real).sum()), float(said.sum()), float(real.sum()))
    return {"jsd": far, "mse": float(squared_error(left, right).mean()), "f1-tx": found.f1}


def fitted(said: Floats, counts: Floats, systems: Ints) -> BreakdownScale:
    """The scale for what the head says of turns whose systems it has not learned from, and what annotators said."""
    own = [systems == system for system in np.unique(systems)]
    mean = mean_distribution(counts)
    level = (float(mean[O]), float(mean[T]), float(mean[X]))
    floors = [figures(np.tile([O, *mean], (len(rows), 1))[rows], counts[rows]) for rows in own]

    def nearer(weight: float) -> Iterator[float]:
        found = shrunk(BreakdownScale(weight, level), said)
        for rows, floor in zip(own, floors, strict=True):
            here = figures(labelled(BreakdownScale(), found[rows]), counts[rows])
            yield from (1 - here[name] / max(floor[name], 1e-12) for name in ("jsd", "mse"))

    weight = float(max(_WEIGHTS.tolist(), key=lambda tried: min(nearer(tried))))
    found = shrunk(BreakdownScale(weight, level), said)
    always = [figures(constant(X, len(rows))[rows], counts[rows])["f1-tx"] for rows in own]

    def better(cut: float) -> Iterator[float]:
        labels = labelled(BreakdownScale(weight, level, cut), found)
        return (figures(labels[rows], counts[rows])["f1-tx"] - floor for rows, floor in zip(own, always, strict=True))

    cuts = np.quantile(found[:, T] + found[:, X], np.linspace(0, _MOST_O, _CUTS))
    gains = np.array([min(better(cut)) for cut in cuts.tolist()])
    cut = cuts[np.flatnonzero(gains >= gains.max() / 2)[0]] if gains.max() > 0 else cuts[0]
    return BreakdownScale(round(weight, 2), level, round(float(cut), 4))


def left_out(said: Floats, counts: Floats, systems: Ints, names: Sequence[str]) -> dict[str, dict[str, Figures]]:
    """By system and detector: its figures, with a scale that was fitted to the other systems; floors and ceilings.

    `said` is what the head says of turns whose systems it has not learned from.
    """
    table = {}
    for number, name in enumerate(names):
        own = systems == number
        if own.all() or not own.any():
            continue
        scale = fitted(said[~own], counts[~own], systems[~own])
        columns = {"judge": labelled(scale, shrunk(scale, said[own])), **floors(counts[own], [0.0], counts[~own])}
        found = {detector: figures(labels, counts[own]) for detector, labels in columns.items()}
        for ceiling, (_, labels, others) in (
            ("ceiling/annotator", annotators(counts[own])),
            ("ceiling/oracle", oracle(counts[own])),
        ):
            found[ceiling] = figures(labels, others)
        table[name] = found
    return table
