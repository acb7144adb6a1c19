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
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dialeval.core.batch import Batch
from dialeval.core.errors import NeedError
from dialeval.core.fold import Fact
from dialeval.metrics.counting import Missing
from dialeval.suites.multiwoz import GOALS, ONTOLOGY, TASK_TURNS, TRUE_STATES, VENUES
from dialeval.text.similarity import Ratio
from dialeval.text.tokenizers import normalize_moses

if TYPE_CHECKING:
    from dialeval.suites.multiwoz.data import Goal, Goals, TaskRow, TrueStates
    from dialeval.suites.multiwoz.venues import Ontology, State, Venues

Fallback = Literal["file", "turn"]


@dataclass(frozen=True, slots=True)
class TurnCounts:
    """How many turns there are, and how many of them have a state and active domains."""

    turns: int = 0
    states: int = 0
    domains: int = 0

    @classmethod
    def of(cls, rows: Iterable[Any]) -> TurnCounts:
        """Count turns that are there."""
        turns = [turn for turn in rows if turn["response"] is not None]
        states = sum(turn["state"] is not None for turn in turns)
        return cls(len(turns), states, sum(turn["active_domains"] is not None for turn in turns))


@dataclass(frozen=True)
class TurnCounting(Fact[TurnCounts, TurnCounts]):
    """What a system gives in how many turns: with the fallback `file` every turn depends on it."""

    def empty(self) -> TurnCounts:
        return TurnCounts()

    def gather(self, batch: Batch) -> TurnCounts:
        return TurnCounts.of(batch.objects(TASK_TURNS))

    def merge(self, left: TurnCounts, right: TurnCounts) -> TurnCounts:
        return TurnCounts(left.turns + right.turns, left.states + right.states, left.domains + right.domains)


class TaskTurn(NamedTuple):
    """One turn, normalized."""

    at: int
    response: str
    state: State
    domains: Sequence[str]
    true_state: bool
    """Whether the state is the true one and not the system's."""
    estimated: bool
    """Whether the active domains are an estimate."""
    said: str = ""
    """The response before it was normalized."""


def normalize_responses(batch: Batch) -> list[str | None]:
    """Return the normalized response of each row, None where it is missing; made once for all metrics of the batch."""
    ontology: Ontology = batch.resource(ONTOLOGY)
    column = batch.objects(TASK_TURNS)

    def make() -> list[str | None]:
        normalize = make_normalizer(ontology.words)
        return [None if row["response"] is None else normalize(row["response"]) for row in column]

    return batch.derive("normalized responses", make)


def collect_turns(batch: Batch, fallback: Fallback, missing: Missing) -> list[tuple[str, list[TaskTurn] | None]]:
    """Return the id of each dialogue of a batch with its turns, None where the system does not give the dialogue.

    One that is given without a turn is there, as in the original; where missing turns count as failed, it is not.
    """
    counts: TurnCounts = batch.fact(TurnCounting())
    ontology: Ontology = batch.resource(ONTOLOGY)
    true_states: TrueStates | None = batch.resource(TRUE_STATES) if batch.has(TRUE_STATES) else None
    responses = normalize_responses(batch)
    rows = batch.objects(TASK_TURNS).values

    def make() -> list[tuple[str, list[TaskTurn] | None]]:
        dialogues: list[tuple[str, list[TaskTurn] | None]] = []
        for start, stop in pairwise(batch.dialogues.tolist()):
            here = zip(rows[start:stop], responses[start:stop], strict=True)
            answered = [(row, text) for row, text in here if text is not None]
            turns = prepare_turns(answered, counts, fallback, ontology, true_states)
            is_given = turns or (rows[start]["listed"] and missing == "ignored")
            dialogues.append((rows[start]["dialogue"], turns if is_given else None))
        return dialogues

    return batch.derive(("task turns", fallback, missing), make)


