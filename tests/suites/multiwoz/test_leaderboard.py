"""The published leaderboard next to computed values: on the town under published names, and on the real files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Dialeval
from dialeval import sample_data
from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz.report import LEADERBOARD, make_leaderboard, read_published

TOWN = sample_data.folder() / "town"


def test_there_are_sixteen_published_systems() -> None:
    published = read_published()
    assert len(published) == 16
    assert sum(row.states == "predicted" for row in published.values()) == 9
    assert published["galaxy-e2e"].bleu == "19.64"


def test_systems_are_placed_among_the_published_ones() -> None:
    evaluator = Evaluator(richness=False, data="town")
    read = evaluator.read({"damd": TOWN / "predictions" / "hasty.json", "mine": TOWN / "predictions" / "patient.json"})
    run = evaluator.run(read)
    board = make_leaderboard(run, read, evaluator.task.files)
    assert len(board.rows) == 17
    assert (board.rows[0].system, board.rows[0].states) == ("mine", "predicted")
    mine, damd, ubar = (next(row for row in board.rows if row.system == name) for name in ("mine", "damd", "ubar"))
    assert (mine.values["inform"].published, mine.values["inform"].agrees) == (None, None)
    assert mine.values["inform"].computed == run["mine"]["inform"].mean
    assert damd.values["bleu"].agrees is False
    assert damd.notes == ["7 of 8 dialogues, 24 of 26 turns"]
    assert ubar.values["success"].published == "70.3"
    assert ubar.values["success"].computed is None
    assert ubar.notes == ["no prediction file"]
    assert "≠" in LEADERBOARD.FORMATS["md"](board)


@pytest.mark.golden
def test_the_real_files(shared_data: Path, dialeval: Dialeval) -> None:
    folder = shared_data / "multiwoz"
    done = dialeval("multiwoz", "leaderboard", "-i", str(folder / "predictions"), "--data", str(folder), "-f", "json")
    assert done.returncode == 0, done.stderr
    rows = {row["system"]: row for row in json.loads(done.stdout)["rows"]}
    computed = {name: row for name, row in rows.items() if row["values"]["inform"]["computed"] is not None}
    assert set(computed) == {"augpt", "damd", "hdsa", "lava", "marco", "mintl", "pptod", "ubar"}
    for row in computed.values():
        for measure, entry in row["values"].items():
            if row["states"] == "predicted" or measure == "bleu":
                assert entry["agrees"], (row["system"], measure)
            else:  # the data has the true states of 2.1, which move at most two dialogues
                assert abs(entry["computed"] - float(entry["published"])) < 0.25
            low, high = entry["interval"]
            assert low < entry["computed"] < high
    assert "on the leaderboard those of 2.2" in rows["lava"]["notes"][0]
