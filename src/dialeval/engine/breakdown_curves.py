"""Breakdown over the turns of a dialogue, for a saved run: what annotators said and what each detector expected.

`Run.details["curves"]` holds by detector a list of dialogues: their turns, the shares of O, T and X among annotators,
the detector's label and probabilities, and what was said. Those in which detectors and annotators differ most come
first, and of many dialogues the rest is left out.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.metrics.breakdown.detection import LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dialeval.core.result import Run
    from dialeval.engine.breakdown import BreakdownRun

CURVES = "curves"
MOST = 60
"""Dialogues that are kept."""
DIGITS = 4


def with_curves(run: BreakdownRun, most: int = MOST) -> Run:
    """The run with the curves of its detectors."""
    curves: dict[str, dict[str, dict[str, Any]]] = {}
    for (system, dialogue), turns in groupby(run.turns(), key=lambda row: (row["system"], row["dialogue"])):
        curves.setdefault(system, {})[dialogue] = _curve(dialogue, list(turns))
    if not curves:
        return run
    far: dict[str, list[float]] = {}
    for mine in curves.values():
        for dialogue, curve in mine.items():
            far.setdefault(dialogue, []).append(_distance(curve))
    chosen = sorted(far, key=lambda dialogue: -float(np.mean(far[dialogue])))[:most]
    said = {} if run.data is None else run.data.annotated.utterances(set(chosen))
    kept = {
        system: [{**mine[name], "said": [list(each) for each in said.get(name, ())]} for name in chosen if name in mine]
        for system, mine in curves.items()
    }
    return replace(run, details={**run.details, CURVES: kept})


def _curve(dialogue: str, turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "dialogue": dialogue,
        "turns": [row["turn"] for row in turns],
        "reference": [row["reference"] for row in turns],
        "label": [row["label"] for row in turns],
        "shares": [[_rounded(row[f"share-{label}"]) for label in LABELS] for row in turns],
        "probabilities": [[_rounded(row[f"prob-{label}"]) for label in LABELS] for row in turns],
    }


def _distance(curve: Mapping[str, Any]) -> float:
    """How far apart the two expectations of a breakdown are, on average over turns."""
    gaps = [
        abs(human[0] - detector[0])
        for human, detector in zip(curve["shares"], curve["probabilities"], strict=True)
        if human[0] is not None and detector[0] is not None
    ]
    return float(np.mean(gaps)) if gaps else 0.0


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), DIGITS)
