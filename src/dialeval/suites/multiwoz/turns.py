"""The turns of task dialogues as Inform and Success see them: normalized, each with a state and its active domains.

Where a system gives no states the true ones stand in for it, and where it gives no active domains they are estimated
from what changes in the states. Which turns that concerns is a matter of `fallback`:

- `file` (the original's way): if one single turn of the whole file lacks a state, all turns get the true one; if one
  lacks active domains, all are estimated;
- `turn`: only the turns that lack one.

Estimated active domains, with a current domain that is none at first: a domain has changed in a turn if it has a slot
with a value that was not there before. If none has changed and there is no current domain, the turn has no active
domain. If none has changed, and several had in the turn before, the first of those that is in the state and not
current becomes current. If some have changed and the current one is not among them, that with most slots becomes it.

Why a dialogue lost Inform or Success: the trace of its turns, and a cause for every domain that failed.

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

Gold replies with true states lose dialogues too. `Explanation.origin` says what in the annotation is behind each cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dialeval.core.batch import Batch, Need
from dialeval.core.errors import NeedError
from dialeval.core.fold import Fact
from dialeval.metrics.counting import Missing
from dialeval.suites.multiwoz.venues import NONE, State, Venues, normalizer
from dialeval.text.similarity import Ratio

if TYPE_CHECKING:
    from dialeval.suites.multiwoz.data import Goals, TrueStates
    from dialeval.suites.multiwoz.ontology import Ontology

Fallback = Literal["file", "turn"]


@dataclass(frozen=True, slots=True)
class Given:
    """How many turns there are, and how many of them have a state and active domains."""

    turns: int = 0
    states: int = 0
    domains: int = 0


@dataclass(frozen=True)
class WhatIsGiven(Fact[Given, Given]):
    """What a system gives in how many turns: with the fallback `file` every turn depends on it."""

    def empty(self) -> Given:
        return Given()

    def gather(self, batch: Batch) -> Given:
        turns = [turn for turn in batch.objects(Need.TASK_TURNS) if turn["response"] is not None]
        states = sum(turn["state"] is not None for turn in turns)
        return Given(len(turns), states, sum(turn["active_domains"] is not None for turn in turns))

    def merge(self, left: Given, right: Given) -> Given:
        return Given(left.turns + right.turns, left.states + right.states, left.domains + right.domains)


class Turn(NamedTuple):
    """One turn, normalized."""

    at: int
    response: str
    state: State
    domains: Sequence[str]
    true_state: bool
    """Whether the state is the true one and not the system's."""
    estimated: bool
    """Whether the active domains are an estimate."""


def normalized_responses(batch: Batch) -> list[str | None]:
    """Return the normalized response of each row, None where it is missing; made once for all metrics of the batch."""
    ontology: Ontology = batch.resource(Need.ONTOLOGY)
    column = batch.objects(Need.TASK_TURNS)

    def make() -> list[str | None]:
        normalize = normalizer(ontology.words)
        return [None if row["response"] is None else normalize(row["response"]) for row in column]

    return batch.derive("normalized responses", make)


def dialogue_turns(batch: Batch, fallback: Fallback, missing: Missing) -> list[tuple[str, list[Turn] | None]]:
    """Return the id of each dialogue of a batch with its turns, None where the system does not give the dialogue.

    One that is given without a turn is there, as in the original; where missing turns count as failed, it is not.
    """
    given: Given = batch.fact(WhatIsGiven())
    ontology: Ontology = batch.resource(Need.ONTOLOGY)
    true_states: TrueStates | None = batch.resource(Need.TRUE_STATES) if batch.has(Need.TRUE_STATES) else None
    responses = normalized_responses(batch)
    rows = batch.objects(Need.TASK_TURNS).values

    def make() -> list[tuple[str, list[Turn] | None]]:
        dialogues: list[tuple[str, list[Turn] | None]] = []
        for start, stop in pairwise(batch.dialogues.tolist()):
            here = zip(rows[start:stop], responses[start:stop], strict=True)
            answered = [(row, text) for row, text in here if text is not None]
            turns = prepared(answered, given, fallback, ontology, true_states)
            there = turns or (rows[start]["listed"] and missing == "ignored")
            dialogues.append((rows[start]["dialogue"], turns if there else None))
        return dialogues

    return batch.derive(("task turns", fallback, missing), make)


