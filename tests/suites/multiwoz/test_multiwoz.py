"""The interface of the MultiWOZ evaluation, on the invented town: every option, without any data from outside."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dialeval import sample_data
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.multiwoz import Evaluator, add_slot_domains, evaluate
from dialeval.suites.multiwoz.data import TaskData, load_task

TOWN = sample_data.folder() / "town"


@pytest.fixture(scope="module")
def task() -> TaskData:
    return load_task("town")


def predictions(system: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((TOWN / "predictions" / f"{system}.json").read_text())
    return document


def test_the_documented_output_and_nothing_else(task: TaskData) -> None:
    output = Evaluator(data=task).evaluate(predictions("patient"))
    assert list(output) == ["bleu", "success", "richness", "dst"]
    assert list(output["bleu"]) == ["town"]
    assert output["success"]["inform"] == dict.fromkeys(["cart", "eatery", "ferry", "inn", "total"], 100.0)
    assert output["success"]["success"]["total"] == 87.5
    assert list(output["richness"]) == [
        "entropy", "cond_entropy", "avg_lengths", "msttr", "num_unigrams", "num_bigrams", "num_trigrams",
    ]  # fmt: skip
    bare = Evaluator(bleu=False, success=False, richness=False, dst=True, data=task).evaluate(predictions("patient"))
    assert bare["bleu"] is bare["success"] is bare["richness"] is None
    assert list(bare["dst"]) == ["joint_accuracy", "slot_f1", "slot_precision", "slot_recall"]


def test_the_input_is_left_as_it_was(task: TaskData) -> None:
    document = predictions("hasty")
    before = copy.deepcopy(document)
    evaluator = Evaluator(dst=True, data=task)
    assert evaluator.evaluate(document) == evaluator.evaluate(document)
    assert document == before


def test_missing_dialogues_cost_nothing_unless_strict(task: TaskData) -> None:
    loose, strict = (evaluate(predictions("hasty"), task, strict=flag) for flag in (False, True))
    here, there = loose["predictions"]["inform"], strict["predictions"]["inform"]
    assert (here.units, here.scored, there.scored) == (8, 7, 8)
    assert there.mean == pytest.approx(here.mean * 7 / 8)
    assert strict["predictions"]["bleu/town"].mean <= loose["predictions"]["bleu/town"].mean
    assert any(line.startswith("predictions covers 7 of 8 dialogues and 24 of 26 turns") for line in loose.warnings)
    assert here.signature is not None
    assert there.signature is not None
    assert there.signature["missing"] == "failed"
    assert here.signature["missing"] == "ignored"
    assert {"goals", "venues", "ontology", "true-states"} <= set(here.signature)


def test_one_turn_without_a_state_replaces_all_and_says_so(task: TaskData) -> None:
    document = predictions("hasty")
    del document["town06"][3]["state"]
    without = {name: [{"response": turn["response"]} for turn in turns] for name, turns in document.items()}
    run = evaluate(document, task)
    [line] = [line for line in run.warnings if "gives no state in 1 of 24 turns" in line]
    assert "--fallback turn" in line
    assert run["predictions"]["inform"].mean == evaluate(without, task)["predictions"]["inform"].mean
    own = evaluate(predictions("hasty"), task)["predictions"]["inform"].mean
    by_turn = evaluate(document, task, fallback="turn")
    assert by_turn["predictions"]["inform"].mean == own != run["predictions"]["inform"].mean
    assert by_turn["predictions"]["inform"].signature["fallback"] == "turn"  # type: ignore[index]


def test_state_tracking_is_refused_without_states(task: TaskData) -> None:
    bare = {name: [{"response": turn["response"]} for turn in turns] for name, turns in predictions("patient").items()}
    with pytest.raises(NeedError, match=r"needs a `state` in every turn.*has one in 0 of 26 turns"):
        evaluate(bare, task, dst=True)
    run = evaluate({"bare": bare, "whole": predictions("patient")}, task, dst=True)
    assert "joint-accuracy" in run["whole"]
    assert "joint-accuracy" not in run["bare"]
    assert "needs a `state`" in run["bare"].skipped["joint-accuracy"]


def test_booking_slots_can_be_unified(task: TaskData) -> None:
    apart, unified = (
        evaluate(predictions("patient"), task, dst=True, unify_booking=flag)["predictions"] for flag in (False, True)
    )
    assert unified["joint-accuracy"].mean > apart["joint-accuracy"].mean
    assert unified["slot-f1"].signature["booking"] == "unified"  # type: ignore[index]


def test_unknown_names_are_said_once_with_their_count(task: TaskData) -> None:
    document = predictions("patient")
    for turns in document.values():
        turns[0]["response"] += " [nowhere]"
        turns[0]["state"] = {**turns[0]["state"], "inn": {"color": "red"}}
    warnings = evaluate(document, task).warnings
    assert [line for line in warnings if "[nowhere] (8 times)" in line]
    assert [line for line in warnings if "inn.color (8 times)" in line]


def test_several_reference_sets(task: TaskData, tmp_path: Path) -> None:
    folder = tmp_path / "town"
    shutil.copytree(TOWN, folder)
    (folder / "references" / "mwz22.json").write_bytes((folder / "references" / "town.json").read_bytes())
    output = Evaluator(success=False, richness=False, data=folder).evaluate(predictions("patient"))
    assert list(output["bleu"]) == ["mwz22", "town"]
    assert output["bleu"]["mwz22"] == output["bleu"]["town"]


def test_runs_can_be_saved_and_loaded(task: TaskData, tmp_path: Path) -> None:
    from dialeval import load

    run = evaluate({name: predictions(name) for name in ("patient", "hasty")}, task, dst=True)
    assert load(run.save(tmp_path)) == run


def test_active_domains_out_of_slot_names() -> None:
    document = {"x": [{"response": "[hotel_name] and [train_id]"}, {"response": "[name]"}]}
    found = add_slot_domains(document)
    assert [turn["active_domains"] for turn in found["x"]] == [["hotel", "train"], []]
    assert "active_domains" not in document["x"][0]


def test_data_that_is_not_there() -> None:
    with pytest.raises(DataError, match="there is no such folder"):
        Evaluator(data="nowhere")
    with pytest.raises(SettingError, match="nothing was asked for"):
        Evaluator(bleu=False, success=False, richness=False, data="town").evaluate(predictions("patient"))


def test_goals_that_nobody_can_meet_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "town"
    shutil.copytree(TOWN, folder)
    goals = json.loads((folder / "goals.json").read_text())
    goals["town01"]["eatery"]["requestable"] = ["FAX"]
    goals["town02"]["zeppelin"] = {}
    (folder / "goals.json").write_text(json.dumps(goals))
    with pytest.raises(DataError) as caught:
        load_task(folder)
    lines = [str(problem) for problem in caught.value.problems]
    assert len(lines) == 2
    assert "town01.eatery.requestable: no system can give 'FAX'" in lines[0]
    assert "town02.zeppelin: the ontology has no such domain" in lines[1]


def test_modules_of_the_original_have_its_functions() -> None:
    from dialeval.originals.multiwoz_evaluation import metrics, normalization, utils
    from dialeval.originals.mwzeval.metrics import Evaluator

    assert Evaluator is metrics.Evaluator

    assert metrics.Evaluator is Evaluator
    data: Any = {"d1": [{"response": "The [hotel_name] is [stars]-star.", "state": {"hotel": {"Leave At": "by 9 am"}}}]}
    assert (utils.has_state_predictions(data), utils.has_domain_predictions(data)) == (True, False)
    normalization.normalize_data(data)
    assert data["d1"][0] == {"response": "the NAME is COUNTtar.", "state": {"hotel": {"leave": "09:00"}}}
    utils.get_domain_estimates_from_state(data)
    assert data["d1"][0]["active_domains"] == ["hotel"]
    assert [normalization.normalize_slot_name(name) for name in ("Hotel_Name", "nonsense")] == ["NAME", ""]
    assert normalization.normalize_state_slot_value("leaveat", "2 pm") == "14:00"
    assert normalization.normalize_state_slot_value("name", "Nando's") == "nandos"
    assert normalization.time_str_to_minutes("01:30") == 90
    goals, booked = utils.load_goals("town"), utils.load_booked_domains("town")
    assert goals.keys() == utils.load_gold_states("town").keys() == utils.load_references("town")["town"].keys()
    assert booked is None or booked.keys() == goals.keys()
