from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialeval
from conftest import Dialeval
from dialeval import sample_data
from dialeval.core.errors import DataError, SettingError
from dialeval.core.result import Run
from dialeval.sgd import evaluate_sgd, make_original_output
from dialeval.text.similarity import token_sort_ratio

FRAMES = sample_data.folder() / "frames"
REFERENCES, TRAIN = FRAMES / "references", FRAMES / "train-schema.json"
SYSTEMS = {"steady": FRAMES / "steady", "forgetful": FRAMES / "forgetful.json"}


@pytest.fixture(scope="module")
def run() -> Run:
    return evaluate_sgd(SYSTEMS, REFERENCES, train_schema=TRAIN, metrics="all")


def test_figures(run: Run) -> None:
    steady, forgetful = run["steady"], run["forgetful"]
    assert steady["active-intent-accuracy"].mean == pytest.approx(17 / 18)
    assert steady["requested-slots-f1"].mean == pytest.approx((17 + 2 / 3) / 18)
    assert forgetful["active-intent-accuracy"].mean == pytest.approx(15 / 16)
    assert forgetful["active-intent-accuracy"].scored == 16
    assert steady["joint-cat-accuracy"].mean == 1
    # Frames that are not whole: the dialogue about the soup, twice, and three about ferries.
    joint = steady["joint-goal-accuracy"].scores
    assert joint is not None
    assert np.flatnonzero(joint < 1).tolist() == [5, 8, 16, 17]
    assert 0 < steady["slot-tagging-f1"].mean < 1
    assert "slot-tagging-f1" not in forgetful  # it has no spans
    assert steady["joint-goal-accuracy"].interval_by is not None


def test_the_four_of_papers_unless_asked() -> None:
    names = ["joint-goal-accuracy", "average-goal-accuracy", "active-intent-accuracy", "requested-slots-f1"]
    run = evaluate_sgd(SYSTEMS["steady"], REFERENCES)
    assert list(run) == ["steady"]
    assert list(run["steady"]) == names
    assert list(evaluate_sgd(SYSTEMS["steady"], REFERENCES, metrics="intent-accuracy")["steady"]) == [names[2]]


def test_systems_by_name_by_path_and_in_memory() -> None:
    dialogues = json.loads(SYSTEMS["forgetful"].read_text(encoding="utf-8"))
    expected = evaluate_sgd(SYSTEMS["forgetful"], REFERENCES)["forgetful"]
    for source in (dialogues, {each["dialogue_id"]: each for each in dialogues}):
        assert repr(evaluate_sgd(source, REFERENCES)["predictions"].estimates) == repr(expected.estimates)
    assert list(evaluate_sgd({"a": dialogues, "b": SYSTEMS["steady"]}, REFERENCES)) == ["a", "b"]
    with pytest.raises(DataError) as caught:  # dialogues, one of which is none, and no systems
        evaluate_sgd({"bay_00001": {"turns": []}, "bay_00002": 5}, REFERENCES)
    assert [problem.where for problem in caught.value.problems] == ["predictions: bay_00002"]
    assert make_original_output(replace(expected, table=None)) == {}


def test_settings_stand_in_signatures() -> None:
    run = evaluate_sgd(SYSTEMS["forgetful"], REFERENCES, match="exact", strict=True)["forgetful"]
    goal, intent = str(run["joint-goal-accuracy"].signature), str(run["active-intent-accuracy"].signature)
    assert "match:exact" in goal
    assert "schema:" in goal
    assert "true-frames:" in goal
    assert "missing:failed" in goal
    assert "missing:failed" in intent
    assert run["active-intent-accuracy"].mean == pytest.approx(15 / 18)
    assert run["active-intent-accuracy"].scored == 18