def prepared(
    rows: Sequence[tuple[Mapping[str, Any], str]],
    given: Given,
    fallback: Fallback,
    ontology: Ontology,
    true_states: TrueStates | None,
) -> list[Turn]:
    """Return the turns of one dialogue from its rows, each with its normalized response."""
    use_true = fallback == "file" and given.states < given.turns
    estimate_all = fallback == "file" and given.domains < given.turns
    states = [ontology.states(_state(row, use_true, true_states)) for row, _ in rows]
    domains = [None if estimate_all else row["active_domains"] for row, _ in rows]
    estimates: Iterable[Any] = estimated_domains(states) if None in domains else domains
    turns = []
    for (row, response), state, own, estimate in zip(rows, states, domains, estimates, strict=True):
        estimated, true_state = own is None, use_true or row["state"] is None
        turns.append(Turn(row["turn"], response, state, estimate if own is None else own, true_state, estimated))
    return turns


def _state(row: Mapping[str, Any], use_true: bool, true_states: TrueStates | None) -> State:
    given: State | None = row["state"]
    if given is not None and not use_true:
        return given
    if true_states is None:
        raise NeedError(
            f"{row['dialogue']}[{row['turn']}] has no state, and the data has no gold_states.json to use instead; "
            "give every turn a state"
        )
    true: State = true_states.states[row["dialogue"]][row["turn"]]
    return true


def estimated_domains(states: Sequence[State]) -> Iterator[list[str]]:
    """Yield the active domains of each turn of a dialogue, from what changes in its states."""
    current: str | None = None
    before: State = {}
    changed_before: list[str] = []
    for state in states:
        changed = [domain for domain, slots in state.items() if not slots.items() <= before.get(domain, {}).items()]
        if not changed and current is None:
            yield []
            continue
        if not changed:
            # Where a single one had changed before, it is the current one.
            current = next((domain for domain in changed_before if domain in state and domain != current), current)
        elif current not in changed:
            current = max(changed, key=lambda domain: len(state[domain]))
        before, changed_before = state, changed
        yield [current] if current is not None else []


# Offers: which venues are on offer at the end of a dialogue, and what the system has told about each domain.
#
# In every turn, for every domain of the goal that is active in the turn:
#
# - if the domain's offer word is in the response (NAME; TRAINID for trains), the venues that meet the domain's state
# are
#   on offer; they replace those of before unless they contain all of them. A state without the domain finds no
# venue, and
#   one that has the domain without a slot, `{"train": {}}`, finds all;
# - every requested word in the response (PHONE) counts as told; a word that counts only when booked (REFERENCE) does
# so
#   only in turns by which the ground truth has the domain booked.
#
# A placeholder counts for every active domain of the turn. A domain matches if its last offer is not empty and all its
# venues meet the goal; or if the goal names the venue; or if the domain has no venues to choose from (taxi, police,
# hospital); or, where offers are optional (trains), if there was none and its word was not asked for.


@dataclass(frozen=True, slots=True)
class Criteria:
    """What dialogues are judged by; `ratio` is how venues are looked up by their names."""

    goals: Goals
    ontology: Ontology
    venues: Venues
    ratio: Ratio = "historical"

    @classmethod
    def of_batch(cls, batch: Batch, ratio: Ratio) -> Criteria:
        """Return the resources of a batch."""
        return cls(batch.resource(Need.GOALS), batch.resource(Need.ONTOLOGY), batch.resource(Need.VENUES), ratio)


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
    """Yield what each turn did for each active domain of the goal."""
    tables = criteria.venues.tables
    for turn in turns:
        active = [domain for domain in goal if domain in turn.domains]
        if not active:
            continue
        said = frozenset([word for word in criteria.ontology.requested if word in turn.response])
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
    """Return the venues on offer at the end, by domain."""
    offers: dict[str, int] = {}
    for step in done:
        if step.offer is not None:
            before = offers.get(step.domain, NONE)
            if before == NONE or before & ~step.offer:
                offers[step.domain] = step.offer
    return offers


def matches(domain: str, wishes: Mapping[str, Any], offer: int, criteria: Criteria) -> bool:
    """Return whether the last offer meets what the goal wants of a domain."""
    table = criteria.venues.tables.get(domain)
    if table is None or criteria.ontology.named_by in wishes["informable"]:
        return True
    if table.domain.optional and offer == NONE and table.domain.offer not in wishes["requestable"]:
        return True
    return offer != NONE and not offer & ~goal_venues(domain, wishes, criteria)


