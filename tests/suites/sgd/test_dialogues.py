from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from dialeval.core.errors import DataError
from dialeval.suites.sgd.data import Frame, Turn, check_turn, read_dialogues


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
