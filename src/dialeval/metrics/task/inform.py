"""Inform: the share of dialogues in which the system offered what the user was looking for, in per cent.

    inform = 100 * dialogues in which every domain of the goal matches / dialogues

`metrics/task/offers.py` says when a domain matches, `turns.py` which states and active domains are used. By domain
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

from dataclasses import dataclass

from dialeval.metrics.task.offers import Verdict
from dialeval.metrics.task.rates import Rate


@dataclass(frozen=True)
class Inform(Rate):
    """Share of dialogues in which the right venue was offered in every domain, in per cent."""

    family = "inform"
    presets = {"inform": {}}

    def holds(self, verdict: Verdict, domain: str | None) -> bool:
        return verdict.inform if domain is None else verdict.matched[domain]
