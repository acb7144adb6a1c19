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
from dialeval.suites.multiwoz.explanations import Cause, Explanation, SavedDomain, SavedOffer, group_by_cause
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
        "[0] there are COUNT places with DISH. NAME is nice.",
        "active: eatery (estimated)",
        "eatery: offers 2 venues (the salt spoon, pier seven)",
        "lost inform, eatery: wrong venue; turn 1",
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


def turn_of(at: int, response: str, state: Any, *domains: str, estimated: bool = False) -> TaskTurn:
    return TaskTurn(at, response, state, list(domains), True, estimated)


def explain(
    turns: list[TaskTurn], wishes: dict[str, str] | None = None, asked: Sequence[str] = (), *others: str
) -> Explanation:
    """A dialogue whose goal is an inn, and nothing in particular of other domains; it is booked in no turn."""
    inn = {"informable": CHEAP if wishes is None else wishes, "requestable": list(asked)}
    goal = {"inn": inn, **{name: {"informable": {}, "requestable": []} for name in others}}
    goals = Goals({"d": goal}, {"d": [[] for _ in turns]}, "0" * 12)
    return Explanation("d", turns, Criteria(goals, ONTOLOGY, VENUES))


@pytest.mark.parametrize(
    ("state", "cause", "detail"),
    [
        (
            {"inn": {"area": "hill"}},
            "wrong venue",
            "3 venues (willow, lamps, gate) on offer, 1 of them wrong: price '4' excludes 1 (the state lacks it)",
        ),
        (
            {"inn": {"area": "harbour", "price": "5"}},
            "wrong venue",
            (
                "2 venues (mill, quay) on offer, 2 of them wrong: area 'hill' excludes 2 (the state has 'harbour'); "
                "price '4' excludes 1 (the state has '5')"
            ),
        ),
        (
            {"inn": {"name": "quay"}},
            "wrong venue",
            (
                "1 venue (quay) on offer, 1 of them wrong: area 'hill' excludes 1 (the state lacks it); "
                "price '4' excludes 1 (the state lacks it)"
            ),
        ),
        (
            {"inn": {}},
            "wrong venue",
            (
                "5 venues (willow, lamps, mill, ...) on offer, 3 of them wrong: area 'hill' excludes 2 (the state "
                "lacks it); price '4' excludes 2 (the state lacks it)"
            ),
        ),
        ({"inn": {"area": "nowhere", "price": "4"}}, "no offer", "no venue has area=nowhere"),
        (
            {"inn": {"area": "hill", "name": "mill"}},
            "no offer",
            "no venue meets area=hill, name=mill; without area or name there would be some",
        ),
        (
            {"inn": {"area": "harbour", "name": "lamps", "price": "3"}},
            "no offer",
            "no venue meets area=harbour, name=lamps, price=3; without name there would be some",
        ),
        (
            {"inn": {"area": "hill", "name": "mill", "stars": "4"}},
            "no offer",
            "no venue meets area=hill, name=mill, stars=4",
        ),
        ({"eatery": {"area": "hill"}}, "no offer", "the state has nothing about inn"),
    ],
)
def test_why_an_offer_is_wrong(state: Any, cause: str, detail: str) -> None:
    found = explain([turn_of(0, "hello", {}), turn_of(1, "NAME", state, "inn")])
    assert found.causes == [Cause("inform", "inn", cause, f"turn 1: {detail}")]


def test_a_goal_that_no_venue_meets() -> None:
    found = explain([turn_of(0, "NAME", {"inn": {"price": "3"}}, "inn")], {"area": "nowhere"})
    (cause,) = found.causes
    assert cause.detail == (
        "turn 0: 2 venues (willow, mill) on offer, 2 of them wrong: area 'nowhere' excludes 2 (the state lacks it); "
        "no venue at all meets the goal"
    )
    assert found.find_origin(cause) == "no venue meets the goal"


@pytest.mark.parametrize(
    ("turns", "cause", "detail"),
    [
        ([("hello", "inn")], "never informed", "no response has NAME"),
        ([("NAME", "eatery"), ("NAME", "eatery")], "never informed", "NAME was said only for eatery"),
        ([("NAME", "cart")], "domain not active", "NAME was said in turn 0, where inn was not active but cart"),
        (
            [("NAME", "cart"), ("NAME", "eatery"), ("NAME",), ("hello", "ferry")],
            "domain not active",
            "NAME was said in turns 0, 2, where inn was not active but cart",
        ),
        ([("NAME",)], "domain not active", "NAME was said in turn 0, where inn was not active but none"),
    ],
)
def test_why_nothing_was_offered(turns: list[tuple[str, ...]], cause: str, detail: str) -> None:
    made = [turn_of(at, said, {"eatery": {}}, *domains) for at, (said, *domains) in enumerate(turns)]
    found = explain(made, None, (), "eatery", "cart")
    assert [each for each in found.causes if each.domain == "inn"] == [Cause("inform", "inn", cause, detail)]
    guessed = explain([each._replace(estimated=True) for each in made], None, (), "eatery", "cart")
    expected = "domain estimate" if cause == "domain not active" else cause
    assert next(each for each in guessed.causes if each.domain == "inn").cause == expected


