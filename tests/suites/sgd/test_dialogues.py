""""""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from dialeval import sample_data
from dialeval.core.errors import DataError
from dialeval.suites import sgd as feature
from dialeval.suites.sgd.data import (
    Frame,
    FramePredictions,
    Turn,
    check_turn,
    read_dialogues,
    read_predictions,
    read_references,
    read_schema,
)


def dialogue(name: str, **more: Any) -> dict[str, Any]:
    return {"dialogue_id": name, "turns": [{"speaker": "USER", "utterance": "hi", "frames": []}], **more}


def problems_of(source: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        read_dialogues(source, "here")
    return [str(problem) for problem in caught.value.problems]


def test_what_in_a_folder_holds_dialogues(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps([dialogue("b")]))
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(json.dumps({"a": dialogue("other")}).encode()))
    for name in ("schema.json", "dialogues_and_metrics.json", "notes.txt", ".hidden.json"):
        (tmp_path / name).write_text("[]")
    assert list(read_dialogues(tmp_path, "here")) == ["a", "b"]
    assert list(read_dialogues(tmp_path / "b.json", "here")) == ["b"]
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "schema.json").write_text("[]")
    assert "holds no file of dialogues" in problems_of(tmp_path / "only")[0]


def test_documents() -> None:
    assert list(read_dialogues([dialogue("a"), dialogue("b")], "here")) == ["a", "b"]
    assert list(read_dialogues({"x": dialogue("a")}, "here")) == ["x"]
    assert problems_of([]) == ["here: holds no dialogue; give a list of dialogues, each with dialogue_id and turns"]
    assert problems_of([dialogue("a"), dialogue("a")]) == ["here: a: occurs twice; keep one of them"]


def test_problems_of_all_files_at_once(tmp_path: Path) -> None:
    state = {"active_intent": 1, "requested_slots": "x", "slot_values": {"a": "True", "b": [2]}}
    frames = [{"service": "A_1", "state": state}, {"state": {}}, {"service": "A_1", "slots": [{"start": "0"}]}]
    (tmp_path / "a.json").write_text(json.dumps([{"turns": [{"frames": frames}, {"speaker": "USER", "frames": 5}]}]))
    (tmp_path / "b.json").write_text("[")
    (tmp_path / "c.json").write_text("7")
    found = "\n".join(problems_of(tmp_path))
    for what in (
        "a.json: [0]: has no dialogue_id",
        "[0].turns[0]: has no speaker",
        "[0].turns[0].frames[0].state.active_intent: is a number",
        "[0].turns[0].frames[0].state.requested_slots: is a string, not a list of texts",
        "[0].turns[0].frames[0].state.slot_values.a: is a string, not a list of texts",
        "[0].turns[0].frames[0].state.slot_values.b[0]: is a number",
        "[0].turns[0].frames[1]: has no service",
        "[0].turns[0].frames[1].state: has no active_intent; give NONE where there is no intent",
        "[0].turns[0].frames[2].slots[0]: has no slot",
        "[0].turns[0].frames[2].slots[0].start: is a string, not a whole number",
        "[0].turns[1].frames: is a number, not a list of frames",
        "b.json:1: not JSON",
        "c.json: is a number, not a list of dialogues",
    ):
        assert what in found
    (tmp_path / "other").mkdir()
    for name in ("a.json", "b.json"):
        (tmp_path / "other" / name).write_text(json.dumps([dialogue("a")]))
    [problem] = problems_of(tmp_path / "other")
    assert "b.json: a: occurs twice, also in " in problem


def test_frames_of_a_user_turn() -> None:
    state = {"active_intent": "NONE", "requested_slots": [], "slot_values": {"a": []}}
    frames = [{"service": "A_1", "state": state}, {"service": "A_1"}]
    turn = convert({"speaker": "USER", "frames": frames}, Turn)
    assert [str(problem) for problem in check_turn(turn, "f: d[0]")] == [
        "f: d[0]: has 2 frames of the service 'A_1'; keep one of them",
        "f: d[0]: the slot 'a' of 'A_1' has no value; leave the slot out where it has none",
        "f: d[0]: the frame of 'A_1' has no state; give every state active_intent, requested_slots and slot_values",
    ]
    turn.frames.reverse()
    assert [problem.what for problem in check_turn(turn, "f: d[0]")] == [
        "has 2 frames of the service 'A_1'",
        "the frame of 'A_1' has no state",
        "the slot 'a' of 'A_1' has no value",
    ]
    turn.frames.append(Frame("A_1"))
    assert next(check_turn(turn, "f")).what == "has 3 frames of the service 'A_1'"
    assert list(check_turn(Turn("USER"), "f")) == []


#


def service(name: str, **slots: bool) -> dict[str, Any]:
    return {
        "service_name": name,
        "slots": [{"name": slot, "is_categorical": categorical} for slot, categorical in slots.items()],
    }


