from __future__ import annotations

from pathlib import Path

from data.breakdown.challenge import faults, labelled, log, matrix, write
from dialeval.core.rowtable import NO_TURN
from dialeval.data.breakdown.reading import read


def test_faults_of_the_dialogues(tmp_path: Path) -> None:
    data = tmp_path / "data"
    bad = log("d1")
    del bad["turns"][0]["annotations"]
    write(data, "a.log.json", bad)
    write(data, "b.log.json", "[]")
    write(data, "c.log.json", log("d3", (2, "??")))
    write(data, "d.log.json", log("d4"))
    write(data, "e.log.json", log("d4"))
    write(data, "f.log.json", {**log(), "dialogue-id": 5})
    found = faults(data, [labelled("d3", (2, "O", (1, 0, 0))), labelled("d4")])
    for what in (
        "is no annotated dialogue: Object missing required field `annotations` - at `$.turns[0]`",
        "is no annotated dialogue: Expected `object`, got `array`",
        "turn 2: no annotation is O, T or X",
        "is also in",
        "is no annotated dialogue: Expected `str`, got `int` - at `$.dialogue-id`",
    ):
        assert any(what in fault for fault in found), what
    lenient = read(data, [labelled("d3", (2, "O", (1, 0, 0))), labelled("d4")], lenient=True)
    assert lenient.annotated.dialogues == ["d3", "d4", "d4"]


def test_turns_that_only_the_original_takes_are_faults_unless_reading_is_lenient() -> None:
    dialogue = log("d1", (0, "OOT"), (2, "XXX"), (4, "T"), (6, "OT"))
    dialogue["turns"][0]["speaker"] = "B"
    dialogue["turns"][1]["turn-index"] = "2"
    dialogue["turns"][2]["speaker"] = None
    dialogue["turns"][3]["speaker"] = "U"
    entries = [(index, "O", (1, 0, 0)) for index in (0, 2, 4)]
    found = faults([dialogue], [labelled("d1", *entries)], match="position")
    assert [fault.split(": ", 1)[1].partition(";")[0] for fault in found] == [
        "turn 1 of the list: the turn-index is no whole number from 0 on",
        "turns 0, 2 of the list: the speaker is neither S nor U",
    ]
    lenient = read([dialogue], [labelled("d1", *entries)], match="position", lenient=True)
    assert lenient.annotated.turns.tolist() == [0, NO_TURN, 4]
    assert lenient.annotated.counts.tolist() == [[2, 1, 0], [0, 0, 3], [0, 1, 0]]
    assert matrix(lenient)[:, 0].tolist() == [0.0, 0.0, 0.0]
    assert "annotated turns of another speaker: in 1 file (2 turns); counted as the system's" in lenient.warnings


def test_what_the_user_said_needs_no_annotations() -> None:
    dialogue = log()
    del dialogue["turns"][-1]["annotations"]
    assert read([dialogue], [labelled()]).warnings == []
    dialogue["turns"][-1]["annotations"] = [{"breakdown": {}}, 5]
    assert read([dialogue], [labelled()]).annotated.turns.tolist() == [2, 4]


def test_an_id_that_is_no_text_is_a_fault() -> None:
    assert "the dialogue-id holds half a character" in faults([log("\ud800"), log()], [labelled()])[0]