def goal_venues(domain: str, wishes: Mapping[str, Any], criteria: Criteria) -> int:
    """Return the venues that meet the goal."""
    slots = criteria.ontology.states.domain(wishes["informable"])
    return criteria.venues[domain].query(slots, criteria.ratio)


def verdict(done: Sequence[Step], goal: Mapping[str, Any], criteria: Criteria) -> Verdict:
    """Return how a dialogue ended, from all its steps."""
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
    """Return the verdict of each dialogue of a batch, None where the system does not give it; once for all metrics."""
    criteria = Criteria.of_batch(batch, ratio)
    dialogues = dialogue_turns(batch, fallback, missing)

    def judged(dialogue: str, turns: Sequence[Turn]) -> Verdict:
        goal = criteria.goals.goals[dialogue]
        return verdict(list(steps(turns, dialogue, goal, criteria)), goal, criteria)

    return batch.derive(
        ("task verdicts", fallback, missing, ratio),
        lambda: [None if turns is None else judged(dialogue, turns) for dialogue, turns in dialogues],
    )


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
    turns: Sequence[Turn]
    criteria: Criteria

    @property
    def goal(self) -> Mapping[str, Any]:
        """Goal of the user, by domain."""
        return self.criteria.goals.goals[self.dialogue]

    @cached_property
    def done(self) -> Sequence[Step]:
        """What each turn did for each domain of the goal."""
        return list(steps(self.turns, self.dialogue, self.goal, self.criteria))

    @cached_property
    def verdict(self) -> Verdict:
        """How the dialogue ended."""
        return verdict(self.done, self.goal, self.criteria)

    @cached_property
    def causes(self) -> Sequence[Cause]:
        """Why it failed; empty if it did not."""
        ended = self.verdict
        if not ended.inform:
            lost = [domain for domain, matched in ended.matched.items() if not matched]
            return [Cause("inform", domain, *self._lost_offer(domain)) for domain in lost]
        return [
            Cause("success", domain, *self._lost_word(domain, word))
            for domain, wishes in self.goal.items()
            for word in wishes["requestable"]
            if word not in ended.told[domain]
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the explanation line by line."""
        yield f"{self.dialogue}: inform {_yes(self.verdict.inform)}, success {_yes(self.verdict.success)}"
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
                if step.offer is not None:
                    yield f"    {step.domain}: offers {self._venues(step.domain, step.offer)}"
                if step.told:
                    yield f"    {step.domain}: tells {', '.join(sorted(step.told))}"
                if step.early:
                    early = ", ".join(sorted(step.early))
                    yield f"    {step.domain}: tells {early} before the booking, which does not count"
        for domain in self.goal:
            words = [] if domain in turn.domains else self._useful_words(turn, domain)
            if words:
                yield f"    {domain} is not active: {', '.join(words)} does not count"

    def _useful_words(self, turn: Turn, domain: str) -> list[str]:
        """Return the words of a turn that would count for a domain of the goal if it were active."""
        about = self.criteria.ontology.domains.get(domain)
        if about is None:
            return []
        offer = [about.offer] if domain in self.criteria.venues else []
        words = dict.fromkeys([*offer, *self.goal[domain]["requestable"]])
        return [word for word in words if word in turn.response]

    def _lost_offer(self, domain: str) -> tuple[str, str]:
        """Cause and detail of a domain that does not match."""
        offering = [step for step in self.done if step.domain == domain and step.offer is not None]
        domains, venues = self.criteria.ontology.domains, self.criteria.venues
        if not offering:
            word = domains[domain].offer
            takers = {name for name in self.goal if name in venues and domains[name].offer == word}
            return self._never_said(word, domain, takers, NEVER_INFORMED)
        offer = last_offers(offering)[domain]
        last = next(step for step in reversed(offering) if step.offer == offer)
        if offer == NONE:
            return NO_OFFER, f"turn {last.turn.at}: {self._nothing_found(last)}"
        return WRONG_VENUE, f"turn {last.turn.at}: {self._wrong(last, offer)}"

    def _lost_word(self, domain: str, word: str) -> tuple[str, str]:
        """Return cause and detail of a requested slot that was not provided."""
        early = [step.turn.at for step in self.done if step.domain == domain and word in step.early]
        if early:
            return EARLY, f"{word} was told in {_in_turns(early)}, before {domain} was booked"
        takers = {name for name, wishes in self.goal.items() if word in wishes["requestable"]}
        return self._never_said(word, domain, takers, f"missing {word}")

    def _never_said(self, word: str, domain: str, takers: set[str], otherwise: str) -> tuple[str, str]:
        """Cause and detail where a word was said in no turn in which the domain was active.

        `takers` are the domains of the goal that have a use for the word.
        """
        said = [turn for turn in self.turns if word in turn.response]
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

    def _nothing_found(self, step: Step) -> str:
        """Return why the state of a turn finds no venue."""
        slots = step.turn.state.get(step.domain)
        if slots is None:
            return f"the state has nothing about {step.domain}"
        table, ratio = self.criteria.venues[step.domain], self.criteria.ratio
        alone = {slot: value for slot, value in slots.items() if table.matching(slot, value, ratio) == NONE}
        if alone:
            return f"no venue has {_slots(alone)}"
        others = {slot: {name: value for name, value in slots.items() if name != slot} for slot in slots}
        freeing = [slot for slot, rest in others.items() if table.query(rest, ratio)]
        hint = f"; without {' or '.join(freeing)} there would be some" if freeing else ""
        return f"no venue meets {_slots(slots)}{hint}"

    def _wrong(self, step: Step, offer: int) -> str:
        """Return what is wrong with an offer: the constraints of the goal that exclude some of its venues."""
        domain, criteria = step.domain, self.criteria
        meeting = goal_venues(domain, self.goal[domain], criteria)
        outside = offer & ~meeting
        state = step.turn.state.get(domain, {})
        reasons = []
        for slot, (value, excluded) in self._excluding(domain, outside).items():
            has = f"the state has {state[slot]!r}" if slot in state else "the state lacks it"
            reasons.append(f"{slot} {value!r} excludes {excluded} ({has})")
        if not meeting:
            reasons.append("no venue at all meets the goal")
        return f"{self._venues(domain, offer)} on offer, {outside.bit_count()} of them wrong: {'; '.join(reasons)}"

    def _excluding(self, domain: str, outside: int) -> dict[str, tuple[str, int]]:
        """Return the constraints of the goal that exclude some of a set of venues: slot -> value, venues."""
        wanted = self.criteria.ontology.states.domain(self.goal[domain]["informable"])
        table, ratio = self.criteria.venues[domain], self.criteria.ratio
        counts = {slot: (outside & ~table.query({slot: value}, ratio)).bit_count() for slot, value in wanted.items()}
        return {slot: (wanted[slot], count) for slot, count in counts.items() if count}

    def origin(self, cause: Cause) -> str:
        """Return what is behind a cause where the replies are gold and the states true."""
        if cause.cause != WRONG_VENUE:
            return _ORIGINS.get(cause.cause, "no reply has the placeholder of what was asked for in the domain")
        domain = cause.domain
        meeting = goal_venues(domain, self.goal[domain], self.criteria)
        excluding = self._excluding(domain, last_offers(self.done)[domain] & ~meeting)
        if not meeting:
            return "no venue meets the goal"
        known = self.turns[-1].state.get(domain, {})
        if all(known.get(slot) == value for slot, (value, _) in excluding.items()):
            return "the last offer is before the user has named a constraint"
        if any(slot in known and known[slot] != value for slot, (value, _) in excluding.items()):
            return "the annotated state has another value than the goal"
        return "the annotated state lacks a constraint of the goal"

    def _venues(self, domain: str, offer: int) -> str:
        count = offer.bit_count()
        if not count:
            return "no venue"
        names = ", ".join(self.criteria.venues[domain].labels(offer, SHOWN_VENUES))
        more = ", ..." if count > SHOWN_VENUES else ""
        return f"{count} {'venue' if count == 1 else 'venues'} ({names}{more})"


def by_cause(explanations: Iterable[Explanation], gold: bool = False) -> dict[str, list[str]]:
    """Return the dialogues that were lost by each cause, or for gold replies by its origin; the most frequent first."""
    lost: dict[str, list[str]] = {}
    for each in explanations:
        names = (f"{cause.measure}: {each.origin(cause)}" if gold else cause.cause for cause in each.causes)
        for cause in dict.fromkeys(names):
            lost.setdefault(cause, []).append(each.dialogue)
    return dict(sorted(lost.items(), key=lambda found: (-len(found[1]), found[0])))


def _slots(slots: Mapping[str, str]) -> str:
    return ", ".join(f"{slot}={value}" for slot, value in slots.items()) or "nothing"


def _in_turns(turns: Sequence[int]) -> str:
    return f"turn {turns[0]}" if len(turns) == 1 else f"turns {', '.join(map(str, turns))}"


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