def test_why_a_request_was_not_answered() -> None:
    state = {"inn": CHEAP}
    turns = [
        turn_of(0, "NAME CODE", state, "inn"),
        turn_of(1, "PHONE", state, "cart"),
        turn_of(2, "CODE", state, "inn"),
    ]
    found = explain(turns, CHEAP, ["PHONE", "CODE"], "cart")
    assert found.causes == [
        Cause("success", "inn", "domain not active", "PHONE was said in turn 1, where inn was not active but cart"),
        Cause(
            "success",
            "inn",
            "reference before booking",
            "CODE was provided in turns 0, 2, before inn was booked",
        ),
    ]
    silent = explain(turns[:1], CHEAP, ["PHONE"])
    assert silent.causes == [Cause("success", "inn", "missing PHONE", "no response has PHONE")]
    origins = [found.find_origin(cause) for cause in (*found.causes, *silent.causes)]
    assert origins == [
        "the placeholder is in a turn whose active domain is another",
        "the reference is given before the turn that is annotated as booked",
        "no reply has the placeholder of what was asked for in the domain",
    ]
    assert explain(turns[:1], CHEAP).causes == []


@pytest.mark.parametrize(
    ("last", "origin"),
    [
        (CHEAP, "the last offer is before the user has named a constraint"),
        ({"area": "hill"}, "the annotated state lacks a constraint of the goal"),
        ({}, "the annotated state lacks a constraint of the goal"),
        ({"price": "5"}, "the annotated state has another value than the goal"),
        ({"area": "harbour", "price": "4"}, "the annotated state has another value than the goal"),
    ],
)
def test_what_is_behind_a_wrong_venue(last: dict[str, str], origin: str) -> None:
    found = explain([turn_of(0, "NAME", {"inn": {}}, "inn"), turn_of(1, "bye", {"inn": last}, "inn")])
    (cause,) = found.causes
    assert (cause.cause, found.find_origin(cause)) == ("wrong venue", origin)
    assert group_by_cause([found], gold=True) == {f"inform: {origin}": ["d"]}


def test_constraints_that_exclude_no_offer_are_behind_nothing() -> None:
    found = explain([turn_of(0, "NAME", {"inn": {"area": "hill"}}, "inn"), turn_of(1, "bye", {"inn": {"price": "4"}})])
    (cause,) = found.causes
    assert found.find_origin(cause) == "the last offer is before the user has named a constraint"


def test_a_whole_explanation() -> None:
    turns = [
        turn_of(0, "NAME PHONE", {}, "cart", estimated=True),
        turn_of(1, "NAME CODE", {"inn": CHEAP, "cart": {}}, "inn")._replace(true_state=False),
        turn_of(2, "PHONE", {"inn": CHEAP}, "inn", "cart"),
    ]
    found = explain(turns, CHEAP, ["PHONE", "CODE"], "cart", "moon")
    assert str(found).splitlines() == [
        "d: inform yes, success no",
        "",
        "goal inn: area=hill, price=4; asked for PHONE, CODE",
        "goal cart: nothing",
        "goal moon: nothing",
        "",
        "[0] NAME PHONE",
        "    active: cart (estimated)",
        "    true state: empty",
        "    cart: provides PHONE",
        "    inn is not active: NAME, PHONE does not count",
        "",
        "[1] NAME CODE",
        "    active: inn",
        "    state: inn: area=hill, price=4; cart: nothing",
        "    inn: offers 2 venues (willow, gate)",
        "    inn: provides CODE before the booking, which does not count",
        "",
        "[2] PHONE",
        "    active: inn, cart",
        "    true state: inn: area=hill, price=4",
        "    inn: provides PHONE",
        "    cart: provides PHONE",
        "",
        "lost success, inn: reference before booking; CODE was provided in turn 1, before inn was booked",
    ]
    first, second, third = found.to_transcript(None, None).turns
    assert (first.user, first.response, first.estimated, first.true_state) == (None, "NAME PHONE", True, True)
    assert [(step.domain, step.provided, step.early, step.offer) for step in second.steps] == [
        ("inn", [], ["CODE"], SavedOffer(2, ["willow", "gate"]))
    ]
    assert [(step.domain, step.offer) for step in third.steps] == [("inn", None), ("cart", None)]
    told = found.to_transcript(["[name] [phone]", "", "[phone]"], ["a", "b", "c"])
    assert [(turn.user, turn.response) for turn in told.turns] == [
        ("a", "[name] [phone]"),
        ("b", "NAME CODE"),
        ("c", "[phone]"),
    ]
    assert told.domains[0] == SavedDomain("inn", CHEAP, ["PHONE", "CODE"], True, ["PHONE"], False)
    assert (told.inform, told.success, told.causes) == (True, False, list(found.causes))
