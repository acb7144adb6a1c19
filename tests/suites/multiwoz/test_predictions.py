""""""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import Dialeval
from dialeval import sample_data
from dialeval.core.errors import DataError
from dialeval.multiwoz import Evaluator, load_task
from dialeval.suites.multiwoz.data import Goals, TaskFiles, read_document, read_predictions
from dialeval.suites.multiwoz.metrics import Tracking, make_state_comparison
from dialeval.suites.multiwoz.venues import MULTIWOZ, load_ontology

TASK = TaskFiles(
    "data", Goals({"a1": {}, "b2": {}, "c3": {}}, None, ""), None, None, {"a1": 2, "b2": 1, "c3": 1}, None, {}
)


def turn(response: str = "hi", **more: Any) -> dict[str, Any]:
    return {"response": response, **more}


def problems_of(document: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        read_predictions(document, TASK)
    return [str(problem) for problem in caught.value.problems]


def test_all_problems_at_once_with_their_paths() -> None:
    found = problems_of(
        {
            "a1": [turn(state={"hotel": ["x"]}), turn(state="x"), turn()],
            "b2": [{"response": None, "active_domains": "hotel"}],
            "c3": [{"state": {"inn": {"stars": 4}}}, 7],
            "A1.json": [turn()],
            "zz": "text",
        }
    )
    expected = [
        "a1[0].state.hotel: is a list, not an object; give domains with their slots and values",
        "a1[1].state: is a string, not an object; give domains",
        "b2[0].response: is null, not a text",
        "b2[0].active_domains: is a string, not a list of texts",
        "c3[0]: has no response",
        "c3[0].state.inn.stars: is a number, not a text",
        "c3[1]: is a number, not an object with response, state, active_domains",
        "zz: is a string, not a list of turns",
        "A1.json: the data has no such dialogue; write 'a1'",
        "zz: the data has no such dialogue",
        "a1[2]: one turn too many: the dialogue has 2 system turns in the data, and 3 here",
        "c3[1]: one turn too many",
    ]
    assert len(found) == len(expected)
    for problem, text in zip(found, expected, strict=True):
        assert problem.startswith("predictions: ")
        assert text in problem


@pytest.mark.parametrize("value", [4, 4.5, None, True, {"center": 1}])
def test_values_that_only_the_original_takes_are_refused(value: Any) -> None:
    assert ".state.hotel.stars: is " in problems_of({"b2": [turn(state={"hotel": {"stars": value}})]})[0]
    states: list[Any] = [[], None]
    for state in states:
        assert "b2[0].state: is " in problems_of({"b2": [turn(state=state)]})[0]
    assert "b2[0].active_domains: is a string" in problems_of({"b2": [turn(active_domains="hotel")]})[0]


def test_many_unknown_dialogues_are_counted() -> None:
    found = problems_of({f"x{number}": [turn()] for number in range(1000)})
    assert len(found) == 21
    assert "and 980 more dialogue ids" in found[-1]


@pytest.mark.parametrize(
    ("content", "what"), [("{", "not JSON"), ("", "is empty"), ("[]", "is a list"), ("{}", "empty object")]
)
def test_files_that_hold_no_predictions(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(DataError, match=what):
        read_predictions(path, TASK)


def test_a_hundred_megabytes_that_are_not_json(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    with path.open("wb") as out:
        out.write(b'{"a1": [')
        for _ in range(100):
            out.write(b" " * (1 << 20))
        out.write(b"}")
    with pytest.raises(DataError, match=r"big.json:1: not JSON"):
        read_predictions(path, TASK)


def test_files_folders_and_names(tmp_path: Path) -> None:
    document = {"a1": [turn()]}
    (tmp_path / "one.json").write_text(json.dumps(document))
    (tmp_path / "two.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    assert [found.rows.system for found in read_predictions(tmp_path, TASK)] == ["one", "two"]
    assert [found.rows.system for found in read_predictions(tmp_path / "two.json.gz", TASK)] == ["two"]
    named = read_predictions({"x": tmp_path / "one.json", "y": document}, TASK)
    assert [(found.rows.system, found.rows.where) for found in named] == [("x", str(tmp_path / "one.json")), ("y", "y")]
    folder = read_predictions({"all": tmp_path}, TASK)
    assert [found.rows.system for found in folder] == ["all/one", "all/two"]
    assert read_document(tmp_path / "one.json") == document


def test_two_systems_have_two_names(tmp_path: Path) -> None:
    content = json.dumps({"b2": [turn()]}).encode()
    (tmp_path / "mine.json").write_bytes(content)
    (tmp_path / "mine.json.gz").write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match="mine: two systems have this name"):
        read_predictions(tmp_path, TASK)


# What users of the MultiWOZ evaluation ask for: joint goal accuracy, lists of values, Complete and Book.


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