def test_what_is_missing_or_unknown_is_said() -> None:
    dialogues: Any = json.loads(SYSTEMS["forgetful"].read_text(encoding="utf-8"))
    dialogues[0]["turns"][0]["frames"][0]["state"]["slot_values"]["pool"] = ["True"]
    covers, unknown = evaluate_sgd({"mine": dialogues}, REFERENCES).warnings
    assert covers.startswith("mine covers 5 of 6 dialogues and 16 of 18 frames; as in the original, the others are")
    assert unknown == "mine: slots that the schema does not have were ignored, with their frames: Inns_1.pool (1)"
    assert evaluate_sgd(SYSTEMS["steady"], REFERENCES).warnings == ()


def test_the_schema_lies_beside_the_references_or_is_given(tmp_path: Path) -> None:
    dialogues = [*json.loads((REFERENCES / "dialogues_001.json").read_text(encoding="utf-8"))]
    with pytest.raises(SettingError, match="give the schema"):
        evaluate_sgd(dialogues, dialogues)
    (tmp_path / "test.json").write_text(json.dumps(dialogues))
    with pytest.raises(DataError, match=r"holds no schema\.json; give the schema"):
        evaluate_sgd(dialogues, tmp_path / "test.json")
    run = evaluate_sgd(dialogues, tmp_path / "test.json", REFERENCES / "schema.json")
    assert run["predictions"]["joint-goal-accuracy"].mean == 1
    (tmp_path / "schema.json").write_bytes((REFERENCES / "schema.json").read_bytes())
    assert evaluate_sgd(dialogues, tmp_path / "test.json")["predictions"]["joint-goal-accuracy"].mean == 1


def test_the_original_form_is_a_mean_over_the_frames_of_a_group(run: Run) -> None:
    output = make_original_output(run["forgetful"])
    services = ["Eateries_1", "Ferries_1", "Inns_1"]
    domains = ["Eateries", "Ferries", "Inns"]
    assert list(output) == sorted(["#ALL_SERVICES", "#SEEN_SERVICES", "#UNSEEN_SERVICES", *services, *domains])
    assert output["#UNSEEN_SERVICES"] == output["Ferries_1"] == output["Ferries"]
    assert output["#UNSEEN_SERVICES"]["active_intent_accuracy"] == 3 / 4
    assert output["#SEEN_SERVICES"]["active_intent_accuracy"] == 1
    for key, estimate in run["forgetful"].items():
        assert output["#ALL_SERVICES"][key.replace("-", "_")] == pytest.approx(estimate.mean, abs=1e-12)
    without = make_original_output(evaluate_sgd(SYSTEMS["forgetful"], REFERENCES)["forgetful"])
    assert not {"#SEEN_SERVICES", "#UNSEEN_SERVICES"} & without.keys()


def test_a_group_is_a_slice(run: Run) -> None:
    output = make_original_output(run["steady"])
    for each in dialeval.compare_slices(run, "service,domain", compared=False).slices:
        for key, estimate in each.run["steady"].items():
            assert output[each.label].get(key.replace("-", "_")) == pytest.approx(estimate.mean, abs=1e-12)


def test_no_frame_of_a_group_may_be_scored(run: Run) -> None:
    dialogues = [json.loads(SYSTEMS["forgetful"].read_text(encoding="utf-8"))[0]]
    output = make_original_output(evaluate_sgd(dialogues, REFERENCES)["predictions"])
    assert output["Ferries"] == {}
    assert output["Inns"]["active_intent_accuracy"] == 1


