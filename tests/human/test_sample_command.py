"""`dialeval sample` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Dialeval
from human.rated_runs import run_of


@pytest.fixture(autouse=True)
def run(tmp_path: Path) -> None:
    run_of(dialogues=30)[0].save(tmp_path / "run")


def test_rows_to_rate_are_written(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("sample", "run", "-n", "40", "-o", "to-rate")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == "40 responses to rate (contexts, seed 12345) are in to-rate\n"
    rows = [json.loads(line) for line in (tmp_path / "to-rate" / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 40
    design = json.loads((tmp_path / "to-rate" / "sample.json").read_text())
    assert design["strata"] == {"all": {"units": 90, "drawn_units": 20, "responses": 180, "drawn_responses": 40}}
    again = dialeval("sample", "run", "-n", "40", "-o", "again")
    assert again.returncode == 0
    assert (tmp_path / "again" / "rows.jsonl").read_bytes() == (tmp_path / "to-rate" / "rows.jsonl").read_bytes()


def test_a_sample_that_has_ratings_is_refused_before_any_work(dialeval: Dialeval, tmp_path: Path) -> None:
    assert dialeval("sample", "run", "-n", "40", "-o", "to-rate").returncode == 0
    (tmp_path / "to-rate" / "ratings.sqlite").write_bytes(b"x")
    before = (tmp_path / "to-rate" / "rows.jsonl").read_bytes()
    done = dialeval("sample", "run", "-n", "20", "-o", "to-rate")
    assert done.returncode == 2
    assert "to-rate/ratings.sqlite: is in the folder of a sample" in done.stderr
    assert (tmp_path / "to-rate" / "rows.jsonl").read_bytes() == before


def test_strata_are_told(dialeval: Dialeval) -> None:
    done = dialeval("sample", "run", "-n", "36", "--stratify", "turn", "-o", "to-rate")
    assert done.stderr.splitlines() == [
        *(f"turn={turn}: 12 of 60 responses" for turn in range(3)),
        "36 responses to rate (contexts, seed 12345) are in to-rate",
    ]


def test_the_run_is_not_overwritten(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "sample.json").write_text("{}")
    done = dialeval("sample", "run", "-n", "4", "-o", "full")
    assert done.returncode == 2
    assert "did not write it" in done.stderr
    assert (tmp_path / "full" / "sample.json").read_text() == "{}"


def test_a_plan_from_assumptions(dialeval: Dialeval) -> None:
    done = dialeval("sample", "run", "--plan", "--width", "0.5")
    assert done.returncode == 0, done.stderr
    assert "Ratings for a 95% interval of width 0.5" in done.stdout
    assert "correlation with human ratings is 0.5" in done.stdout
    assert dialeval("sample", "run", "--plan", "--width", "0.5", "--agreement", "0.9").stdout != done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["-n", "10"],
        ["-o", "to-rate"],
        ["--plan"],
        ["--plan", "--width", "0.1", "-n", "5"],
        ["-n", "10", "-o", "to-rate", "--by", "mood"],
    ],
)
def test_what_is_refused(dialeval: Dialeval, tmp_path: Path, arguments: list[str]) -> None:
    assert dialeval("sample", "run", *arguments).returncode == 2
    assert not (tmp_path / "to-rate").exists()