def prepare_turns(
    rows: Sequence[tuple[TaskRow, str]],
    counts: TurnCounts,
    fallback: Fallback,
    ontology: Ontology,
    true_states: TrueStates | None,
) -> list[TaskTurn]:
    """Return the turns of one dialogue from its rows, each with its normalized response."""
    use_true = fallback == "file" and counts.states < counts.turns
    estimate_all = fallback == "file" and counts.domains < counts.turns
    states = [ontology.states(_choose_state(row, use_true, true_states)) for row, _ in rows]
    domains = [None if estimate_all else row["active_domains"] for row, _ in rows]
    estimates = list(estimate_domains(states)) if None in domains else [[]] * len(rows)
    turns = []
    for (row, response), state, active, estimate in zip(rows, states, domains, estimates, strict=True):
        shown, true_state = estimate if active is None else active, use_true or row["state"] is None
        said = row["response"] or ""
        turns.append(TaskTurn(row["turn"], response, state, shown, true_state, active is None, said))
    return turns


def _choose_state(row: TaskRow, use_true: bool, true_states: TrueStates | None) -> State:
    state: State | None = row["state"]
    if state is not None and not use_true:
        return state
    if true_states is None:
        what = "has no state, and the data has no gold_states.json to use instead; give every turn a state"
        raise NeedError(f"{row['dialogue']}[{row['turn']}] {what}")
    return true_states.states[row["dialogue"]][row["turn"]]


def estimate_domains(states: Sequence[State]) -> Iterator[list[str]]:
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
        yield [] if current is None else [current]


# Offers: which venues are on offer at the end of a dialogue, and what the system has provided about each domain.
#
# In every turn, for every domain of the goal that is active in the turn:
#
# - if the domain's offer word is in the response (NAME; TRAINID for trains), the venues that meet the domain's state
#   are on offer; they replace those of before unless they contain all of them. A state without the domain finds no
#   venue, and one that has the domain without a slot, `{"train": {}}`, finds all;
# - every requested word in the response (PHONE) counts as provided; a word that counts only when booked (REFERENCE)
#   does so only in turns by which the ground truth has the domain booked.
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
        return cls(batch.resource(GOALS), batch.resource(ONTOLOGY), batch.resource(VENUES), ratio)


NONE = 0
"""The set of no venues."""
NO_WORDS: frozenset[str] = frozenset()


class TurnStep(NamedTuple):
    """What a turn did for one domain of the goal."""

    turn: TaskTurn
    domain: str
    offer: int | None
    """The venues that the state finds, where the turn offers any."""
    provided: frozenset[str]
    early: frozenset[str]
    """Words that did not count because nothing was booked yet."""


class DialogueVerdict(NamedTuple):
    """How a dialogue ended, by domain of its goal."""

    matched: Mapping[str, bool]
    provided: Mapping[str, frozenset[str]]
    complete: Mapping[str, bool]
    """Whether all requested words of a domain were provided, whether or not other domains match."""
    booked: Mapping[str, bool]
    """Whether each domain with a booking in the goal was booked."""

    @property
    def inform(self) -> bool:
        """Whether every domain matched."""
        return all(self.matched.values())

    @property
    def success(self) -> bool:
        """Whether every domain matched and every requested word was provided."""
        return self.inform and all(self.complete.values())


def trace_steps(turns: Sequence[TaskTurn], dialogue: str, goal: Goal, criteria: Criteria) -> Iterator[TurnStep]:
    """Yield what each turn did for each active domain of the goal."""
    tables = criteria.venues.tables
    for turn in turns:
        active = [domain for domain in goal if domain in turn.domains]
        if not active:
            continue
        said = frozenset([word for word in criteria.ontology.requested if word in turn.response])
        early = said & criteria.ontology.when_booked
        for domain in active:
            table, offer = tables.get(domain), None
            if table is not None and table.domain.offer in turn.response:
                slots = turn.state.get(domain)
                offer = NONE if slots is None else table.query(slots, criteria.ratio)
            lost = NO_WORDS if not early or criteria.goals.is_booked(dialogue, turn.at, domain) else early
            yield TurnStep(turn, domain, offer, said - lost, lost)


def find_last_offers(done: Sequence[TurnStep]) -> dict[str, int]:
    """Return the venues on offer at the end, by domain."""
    offers: dict[str, int] = {}
    for step in done:
        if step.offer is not None:
            before = offers.get(step.domain, NONE)
            if before == NONE or before & ~step.offer:
                offers[step.domain] = step.offer
    return offers


