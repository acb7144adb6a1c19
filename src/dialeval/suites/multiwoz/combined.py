"""Combined score: Inform, Success and BLEU in one number, which papers on MultiWOZ report.

    combined = 0.5 * (inform + success) + bleu

with each of the three in percent, over all dialogues and turns of a system, so that 200 is the most. BLEU is that
against one reference set (`references`); `dialeval multiwoz` takes the first of the data, `mwz22` where it is there.
The other settings are those of Inform, Success and BLEU.

Paper: Mehri, Srinivasan and Eskenazi 2019, "Structured Fusion Networks for Dialog", SIGDIAL.

The MultiWOZ evaluation leaves the sum to its readers, who add up rounded figures. Here nothing is rounded.

Edge cases: without a single response there is no BLEU, and so no combined score. A dialogue or a turn has no value of
its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch, Need
from dialeval.core.contributions import Resamples, RowSums
from dialeval.core.exact import BySize, merged
from dialeval.core.fold import Estimate, Fact, Metric, Partial
from dialeval.metrics.counting import Missing, SummedCounts, cluster_counts, corpus_error
from dialeval.suites.multiwoz.bleu import TaskBleu
from dialeval.suites.multiwoz.data import MAIN_REFERENCES
from dialeval.suites.multiwoz.inform import HELD, Inform, RateState
from dialeval.suites.multiwoz.success import Success
from dialeval.suites.multiwoz.turns import Fallback, Given, WhatIsGiven
from dialeval.text.similarity import Ratio

Value = TypeVar("Value", float, Floats)
CombinedState = tuple[RateState, RateState, SummedCounts, BySize]
"""The states of Inform, Success and BLEU, and what dialogues add to all three, for the interval."""


@dataclass(frozen=True)
class Combined(Metric[CombinedState]):
    """Mean of Inform and Success, plus BLEU; from 0 to 200."""

    family = "combined"
    presets = {"combined": {}}
    subject = Need.TASK_TURNS
    needs = Inform.needs | TaskBleu.needs
    wants = Inform.wants
    better = "higher"
    bounds = (0.0, 200.0)
    whole_dialogues = True

    references: str = MAIN_REFERENCES
    fallback: Fallback = "file"
    missing: Missing = "ignored"
    ratio: Ratio = "historical"

    @property
    def facts(self) -> tuple[Fact[Given, Given], ...]:
        return (WhatIsGiven(),)

    @property
    def _inform(self) -> Inform:
        return Inform(self.fallback, self.missing, self.ratio)

    @property
    def _success(self) -> Success:
        return Success(self.fallback, self.missing, self.ratio)

    @property
    def _bleu(self) -> TaskBleu:
        return TaskBleu(self.references, self.missing)

    @property
    def _rates(self) -> str:
        """The name of what dialogues add to Inform and Success: one line per row, that of the first row counts."""
        return f"task-rates/{self.fallback}/{self.missing}/{self.ratio}"

    def empty(self) -> CombinedState:
        return self._inform.empty(), self._success.empty(), self._bleu.empty(), {}

    def partial(self, batch: Batch) -> Partial[CombinedState]:
        inform, success, bleu = self._inform, self._success, self._bleu
        informed, succeeded, said = inform.partial(batch), success.partial(batch), bleu.partial(batch)
        rates = np.zeros((len(batch), 3))
        held = [informed.items[inform.name], succeeded.items[success.name]]
        rates[batch.dialogues[:-1]] = np.column_stack([~np.isnan(held[0]), *(items == HELD for items in held)])
        scored, *counts = said.contributions[bleu.contribution].values.T  # type: ignore[union-attr]
        together = np.column_stack((rates, *counts)).astype(np.int64)
        clusters = cluster_counts(together, scored > 0, batch.dialogues)
        state = informed.state, succeeded.state, said.state, clusters
        return Partial(state, {}, {**said.contributions, self._rates: RowSums(rates)})

    def merge(self, left: CombinedState, right: CombinedState) -> CombinedState:
        return (
            self._inform.merge(left[0], right[0]),
            self._success.merge(left[1], right[1]),
            self._bleu.merge(left[2], right[2]),
            merged(left[3], right[3]),
        )

    def finish(self, state: CombinedState) -> Mapping[str, Estimate]:
        inform = self._inform.finish(state[0])[self._inform.name]
        success = self._success.finish(state[1])[self._success.name]
        bleu = self._bleu.finish(state[2])[self._bleu.name]
        value = combined_score(inform.mean, success.mean, bleu.mean)
        held = [round(each.mean * each.scored / HELD) if each.scored else 0 for each in (inform, success)]
        error = corpus_error(self._formula, [inform.scored, *held, *state[2].counts], state[3])
        return {self.name: Estimate(value, 0.0, bleu.rows, bleu.scored, corpus=True, error=error)}

    def _formula(self, counts: Floats) -> Floats:
        """The score of dialogues, those informed, those that succeeded, and the counts of BLEU."""
        dialogues, informed, succeeded = np.maximum(counts[:, :3].T, [[1.0], [0.0], [0.0]])
        bleu = self._bleu.formula(counts[:, 3:])
        return combined_score(HELD * informed / dialogues, HELD * succeeded / dialogues, bleu)

    def resampled(self, sample: Resamples) -> Floats:
        dialogues, informed, succeeded = sample.totals(self._rates).T
        with np.errstate(invalid="ignore"):  # 0 / 0: a resample without a dialogue has no value
            inform, success = HELD * informed / dialogues, HELD * succeeded / dialogues
        return combined_score(inform, success, self._bleu.resampled(sample))


def combined_score(inform: Value, success: Value, bleu: Value) -> Value:
    """The combined score of three percentages."""
    return 0.5 * (inform + success) + bleu
