"""Breakdown detection: labels and probabilities of a detector against what annotators said of a turn (DBDC).

Annotators call a turn O (not a breakdown), T (possibly one) or X (a breakdown); the *shares* are the fractions of them.

    reference          = the label with the largest share (ties: O before T before X), O if that share < threshold
    lenient reference  = O if O >= T + X;  X (which stands for T and X) if T + X >= threshold;  else O

Shares are floats and are compared as floats, as in the original: T + X is a sum of two rounded shares. A turn without
any O, T or X has no reference.

Labels:

    accuracy     = turns whose label is the reference / turns
    precision-x  = turns labeled X that are X / turns labeled X
    recall-x     = turns labeled X that are X / turns that are X
    f1-x         = 2 * precision * recall / (precision + recall)

and the same for `tx`, where T and X are one label and the reference is the lenient one.

Probabilities p against shares q, over the labels O, T, X (`o-t-x`), with T and X as one (`o-tx`), or with O and T as
one (`ot-x`); then the mean over turns, lower is better, and thresholds play no part:

    jsd  = (KL(p, m) + KL(q, m)) / 2   with m = (p + q) / 2 and logarithms to base 2
    mse  = sum((p - q)^2) / number of labels

Paper: Higashinaka et al. 2017, "Overview of Dialogue Breakdown Detection Challenge 3", DSTC6 workshop. The scores are
those of the challenge's eval.py.

Edge cases of labels, all as in the original: a precision, recall or F that is undefined is 0. A label other than O, T
and X is wrong in the accuracy and left out of precision, recall and F. A turn without a label or a reference is not
scored; the original ends there.

Edge cases of probabilities: they are used as they are, whatever their sum (reading complains about a sum away from 1).
A turn without labels or reference, or with a probability that is below 0 or not finite (or beyond 1e9), is not scored;
the original ends there or prints nan.

The columns: `inputs.ANNOTATIONS` holds three counts per turn (O, T, X), `inputs.LABELS` four numbers: the code of the
detector's label (`O`, `T`, `X`, `OTHER` for anything else, NaN where there is none) and its three probabilities.

Floors and ceilings are detectors that look at nothing, and how well people do. Floors, below which a submission has
learned nothing:

- `best-constant`: the label that is right most often at the threshold, with probability 1;
- `always-X`: X with probability 1, the best recall there is;
- `mean`: the annotators' mean distribution for every turn, its largest label as the hard one. It comes from the
  development set, or where none is given from the test set itself, which no honest detector could know.

On the data of the challenge the mean distribution beats most submissions in JS divergence and squared error.

Ceilings; turns with fewer than two annotators say nothing about agreement and are left out:

- `annotator`: every annotator in turn as a detector, against the other annotators of the turn. The label is what the
  annotator said, with probability 1. A bound for hard labels; it is none for distances, because one person has no
  distribution.
- `oracle`: a detector that knows the fractions of a turn, against as many new annotators drawn at random (from a fixed
  seed) from these shares: what chance in the choice of annotators leaves even to a perfect detector. A bound for labels
  and distances alike; single turns of a real detector may be luckier.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.fold import RowMetric
from dialeval.metrics.counting import CountMetric, Flags

LABELS = ("O", "T", "X")
O, T, X = range(3)  # noqa: E741  (the challenge's own names)
OTHER = 3
"""The code of a label that is none of the three."""
LARGEST = 1e9
"""What is larger is no probability on any scale, and would swallow all other turns."""
SEED = 6
"""Of the sampled annotators; fixed, so that the same data gives the same ceiling."""

Grouping = Literal["o-t-x", "o-tx", "ot-x"]
_GROUPS = {"o-t-x": ((O,), (T,), (X,)), "o-tx": ((O,), (T, X)), "ot-x": ((O, T), (X,))}


def shares(counts: Floats) -> Floats:
    """Return the fraction of each label per turn; NaN for a turn without any."""
    with np.errstate(invalid="ignore"):  # 0 / 0
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def hard_reference(share: Floats, threshold: float) -> Floats:
    """Return the code of the reference label per turn; NaN where there is none."""
    codes = np.argmax(share, axis=1).astype(np.float64)  # the first of equal ones
    codes[share.max(axis=1, initial=-np.inf) < threshold] = O
    return np.where(np.isnan(share[:, O]), np.nan, codes)


def lenient_reference(share: Floats, threshold: float) -> Floats:
    """Return `O` or `X` per turn, T and X being taken together; NaN where there is no reference."""
    broken = share[:, T] + share[:, X]
    codes = np.where((share[:, O] < broken) & (broken >= threshold), float(X), float(O))
    return np.where(np.isnan(share[:, O]), np.nan, codes)


def compute_shares(batch: Batch) -> Floats:
    """Return the fraction of annotators per label (O, T, X), cached."""
    counts = batch.numbers(inputs.ANNOTATIONS)
    return batch.derive("breakdown-shares", lambda: shares(counts))


class Codes(NamedTuple):
    """Codes of the label, the reference and the lenient reference per turn; NaN where there is none."""

    label: Floats
    reference: Floats
    lenient: Floats

    @classmethod
    def of(cls, labels: Floats, share: Floats, threshold: float) -> Codes:
        """Return the codes of a detector's labels and of what annotators said."""
        return cls(labels[:, 0], hard_reference(share, threshold), lenient_reference(share, threshold))

    @property
    def scored(self) -> npt.NDArray[np.bool_]:
        """The turns with a label and a reference."""
        return ~(np.isnan(self.label) | np.isnan(self.reference))


