"""What users of the MultiWOZ evaluation ask for: joint goal accuracy, lists of values, Complete and Book."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import Dialeval
from dialeval import sample_data
from dialeval.multiwoz import Evaluator, load_task
from dialeval.suites.multiwoz.metrics import Tracking, make_state_comparison
from dialeval.suites.multiwoz.ontology import MULTIWOZ, load_ontology

TOWN = sample_data.folder() / "town"
NAMES = {"published": "rosa's bed and breakfast", "2023": "rosa's b and b"}


@pytest.fixture
def town(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TOWN, tmp_path / "town"))


@pytest.mark.parametrize(
    ("settings", "state", "true", "counts"),
    [
        ({}, {"hotel": {"name": "acorn"}}, {"hotel": {"name": "acorn guest house"}}, (1, 0, 0)),
        ({"threshold": 100.0}, {"hotel": {"name": "acorn"}}, {"hotel": {"name": "acorn guest house"}}, (0, 1, 1)),
        ({"threshold": 100.0}, {"hotel": {"name": "Acorn House"}}, {"hotel": {"name": "acorn guest house"}}, (1, 0, 0)),
        ({}, {"hotel": {"area": "dontcare", "stars": "none"}}, {"hotel": {}}, (0, 2, 0)),
        ({"dont_care": "ignored"}, {"hotel": {"area": "dontcare", "stars": "none"}}, {"hotel": {}}, (0, 0, 0)),
        ({"dont_care": "ignored"}, {"hotel": {}}, {"hotel": {"area": "do n't care", "type": "hotel"}}, (0, 0, 1)),
        ({"threshold": 100.0}, {"train": {"leaveAt": "9:15"}}, {"train": {"leave": ("09:15", "nine")}}, (1, 0, 0)),
        ({"threshold": 100.0}, {"train": {"leaveAt": "10:15"}}, {"train": {"leave": ("09:15", "nine")}}, (0, 1, 1)),
    ],
)
def test_slots_that_agree(settings: dict[str, Any], state: Any, true: Any, counts: tuple[int, int, int]) -> None:
    assert make_state_comparison(load_ontology(MULTIWOZ), Tracking(**settings))(state, true) == counts


def test_settings_of_tracking_are_in_the_signature() -> None:
    path = TOWN / "predictions" / "patient.json"
    evaluator = Evaluator(
        bleu=False, success=False, richness=False, dst=True, data="town", dst_exact=True, ignore_dontcare=True
    )
    result = evaluator.run(path)["patient"]["joint-accuracy"]
    assert "threshold:100" in str(result.signature)
    assert "dont_care:ignored" in str(result.signature)
    plain = Evaluator(bleu=False, success=False, richness=False, dst=True, data="town").run(path)["patient"]
    assert result.mean <= plain["joint-accuracy"].mean


def test_lists_of_values_as_in_multiwoz_22(town: Path) -> None:
    """The first value of a predicted list counts, and any value of a true one."""
    states = json.loads((town / "gold_states.json").read_text())
    document = json.loads((town / "predictions" / "patient.json").read_text())
    slots = [slots for name in states for turn in document[name] for slots in turn["state"].values()]
    before = Evaluator(dst=True, data="town").run(document)["predictions"]
    for state in slots:
        state.update({slot: [value, "nowhere"] for slot, value in state.items()})
    for turns in states.values():
        for slots in (slots for state in turns for slots in state.values()):
            slots.update({slot: ["nothing", value] for slot, value in slots.items()})
    lists = Evaluator(bleu=False, success=False, richness=False, dst=True, data="town")
    run = lists.run(document)
    assert {key: value.mean for key, value in run["predictions"].items()} == {
        key: before[key].mean for key in run["predictions"]
    }
    (warning,) = run.warnings
    assert "lists of values" in warning
    (town / "gold_states.json").write_text(json.dumps(states))
    both = Evaluator(bleu=False, success=False, richness=False, dst=True, data=town).run(document)["predictions"]
    assert both["joint-accuracy"].mean == before["joint-accuracy"].mean


def test_a_dialogue_that_a_file_has_twice_is_a_warning(dialeval: Dialeval, tmp_path: Path) -> None:
    document = json.loads((TOWN / "predictions" / "patient.json").read_text())
    name, turns = next(iter(document.items()))
    first = json.dumps({name: turns[:1]})[:-1]
    (tmp_path / "twice.json").write_text(first + ", " + json.dumps(document)[1:])
    (tmp_path / "once.json").write_text(json.dumps(document))
    twice, once = (
        dialeval("multiwoz", "-i", f"{one}.json", "--data", "town", "-s", "-f", "csv") for one in ("twice", "once")
    )
    assert f"the file has dialogues twice ({name})" in twice.stderr
    assert "twice (" not in once.stderr
    assert twice.stdout.replace("twice", "once") == once.stdout


@pytest.mark.parametrize("names", NAMES)
def test_spellings_of_venues(names: Any) -> None:
    """A guest house was spelled in full when the results were published; since pull request 16 it is short."""
    ontology = load_ontology(MULTIWOZ)
    if names == "2023":
        ontology = ontology.with_rule("name", "short-name")
    assert ontology.states.value("name", "Rosa's Bed & Breakfast ") == NAMES[names]
    assert ontology.states.value("food", "bed and breakfast") == "bed and breakfast"


def test_the_spelling_is_in_the_signature() -> None:
    task = load_task("town", names="2023")
    assert task.ontology.digest != load_task("town").ontology.digest
    run = Evaluator(bleu=False, richness=False, data="town", names="2023").run(TOWN / "predictions" / "hasty.json")
    assert task.ontology.digest in str(run["hasty"]["inform"].signature)


def test_complete_and_book() -> None:
    """By hand: the goals of two dialogues with a booking each, one answered in full, one never booked."""
    task = load_task("town")
    run = Evaluator(bleu=False, richness=False, data=task, completion=True).run(TOWN / "predictions" / "patient.json")
    explained = Evaluator(data=task).explain(TOWN / "predictions" / "patient.json", next(iter(task.files.turns)))
    assert explained
    result, goals = run["patient"], task.files.goals.goals
    bookings = [any(wishes["booking"] for wishes in goal.values()) for goal in goals.values()]
    assert result["book"].scored == sum(bookings)
    complete, success = result["complete"].scores, result["success"].scores
    assert complete is not None
    assert success is not None
    assert (complete >= success).all()  # Success also asks for the right offers
    assert result["complete"].mean >= result["success"].mean
    silent = {name: [{"response": "bye", "state": {}}] * turns for name, turns in task.files.turns.items()}
    nothing = Evaluator(bleu=False, richness=False, data=task, completion=True).run(silent)["predictions"]
    asked = [any(wishes["requestable"] for wishes in goal.values()) for goal in goals.values()]
    assert nothing["book"].mean == 0
    assert nothing["complete"].mean == pytest.approx(100 * (1 - sum(asked) / len(asked)))
