"""Offers and what is provided, step by step, in a town of two inns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dialeval.suites.multiwoz.feature import GOALS, VENUES
from dialeval.suites.multiwoz.turns import (
    Criteria,
    TaskTurn,
    TurnStep,
    find_last_offers,
    judge_dialogue,
    meets_goal,
    trace_steps,
)
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


def test_a_turn_offers_what_its_state_finds_and_tells_its_words() -> None:
    turns = [turn("NAME, call PHONE"), turn("NAME", None), turn("PHONE"), turn("NAME", domains=("cart",))]
    done = list(trace_steps(turns, "d1", goal("PHONE"), CRITERIA))
    assert [step.offer for step in done] == [HILL, NONE, None]
    assert [sorted(step.provided) for step in done] == [["PHONE"], [], ["PHONE"]]


def test_a_domain_without_slots_is_a_query_without_a_condition() -> None:
    states: list[dict[str, dict[str, str]]] = [{"inn": {}}, {"cart": {}}, {"inn": {"name": ""}}]
    turns = [TaskTurn(0, "NAME", state, ("inn",), False, False) for state in states]
    assert [step.offer for step in trace_steps(turns, "d1", goal(), CRITERIA)] == [BOTH, NONE, NONE]


def test_a_reference_counts_only_when_booked() -> None:
    (booked,) = trace_steps([turn("CODE")], "d1", goal("CODE"), CRITERIA)
    (early,) = trace_steps([turn("CODE PHONE")], "d3", goal("CODE"), CRITERIA)
    assert (sorted(booked.provided), sorted(booked.early)) == (["CODE"], [])
    assert (sorted(early.provided), sorted(early.early)) == (["PHONE"], ["CODE"])


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


@pytest.mark.parametrize(
    ("wishes", "offer", "matched"),
    [
        (goal(area="hill"), HILL, True),
        (goal(area="hill"), BOTH, False),
        (goal(area="hill"), NONE, False),
        (goal(name="willow gate"), NONE, True),  # the goal names the venue
        ({"cart": goal()["inn"]}, NONE, True),  # nothing to choose from
    ],
)
def test_what_matches(wishes: Mapping[str, Any], offer: int, matched: bool) -> None:
    ((domain, wish),) = wishes.items()
    assert meets_goal(domain, wish, offer, CRITERIA) is matched


def test_the_verdict_is_by_domain() -> None:
    wishes = {**goal("PHONE", area="hill"), "cart": goal("CODE")["inn"]}
    ended = judge_dialogue(list(trace_steps([turn("NAME PHONE")], "d1", wishes, CRITERIA)), wishes, CRITERIA)
    assert ended.matched == {"inn": True, "cart": True}
    assert ended.complete == {"inn": True, "cart": False}
    assert (ended.inform, ended.success) == (True, False)
