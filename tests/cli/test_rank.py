"""`dialeval rank` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.rated_runs import run_of
from analysis.test_ranking import compared
from cli.conftest import Dialeval

FEW = ["--resamples", "50"]


@pytest.fixture(autouse=True)
def pairs(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in compared(300)))


def test_pairs_of_people(dialeval: Dialeval) -> None:
    done = dialeval("rank", "pairs.jsonl", *FEW)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("system")
    found = json.loads(dialeval("rank", "pairs.jsonl", "-f", "json", "--length", *FEW).stdout)
    assert found["systems"][-1]["system"] == "z"
    assert found["length"] is not None
    assert found["pairs"] == 300


def test_a_judge_of_a_run(dialeval: Dialeval, tmp_path: Path) -> None:
    run_of()[0].save(tmp_path / "run")
    done = dialeval("rank", "run", "--by", "judge", "--tie", "0.2", "-f", "json", *FEW)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["source"] == "judge"
    assert found["pairs"] == 180


def test_names_of_fields_and_files(dialeval: Dialeval, tmp_path: Path) -> None:
    rows = compared(60)
    text = "left,right,winner\n" + "".join(f"{row['a']},{row['b']},{row['better']}\n" for row in rows)
    (tmp_path / "pairs.csv").write_text(text)
    names = ["--field", "a=left", "--field", "b=right", "--field", "better=winner"]
    done = dialeval("rank", "pairs.csv", "pairs.csv", *names, "-f", "csv", "-o", "table.csv", *FEW)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "table.csv").read_text().startswith("rank,system")


def test_what_is_refused(dialeval: Dialeval, tmp_path: Path) -> None:
    run_of(dialogues=10)[0].save(tmp_path / "run")
    assert dialeval("rank", "run").returncode == 2
    assert dialeval("rank", "run", "pairs.jsonl", "--by", "judge").returncode == 2
    assert dialeval("rank", "pairs.jsonl", "--by", "judge").returncode == 2
    assert dialeval("rank", "missing.jsonl").returncode == 2
