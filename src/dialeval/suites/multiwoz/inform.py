"""Inform: the share of dialogues in which the system offered what the user was looking for, in percent.

    inform = 100 * dialogues in which every domain of the goal matches / dialogues

`suites/multiwoz/turns.py` says when a domain matches, `turns.py` which states and active domains are used. By domain
`inform/hotel` and so on, over the dialogues whose goal has the domain.

Papers: Budzianowski et al. 2018, "MultiWOZ: A Large-Scale Multi-Domain Wizard-of-Oz Dataset for Task-Oriented Dialogue
Modelling", EMNLP; Nekvinda and Dušek 2021, "Shades of BLEU, Flavours of Success: The Case of MultiWOZ", GEM.

The same as in the MultiWOZ evaluation of the second paper, dialogue by dialogue. Different on request:
`fallback=turn` uses true states and estimated domains only in turns that lack them, `missing=failed` counts dialogues
that the system lacks, `ratio=exact` searches names by the true partial ratio.

Edge cases: a dialogue that the system does not give is not scored, unless `missing=failed`. One that it gives without a
turn is judged, and fails unless its goal is met without an offer. Of a dialogue that is cut off the turns that are
there are judged.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dialeval.core.batch import Batch, Need
from dialeval.core.exact import Moments
from dialeval.core.fold import Estimate, Fact, Level, Metric, Partial
from dialeval.metrics.counting import Missing
from dialeval.suites.multiwoz.data import Goals
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
    """A share of dialogues in percent, in all and by domain."""

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
        """Whether a dialogue, or one domain of it, holds."""

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
    """Share of dialogues in which the right venue was offered in every domain, in percent."""

    family = "inform"
    presets = {"inform": {}}

    def holds(self, verdict: Verdict, domain: str | None) -> bool:
        return verdict.inform if domain is None else verdict.matched[domain]
