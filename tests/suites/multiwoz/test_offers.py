"""Offers and what is provided, step by step, in a town of two inns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dialeval.suites.multiwoz.feature import GOALS, VENUES
from dialeval.suites.multiwoz.turns import Criteria, TaskTurn, TurnStep, find_last_offers, trace_steps
from dialeval.suites.multiwoz.venues import NONE
from dialeval.text.vocabulary import Vocabulary
from laws.task import ONTOLOGY, WORLD

RESOURCES = WORLD.resources(Vocabulary())
CRITERIA = Criteria(RESOURCES[GOALS], replace(ONTOLOGY, named_by="name"), RESOURCES[VENUES])
HILL, HARBOUR = 1, 2
BOTH = HILL | HARBOUR


def turn(response: str, area: str | None = "hill", domains: tuple[str, ...] = ("inn",)) -> TaskTurn:
    return TaskTurn(0, response, {} if area is None else {"inn": {"area": area}}, domains, False, False)


def goal(*requestable: str, **informable: str) -> dict[str, dict[str, Any]]:
    return {"inn": {"informable": informable, "requestable": list(requestable)}}


def test_a_domain_without_slots_is_a_query_without_a_condition() -> None:
    states: list[dict[str, dict[str, str]]] = [{"inn": {}}, {"cart": {}}, {"inn": {"name": ""}}]
    turns = [TaskTurn(0, "NAME", state, ("inn",), False, False) for state in states]
    assert [step.offer for step in trace_steps(turns, "d1", goal(), CRITERIA)] == [BOTH, NONE, NONE]


@pytest.mark.parametrize(
    ("offers", "last"),
    [
        ([HILL], HILL),
        ([HILL, HARBOUR], HARBOUR),
        ([HILL, BOTH], HILL),  # an offer that contains the one before does not replace it
        ([BOTH, HILL], HILL),
        ([HILL, NONE], NONE),
        ([NONE, HILL, None], HILL),
    ],
)
def test_the_last_offer(offers: list[int | None], last: int) -> None:
    done = [TurnStep(turn("x"), "inn", offer, frozenset(), frozenset()) for offer in offers]
    assert find_last_offers(done) == {"inn": last}
