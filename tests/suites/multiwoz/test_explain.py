"""Explanations of the invented town's dialogues: every cause of failure, turn by turn."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

import dialeval
from dialeval import sample_data
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.multiwoz import Evaluator
from dialeval.reports.html import combine_runs
from dialeval.suites.multiwoz.data import Goals, TaskData, load_task
from dialeval.suites.multiwoz.explanations import Explanation, group_by_cause
from dialeval.suites.multiwoz.report import make_transcripts_section
from dialeval.suites.multiwoz.turns import Criteria, TaskTurn
from dialeval.suites.multiwoz.venues import Domain, Venues, VenueTable
from laws import task as laws
from reports.test_html import HOSTILE, Page, render

if TYPE_CHECKING:
    from pathlib import Path

    from dialeval.core.result import Run


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


ONTOLOGY = structs.replace(
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


# Transcripts of task dialogues, and why dialogues were lost, in the report.


TASK = load_task("town")
PREDICTIONS = sample_data.folder() / "town" / "predictions"


@pytest.fixture(scope="module")
def run() -> Run:
    return Evaluator(data=TASK).run(PREDICTIONS)


def test_every_cause_has_an_example_where_there_is_room_for_one_each(run: Run) -> None:
    found = Evaluator(data=TASK).with_transcripts(run, PREDICTIONS, most=2 * len(TASK.files.turns) - 4).details
    for system, counts in found["failures"].items():
        shown = {cause["cause"] for entry in found["transcripts"][system] for cause in entry["causes"]}
        assert shown == set(counts)


@pytest.fixture(scope="module")
def shown_run() -> Run:
    evaluator = Evaluator(data="town")
    return evaluator.with_transcripts(evaluator.run(PREDICTIONS), PREDICTIONS)


def test_verdicts_are_those_of_the_metrics(shown_run: Run) -> None:
    for system, result in shown_run.items():
        rows, items = result.table, {key: result[key].scores for key in ("inform", "success")}
        assert rows is not None
        assert rows.dialogues is not None
        for entry in shown_run.details["transcripts"][system]:
            at = list(rows.dialogues).index(entry["dialogue"])
            for key, values in items.items():
                assert values is not None
                assert entry[key] == bool(values[at])


def test_responses_are_as_the_system_gave_them(shown_run: Run) -> None:
    first = shown_run.details["transcripts"]["hasty"][0]
    assert first["turns"][0]["response"] == "there are [choice] places with [dish]-s. [name] is nice."
    assert first["turns"][0]["steps"][0] == "eatery: offers 2 venues (the salt spoon, pier seven)"


def test_lost_dialogues_come_first_where_there_is_no_room_for_all() -> None:
    evaluator = Evaluator(data="town")
    shown_run = evaluator.with_transcripts(evaluator.run(PREDICTIONS), PREDICTIONS, most=6)
    shown = {system: [entry["dialogue"] for entry in mine] for system, mine in shown_run.details["transcripts"].items()}
    assert all(len(names) <= 3 for names in shown.values())
    lost = {e["dialogue"] for mine in shown_run.details["transcripts"].values() for e in mine if e["causes"]}
    assert lost == {name for names in shown.values() for name in names}


def test_the_page_shows_goal_turns_offers_and_causes(shown_run: Run, tmp_path: Path) -> None:
    page = Page(render(combine_runs([dialeval.load(shown_run.save(tmp_path))])))
    for part in (
        "Task dialogues",
        "dish=fish",
        "offers 2 venues (the salt spoon, pier seven)",
        "wrong venue",
        "lost inform, eatery",
        "i would like fish by the harbour, nothing fancy.",
    ):
        assert part in page.text
    assert len([attrs for attrs in page.of("details") if attrs.get("class") == "dialogue"]) == 8


def test_texts_from_outside_stay_texts() -> None:
    name = HOSTILE.replace("\udc80", "")
    turn = {"turn": 0, "user": name, "response": name, "notes": [name] * 5, "steps": [name] * 8}
    entry = {"dialogue": name, "inform": True, "success": False, "goal": [name], "turns": [turn]}
    entry |= {"causes": [{"lost": name, "domain": name, "cause": name, "detail": name}]}
    shown_run = dialeval.evaluate({name: ["a"]}, metrics="length")
    section = make_transcripts_section(
        type(shown_run)(
            shown_run.systems,
            "0",
            details={"transcripts": {name: [entry]}, "failures": {name: {name: [name, f"{name} 2"]}}},
        )
    )
    assert section is not None
    page = Page(section.content)
    assert {tag for tag, _ in page.tags} & {"script", "img"} == set()
    assert page.text.count("<script>alert(1)</script>") > 20


def test_causes_are_counted_over_all_dialogues_and_lead_to_those_that_are_shown() -> None:
    evaluator = Evaluator(data="town")
    shown_run = evaluator.with_transcripts(evaluator.run(PREDICTIONS), PREDICTIONS, most=6)
    section = make_transcripts_section(shown_run)
    assert section is not None
    page = Page(section.content)
    lost = {system: group_by_cause(found) for system, found in evaluator.failures(PREDICTIONS).items()}
    assert shown_run.details["failures"] == lost
    bars = [attrs for attrs in page.of("a") if "data-lost" in attrs]
    assert len(bars) == len(lost["hasty"]), "those of the system that lost most"
    kept, named = ([attrs for attrs in page.of(tag) if attrs.get("class") == "dialogue"] for tag in ("details", "p"))
    assert (len(kept), len(named)) == (3, 3)
    for bar in bars:
        found = [each for each in (*kept, *named) if bar["data-lost"] in str(each["data-lost"]).split()]
        # A bar is followed by as many dialogues, with or without a transcript.
        count = re.search(f'data-lost="{bar["data-lost"]}"><b>.*?aria-label="([0-9]+)"', section.content)
        assert count is not None
        assert int(count[1]) == len(found)


def test_each_turn_has_the_user_and_the_systems_side_by_side(shown_run: Run) -> None:
    section = make_transcripts_section(shown_run)
    assert section is not None
    turns = section.content.split('<section class="turn">')
    first = next(part for part in turns if "i would like fish" in part).partition("</section>")[0]
    text = Page(first).text
    asked, *answers = (text.index(part) for part in ("i would like fish", "there are [choice]", "[eatery_name]"))
    assert asked < min(answers)
    assert len([attrs for attrs in Page(first).of("div") if str(attrs.get("class")).startswith("side own-")]) == 2


def test_runs_without_transcripts_have_no_such_section() -> None:
    assert make_transcripts_section(dialeval.evaluate(["a b"], metrics="length")) is None
