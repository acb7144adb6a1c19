"""Fit the scale of breakdown labels, and estimate what they are worth on systems left out.

`fit_breakdown_scale` finds how much the breakdown head of a judge counts in addition to the mean shares: so that the
system that is helped least is helped most, compared with predicting the mean for every turn. The cut is the lowest one
that helps that system at least half as much as the best one, compared with predicting X for every turn: a new system
may break down more often than all those known, and then every O costs. `score_left_out_systems` estimates what that is
worth on systems that neither head nor scale have seen, next to floors and ceilings (`metrics.breakdown`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.judges.judge import BreakdownScale, label_shares, shrink_shares
from dialeval.metrics import breakdown
from dialeval.metrics.breakdown import Codes, DetectionCounts, O, T, X, shares

DetectorScores = dict[str, float]
"""What is reported of a detector, by name."""


_WEIGHTS = np.arange(0, 1.21, 0.05)


_CUTS = 120
"""Cuts that are tried, up to the one that leaves three turns of ten without a breakdown."""


_MOST_O = 0.6


def breakdown_scores(labels: Floats, counts: Floats) -> DetectorScores:
    """Return what the challenge reports of labels: JS divergence, squared error, and F of T and X together."""
    share = shares(counts)
    codes = Codes.of(labels, share, 0.0)
    said, real = (codes.label == T) | (codes.label == X), codes.lenient == X
    left, right = (breakdown.group_labels(each, "o-t-x") for each in (labels[:, 1:], share))
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 log 0
        far = float(breakdown.jensen_shannon(left, right).mean())
    found = DetectionCounts(float((said & real).sum()), float(said.sum()), float(real.sum()))
    return {"jsd": far, "mse": float(breakdown.squared_error(left, right).mean()), "f1-tx": found.f1}


def fit_breakdown_scale(said: Floats, counts: Floats, systems: Ints) -> BreakdownScale:
    """Fit the scale for what the head says of turns whose systems it has not learned from, and what annotators said."""
    own = [systems == system for system in np.unique(systems)]
    mean = breakdown.mean_distribution(counts)
    level = (float(mean[O]), float(mean[T]), float(mean[X]))
    floors = [breakdown_scores(np.tile([O, *mean], (len(rows), 1))[rows], counts[rows]) for rows in own]

    def nearer(weight: float) -> Iterator[float]:
        found = shrink_shares(BreakdownScale(weight, level), said)
        for rows, floor in zip(own, floors, strict=True):
            here = breakdown_scores(label_shares(BreakdownScale(), found[rows]), counts[rows])
            yield from (1 - here[name] / max(floor[name], 1e-12) for name in ("jsd", "mse"))

    weight = float(max(_WEIGHTS.tolist(), key=lambda tried: min(nearer(tried))))
    found = shrink_shares(BreakdownScale(weight, level), said)
    always = [breakdown_scores(breakdown.repeat_label(X, len(rows))[rows], counts[rows])["f1-tx"] for rows in own]

    def better(cut: float) -> Iterator[float]:
        labels = label_shares(BreakdownScale(weight, level, cut), found)
        return (
            breakdown_scores(labels[rows], counts[rows])["f1-tx"] - floor
            for rows, floor in zip(own, always, strict=True)
        )

    cuts = np.quantile(found[:, T] + found[:, X], np.linspace(0, _MOST_O, _CUTS))
    gains = np.array([min(better(cut)) for cut in cuts.tolist()])
    cut = cuts[np.flatnonzero(gains >= gains.max() / 2)[0]] if gains.max() > 0 else cuts[0]
    return BreakdownScale(round(weight, 2), level, round(float(cut), 4))


def score_left_out_systems(
    said: Floats, counts: Floats, systems: Ints, names: Sequence[str]
) -> dict[str, dict[str, DetectorScores]]:
    """Return scores by system and detector, with a scale fitted to the other systems; also floors and ceilings.

    `said` is what the head says of turns whose systems it has not learned from.
    """
    table = {}
    for number, name in enumerate(names):
        own = systems == number
        if own.all() or not own.any():
            continue
        scale = fit_breakdown_scale(said[~own], counts[~own], systems[~own])
        columns = {
            "judge": label_shares(scale, shrink_shares(scale, said[own])),
            **breakdown.make_floors(counts[own], [0.0], counts[~own]),
        }
        found = {detector: breakdown_scores(labels, counts[own]) for detector, labels in columns.items()}
        for ceiling, (_, labels, others) in (
            ("ceiling/annotator", breakdown.make_annotators(counts[own])),
            ("ceiling/oracle", breakdown.make_oracle(counts[own])),
        ):
            found[ceiling] = breakdown_scores(labels, others)
        table[name] = found
    return table
