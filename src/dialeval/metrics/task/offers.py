"""Offers: which venues are on offer at the end of a dialogue, and what the system has told about each domain.

In every turn, for every domain of the goal that is active in the turn:

- if the domain's offer word is in the response (NAME; TRAINID for trains), the venues that meet the domain's state are
  on offer; they replace those of before unless they contain all of them. A state without the domain finds no venue, and
  one that has the domain without a slot, `{"train": {}}`, finds all;
- every requested word in the response (PHONE) counts as told; a word that counts only when booked (REFERENCE) does so
  only in turns by which the ground truth has the domain booked.

A placeholder counts for every active domain of the turn. A domain matches if its last offer is not empty and all its
venues meet the goal; or if the goal names the venue; or if the domain has no venues to choose from (taxi, police,
hospital); or, where offers are optional (trains), if there was none and its word was not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dialeval.core.batch import Batch
from dialeval.core.needs import Need
from dialeval.data.task.corpus import Goals
from dialeval.metrics.task.turns import Fallback, Missing, Turn, dialogue_turns
from dialeval.resources.ontology import Ontology
from dialeval.resources.venues import NONE, Venues
from dialeval.text.similarity import Ratio


@dataclass(frozen=True, slots=True)
class Criteria:
    """What dialogues are judged by; `ratio` is how venues are looked up by their names."""

    goals: Goals
    ontology: Ontology
    venues: Venues
    ratio: Ratio = "historical"
    said: dict[str, frozenset[str]] = field(default_factory=dict)
    """By response, the requested words in it; what was asked once."""

    @classmethod
    def of_batch(cls, batch: Batch, ratio: Ratio) -> Criteria:
        """The resources of a batch."""
        return cls(batch.resource(Need.GOALS), batch.resource(Need.ONTOLOGY), batch.resource(Need.VENUES), ratio)

    def requested_in(self, response: str) -> frozenset[str]:
        """The requested words that are in a response."""
        said = self.said.get(response)
        if said is None:
            said = self.said[response] = frozenset([word for word in self.ontology.requested if word in response])
        return said


NO_WORDS: frozenset[str] = frozenset()


class Step(NamedTuple):
    """What a turn did for one domain of the goal."""

    turn: Turn
    domain: str
    offer: int | None
    """The venues that the state finds, where the turn offers any."""
    told: frozenset[str]
    early: frozenset[str]
    """Words that did not count because nothing was booked yet."""


class Verdict(NamedTuple):
    """How a dialogue ended, by domain of its goal."""

    matched: Mapping[str, bool]
    told: Mapping[str, frozenset[str]]
    complete: Mapping[str, bool]
    """Whether all requested words of a domain were told, whether or not other domains match."""

    @property
    def inform(self) -> bool:
        """Whether every domain matched."""
        return all(self.matched.values())

    @property
    def success(self) -> bool:
        """Whether every domain matched and every requested word was told."""
        return self.inform and all(self.complete.values())


def steps(turns: Sequence[Turn], dialogue: str, goal: Mapping[str, Any], criteria: Criteria) -> Iterator[Step]:
    """What each turn did for each active domain of the goal."""
    tables = criteria.venues.tables
    for turn in turns:
        active = [domain for domain in goal if domain in turn.domains]
        if not active:
            continue
        said = criteria.requested_in(turn.response)
        early = said & criteria.ontology.when_booked
        for domain in active:
            table = tables.get(domain)
            offer = None
            if table is not None and table.domain.offer in turn.response:
                slots = turn.state.get(domain)
                offer = NONE if slots is None else table.query(slots, criteria.ratio)
            if not early or criteria.goals.is_booked(dialogue, turn.at, domain):
                yield Step(turn, domain, offer, said, NO_WORDS)
            else:
                yield Step(turn, domain, offer, said - early, early)


def last_offers(done: Sequence[Step]) -> dict[str, int]:
    """The venues on offer at the end, by domain."""
    offers: dict[str, int] = {}
    for step in done:
        if step.offer is not None:
            before = offers.get(step.domain, NONE)
            if before == NONE or before & ~step.offer:
                offers[step.domain] = step.offer
    return offers


def matches(domain: str, wishes: Mapping[str, Any], offer: int, criteria: Criteria) -> bool:
    """Whether the last offer meets what the goal wants of a domain."""
    table = criteria.venues.tables.get(domain)
    if table is None or criteria.ontology.named_by in wishes["informable"]:
        return True
    if table.domain.optional and offer == NONE and table.domain.offer not in wishes["requestable"]:
        return True
    return offer != NONE and not offer & ~goal_venues(domain, wishes, criteria)


def goal_venues(domain: str, wishes: Mapping[str, Any], criteria: Criteria) -> int:
    """The venues that meet the goal."""
    slots = criteria.ontology.states.domain(wishes["informable"])
    return criteria.venues[domain].query(slots, criteria.ratio)


def verdict(done: Sequence[Step], goal: Mapping[str, Any], criteria: Criteria) -> Verdict:
    """How a dialogue ended, from all its steps."""
    offers = last_offers(done)
    told = dict.fromkeys(goal, NO_WORDS)
    for step in done:
        if step.told:
            told[step.domain] |= step.told
    return Verdict(
        {domain: matches(domain, wishes, offers.get(domain, NONE), criteria) for domain, wishes in goal.items()},
        told,
        {domain: told[domain].issuperset(wishes["requestable"]) for domain, wishes in goal.items()},
    )


def verdicts(batch: Batch, fallback: Fallback, missing: Missing, ratio: Ratio) -> list[Verdict | None]:
    """The verdict of each dialogue of a batch, None where the system does not give it; once for all metrics."""
    criteria = Criteria.of_batch(batch, ratio)
    dialogues = dialogue_turns(batch, fallback, missing)

    def judged(dialogue: str, turns: Sequence[Turn]) -> Verdict:
        goal = criteria.goals.goals[dialogue]
        return verdict(list(steps(turns, dialogue, goal, criteria)), goal, criteria)

    return batch.derived(
        ("task verdicts", fallback, missing, ratio),
        lambda: [None if turns is None else judged(dialogue, turns) for dialogue, turns in dialogues],
    )
