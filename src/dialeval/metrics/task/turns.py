"""The turns of task dialogues as Inform and Success see them: normalised, each with a state and its active domains.

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from dialeval.core.batch import Batch
from dialeval.core.errors import NeedError
from dialeval.core.fold import Fact
from dialeval.core.needs import Need
from dialeval.data.task.corpus import TrueStates
from dialeval.resources.ontology import Ontology
from dialeval.text.delexicalised import Normaliser
from dialeval.text.slot_values import State

Fallback = Literal["file", "turn"]
Missing = Literal["ignored", "failed"]
"""What becomes of turns that the system does not give."""


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

    def finish(self, state: Given) -> Given:
        return state


class Turn(NamedTuple):
    """One turn, normalised."""

    at: int
    response: str
    state: State
    domains: Sequence[str]
    true_state: bool
    """Whether the state is the true one and not the system's."""
    estimated: bool
    """Whether the active domains are an estimate."""


def normalised_responses(batch: Batch) -> list[str | None]:
    """The normalised response of each row, None where it is missing; made once for all metrics of the batch."""
    ontology: Ontology = batch.resource(Need.ONTOLOGY)
    column = batch.objects(Need.TASK_TURNS)

    def make() -> list[str | None]:
        normalise = Normaliser(ontology.words)
        return [None if row["response"] is None else normalise(row["response"]) for row in column]

    return batch.derived("normalised responses", make)


def dialogue_turns(batch: Batch, fallback: Fallback, missing: Missing) -> list[tuple[str, list[Turn] | None]]:
    """The id of each dialogue of a batch with its turns, None where the system does not give the dialogue.

    One that is given without a turn is there, as in the original; where missing turns count as failed, it is not.
    """
    given: Given = batch.fact(WhatIsGiven())
    ontology: Ontology = batch.resource(Need.ONTOLOGY)
    true_states: TrueStates | None = batch.resource(Need.TRUE_STATES) if batch.has(Need.TRUE_STATES) else None
    responses = normalised_responses(batch)
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

    return batch.derived(("task turns", fallback, missing), make)


def prepared(
    rows: Sequence[tuple[Mapping[str, Any], str]],
    given: Given,
    fallback: Fallback,
    ontology: Ontology,
    true_states: TrueStates | None,
) -> list[Turn]:
    """The turns of one dialogue from its rows, each with its normalised response."""
    use_true = fallback == "file" and given.states < given.turns
    estimate_all = fallback == "file" and given.domains < given.turns
    states = list(ontology.states.dialogue(_state(row, use_true, true_states) for row, _ in rows))
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
            f"{row['dialogue']}[{row['turn']}] has no state, and the data has no gold_states.json to stand in for it; "
            "give every turn a state"
        )
    true: State = true_states.states[row["dialogue"]][row["turn"]]
    return true


def estimated_domains(states: Sequence[State]) -> Iterator[list[str]]:
    """The active domains of each turn of a dialogue, from what changes in its states."""
    current: str | None = None
    before: State = {}
    changed_before: list[str] = []
    for state in states:
        changed = [domain for domain, slots in state.items() if _news(slots, before.get(domain, {}))]
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


def _news(slots: Mapping[str, str], before: Mapping[str, str]) -> bool:
    return slots is not before and not slots.items() <= before.items()
