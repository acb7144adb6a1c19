"""Metrics of counts: one formula over a few whole numbers, for a response and for all of them together.

    value of a response = formula(its counts)
    value of the corpus = formula(sum of the counts of all responses)

Counts are integers, so the corpus value is the same whatever the batches and the order. `per=response` reports the mean
of the values of single responses, `per=corpus` the value of the summed counts; the items are those of single responses
under either. A row without a reference is not scored and adds nothing to the sums.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.contributions import Resamples, RowSums
from dialeval.core.exact import Moments
from dialeval.core.fold import Estimate, Metric, Partial
from dialeval.core.needs import Need

Per = Literal["corpus", "response"]


@dataclass(frozen=True, slots=True)
class SummedCounts:
    """The counts of all scored responses, and the moments of their values."""

    counts: tuple[int, ...]
    moments: Moments


@dataclass(frozen=True)
class CountMetric(Metric[SummedCounts]):
    """A metric that is a formula of counts; a subclass says what is counted, the formula, and has the setting `per`."""

    needs = frozenset({Need.RESPONSE, Need.REFERENCE})

    @property
    @abstractmethod
    def of_corpus(self) -> bool:
        """Whether the value of all responses together is reported."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many counts a row has."""

    @abstractmethod
    def counts(self, batch: Batch) -> Ints:
        """The counts of every row, one row each."""

    @abstractmethod
    def formula(self, counts: Ints) -> Floats:
        """The value of each row of counts."""

    def empty(self) -> SummedCounts:
        return SummedCounts((0,) * self.width, Moments())

    def partial(self, batch: Batch) -> Partial[SummedCounts]:
        scored = np.diff(batch.lists(Need.REFERENCE).offsets) > 0
        counts = self.counts(batch)
        items = np.where(scored, self.formula(counts), np.nan)
        sums = tuple(counts[scored].sum(axis=0).tolist())
        brought = {self.name: RowSums(np.column_stack((scored, counts)) * np.float64(scored)[:, None])}
        return Partial(SummedCounts(sums, Moments.of(items)), {self.name: items}, brought if self.of_corpus else {})

    def resampled(self, sample: Resamples) -> Floats:
        totals: Ints = sample.totals(self.name).astype(np.int64)
        return np.where(totals[:, 0] > 0, self.formula(totals[:, 1:]), np.nan)

    def merge(self, left: SummedCounts, right: SummedCounts) -> SummedCounts:
        counts = tuple(a + b for a, b in zip(left.counts, right.counts, strict=True))
        return SummedCounts(counts, left.moments + right.moments)

    def finish(self, state: SummedCounts) -> Mapping[str, Estimate]:
        rows = Estimate.of_moments(state.moments)
        if not self.of_corpus:
            return {self.name: rows}
        value = float(self.formula(np.array([state.counts]))[0]) if rows.scored else np.nan
        return {self.name: Estimate(value, 0.0, rows.rows, rows.scored, corpus=True)}
