"""The published leaderboard next to computed values: on the town under published names, and on the real files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Dialeval
from dialeval import sample_data
from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz import report
from dialeval.suites.multiwoz.report import (
    LEADERBOARD,
    Leaderboard,
    LeaderboardRow,
    LeaderboardValue,
    Published,
    make_leaderboard,
    read_published,
)

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


def test_values_are_compared_to_the_printed_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = Evaluator(richness=False, data="town")
    bare = {name: [{"response": "[name]"} for _ in turns] for name, turns in read_town("patient").items()}
    read = evaluator.read({"own": read_town("patient"), "bare": bare, "hasty": read_town("hasty")})
    run = evaluator.run(read)
    inform, bleu = run["bare"]["inform"].mean, run["bare"]["bleu/town"].mean
    published = {
        "other": Published("true", "90.0", "80.0", "10.0"),
        "bare": Published("true", f"{inform:.1f}", "50.0", f"{bleu:.2f}"),
        "hasty": Published("predicted", "99.9", "0.0", "0.0"),
    }
    monkeypatch.setattr(report, "read_published", lambda: published)
    board = make_leaderboard(run, read, evaluator.task.files)
    assert [(row.system, row.states) for row in board.rows] == [
        ("own", "predicted"),
        ("hasty", "predicted"),
        ("other", "true"),
        ("bare", "true"),
    ]
    rows = {row.system: row for row in board.rows}
    assert [entry.agrees for entry in rows["bare"].values.values()] == [True, False, True]
    assert rows["bare"].notes == ["true states are those of the data given, on the leaderboard those of 2.2"]
    assert rows["own"].notes == []
    assert board.lines()[3] == {
        "system": "hasty",
        "states": "predicted",
        "measure": "inform",
        "published": "99.9",
        "computed": run["hasty"]["inform"].mean,
        "low": run["hasty"]["inform"].interval[0],  # type: ignore[index]
        "high": run["hasty"]["inform"].interval[1],  # type: ignore[index]
        "agrees": False,
        "notes": "7 of 8 dialogues, 24 of 26 turns",
    }
    assert [line["low"] for line in board.lines()[6:9]] == [None] * 3


def test_the_printed_table() -> None:
    same = LeaderboardValue("80.0", 80.04, None, True)
    other = LeaderboardValue("19.64", 19.5, (18.123, 20.987), False)
    own = LeaderboardValue(None, 12.345, (11.0, 14.0), None)
    none = LeaderboardValue("70.3", None, None, None)
    nothing = LeaderboardValue(None, None, None, None)
    rows = [
        LeaderboardRow("one", "predicted", {"inform": same, "success": own, "bleu": other}, ["few"]),
        LeaderboardRow("two", "true", {"inform": none, "success": nothing, "bleu": same}, ["few", "old"]),
    ]
    lines = [line for line in LEADERBOARD.FORMATS["md"](Leaderboard("2.2", rows)).splitlines() if line]
    assert lines[0] == "2 of 3 computed values are the published ones to the printed digit."
    assert lines[3] == r"| one | 80.0 | 80.0 | – | 12.3 \[11.0, 14.0\] | 19.64 | 19.50 ≠ \[18.12, 20.99\] |"
    assert lines[6] == "| two | 70.3 | – | – | – | 80.0 | 80.0 |"
    assert lines[8:] == ["one, two: few.", "two: old."]
    assert "computed values" not in LEADERBOARD.FORMATS["md"](Leaderboard("2.2", []))


def read_town(system: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((TOWN / "predictions" / f"{system}.json").read_text())
    return document


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