def meets_goal(domain: str, wishes: Goal, offer: int, criteria: Criteria) -> bool:
    """Return whether the last offer meets what the goal wants of a domain."""
    table = criteria.venues.tables.get(domain)
    if table is None or criteria.ontology.named_by in wishes["informable"]:
        return True
    if table.domain.optional and offer == NONE and table.domain.offer not in wishes["requestable"]:
        return True
    return offer != NONE and not offer & ~find_goal_venues(domain, wishes, criteria)


def find_goal_venues(domain: str, wishes: Goal, criteria: Criteria) -> int:
    """Return the venues that meet the goal."""
    slots = criteria.ontology.states.normalize_domain(wishes["informable"])
    return criteria.venues[domain].query(slots, criteria.ratio)


def judge_dialogue(done: Sequence[TurnStep], goal: Goal, criteria: Criteria) -> DialogueVerdict:
    """Return how a dialogue ended, from all its steps."""
    offers = find_last_offers(done)
    provided = dict.fromkeys(goal, NO_WORDS)
    for step in done:
        if step.provided:
            provided[step.domain] |= step.provided
    return DialogueVerdict(
        {domain: meets_goal(domain, wishes, offers.get(domain, NONE), criteria) for domain, wishes in goal.items()},
        provided,
        {domain: provided[domain].issuperset(wishes["requestable"]) for domain, wishes in goal.items()},
        {
            domain: provided[domain] >= criteria.ontology.when_booked
            for domain, wishes in goal.items()
            if wishes.get("booking")
        },
    )


def judge_dialogues(batch: Batch, fallback: Fallback, missing: Missing, ratio: Ratio) -> list[DialogueVerdict | None]:
    """Return the verdict of each dialogue of a batch, None where the system does not give it; once for all metrics."""
    criteria = Criteria.of_batch(batch, ratio)
    dialogues = collect_turns(batch, fallback, missing)

    def judge(dialogue: str, turns: Sequence[TaskTurn]) -> DialogueVerdict:
        goal = criteria.goals.goals[dialogue]
        return judge_dialogue(list(trace_steps(turns, dialogue, goal, criteria)), goal, criteria)

    return batch.derive(
        ("task verdicts", fallback, missing, ratio),
        lambda: [None if turns is None else judge(dialogue, turns) for dialogue, turns in dialogues],
    )


# Delexicalized responses: texts in which values are placeholders, such as `[hotel_name] is [value_price]`.
#
# A response is normalized in four steps, so that systems with different placeholders can be compared:
#
# 1. lower case;
# 2. a placeholder (`[` word characters, spaces or digits `]`, and a plural ending right behind it) becomes the word
#    that the ontology has for its slot, in upper case; a slot that the ontology does not know is removed;
# 3. every `-s` is deleted, then every `-ly`;
# 4. split and joined again by Moses (`text/tokenizers.py`).
#
# `make_normalizer` does this once for each distinct response. The steps are those of the MultiWOZ evaluation, with what
# is odd about them: `[stars]-star` becomes `COUNTtar`, and `10:00` becomes `10: 00`.

PLACEHOLDER = re.compile(r"\[([\w\s]+)\](?:es|s|-s|-es)?")


def make_normalizer(words: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that normalizes responses, each distinct one once; `words` gives the word of each slot."""

    @cache
    def normalize(response: str) -> str:
        text = PLACEHOLDER.sub(lambda match: words.get(match[1], ""), response.lower())
        return normalize_moses(text.replace("-s", "").replace("-ly", ""))

    return normalize


def count_unknown_placeholders(responses: Iterable[str], words: Mapping[str, str]) -> dict[str, int]:
    """Count the slots of placeholders that have no word, the most frequent first."""
    slots = (slot for response in responses for slot in PLACEHOLDER.findall(response.lower()))
    return dict(Counter(slot for slot in slots if slot not in words).most_common())


def find_slot_domains(response: str, domains: Iterable[str]) -> list[str]:
    """Return the domains that a response's placeholders name (`[hotel_name]`: hotel), in order of appearance."""
    named = (match[1].partition("_")[0] for match in PLACEHOLDER.finditer(response.lower()))
    wanted = set(domains)
    return list(dict.fromkeys(name for name in named if name in wanted))
