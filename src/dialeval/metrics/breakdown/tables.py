"""The two confusion tables of a detector and the statistics of the data, as the challenge prints them.

`hard[label][reference]` counts turns over O, T, X; `lenient[label][reference]` has the references O and X only, X for T
and X together. Turns without a label or a reference, and labels other than O, T, X, stand in neither table; so the
numbers of labels, which the original adds up from the first table, need not add up to the turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.metrics.breakdown.labels import DetectionCounts
from dialeval.metrics.breakdown.reference import LABELS, OTHER, Codes, O, T, X


@dataclass(frozen=True)
class Tables:
    """What is counted of one detector at one threshold."""

    threshold: float
    dialogues: int
    turns: int
    scored: int
    """Turns with a label and a reference."""
    correct: int
    hard: tuple[tuple[int, ...], ...]
    lenient: tuple[tuple[int, ...], ...]

    @property
    def references(self) -> dict[str, int]:
        """How many turns have each reference label."""
        return {name: sum(row[code] for row in self.hard) for code, name in enumerate(LABELS)}

    @property
    def x(self) -> DetectionCounts:
        """What precision and recall of X are made of."""
        return DetectionCounts(self.hard[X][X], sum(self.hard[X]), sum(row[X] for row in self.hard))

    @property
    def tx(self) -> DetectionCounts:
        """What precision and recall of T and X together are made of."""
        labelled = self.lenient[T], self.lenient[X]
        found, real = sum(row[1] for row in labelled), sum(row[1] for row in self.lenient)
        return DetectionCounts(found, sum(map(sum, labelled)), real)

    def to_dict(self) -> dict[str, Any]:
        """The tables for JSON."""
        return {
            "threshold": self.threshold,
            "dialogues": self.dialogues,
            "turns": self.turns,
            "scored": self.scored,
            "correct": self.correct,
            "references": self.references,
            "confusion": _named(self.hard, LABELS),
            "confusion_lenient": _named(self.lenient, ("O", "X")),
        }


def tables_of(codes: Codes, dialogues: int, threshold: float) -> Tables:
    """The tables of one detector."""
    label, hard, lenient = codes
    known = codes.scored & (label != OTHER)
    return Tables(
        threshold=threshold,
        dialogues=dialogues,
        turns=len(label),
        scored=int(codes.scored.sum()),
        correct=int((label == hard).sum()),
        hard=_crossed(label[known], hard[known], (O, T, X)),
        lenient=_crossed(label[known], lenient[known], (O, X)),
    )


def _crossed(label: Floats, reference: Floats, references: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    pairs: Ints = (3 * label + reference).astype(np.int64)
    counted = np.bincount(pairs, minlength=9).reshape(3, 3).tolist()
    return tuple(tuple(row[code] for code in references) for row in counted)


def _named(table: tuple[tuple[int, ...], ...], names: tuple[str, ...]) -> dict[str, dict[str, int]]:
    return {label: dict(zip(names, row, strict=True)) for label, row in zip(LABELS, table, strict=True)}
