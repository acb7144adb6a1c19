"""Metrics of a help desk.

openings   different first words of the replies, divided by the replies: a corpus value
tone       mean of the tone that the judge of this package hears, from 0 to 1
resolved   fraction of tickets that were resolved: a field of the rows
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dialeval.plugin import Batch, Estimate, Floats, Metric, Partial, RowMetric, inputs, metric_of_rows
from helpdesk import TONE


@dataclass(frozen=True)
class Openings(Metric[Counter[str]]):
    """Different first words of the replies, divided by the number of replies."""

    family = "openings"
    needs = frozenset({inputs.RESPONSE})
    better = "higher"
    bounds = (0.0, 1.0)

    def empty(self) -> Counter[str]:
        return Counter()

    def partial(self, batch: Batch) -> Partial[Counter[str]]:
        words = Counter(text.split(" ")[0].lower() for text in batch.texts(inputs.RESPONSE) if text)
        return Partial(words, {})

    def finish(self, state: Counter[str]) -> Mapping[str, Estimate]:
        replies = state.total()
        return {self.name: Estimate(len(state) / max(replies, 1), 0.0, replies, replies, corpus=True)}


@dataclass(frozen=True)
class Tone(RowMetric):
    """Mean tone of the replies."""

    family = "tone"
    needs = frozenset({inputs.RESPONSE, TONE})
    better = "higher"
    bounds = (0.0, 1.0)

    def score(self, batch: Batch) -> Floats:
        responses = list(batch.texts(inputs.RESPONSE))
        none: list[list[str]] = [[]] * len(responses)
        return np.asarray(batch.resource(TONE).score(none, responses, none), np.float64)


@metric_of_rows("resolved", better="higher", bounds=(0, 1))
def resolved(ticket_resolved: bool, channel: str = "web") -> float | None:
    """Return whether a ticket was resolved; tickets of tests do not count."""
    return None if channel == "test" else float(ticket_resolved)
