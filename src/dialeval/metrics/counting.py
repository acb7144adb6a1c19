"""Metrics of counts: one formula over a few whole numbers, for a row and for all rows together.

    value of a row      = formula(its counts)
    value of the corpus = formula(sum of the counts of all scored rows)

Counts are integers, so the corpus value is the same whatever the batches and the order. A row that cannot be scored
adds nothing to the sums. A metric reports the corpus value, or the mean of the values of single rows (`of_corpus`); the
items are the values of single rows in both cases.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.contributions import Resamples, RowSums
from dialeval.core.exact import BySize, ClusterError, Moments, formula_error, merge_sums, sum_by_size
from dialeval.core.fold import Estimate, Metric, Partial

Per = Literal["corpus", "response"]
Missing = Literal["ignored", "failed"]
"""How a metric of task dialogues treats turns or frames that a system does not give."""
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SummedCounts:
    """The counts of all scored rows, and the moments of the values of single rows (without sums for a corpus value)."""

    counts: tuple[int, ...]
    moments: Moments
    clusters: BySize = field(default_factory=dict)
    """The counts of dialogues and their products, for the interval of a corpus value."""


@dataclass(frozen=True)
class CountMetric(Metric[SummedCounts]):
    """A metric that is a formula of counts; a subclass says what is counted, and the formula."""

    has_items: ClassVar[bool] = True
    """Whether the formula has a meaning for a single row."""

    @property
    def of_corpus(self) -> bool:
        """Whether the value of all rows together is reported, and not the mean over rows (a setting `per=response`)."""
        return getattr(self, "per", "corpus") == "corpus"

    @property
    @abstractmethod
    def width(self) -> int:
        """How many counts a row has."""

    @property
    def contribution(self) -> str:
        """The name under which a run keeps the counts of single rows; equal names mean equal counts."""
        return self.name

    @abstractmethod
    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        """Return the counts of every row, one line each, and which rows can be scored."""

    @abstractmethod
    def formula(self, counts: Ints | Floats) -> Floats:
        """Return the value of each line of counts; numbers between counts are asked for its slopes."""

    def score_rows(self, counts: Ints) -> Floats:
        """Return the values of single rows, where they are not those of the formula."""
        return self.formula(counts)

    def score(self, batch: Batch) -> Floats:
        """Return the values of single rows; NaN for a row that cannot be scored."""
        counts, scored = self._count_scored(batch)
        return np.where(scored, self.score_rows(counts), np.nan)

    def _count_scored(self, batch: Batch) -> tuple[Ints, Flags]:
        """Return the counts of every row, 0 for rows that cannot be scored, and which can."""
        counts, scored = self.count_rows(batch)
        return (counts if scored.all() else np.where(scored[:, None], counts, 0)), scored

    def empty(self) -> SummedCounts:
        return SummedCounts((0,) * self.width, Moments())

    def partial(self, batch: Batch) -> Partial[SummedCounts]:
        if not self.of_corpus:  # nobody asks for the sums of counts
            items = self.score(batch)
            return Partial(SummedCounts((0,) * self.width, Moments.of(items, batch.dialogues)), {self.name: items})
        counts, scored = self._count_scored(batch)
        items = np.where(scored, self.score_rows(counts) if self.has_items else 0.0, np.nan)
        # A corpus value has no spread over rows, and exact sums of the items would cost more than the counts.
        moments = Moments(len(items), int(scored.sum()))
        totals = tuple(counts.sum(axis=0).tolist())
        state = SummedCounts(totals, moments, sum_by_dialogue(counts, scored, batch.dialogues))
        rows = {self.contribution: RowSums(np.concatenate((scored[:, None], counts), axis=1, dtype=np.float64))}
        return Partial(state, {self.name: items} if self.has_items else {}, rows)

    def score_resamples(self, sample: Resamples) -> Floats:
        if not self.of_corpus:
            return super().score_resamples(sample)
        totals: Ints = sample.totals(self.contribution).astype(np.int64)
        return np.where(totals[:, 0] > 0, self.formula(totals[:, 1:]), np.nan)

    def merge(self, left: SummedCounts, right: SummedCounts) -> SummedCounts:
        counts = tuple(a + b for a, b in zip(left.counts, right.counts, strict=True))
        return SummedCounts(counts, left.moments + right.moments, merge_sums(left.clusters, right.clusters))

    def finish(self, state: SummedCounts) -> Mapping[str, Estimate]:
        rows = Estimate.of_moments(state.moments, self.bounds)
        if not self.of_corpus:
            return {self.name: rows}
        value = float(self.formula(np.array([state.counts]))[0]) if rows.scored else np.nan
        error = corpus_error(self.formula, state.counts, state.clusters)
        return {self.name: Estimate(value, 0.0, rows.units, rows.scored, corpus=True, error=error)}


def sum_by_dialogue(counts: Ints, scored: Flags, dialogues: Ints) -> BySize:
    """Return the counts of dialogues and their products, by the number of scored rows."""
    if np.array_equal(dialogues, np.arange(len(counts) + 1)):  # each row is a dialogue
        return sum_by_size(counts, scored.astype(np.int64))
    sums = np.zeros((len(counts) + 1, 1 + counts.shape[1]), np.int64)
    np.cumsum(np.column_stack((scored, counts)), axis=0, out=sums[1:])
    of_dialogues = np.diff(sums[dialogues], axis=0)
    return sum_by_size(of_dialogues[:, 1:], of_dialogues[:, 0])


def corpus_error(formula: Callable[[Floats], Floats], counts: Sequence[int], clusters: BySize) -> ClusterError | None:
    """Return the standard error over dialogues of a formula of summed counts."""
    number = sum(sums[0] for sums in clusters.values())
    if number < 2:
        return None
    # Slopes over a step of one dialogue: formulas have bends, such as the brevity penalty.
    totals = np.array(counts, np.float64)
    steps = totals / number
    above, below = np.split(formula(np.concatenate((totals + np.diag(steps), totals - np.diag(steps)))), 2)
    return formula_error(clusters, (above - below) / np.where(steps > 0, 2 * steps, 1))