def schema_problems(document: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        read_schema(document)
    return [str(problem) for problem in caught.value.problems]


def test_the_digest_is_of_what_counts() -> None:
    digest = read_schema([service("A_1", a=True, b=False)]).digest
    assert read_schema([{**service("A_1", a=True, b=False), "description": "x"}]).digest == digest
    for other in (service("A_2", a=True, b=False), service("A_1", a=True, b=True), service("A_1", b=False, a=True)):
        assert read_schema([other]).digest != digest


def test_every_problem_at_once(tmp_path: Path) -> None:
    assert schema_problems({"a": 1}) == [
        "schema: is an object, not a list of services; give a list of services, each with service_name and slots"
    ]
    document = [{"slots": [{"name": 1, "is_categorical": "yes"}, {}]}, {"service_name": "A_1"}, 5]
    found = "\n".join(schema_problems(document))
    for what in (
        "[0]: has no service_name",
        "[0].slots[0].name: is a number, not a text",
        "[0].slots[0].is_categorical: is a string, not true or false",
        "[0].slots[1]: has no name",
        "[0].slots[1]: has no is_categorical",
        "[1]: has no slots",
        "[2]: is a number",
    ):
        assert what in found
    twice = service("A_1", a=True)
    twice["slots"] *= 2
    assert schema_problems([twice, service("A_1")]) == [
        "schema: [0].slots: the slot 'a' occurs twice; keep one of them",
        "schema: [1]: the service 'A_1' occurs twice; keep one of them",
    ]
    with pytest.raises(DataError, match="no such file"):
        read_schema(tmp_path / "schema.json")


#


FRAMES = sample_data.folder() / "frames"
SCHEMA = read_schema(FRAMES / "references" / "schema.json")
TRUE = read_references(FRAMES / "references", SCHEMA)
DIALOGUES: list[Any] = [
    dialogue
    for name in ("dialogues_001.json", "dialogues_002.json")
    for dialogue in json.loads((FRAMES / "references" / name).read_text(encoding="utf-8"))
]


@pytest.fixture
def dialogues() -> list[Any]:
    """The references, to be changed into predictions."""
    return copy.deepcopy(DIALOGUES)


def read(dialogues: Any) -> FramePredictions:
    return read_predictions(dialogues, TRUE, SCHEMA, frozenset({"Inns_1"}), "mine")


def frame_problems(dialogues: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        read(dialogues)
    return [str(problem) for problem in caught.value.problems]


def test_a_row_is_a_frame_of_the_references(dialogues: list[Any]) -> None:
    found = read(dialogues[::-1])
    rows = found.rows
    assert rows.turns is not None
    names = list(rows.dialogues or ())
    places = list(zip(names, rows.turns.tolist(), [each for [each] in rows.fields["service"]], strict=True))
    assert places[9:13] == [
        ("bay_00004", 0, "Inns_1"),
        ("bay_00004", 0, "Ferries_1"),
        ("bay_00004", 2, "Inns_1"),
        ("bay_00004", 2, "Ferries_1"),
    ]
    assert [value for [value] in rows.fields["domain"]][9:11] == ["Inns", "Ferries"]
    assert [value for [value] in rows.fields["seen"]][9:11] == ["seen", "unseen"]
    assert (found.dialogues, found.frames, found.unknown_slots) == (6, 18, {})
    given, true = (list(rows.columns[need]) for need in (feature.FRAMES, feature.TRUE_FRAMES))
    spans = list(rows.columns[feature.SPANS])
    assert [
        {"service": service, "spans": words, **state}
        for state, words, (_, _, service) in zip(given, spans, places, strict=True)
    ] == true


def test_missing_dialogues_and_turns_at_the_end_are_none(dialogues: list[Any]) -> None:
    dialogues[0]["turns"] = dialogues[0]["turns"][:2]
    found = read(dialogues[:2])
    states = list(found.rows.columns[feature.FRAMES])
    assert [state is not None for state in states] == [True, False, False, *[True] * 4, *[False] * 11]
    assert (found.dialogues, found.frames) == (2, 5)


def test_every_misfit_at_once(dialogues: list[Any]) -> None:
    dialogues[0]["dialogue_id"] = "elsewhere"
    dialogues[1]["turns"].append(dialogues[1]["turns"][0])
    dialogues[2]["turns"][0]["speaker"] = "SYSTEM"
    dialogues[2]["turns"][2]["utterance"] = "What?"
    dialogues[3]["turns"][0]["frames"].pop()
    del dialogues[4]["turns"][0]["frames"][0]["state"]
    assert [problem.partition(";")[0] for problem in frame_problems(dialogues)] == [
        "mine: elsewhere: the references have no such dialogue",
        "mine: bay_00002: has 9 turns, and the references have 8",
        "mine: bay_00003[0]: the speaker is 'SYSTEM', and 'USER' in the references",
        "mine: bay_00003[2]: the utterance is not that of the references",
        "mine: bay_00004[0]: has no frame of the service 'Ferries_1'",
        "mine: bay_00005[0]: the frame of 'Eateries_1' has no state",
    ]


def test_many_unknown_dialogues_are_counted(dialogues: list[Any]) -> None:
    found = frame_problems([{"dialogue_id": f"x{number}", "turns": []} for number in range(23)])
    assert len(found) == 21
    assert found[-1].startswith("mine: and 3 more dialogues that the references do not have")
    assert len(frame_problems([{"dialogue_id": f"x{number}", "turns": []} for number in range(20)])) == 20


def test_references_must_fit_the_schema(dialogues: list[Any]) -> None:
    dialogues[0]["turns"][0]["frames"][0]["service"] = "Moon_1"
    del dialogues[1]["turns"][0]["frames"][0]["state"]
    with pytest.raises(DataError) as caught:
        read_references(dialogues, SCHEMA)
    assert [str(problem).partition(";")[0] for problem in caught.value.problems] == [
        "references: bay_00001[0]: the schema has no service 'Moon_1'",
        "references: bay_00002[0]: the frame of 'Eateries_1' has no state",
    ]
    with pytest.raises(DataError, match="no frame in a turn of USER"):
        read_references([{"dialogue_id": "a", "turns": []}], SCHEMA)