def test_a_run_is_saved_compared_and_reported(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    loaded = dialeval.load(tmp_path / "run")
    assert loaded == run
    assert {row.key for row in dialeval.compare(loaded).differences} >= {"joint-goal-accuracy", "requested-slots-f1"}
    page = dialeval.report(loaded, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "FindInn; area=hill" in page


# The evaluation of whole documents, spelt out; the likeness of two values is tested in tests/text/test_similarity.py.


def plain_frame(own: Any, true: Any, slots: list[Any]) -> dict[str, float]:
    """The figures of one frame that are defined."""
    here, there = own["slot_values"], true["slot_values"]
    joint, active = 1.0, []
    for slot in slots:
        name, score = slot["name"], 0.0
        if name in here and name in there:
            if slot["is_categorical"]:
                score = float(here[name][0] == there[name][0])
            else:
                score = max(token_sort_ratio(value, here[name][0]) / 100 for value in there[name])
        elif name not in here and name not in there:
            score = 1.0
        joint *= score
        if name in there:
            active.append(score)
    found = {
        "joint_goal_accuracy": joint,
        "active_intent_accuracy": float(own["active_intent"] == true["active_intent"]),
    }
    return found | ({"average_goal_accuracy": sum(active) / len(active)} if active else {})


def plain_groups(predictions: list[Any], references: list[Any], seen: set[str]) -> dict[str, dict[str, float]]:
    schema = json.loads((REFERENCES / "schema.json").read_text(encoding="utf-8"))
    slots = {service["service_name"]: service["slots"] for service in schema}
    by_id = {dialogue["dialogue_id"]: dialogue for dialogue in references}
    values: dict[str, dict[str, list[float]]] = {}
    for dialogue in predictions:
        for turn, reference in zip(dialogue["turns"], by_id[dialogue["dialogue_id"]]["turns"], strict=False):
            for frame in reference["frames"] if reference["speaker"] == "USER" else ():
                service = frame["service"]
                [own] = [each for each in turn["frames"] if each["service"] == service]
                kind = "#SEEN_SERVICES" if service in seen else "#UNSEEN_SERVICES"
                for group in ("#ALL_SERVICES", kind, service, service.split("_")[0]):
                    for key, value in plain_frame(own["state"], frame["state"], slots[service]).items():
                        values.setdefault(group, {}).setdefault(key, []).append(value)
    return {group: {key: sum(each) / len(each) for key, each in keys.items()} for group, keys in values.items()}


@given(st.data())
@settings(max_examples=15)
def test_whole_documents_give_the_figures_of_the_definition(data: st.DataObject) -> None:
    """Some of the dialogues, cut off somewhere, some values changed, lost or made up."""
    references = [
        dialogue
        for name in ("dialogues_001.json", "dialogues_002.json")
        for dialogue in json.loads((REFERENCES / name).read_text(encoding="utf-8"))
    ]
    chosen = data.draw(st.lists(st.sampled_from(range(6)), min_size=1, unique=True))
    predictions = [json.loads(json.dumps(references[number])) for number in chosen]
    words = st.sampled_from(["gull point", "long stairs landing", "True", "half past seven", "hill", "?"])
    for dialogue in predictions:
        dialogue["turns"] = dialogue["turns"][: data.draw(st.integers(1, 8))]
        for frame in (frame for turn in dialogue["turns"] for frame in turn["frames"]):
            slots = st.sampled_from(["landing", "leave", "dish", "garden", "area", "inn_name", "nothing"])
            changes = data.draw(st.dictionaries(slots, st.none() | words, max_size=2))
            state = frame["state"]
            state["slot_values"] |= {slot: [value, "x"] for slot, value in changes.items() if value is not None}
            for slot in (slot for slot, value in changes.items() if value is None):
                state["slot_values"].pop(slot, None)
            state["active_intent"] = data.draw(st.sampled_from([state["active_intent"], "NONE"]))
    found = make_original_output(
        evaluate_sgd(predictions, references, REFERENCES / "schema.json", TRAIN)["predictions"]
    )
    expected = plain_groups(predictions, references, {"Inns_1", "Eateries_1"})
    assert {group for group, keys in found.items() if keys} == set(expected)
    for group, keys in expected.items():
        shown = {key: value for key, value in found[group].items() if key != "requested_slots_f1"}
        assert shown == pytest.approx(keys, abs=1e-12)


def test_references_that_are_not_there_are_named() -> None:
    with pytest.raises(DataError, match="nowhere: there is no such file; check the path"):
        evaluate_sgd(SYSTEMS["steady"], "nowhere")


def test_baselines_are_gold_frames_those_of_other_dialogues_and_empty_ones() -> None:
    frames = sample_data.folder() / "frames"
    run = evaluate_sgd(frames / "steady", frames / "references", metrics="all", baselines=True)
    assert run.baselines == ["ceiling/gold", "floor/shuffled-gold", "floor/constant"]
    assert all(estimate.mean == 1 for estimate in run["ceiling/gold"].values())
    assert run["floor/constant"]["average-goal-accuracy"].mean == 0
    for floor in run.baselines[1:]:
        assert run[floor]["joint-goal-accuracy"].mean < run["steady"]["joint-goal-accuracy"].mean
    assert run.details["baselines"]["standing"]["steady"]["joint-goal-accuracy"]["ceiling"] == "ceiling/gold"
    alone = evaluate_sgd(frames / "steady", frames / "references", metrics="all")
    assert {key: each.mean for key, each in alone["steady"].items()} == {
        key: each.mean for key, each in run["steady"].items()
    }
    with pytest.raises(SettingError, match="name of a baseline"):
        evaluate_sgd({"ceiling/gold": frames / "steady"}, frames / "references", baselines=True)


def two_services(color: str, size: str) -> list[dict[str, Any]]:
    """A dialogue whose second turn is about two services."""

    def frame(service: str, **values: str) -> dict[str, Any]:
        slots = {slot: [value] for slot, value in values.items()}
        return {"service": service, "state": {"active_intent": "NONE", "requested_slots": [], "slot_values": slots}}

    turns = [
        {"speaker": "USER", "utterance": "a", "frames": [frame("Hats_1", color="red")]},
        {"speaker": "SYSTEM", "utterance": "b", "frames": []},
        {"speaker": "USER", "utterance": "c", "frames": [frame("Hats_1", color=color), frame("Boots_1", size=size)]},
    ]
    return [{"dialogue_id": "1", "turns": turns}]


def test_joint_accuracy_across_turns_is_a_product_over_the_frames_of_a_turn() -> None:
    schema = [
        {"service_name": "Hats_1", "slots": [{"name": "color", "is_categorical": True}]},
        {"service_name": "Boots_1", "slots": [{"name": "size", "is_categorical": True}]},
    ]
    true = two_services("red", "9")
    run = evaluate_sgd({"half": two_services("red", "8"), "none": two_services("blue", "8")}, true, schema, schema[:1])
    half, none = (make_original_output(run[name], across_turns=True) for name in ("half", "none"))
    # Frames: right, right, wrong. Turns: right, and one with a wrong frame.
    assert make_original_output(run["half"])["#ALL_SERVICES"]["joint_goal_accuracy"] == pytest.approx(2 / 3)
    assert half["#ALL_SERVICES"]["joint_goal_accuracy"] == 1 / 2
    assert half["Hats_1"]["joint_goal_accuracy"] == half["#SEEN_SERVICES"]["joint_goal_accuracy"] == 1
    assert half["#UNSEEN_SERVICES"]["joint_goal_accuracy"] == 0
    assert none["Hats_1"]["joint_goal_accuracy"] == 1 / 2
    # Others are means over frames all the same.
    assert half["#ALL_SERVICES"]["active_intent_accuracy"] == 1


def test_groups_of_services(request: pytest.FixtureRequest) -> None:
    dialeval_command: Dialeval = request.getfixturevalue("dialeval")  # the name is the package's here
    arguments = ("sgd", str(FRAMES / "steady"), "-r", str(REFERENCES), "--train-schema", str(TRAIN), "--groups")
    done = dialeval_command(*arguments, "-f", "json")
    groups = json.loads(done.stdout)["systems"]["steady"]
    run = evaluate_sgd(FRAMES / "steady", REFERENCES, train_schema=TRAIN)
    assert groups == make_original_output(run["steady"])
    assert {"#ALL_SERVICES", "#SEEN_SERVICES", "#UNSEEN_SERVICES", "Ferries", "Ferries_1"} <= set(groups)
    assert "steady,Ferries_1,joint_goal_accuracy," in dialeval_command(*arguments, "-f", "csv").stdout
    assert "#UNSEEN" in dialeval_command(*arguments, "--joint-across-turns").stdout
    refused = dialeval_command(*arguments[:-1], "--joint-across-turns")
    assert (refused.returncode, "--joint-across-turns is for --groups" in refused.stderr) == (2, True)
