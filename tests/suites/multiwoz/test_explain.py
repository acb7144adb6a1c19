"""Explanations of the invented town's dialogues: every cause of failure, turn by turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dialeval import sample_data
from dialeval.core.errors import SettingError
from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz.data import Goals, TaskData, load_task
from dialeval.suites.multiwoz.explanations import Explanation, group_by_cause
from dialeval.suites.multiwoz.ontology import Domain
from dialeval.suites.multiwoz.turns import Criteria, TaskTurn
from dialeval.suites.multiwoz.venues import Venues, VenueTable
from laws import task as laws


@pytest.fixture(scope="module")
def task() -> TaskData:
    return load_task("town")


def predictions(system: str) -> dict[str, Any]:
    folder = sample_data.folder() / "town" / "predictions"
    document: dict[str, Any] = json.loads((folder / f"{system}.json").read_text())
    return document


def test_every_cause(task: TaskData) -> None:
    [found] = Evaluator(data=task).failures(predictions("hasty")).values()
    causes = {each.dialogue: [(c.lost, c.domain, c.cause) for c in each.causes] for each in found}
    assert causes == {
        "town01": [("inform", "eatery", "wrong venue")],
        "town02": [("success", "inn", "reference before booking")],
        "town03": [("inform", "ferry", "no offer")],
        "town04": [("inform", "eatery", "never informed")],
        "town06": [("success", "inn", "missing PHONE")],
        "town07": [("inform", "eatery", "domain estimate")],
    }
    details = {each.dialogue: each.causes[0].detail for each in found}
    assert "price 'fair' excludes 1 (the state lacks it)" in details["town01"]
    assert "no venue has from=town square" in details["town03"]


def test_a_dialogue_counts_once_for_a_cause_and_frequent_causes_come_first(task: TaskData) -> None:
    [found] = Evaluator(data=task).failures(predictions("hasty")).values()
    by_name = {each.dialogue: each for each in found}
    double = replace(by_name["town03"], dialogue="town03")
    double.__dict__["causes"] = [*by_name["town03"].causes, *by_name["town03"].causes, *by_name["town07"].causes]
    lost = group_by_cause([by_name["town01"], double, by_name["town07"]])
    assert lost == {"domain estimate": ["town03", "town07"], "no offer": ["town03"], "wrong venue": ["town01"]}
    assert list(lost) == ["domain estimate", "no offer", "wrong venue"]


def test_an_explanation_shows_the_turns(task: TaskData) -> None:
    [[explanation]] = Evaluator(data=task).explain(predictions("hasty"), "town01").values()
    text = str(explanation)
    for part in (
        "town01: inform no, success no",
        "goal eatery: dish=fish, area=harbour, price=fair; asked for PHONE",
        "[1] there are COUNT places with DISH. NAME is nice.",
        "active: eatery (estimated)",
        "eatery: offers 2 venues (the salt spoon, pier seven)",
        "lost inform, eatery: wrong venue; turn 2",
    ):
        assert part in text
    [[good]] = Evaluator(data=task).explain(predictions("patient"), "town01").values()
    assert str(good).endswith("nothing was lost")
    with pytest.raises(SettingError, match="did you mean 'town01'"):
        Evaluator(data=task).explain(predictions("patient"), "TOWN01.json")


def test_given_domains_that_are_wrong_are_no_estimate(task: TaskData) -> None:
    document = {"town01": [{**turn, "active_domains": ["inn"]} for turn in predictions("patient")["town01"]]}
    [[explanation]] = Evaluator(data=task).explain(document, "town01").values()
    assert explanation.causes[0].cause == "domain not active"


ONTOLOGY = replace(
    laws.ONTOLOGY,
    domains={
        "inn": Domain("inn", "inns.json", fuzzy=("name",), at_most=("price",)),
        "eatery": Domain("eatery", "eateries.json"),
        "cart": Domain("cart"),
    },
)
INNS = [
    {"id": "1", "name": "willow", "price": "3", "area": "hill"},
    {"id": "2", "name": "lamps", "price": "5", "area": "hill"},
    {"id": "3", "name": "mill", "price": "3", "area": "harbour"},
    {"id": "4", "name": "quay", "price": "5", "area": "harbour", "stars": "4"},
    {"id": "5", "name": "gate", "price": "4", "area": "hill"},
]
VENUES = Venues(
    {
        "inn": VenueTable(ONTOLOGY.domains["inn"], ONTOLOGY, INNS),
        "eatery": VenueTable(ONTOLOGY.domains["eatery"], ONTOLOGY, [{"id": "1", "name": "spoon"}]),
    },
    "0" * 12,
)
CHEAP = {"area": "hill", "price": "4"}


def explain(
    turns: list[TaskTurn], wishes: dict[str, str] | None = None, asked: Sequence[str] = (), *others: str
) -> Explanation:
    """A dialogue whose goal is an inn, and nothing in particular of other domains; it is booked in no turn."""
    inn = {"informable": CHEAP if wishes is None else wishes, "requestable": list(asked)}
    goal = {"inn": inn, **{name: {"informable": {}, "requestable": []} for name in others}}
    goals = Goals({"d": goal}, {"d": [[] for _ in turns]}, "0" * 12)
    return Explanation("d", turns, Criteria(goals, ONTOLOGY, VENUES))


def turn_of(at: int, response: str, state: Any, *domains: str, estimated: bool = False) -> TaskTurn:
    return TaskTurn(at, response, state, list(domains), True, estimated)


def test_a_goal_that_no_venue_meets() -> None:
    found = explain([turn_of(0, "NAME", {"inn": {"price": "3"}}, "inn")], {"area": "nowhere"})
    (cause,) = found.causes
    assert cause.detail == (
        "turn 1: 2 venues (willow, mill) on offer, 2 of them wrong: area 'nowhere' excludes 2 (the state lacks it); "
        "no venue at all meets the goal"
    )
    assert found.find_origin(cause) == "no venue meets the goal"
