"""Why a dialogue lost Inform or Success: the trace of its turns, and a cause for every domain that failed.

Causes of a lost Inform, by domain:

- `wrong venue`: venues were on offer at the end of which some do not meet the goal; the detail names the constraints
  of the goal that exclude them, and what the state has there;
- `no offer`: the offer's word was said while the domain was active, but no venue meets the state;
- `domain estimate`: the word was said in a turn in which the domain was not active, and no active domain of the goal
  has a use for it (`domain not active` where the system itself gives its active domains);
- `never informed`: the word was never said, or only for another domain.

Causes of a lost Success of a dialogue that matched:

- `missing PHONE` (ADDRESS and so on): the word was never said, or only for another domain;
- `reference before booking`: a word that counts only when booked was said, but only before the ground truth has a
  booking;
- `domain estimate`, `domain not active`: as above.

A dialogue has as many causes as domains and words failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialeval.metrics.task.offers import Criteria, Step, Verdict, goal_venues, last_offers, steps, verdict
from dialeval.metrics.task.turns import Turn
from dialeval.resources.venues import NONE

WRONG_VENUE = "wrong venue"
NO_OFFER = "no offer"
NEVER_INFORMED = "never informed"
DOMAIN_ESTIMATE = "domain estimate"
NOT_ACTIVE = "domain not active"
EARLY = "reference before booking"
SHOWN_VENUES = 3


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for a lost verdict."""

    measure: str
    """inform or success."""
    domain: str
    cause: str
    detail: str


