"""Inform, Success and the combined score of task dialogues, by the rules of the MultiWOZ evaluation.

    inform   = 100 * dialogues in which every domain of the goal matches / dialogues
    success  = 100 * dialogues that match in every domain and in which every requested word was told / dialogues
    combined = 0.5 * (inform + success) + bleu

Inform is the fraction of dialogues in which the system offered what the user was looking for, Success the fraction of
those with the right offers in which every request was answered, in percent. A dialogue that does not match in every
domain fails Success in all of them, so that a domain's value depends on the other domains too. By domain
`inform/hotel`, `success/hotel` and so on, over the dialogues whose goal has the domain. `suites/multiwoz/turns.py` says
when a domain matches, when a word counts as told, and which states and active domains are used.

The combined score takes each of the three in percent, over all dialogues and turns of a system, so that 200 is the
most. BLEU is that against one reference set (`references`); `dialeval multiwoz` takes the first of the data, `mwz22`
where it is there. The MultiWOZ evaluation leaves the sum to its readers, who add up rounded values. Here nothing is
rounded.

Papers: Budzianowski et al. 2018, "MultiWOZ: A Large-Scale Multi-Domain Wizard-of-Oz Dataset for Task-Oriented Dialogue
Modelling", EMNLP; Mehri, Srinivasan and Eskenazi 2019, "Structured Fusion Networks for Dialog", SIGDIAL; Nekvinda and
Dušek 2021, "Shades of BLEU, Flavours of Success: The Case of MultiWOZ", GEM.

The same as in the MultiWOZ evaluation of the last paper, dialogue by dialogue. Different on request: `fallback=turn`
uses true states and estimated domains only in turns that lack them, `missing=failed` counts dialogues that the system
lacks, `ratio=exact` searches names by the true partial ratio.

Edge cases: a dialogue that the system does not give is not scored, unless `missing=failed`. One that it gives without a
turn is judged, and fails unless its goal is met without an offer. Of a dialogue that is cut off the turns that are
there are judged. Without a single response there is no BLEU, and so no combined score. A dialogue or a turn has no
combined score of its own.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch, Need
from dialeval.core.contributions import Resamples, RowSums
from dialeval.core.exact import BySize, Moments, merged
from dialeval.core.fold import Estimate, Fact, Level, Metric, Partial
from dialeval.metrics.counting import Missing, SummedCounts, cluster_counts, corpus_error
from dialeval.suites.multiwoz.bleu import TaskBleu
from dialeval.suites.multiwoz.data import MAIN_REFERENCES, Goals
from dialeval.suites.multiwoz.turns import Fallback, Given, Verdict, WhatIsGiven, verdicts
from dialeval.text.similarity import Ratio

# Rates of dialogues: what Inform and Success have in common.
#
#     rate        = 100 * dialogues that hold / dialogues
#     rate/DOMAIN = 100 * dialogues in which the domain holds / dialogues whose goal has the domain
#
# An item is one dialogue: 100 where it holds, 0 where it does not, NaN where the system does not give the dialogue, or
# the goal does not have the domain. A dialogue that is given without a turn is judged, as in the original. With
# `missing=failed` dialogues of which the system has no turn are 0.

HELD, FAILED = 100.0, 0.0


RateState = Mapping[str, Moments]
"""By result key the moments of all dialogues, and of those of each domain that some goal has."""


@dataclass(frozen=True)
class Rate(Metric[RateState]):
    """A fraction of dialogues in percent, in all and by domain."""

    subject = Need.TASK_TURNS
    level = Level.DIALOGUE
    needs = frozenset({Need.TASK_TURNS, Need.GOALS, Need.ONTOLOGY, Need.VENUES})
    wants = frozenset({Need.TRUE_STATES})
    better = "higher"
    bounds = (0.0, 100.0)
    definition = 2  # 1 left out dialogues without turns, and read empty values and empty domains in another way

    fallback: Fallback = "file"
    missing: Missing = "ignored"
    ratio: Ratio = "historical"

    @property
    def facts(self) -> tuple[Fact[Given, Given], ...]:
        return (WhatIsGiven(),)

    @abstractmethod
    def holds(self, verdict: Verdict, domain: str | None) -> bool:
        """Return whether a dialogue, or one domain of it, holds."""

    def empty(self) -> RateState:
        return {self.name: Moments()}

    def partial(self, batch: Batch) -> Partial[RateState]:
        return batch.derived(("rates", self), lambda: self._partial(batch))  # the combined score asks for them too

    def _partial(self, batch: Batch) -> Partial[RateState]:
        ended = verdicts(batch, self.fallback, self.missing, self.ratio)
        goals: Goals = batch.resource(Need.GOALS)
        rows = batch.objects(Need.TASK_TURNS)
        names = [rows[at]["dialogue"] for at in batch.dialogues[:-1].tolist()]
        own = self.name
        keys: dict[str | None, str] = {None: own, **{domain: f"{own}/{domain}" for domain in goals.domains}}
        lists = {domain: [math.nan] * len(ended) for domain in keys}
        for at, (name, verdict) in enumerate(zip(names, ended, strict=True)):
            if verdict is None and self.missing == "ignored":
                continue
            for domain in (None, *goals.goals[name]):
                lists[domain][at] = HELD if verdict is not None and self.holds(verdict, domain) else FAILED
        columns = {key: np.array(lists[domain]) for domain, key in keys.items()}
        moments = {key: Moments.of(column) for key, column in columns.items()}
        return Partial({key: part for key, part in moments.items() if key == own or part.scored}, columns)

    def merge(self, left: RateState, right: RateState) -> RateState:
        nothing = Moments()
        return {key: left.get(key, nothing) + right.get(key, nothing) for key in sorted({*left, *right})}

    def finish(self, state: RateState) -> Mapping[str, Estimate]:
        # A batch in which no goal has the domain has no entry for it, but all dialogues are rows of every domain.
        rows = state[self.name].rows
        return {key: Estimate.of_moments(replace(state[key], rows=rows), self.bounds) for key in sorted(state)}


@dataclass(frozen=True)
class Inform(Rate):
    """Fraction of dialogues in which the right venue was offered in every domain, in percent."""

    family = "inform"
    presets = {"inform": {}}

    def holds(self, verdict: Verdict, domain: str | None) -> bool:
        return verdict.inform if domain is None else verdict.matched[domain]


@dataclass(frozen=True)
class Success(Rate):
    """Fraction of dialogues with the right offers in which every request was answered, in percent."""

    family = "success"
    presets = {"success": {}}

    def holds(self, verdict: Verdict, domain: str | None) -> bool:
        return verdict.success if domain is None else verdict.inform and verdict.complete[domain]


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
        """Return the score of dialogues, those informed, those that succeeded, and the counts of BLEU."""
        dialogues, informed, succeeded = np.maximum(counts[:, :3].T, [[1.0], [0.0], [0.0]])
        bleu = self._bleu.formula(counts[:, 3:])
        return combined_score(HELD * informed / dialogues, HELD * succeeded / dialogues, bleu)

    def resampled(self, sample: Resamples) -> Floats:
        dialogues, informed, succeeded = sample.totals(self._rates).T
        with np.errstate(invalid="ignore"):  # 0 / 0: a resample without a dialogue has no value
            inform, success = HELD * informed / dialogues, HELD * succeeded / dialogues
        return combined_score(inform, success, self._bleu.resampled(sample))


def combined_score(inform: Value, success: Value, bleu: Value) -> Value:
    """Return the combined score of three percentages."""
    return 0.5 * (inform + success) + bleu
