"""The turns of task dialogues: estimated domains, and what stands in for what a system does not give."""

from __future__ import annotations

import pytest

from dialeval.core.errors import NeedError
from dialeval.suites.multiwoz.data import TaskRow
from dialeval.suites.multiwoz.feature import TRUE_STATES
from dialeval.suites.multiwoz.turns import Fallback, TurnCounts, estimate_domains, prepare_turns
from dialeval.text.vocabulary import Vocabulary
from laws.task import ONTOLOGY, STATES, WORLD


@pytest.mark.parametrize(
    ("states", "domains"),
    [
        ([{}, {}], [[], []]),
        ([{}, {"inn": {"area": "hill"}}, {"inn": {"area": "hill"}}], [[], ["inn"], ["inn"]]),
        # Of two that change, the current one stays; then the other has its turn.
        (
            [{"inn": {"a": "1"}}, {"inn": {"a": "2"}, "cart": {"b": "1"}}, {"inn": {"a": "2"}, "cart": {"b": "1"}}],
            [["inn"], ["inn"], ["cart"]],
        ),
        # A new one with most slots; the first on ties.
        ([{"inn": {"a": "1"}, "cart": {"a": "1", "b": "2"}}], [["cart"]]),
        ([{"inn": {"a": "1"}, "cart": {"b": "2"}}], [["inn"]]),
        # What is removed is no change.
        ([{"inn": {"a": "1", "b": "1"}}, {"cart": {"a": "1"}}, {"inn": {"a": "1"}}], [["inn"], ["cart"], ["inn"]]),
    ],
)
def test_estimated_domains(states: list[dict[str, dict[str, str]]], domains: list[list[str]]) -> None:
    assert list(estimate_domains(states)) == domains


def row(state: int | None, domains: list[str] | None) -> TaskRow:
    given = None if state is None else STATES[state]
    return TaskRow(dialogue="d2", listed=True, turn=0, position=0, response="", state=given, active_domains=domains)


@pytest.mark.parametrize(
    ("fallback", "replaced"),
    [("file", [True, True]), ("turn", [False, True])],
)
def test_one_turn_without_a_state_or_domains(fallback: Fallback, replaced: list[bool]) -> None:
    true = WORLD.resources(Vocabulary())[TRUE_STATES]
    rows = [(row(1, ["inn"]), "a"), (row(None, None), "b")]
    turns = prepare_turns(rows, TurnCounts(2, 1, 1), fallback, ONTOLOGY, true)
    assert [turn.true_state for turn in turns] == [turn.estimated for turn in turns] == replaced
    assert turns[1].state == STATES[2]
    assert turns[0].state == STATES[2 if fallback == "file" else 1]
    if fallback == "turn":
        assert turns[0].domains == ["inn"]


def test_without_true_states_every_turn_needs_one() -> None:
    with pytest.raises(NeedError, match=r"d2\[0\] has no state"):
        prepare_turns([(row(None, None), "b")], TurnCounts(1, 0, 0), "turn", ONTOLOGY, None)