def compute_codes(batch: Batch, threshold: float) -> Codes:
    """Return the codes of a batch, computed once per threshold."""
    share, labels = compute_shares(batch), batch.numbers(inputs.LABELS)
    return batch.derive(("breakdown-codes", threshold), lambda: Codes.of(labels, share, threshold))


@dataclass(frozen=True)
class LabelAccuracy(RowMetric):
    """Fraction of turns with the annotators' label (dialogue breakdown)."""

    family = "accuracy"
    subject = inputs.LABELS
    needs = frozenset({inputs.LABELS, inputs.ANNOTATIONS})
    better = "higher"
    bounds = (0.0, 1.0)
    limits = {"threshold": (-math.inf, math.inf)}

    threshold: float = 0.0

    def score(self, batch: Batch) -> Floats:
        codes = compute_codes(batch, self.threshold)
        return np.where(codes.scored, (codes.label == codes.reference).astype(np.float64), np.nan)


class DetectionCounts(NamedTuple):
    """Numbers of turns: labeled breakdowns that are real ones (true positives), all labeled ones, all real ones."""

    found: float = 0
    labeled: float = 0
    real: float = 0

    @property
    def precision(self) -> float:
        """True positives / predicted positives; 0 if nothing is labeled."""
        return self.found / self.labeled if self.labeled else 0.0

    @property
    def recall(self) -> float:
        """True positives / positives; 0 if there are none."""
        return self.found / self.real if self.real else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both; 0 if both are."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class BreakdownDetection(CountMetric):
    """Precision, recall or F of the turns labeled as breakdowns."""

    family = "breakdown-detection"
    presets = {
        f"{figure}-{of}": {"figure": figure, "of": of} for of in ("x", "tx") for figure in ("precision", "recall", "f1")
    }
    subject = inputs.LABELS
    needs = frozenset({inputs.LABELS, inputs.ANNOTATIONS})
    better = "higher"
    width = len(DetectionCounts._fields)
    has_items = False
    bounds = (0.0, 1.0)
    limits = LabelAccuracy.limits

    figure: Literal["precision", "recall", "f1"] = "f1"
    of: Literal["x", "tx"] = "x"
    threshold: float = 0.0

    def __str__(self) -> str:
        # The short name with its threshold, f1-x(threshold=0.5): people know the figures by these names.
        settings = f"(threshold={self.threshold})" if self.threshold else ""
        return f"{self.figure}-{self.of}{settings}"

    @property
    def contribution(self) -> str:
        return f"breakdowns/{self.of}/{self.threshold}"

    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        codes = compute_codes(batch, self.threshold)
        label, hard, lenient = codes
        counted = codes.scored & (label != OTHER)
        if self.of == "x":
            labeled, real = counted & (label == X), counted & (hard == X)
        else:
            labeled, real = counted & ((label == T) | (label == X)), counted & (lenient == X)
        return np.column_stack([labeled & real, labeled, real]).astype(np.int64), codes.scored

    def formula(self, counts: Ints | Floats) -> Floats:
        return np.array([getattr(DetectionCounts(*line), self.figure) for line in counts.tolist()], np.float64)


