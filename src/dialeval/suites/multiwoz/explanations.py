"""Explanations of task dialogues: the trace of the turns, and a cause for every domain that lost Inform or Success.

`Transcript` is an explanation as a saved run and its report hold it, and `TaskDetails` what a run holds of them.

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

Gold replies with true states lose dialogues too: `Explanation.find_origin` returns what in the annotation causes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct

from dialeval.core.errors import escape_lines
from dialeval.core.run_schema import Count
from dialeval.suites.multiwoz import turns as rules
from dialeval.suites.multiwoz.data import Goal
from dialeval.suites.multiwoz.turns import NONE, Criteria, DialogueVerdict, TaskTurn, TurnStep

WRONG_VENUE = "wrong venue"
NO_OFFER = "no offer"
NEVER_INFORMED = "never informed"
DOMAIN_ESTIMATE = "domain estimate"
NOT_ACTIVE = "domain not active"
EARLY = "reference before booking"
SHOWN_VENUES = 3
_ORIGINS = {
    NO_OFFER: "no venue meets the annotated state",
    NEVER_INFORMED: "no reply has the placeholder of an offer in the domain",
    DOMAIN_ESTIMATE: "the placeholder is in a turn whose estimated domain is another",
    NOT_ACTIVE: "the placeholder is in a turn whose active domain is another",
    EARLY: "the reference is given before the turn that is annotated as booked",
}
"""By cause what is behind it where the replies are gold."""


class Cause(Struct, frozen=True):
    """Why a dialogue was lost."""

    lost: str
    """inform or success."""
    domain: str
    cause: str
    detail: str

    def __str__(self) -> str:
        return f"lost {self.lost}, {self.domain}: {self.cause}; {self.detail}"


class SavedTurn(Struct, kw_only=True):
    """A turn of a task dialogue."""

    turn: Count
    user: str | None = None
    """What the user said before, where the data has it."""
    response: str
    notes: list[str]
    """The active domains and the state."""
    steps: list[str]
    """What the turn did that counts, and what did not count."""


class Transcript(Struct):
    """An entry of the detail `transcripts`: one dialogue of a system."""

    dialogue: str
    inform: bool
    success: bool
    goal: list[str]
    turns: list[SavedTurn]
    causes: list[Cause]


class TaskDetails(Struct):
    """What a saved run of task dialogues holds about single dialogues, by system."""

    transcripts: dict[str, list[Transcript]] = {}
    failures: dict[str, dict[str, list[str]]] = {}
    """The dialogues that were lost by each cause."""


@dataclass(frozen=True)
class Explanation:
    """A dialogue turn by turn, and why it failed."""

    dialogue: str
    turns: Sequence[TaskTurn]
    criteria: Criteria

    @property
    def goal(self) -> Goal:
        """Goal of the user, by domain."""
        return self.criteria.goals.goals[self.dialogue]

    @cached_property
    def steps(self) -> Sequence[TurnStep]:
        """What each turn did for each domain of the goal."""
        return list(rules.trace_steps(self.turns, self.dialogue, self.goal, self.criteria))

    @cached_property
    def verdict(self) -> DialogueVerdict:
        """How the dialogue ended."""
        return rules.judge_dialogue(self.steps, self.goal, self.criteria)

    @cached_property
    def causes(self) -> Sequence[Cause]:
        """Why it failed; empty if it did not."""
        ended = self.verdict
        if not ended.inform:
            lost = [domain for domain, matched in ended.matched.items() if not matched]
            return [Cause("inform", domain, *self._explain_offer(domain)) for domain in lost]
        requested = ((domain, word) for domain, wishes in self.goal.items() for word in wishes["requestable"])
        missing = [(domain, word) for domain, word in requested if word not in ended.provided[domain]]
        return [Cause("success", domain, *self._explain_word(domain, word)) for domain, word in missing]

    def to_transcript(self, users: Sequence[str] | None = None) -> Transcript:
        """Return the explanation as a saved run holds it; `users`: what the user said before each turn."""
        turns = [
            SavedTurn(
                turn=turn.at,
                user=None if users is None else users[turn.at],
                response=turn.said,
                notes=list(_describe_turn(turn)),
                steps=list(self._describe_steps(turn)),
            )
            for turn in self.turns
        ]
        goal = []
        for domain, wishes in self.goal.items():
            asked = ", ".join(wishes["requestable"])
            goal.append(f"{domain}: {_join_slots(wishes['informable'])}" + (f"; asked for {asked}" if asked else ""))
        ended = self.verdict
        return Transcript(self.dialogue, ended.inform, ended.success, goal, turns, list(self.causes))

    def __str__(self) -> str:
        return escape_lines("\n".join(self.lines()))

    def lines(self) -> Iterator[str]:
        """Yield the explanation line by line."""
        shown = self.to_transcript()
        yield f"{self.dialogue}: inform {_yes_or_no(shown.inform)}, success {_yes_or_no(shown.success)}"
        yield ""
        yield from (f"goal {line}" for line in shown.goal)
        for saved, turn in zip(shown.turns, self.turns, strict=True):
            yield ""
            yield f"[{turn.at + 1}] {turn.response}"
            yield from (f"    {line}" for line in (*saved.notes, *saved.steps))
        yield ""
        yield from map(str, shown.causes)
        if not shown.causes:
            yield "nothing was lost"

    def _describe_steps(self, turn: TaskTurn) -> Iterator[str]:
        for step in self.steps:
            if step.turn is turn:
                if step.offer is not None:
                    yield f"{step.domain}: offers {self._describe_venues(step.domain, step.offer)}"
                if step.provided:
                    yield f"{step.domain}: provides {', '.join(sorted(step.provided))}"
                if step.early:
                    early = ", ".join(sorted(step.early))
                    yield f"{step.domain}: provides {early} before the booking, which does not count"
        for domain in self.goal:
            words = [] if domain in turn.domains else self._find_useful_words(turn, domain)
            if words:
                yield f"{domain} is not active: {', '.join(words)} does not count"

    def _find_useful_words(self, turn: TaskTurn, domain: str) -> list[str]:
        """Return the words of a turn that would count for a domain of the goal if it were active."""
        about = self.criteria.ontology.domains.get(domain)
        if about is None:
            return []
        offer = [about.offer] if domain in self.criteria.venues else []
        words = dict.fromkeys([*offer, *self.goal[domain]["requestable"]])
        return [word for word in words if word in turn.response]

    def _explain_offer(self, domain: str) -> tuple[str, str]:
        """Return cause and detail of a domain that does not match."""
        offering = [step for step in self.steps if step.domain == domain and step.offer is not None]
        if not offering:
            offers = {name: table.domain.offer for name, table in self.criteria.venues.tables.items()}
            takers = {name for name in self.goal if offers.get(name) == offers[domain]}
            return self._explain_absence(offers[domain], domain, takers, NEVER_INFORMED)
        offer = rules.find_last_offers(offering)[domain]
        last = next(step for step in reversed(offering) if step.offer == offer)
        if offer == NONE:
            return NO_OFFER, f"turn {last.turn.at + 1}: {self._explain_no_venue(last)}"
        return WRONG_VENUE, f"turn {last.turn.at + 1}: {self._describe_wrong_venues(last, offer)}"

    def _explain_word(self, domain: str, word: str) -> tuple[str, str]:
        """Return cause and detail of a requested slot that was not provided."""
        early = [step.turn.at for step in self.steps if step.domain == domain and word in step.early]
        if early:
            return EARLY, f"{word} was provided in {_name_turns(early)}, before {domain} was booked"
        takers = {name for name, wishes in self.goal.items() if word in wishes["requestable"]}
        return self._explain_absence(word, domain, takers, f"missing {word}")

    def _explain_absence(self, word: str, domain: str, takers: set[str], otherwise: str) -> tuple[str, str]:
        """Return cause and detail where a word was said in no turn in which the domain was active.

        `takers` are the domains of the goal that have a use for the word.
        """
        said = [turn for turn in self.turns if word in turn.response]
        stray = [turn for turn in said if not takers.intersection(turn.domains)]
        if stray:
            active = sorted({name for turn in stray for name in turn.domains}) or ["none"]
            cause = DOMAIN_ESTIMATE if stray[0].estimated else NOT_ACTIVE
            places = _name_turns([turn.at for turn in stray])
            return cause, f"{word} was said in {places}, where {domain} was not active but {', '.join(active)}"
        if said:
            others = sorted({name for turn in said for name in turn.domains})
            return otherwise, f"{word} was said only for {', '.join(others)}"
        return otherwise, f"no response has {word}"

    def _explain_no_venue(self, step: TurnStep) -> str:
        """Return why the state of a turn finds no venue."""
        slots = step.turn.state.get(step.domain)
        if slots is None:
            return f"the state has nothing about {step.domain}"
        table, ratio = self.criteria.venues[step.domain], self.criteria.ratio
        alone = {slot: value for slot, value in slots.items() if table.find_matching(slot, value, ratio) == NONE}
        if alone:
            return f"no venue has {_join_slots(alone)}"
        others = {slot: {name: value for name, value in slots.items() if name != slot} for slot in slots}
        freeing = [slot for slot, rest in others.items() if table.query(rest, ratio)]
        hint = f"; without {' or '.join(freeing)} there would be some" if freeing else ""
        return f"no venue meets {_join_slots(slots)}{hint}"

    def _describe_wrong_venues(self, step: TurnStep, offer: int) -> str:
        """Return what is wrong with an offer: the constraints of the goal that exclude some of its venues."""
        domain, criteria = step.domain, self.criteria
        meeting = rules.find_goal_venues(domain, self.goal[domain], criteria)
        outside = offer & ~meeting
        state = step.turn.state.get(domain, {})
        reasons = []
        for slot, (value, excluded) in self._find_excluding(domain, outside).items():
            has = f"the state has {state[slot]!r}" if slot in state else "the state lacks it"
            reasons.append(f"{slot} {value!r} excludes {excluded} ({has})")
        if not meeting:
            reasons.append("no venue at all meets the goal")
        wrong = f"{outside.bit_count()} of them wrong: {'; '.join(reasons)}"
        return f"{self._describe_venues(domain, offer)} on offer, {wrong}"

    def _find_excluding(self, domain: str, outside: int) -> dict[str, tuple[str, int]]:
        """Return the constraints of the goal that exclude some of a set of venues: slot -> value, venues."""
        wanted = self.criteria.ontology.states.normalize_domain(self.goal[domain]["informable"])
        table, ratio = self.criteria.venues[domain], self.criteria.ratio
        counts = {slot: (outside & ~table.query({slot: value}, ratio)).bit_count() for slot, value in wanted.items()}
        return {slot: (wanted[slot], count) for slot, count in counts.items() if count}

    def find_origin(self, cause: Cause) -> str:
        """Return what is behind a cause where the replies are gold and the states true."""
        if cause.cause != WRONG_VENUE:
            return _ORIGINS.get(cause.cause, "no reply has the placeholder of what was asked for in the domain")
        domain = cause.domain
        meeting = rules.find_goal_venues(domain, self.goal[domain], self.criteria)
        excluding = self._find_excluding(domain, rules.find_last_offers(self.steps)[domain] & ~meeting)
        if not meeting:
            return "no venue meets the goal"
        slots = self.turns[-1].state.get(domain, {})
        if all(slots.get(slot) == value for slot, (value, _) in excluding.items()):
            return "the last offer is before the user has named a constraint"
        if any(slot in slots and slots[slot] != value for slot, (value, _) in excluding.items()):
            return "the annotated state has another value than the goal"
        return "the annotated state lacks a constraint of the goal"

    def _describe_venues(self, domain: str, offer: int) -> str:
        count = offer.bit_count()
        if not count:
            return "no venue"
        names = ", ".join(self.criteria.venues[domain].list_labels(offer, SHOWN_VENUES))
        more = ", ..." if count > SHOWN_VENUES else ""
        return f"{count} {'venue' if count == 1 else 'venues'} ({names}{more})"


def group_by_cause(explanations: Iterable[Explanation], gold: bool = False) -> dict[str, list[str]]:
    """Return the dialogues that were lost by each cause, or for gold replies by its origin; the most frequent first."""
    lost: dict[str, list[str]] = {}
    for one in explanations:
        names = (f"{cause.lost}: {one.find_origin(cause)}" if gold else cause.cause for cause in one.causes)
        for cause in dict.fromkeys(names):
            lost.setdefault(cause, []).append(one.dialogue)
    return dict(sorted(lost.items(), key=lambda entry: (-len(entry[1]), entry[0])))


def _describe_turn(turn: TaskTurn) -> Iterator[str]:
    yield f"active: {', '.join(turn.domains) or 'none'}{' (estimated)' if turn.estimated else ''}"
    state = "; ".join(f"{domain}: {_join_slots(slots)}" for domain, slots in turn.state.items())
    yield f"{'true state' if turn.true_state else 'state'}: {state or 'empty'}"


def _join_slots(slots: Mapping[str, str]) -> str:
    return ", ".join(f"{slot}={value}" for slot, value in slots.items()) or "nothing"


def _name_turns(turns: Sequence[int]) -> str:
    """Name turns, counted from 1 as on the page."""
    return f"turn{'s' * (len(turns) > 1)} {', '.join(str(at + 1) for at in turns)}"


def _yes_or_no(flag: bool) -> str:
    return "yes" if flag else "no"
