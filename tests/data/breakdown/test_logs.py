from __future__ import annotations

from pathlib import Path

from data.breakdown.challenge import faults, labelled, log, write
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
