"""Breakdown labels: how often a detector's label is the annotators' one.

    accuracy     = turns whose label is the reference / turns
    precision-x  = turns labelled X that are X / turns labelled X
    recall-x     = turns labelled X that are X / turns that are X
    f1-x         = 2 * precision * recall / (precision + recall)

and the same for `tx`, where T and X are one label and the reference is the lenient one (see `reference`, which says how
the threshold makes a reference out of shares).

Paper: Higashinaka et al. 2017, "Overview of Dialogue Breakdown Detection Challenge 3", DSTC6 workshop. The figures are
those of the challenge's eval.py.

Edge cases, all as in the original: a precision, recall or F that is undefined is 0. A label other than O, T and X is
wrong in the accuracy and left out of precision, recall and F. A turn without a label or a reference is not scored; the
original ends there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.errors import SettingError
from dialeval.core.fold import RowMetric
from dialeval.core.needs import Need
from dialeval.metrics.breakdown.reference import OTHER, T, X, codes_of
from dialeval.metrics.counting import CountMetric, Flags


@dataclass(frozen=True)
class LabelAccuracy(RowMetric):
    """Share of turns with the annotators' label (dialogue breakdown)."""

    family = "accuracy"
    presets = {"accuracy": {}}
    subject = Need.LABELS
    needs = frozenset({Need.LABELS, Need.ANNOTATIONS})
    better = "higher"
    bounds = (0.0, 1.0)

    threshold: float = 0.0

    def __post_init__(self) -> None:
        check_threshold(self.threshold)

    def score(self, batch: Batch) -> Floats:
        label, reference, _ = codes_of(batch, self.threshold)
        return np.where(np.isnan(label) | np.isnan(reference), np.nan, (label == reference).astype(np.float64))


class DetectionCounts(NamedTuple):
    """Numbers of turns: labelled breakdowns that are real ones (found), all labelled ones, all real ones."""

    found: float = 0
    labelled: float = 0
    real: float = 0

    @property
    def precision(self) -> float:
        """Found of all labelled ones; 0 if nothing is labelled."""
        return self.found / self.labelled if self.labelled else 0.0

    @property
    def recall(self) -> float:
        """Found of all real ones; 0 if there are none."""
        return self.found / self.real if self.real else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both; 0 if both are."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class BreakdownDetection(CountMetric):
    """Precision, recall or F of the turns labelled as breakdowns."""

    family = "breakdown-detection"
    presets = {
        f"{figure}-{of}": {"figure": figure, "of": of} for of in ("x", "tx") for figure in ("precision", "recall", "f1")
    }
    subject = Need.LABELS
    needs = frozenset({Need.LABELS, Need.ANNOTATIONS})
    better = "higher"
    width = len(DetectionCounts._fields)
    has_items = False
    bounds = (0.0, 1.0)

    figure: Literal["precision", "recall", "f1"] = "f1"
    of: Literal["x", "tx"] = "x"
    threshold: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_threshold(self.threshold)

    def __str__(self) -> str:
        # The short name with its threshold, f1-x(threshold=0.5): people know the figures by these names.
        settings = f"(threshold={self.threshold})" if self.threshold else ""
        return f"{self.figure}-{self.of}{settings}"

    @property
    def contribution(self) -> str:
        return f"breakdowns/{self.of}/{self.threshold}"

    def row_counts(self, batch: Batch) -> tuple[Ints, Flags]:
        label, hard, lenient = codes_of(batch, self.threshold)
        scored = ~(np.isnan(label) | np.isnan(hard))
        known = scored & (label != OTHER)
        if self.of == "x":
            labelled, real = known & (label == X), known & (hard == X)
        else:
            labelled, real = known & ((label == T) | (label == X)), known & (lenient == X)
        return np.column_stack([labelled & real, labelled, real]).astype(np.int64), scored

    def formula(self, counts: Ints | Floats) -> Floats:
        return np.array([getattr(DetectionCounts(*line), self.figure) for line in counts.tolist()], np.float64)


def check_threshold(threshold: float) -> None:
    """Refuse what no share can be compared with."""
    if not np.isfinite(threshold):
        raise SettingError(f"a threshold is a number such as 0.5, not {threshold}")