@dataclass(frozen=True)
class Explanation:
    """A dialogue turn by turn, and why it failed."""

    dialogue: str
    goal: Mapping[str, Any]
    turns: Sequence[Turn]
    done: Sequence[Step]
    verdict: Verdict
    causes: Sequence[Cause]
    criteria: Criteria

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The explanation for people."""
        verdict = self.verdict
        yield f"{self.dialogue}: inform {_yes(verdict.inform)}, success {_yes(verdict.success)}"
        yield ""
        for domain, wishes in self.goal.items():
            asked = ", ".join(wishes["requestable"])
            yield f"goal {domain}: {_slots(wishes['informable'])}" + (f"; asked for {asked}" if asked else "")
        for turn in self.turns:
            yield ""
            yield from self._turn(turn)
        yield ""
        for cause in self.causes:
            yield f"lost {cause.measure}, {cause.domain}: {cause.cause}; {cause.detail}"
        if not self.causes:
            yield "nothing was lost"

    def _turn(self, turn: Turn) -> Iterator[str]:
        how = " (estimated)" if turn.estimated else ""
        yield f"[{turn.at}] {turn.response}"
        yield f"    active: {', '.join(turn.domains) or 'none'}{how}"
        source = "true state" if turn.true_state else "state"
        yield f"    {source}: {'; '.join(f'{name}: {_slots(slots)}' for name, slots in turn.state.items()) or 'empty'}"
        for step in self.done:
            if step.turn is turn:
                yield from self._step(step)
        for domain, words in _inactive(turn, self.goal, self.criteria):
            yield f"    {domain} is not active: {', '.join(words)} does not count"

    def _step(self, step: Step) -> Iterator[str]:
        if step.offer is not None:
            yield f"    {step.domain}: offers {_venues(step.domain, step.offer, self.criteria)}"
        if step.told:
            yield f"    {step.domain}: tells {', '.join(sorted(step.told))}"
        if step.early:
            yield f"    {step.domain}: tells {', '.join(sorted(step.early))} before the booking, which does not count"


def explain(dialogue: str, turns: Sequence[Turn], criteria: Criteria) -> Explanation:
    """The explanation of one dialogue."""
    goal = criteria.goals.goals[dialogue]
    done = list(steps(turns, dialogue, goal, criteria))
    found = verdict(done, goal, criteria)
    causes = list(_causes(turns, done, goal, found, criteria))
    return Explanation(dialogue, goal, turns, done, found, causes, criteria)


def _causes(
    turns: Sequence[Turn], done: Sequence[Step], goal: Mapping[str, Any], found: Verdict, criteria: Criteria
) -> Iterator[Cause]:
    if not found.inform:
        for domain, matched in found.matched.items():
            if not matched:
                mine = [step for step in done if step.domain == domain]
                yield Cause("inform", domain, *_lost_offer(turns, mine, domain, goal, criteria))
        return
    for domain, complete in found.complete.items():
        if not complete:
            mine = [step for step in done if step.domain == domain]
            for word in goal[domain]["requestable"]:
                if word not in found.told[domain]:
                    yield Cause(
                        "success", domain, *_lost_word(turns, mine, domain, word, _takers(word, goal, criteria))
                    )


def _lost_offer(
    turns: Sequence[Turn], mine: Sequence[Step], domain: str, goal: Mapping[str, Any], criteria: Criteria
) -> tuple[str, str]:
    offering = [step for step in mine if step.offer is not None]
    word = criteria.ontology.domains[domain].offer
    if not offering:
        return _never(turns, word, domain, NEVER_INFORMED, _takers(word, goal, criteria, offers=True))
    offer = last_offers(mine)[domain]
    last = next(step for step in reversed(offering) if step.offer == offer)
    if offer == NONE:
        return NO_OFFER, f"turn {last.turn.at}: {_nothing_found(last, domain, criteria)}"
    return WRONG_VENUE, f"turn {last.turn.at}: {_wrong(last, offer, domain, goal[domain], criteria)}"


def _lost_word(
    turns: Sequence[Turn], mine: Sequence[Step], domain: str, word: str, takers: frozenset[str]
) -> tuple[str, str]:
    early = [step.turn.at for step in mine if word in step.early]
    if early:
        return EARLY, f"{word} was told in {_in_turns(early)}, before {domain} was booked"
    return _never(turns, word, domain, f"missing {word}", takers)


def _takers(word: str, goal: Mapping[str, Any], criteria: Criteria, *, offers: bool = False) -> frozenset[str]:
    """The domains of the goal that have a use for a word."""
    if offers:
        return frozenset(
            name for name in goal if name in criteria.venues and criteria.ontology.domains[name].offer == word
        )
    return frozenset(name for name, wishes in goal.items() if word in wishes["requestable"])


def _never(turns: Sequence[Turn], word: str, domain: str, otherwise: str, takers: frozenset[str]) -> tuple[str, str]:
    """The cause where a word was said in no turn in which the domain was active."""
    said = [turn for turn in turns if word in turn.response]
    stray = [turn for turn in said if not takers.intersection(turn.domains)]
    if stray:
        active = sorted({name for turn in stray for name in turn.domains}) or ["none"]
        cause = DOMAIN_ESTIMATE if stray[0].estimated else NOT_ACTIVE
        places = _in_turns([turn.at for turn in stray])
        return cause, f"{word} was said in {places}, where {domain} was not active but {', '.join(active)}"
    if said:
        others = sorted({name for turn in said for name in turn.domains})
        return otherwise, f"{word} was said only for {', '.join(others)}"
    return otherwise, f"no response has {word}"


def _nothing_found(step: Step, domain: str, criteria: Criteria) -> str:
    slots = step.turn.state.get(domain)
    if not slots:
        return f"the state has nothing about {domain}"
    table = criteria.venues[domain]
    alone = [slot for slot, value in slots.items() if table.matching(slot, value, criteria.ratio) == NONE]
    if alone:
        return f"no venue has {_slots({slot: slots[slot] for slot in alone})}"
    freeing = [
        slot
        for slot in slots
        if table.query({other: value for other, value in slots.items() if other != slot}, criteria.ratio)
    ]
    hint = f"; without {' or '.join(freeing)} there would be some" if freeing else ""
    return f"no venue meets {_slots(slots)}{hint}"


def _wrong(step: Step, offer: int, domain: str, wishes: Mapping[str, Any], criteria: Criteria) -> str:
    """What is wrong with an offer: the constraints of the goal that exclude some of its venues."""
    table = criteria.venues[domain]
    outside = offer & ~goal_venues(domain, wishes, criteria)
    wanted = criteria.ontology.states.domain(wishes["informable"])
    state = step.turn.state.get(domain, {})
    reasons = []
    for slot, value in wanted.items():
        excluded = _count(outside & ~table.query({slot: value}, criteria.ratio))
        if excluded:
            has = f"the state has {state[slot]!r}" if slot in state else "the state lacks it"
            reasons.append(f"{slot} {value!r} excludes {excluded} ({has})")
    if not goal_venues(domain, wishes, criteria):
        reasons.append("no venue at all meets the goal")
    return f"{_venues(domain, offer, criteria)} on offer, {_count(outside)} of them wrong: {'; '.join(reasons)}"


def _inactive(turn: Turn, goal: Mapping[str, Any], criteria: Criteria) -> Iterator[tuple[str, list[str]]]:
    """The words of a turn that would count for a domain of the goal if it were active."""
    for domain, wishes in goal.items():
        about = criteria.ontology.domains.get(domain)
        if domain in turn.domains or about is None:
            continue
        offer = [about.offer] if domain in criteria.venues else []
        words = [word for word in dict.fromkeys([*offer, *wishes["requestable"]]) if word in turn.response]
        if words:
            yield domain, words


def _venues(domain: str, offer: int, criteria: Criteria) -> str:
    count = _count(offer)
    if not count:
        return "no venue"
    names = ", ".join(criteria.venues[domain].labels(offer, SHOWN_VENUES))
    more = ", ..." if count > SHOWN_VENUES else ""
    return f"{count} {'venue' if count == 1 else 'venues'} ({names}{more})"


def _count(venues: int) -> int:
    return venues.bit_count()


def _slots(slots: Mapping[str, str]) -> str:
    return ", ".join(f"{slot}={value}" for slot, value in slots.items()) or "nothing"


def _in_turns(turns: Sequence[int]) -> str:
    return f"turn {turns[0]}" if len(turns) == 1 else f"turns {', '.join(map(str, turns))}"


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