@dataclass(frozen=True)
class BreakdownDistance(RowMetric):
    """Distance of a detector's probabilities from the annotators' shares."""

    family = "breakdown-distance"
    presets = {
        f"{measure}-{grouping}": {"measure": measure, "grouping": grouping}
        for measure in ("jsd", "mse")
        for grouping in _GROUPS
    }
    subject = inputs.LABELS
    needs = frozenset({inputs.LABELS, inputs.ANNOTATIONS})
    better = "lower"
    bounds = (0.0, math.inf)

    measure: Literal["jsd", "mse"] = "jsd"
    grouping: Grouping = "o-t-x"

    def score(self, batch: Batch) -> Floats:
        share, probabilities = compute_shares(batch), batch.numbers(inputs.LABELS)[:, 1:]
        distance = jensen_shannon if self.measure == "jsd" else squared_error
        with np.errstate(all="ignore"):  # what cannot be scored is sorted out below
            values = distance(group_labels(probabilities, self.grouping), group_labels(share, self.grouping))
            usable = ((probabilities >= 0) & (probabilities <= LARGEST)).all(axis=1) & np.isfinite(values)
        return np.where(usable, values, np.nan)


def group_labels(distribution: Floats, grouping: Grouping) -> list[Floats]:
    """Return a column per label of the grouping, added up from left to right as the original does."""
    return [
        sum((distribution[:, label] for label in group[1:]), distribution[:, group[0]]) for group in _GROUPS[grouping]
    ]


def jensen_shannon(left: list[Floats], right: list[Floats]) -> Floats:
    """Return the Jensen-Shannon divergence of each row, in bits."""
    middle = [(p + q) / 2 for p, q in zip(left, right, strict=True)]
    return (divergence(left, middle) + divergence(right, middle)) / 2


def squared_error(left: list[Floats], right: list[Floats]) -> Floats:
    """Return the mean squared difference of each row."""
    squares = [(p - q) ** 2 for p, q in zip(left, right, strict=True)]
    return sum(squares[1:], squares[0]) / len(squares)


def divergence(left: list[Floats], right: list[Floats]) -> Floats:
    """Return the Kullback-Leibler divergence of each row, in bits; 0 counts as 0 times any logarithm."""
    parts = [np.where(p == 0, 0.0, p * np.log2(p / q)) for p, q in zip(left, right, strict=True)]
    return sum(parts[1:], parts[0])


@dataclass(frozen=True)
class Tables:
    """The statistics and both confusion tables of one detector at one threshold.

    Turns without a label or a reference, and labels other than O, T and X, are in neither table.

    Attributes:
        threshold: The threshold of the reference labels.
        dialogues: The number of dialogues.
        turns: The number of annotated turns.
        scored: Turns with a label and a reference.
        correct: Turns with the right label.
        references: The number of turns with each reference label.
        confusion: `confusion[label][reference]`, turns over O, T and X.
        confusion_lenient: The same with the references O and X only; T counts as X.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.breakdown import evaluate_breakdown
        >>> talks = sample_data.folder() / "breakdown"
        >>> run = evaluate_breakdown(talks / "data", talks / "keywords", threshold=0.5)
        >>> run.tables["keywords"][0.5].confusion["O"]
        {'O': 9, 'T': 1, 'X': 0}
    """

    threshold: float
    dialogues: int
    turns: int
    scored: int
    correct: int
    references: dict[str, int]
    confusion: dict[str, dict[str, int]]
    confusion_lenient: dict[str, dict[str, int]]

    @property
    def x(self) -> DetectionCounts:
        """The counts behind precision and recall of X."""
        labeled = self.confusion["X"]
        return DetectionCounts(labeled["X"], sum(labeled.values()), self.references["X"])

    @property
    def tx(self) -> DetectionCounts:
        """The counts behind precision and recall of T and X together."""
        rows = self.confusion_lenient
        predicted, labeled = rows["T"]["X"] + rows["X"]["X"], sum(rows["T"].values()) + sum(rows["X"].values())
        return DetectionCounts(predicted, labeled, sum(row["X"] for row in rows.values()))


