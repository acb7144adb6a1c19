"""Transcripts of task dialogues, and why dialogues were lost, in the report."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import dialeval
from dialeval import sample_data
from dialeval.core.result import Run
from dialeval.multiwoz import Evaluator
from dialeval.reports.html import combine_runs, render
from dialeval.suites.multiwoz.data import load_task
from dialeval.suites.multiwoz.evaluation import evaluate_task, with_transcripts
from dialeval.suites.multiwoz.explanations import Cause, group_by_cause
from dialeval.suites.multiwoz.report import make_transcripts_section
from reports.test_html import HOSTILE, Page

TASK = load_task("town")
PREDICTIONS = sample_data.folder() / "town" / "predictions"


@pytest.fixture(scope="module")
def run() -> Run:
    return evaluate_task(PREDICTIONS, TASK)


def test_every_cause_has_an_example_where_there_is_room_for_one_each(run: Run) -> None:
    found = with_transcripts(run, PREDICTIONS, TASK, most=2 * len(TASK.files.turns) - 4).details
    for system, counts in found["failures"].items():
        shown = {cause["cause"] for entry in found["transcripts"][system] for cause in entry["causes"]}
        assert shown == set(counts)


if TYPE_CHECKING:
    from pathlib import Path

    from dialeval.core.result import Run


@pytest.fixture(scope="module")
def shown_run() -> Run:
    evaluator = Evaluator(data="town")
    return evaluator.with_transcripts(evaluator.run(PREDICTIONS), PREDICTIONS)


def test_verdicts_are_those_of_the_metrics(shown_run: Run) -> None:
    for system, result in shown_run.items():
        rows, items = result.rows, {key: result[key].scores for key in ("inform", "success")}
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
    assert first["turns"][0]["steps"][0]["offer"] == {"venues": 2, "names": ["the salt spoon", "pier seven"]}


def test_lost_dialogues_come_first_where_there_is_no_room_for_all() -> None:
    evaluator = Evaluator(data="town")
    shown_run = with_transcripts(evaluator.run(PREDICTIONS), PREDICTIONS, evaluator.task, evaluator.choices, most=6)
    shown = {system: [entry["dialogue"] for entry in mine] for system, mine in shown_run.details["transcripts"].items()}
    assert all(len(names) <= 3 for names in shown.values())
    lost = {e["dialogue"] for mine in shown_run.details["transcripts"].values() for e in mine if e["causes"]}
    assert lost == {name for names in shown.values() for name in names}


def test_the_page_shows_goal_turns_offers_and_causes(shown_run: Run, tmp_path: Path) -> None:
    page = Page(render(combine_runs([dialeval.load(shown_run.save(tmp_path))])))
    for part in (
        "Task dialogues",
        "dish = fish",
        "offers 2 venues (the salt spoon, pier seven)",
        "wrong venue",
        "✗ offer misses the goal",
        "i would like fish by the harbour, nothing fancy.",
    ):
        assert part in page.text
    assert len([attrs for attrs in page.of("details") if attrs.get("class") == "dialogue"]) == 8


def test_texts_from_outside_stay_texts() -> None:
    name = HOSTILE.replace("\udc80", "")
    step = {"domain": name, "provided": [name], "early": [name], "offer": {"venues": 2, "names": [name, name]}}
    turn = {
        "turn": 0,
        "user": name,
        "response": name,
        "active": [name],
        "estimated": True,
        "true_state": True,
        "steps": [step],
    }
    domain = {
        "domain": name,
        "wishes": {name: name},
        "asked": [name],
        "provided": [name],
        "matched": True,
        "complete": False,
    }
    entry = {"dialogue": name, "inform": True, "success": False, "domains": [domain]}
    entry |= {"turns": [{**turn, "state": {name: {name: name}}}, {**turn, "state": {}}]}
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


def turn(at: int, response: str, state: dict[str, dict[str, str]], **more: Any) -> dict[str, Any]:
    plain = {"user": f"user {at}", "active": [], "estimated": False, "true_state": False, "steps": []}
    return {"turn": at, "response": response, "state": state, **plain, **more}


def test_causes_are_counted_over_all_dialogues_and_lead_to_those_that_are_shown() -> None:
    evaluator = Evaluator(data="town")
    shown_run = with_transcripts(evaluator.run(PREDICTIONS), PREDICTIONS, evaluator.task, evaluator.choices, most=6)
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


def lost(dialogue: str, *causes: str) -> Any:
    """As much of an explanation as the tables show."""
    made = [Cause("inform", "hotel", cause, f"so {cause}") for cause in causes]
    return SimpleNamespace(dialogue=dialogue, causes=made)