def count_tables(codes: Codes, dialogues: int, threshold: float) -> Tables:
    """Count the tables of one detector."""
    label, hard, lenient = codes
    counted = codes.scored & (label != OTHER)
    confusion = _cross_tabulate(label[counted], hard[counted], LABELS)
    return Tables(
        threshold=threshold,
        dialogues=dialogues,
        turns=len(label),
        scored=int(codes.scored.sum()),
        correct=int((label == hard).sum()),
        references={name: sum(row[name] for row in confusion.values()) for name in LABELS},
        confusion=confusion,
        confusion_lenient=_cross_tabulate(label[counted], lenient[counted], ("O", "X")),
    )


def _cross_tabulate(label: Floats, reference: Floats, names: Sequence[str]) -> dict[str, dict[str, int]]:
    pairs: Ints = (3 * label + reference).astype(np.int64)
    rows = np.bincount(pairs, minlength=9).reshape(3, 3).tolist()
    return {label: {name: row[LABELS.index(name)] for name in names} for label, row in zip(LABELS, rows, strict=True)}


def make_floors(counts: Floats, thresholds: Sequence[float], development: Floats | None = None) -> dict[str, Floats]:
    """Return the labels column of each floor by its name; `counts` are the annotations of the test set."""
    columns = {}
    for threshold in thresholds:
        best = find_best_constant(counts, threshold)
        columns[f"floor/best-constant-{LABELS[best]}"] = repeat_label(best, len(counts))
    columns["floor/always-X"] = repeat_label(X, len(counts))
    mean = mean_distribution(counts if development is None else development)
    name = "floor/mean-of-test-set" if development is None else "floor/mean-of-development-set"
    columns[name] = np.tile([float(np.argmax(mean)), *mean], (len(counts), 1))
    return columns


def find_best_constant(counts: Floats, threshold: float) -> int:
    """Return the code of the most frequent reference (ties: O before T before X)."""
    reference = hard_reference(shares(counts), threshold)
    labels = reference[~np.isnan(reference)].astype(np.int64)
    return int(np.argmax(np.bincount(labels, minlength=len(LABELS))))


def repeat_label(code: int, turns: int) -> Floats:
    """Return the labels column of a detector that always says the same, and is sure of it."""
    return np.tile([float(code), *np.eye(len(LABELS))[code]], (turns, 1))


def mean_distribution(counts: Floats) -> Floats:
    """Return the mean of the turns' shares."""
    share = shares(counts)
    labeled = share[~np.isnan(share[:, 0])]
    return np.asarray(labeled.mean(axis=0) if len(labeled) else np.full(len(LABELS), 1 / len(LABELS)))


def make_annotators(counts: Floats) -> tuple[Ints, Floats, Floats]:
    """Return each annotator of each turn as a detector: rows of the data, labels column, annotations that are left."""
    usable = np.flatnonzero(counts.sum(axis=1) >= 2)
    repeats = counts[usable].astype(np.int64)
    rows = np.repeat(usable, repeats.sum(axis=1))
    codes = np.repeat(np.tile(np.arange(len(LABELS)), len(usable)), repeats.ravel())
    one_hot = np.eye(len(LABELS))[codes]
    return rows, np.column_stack([codes.astype(np.float64), one_hot]), counts[rows] - one_hot


def make_oracle(counts: Floats) -> tuple[Ints, Floats, Floats]:
    """Return a detector that knows the shares: rows of the data, labels column, annotations drawn from the shares."""
    rows = np.flatnonzero(counts.sum(axis=1) >= 1)
    share = shares(counts[rows])
    drawn = np.random.default_rng(SEED).multinomial(counts[rows].sum(axis=1).astype(np.int64), share)
    return rows, np.column_stack([np.argmax(share, axis=1).astype(np.float64), share]), drawn.astype(np.float64)
