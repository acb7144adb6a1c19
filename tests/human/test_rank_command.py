"""`dialeval rank` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Dialeval
from dialeval.human.form import read_form
from dialeval.human.page import collect_things
from dialeval.human.sample_files import read_sample
from human.rated_runs import run_of
from human.test_rank import compared


@pytest.fixture(autouse=True)
def pairs(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in compared(300)))


def test_pairs_of_people(dialeval: Dialeval) -> None:
    done = dialeval("rank", "pairs.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("system")
    found = json.loads(dialeval("rank", "pairs.jsonl", "-f", "json", "--length").stdout)
    assert found["systems"][-1]["system"] == "z"
    assert found["length"] is not None
    assert found["pairs"] == 300


def test_names_of_fields_and_files(dialeval: Dialeval, tmp_path: Path) -> None:
    rows = compared(60)
    text = "left,right,winner\n" + "".join(f"{row['a']},{row['b']},{row['better']}\n" for row in rows)
    (tmp_path / "pairs.csv").write_text(text)
    names = ["--field", "a=left", "--field", "b=right", "--field", "better=winner"]
    done = dialeval("rank", "pairs.csv", "pairs.csv", *names, "-f", "csv", "--save", "table.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "table.csv").read_text().startswith("rank,system")


def test_what_is_refused(dialeval: Dialeval, tmp_path: Path) -> None:
    run_of(dialogues=10)[0].save(tmp_path / "run")
    assert dialeval("rank", "run").returncode == 2
    assert dialeval("rank", "missing.jsonl").returncode == 2


@pytest.mark.parametrize("systems", [("a", "b"), ("b", "a")], ids="-".join)
def test_wins_survive_sample_merge_and_rank(dialeval: Dialeval, tmp_path: Path, systems: tuple[str, str]) -> None:
    """A rater who prefers the system `a` in 38 of 40 pairs is counted so, whatever the side it was shown on."""
    run_of(dialogues=20, systems={systems[0]: 3.0, systems[1]: 3.5})[0].save(tmp_path / "run")
    assert dialeval("sample", "run", "-n", "80", "-o", "to-rate").returncode == 0
    (tmp_path / "form.toml").write_text("compare = true\n")
    things = collect_things(read_sample(tmp_path / "to-rate"), read_form(tmp_path / "form.toml"))
    system_of = {row.id: row.system for row in read_sample(tmp_path / "to-rate").responses}
    assert len(things) == 40
    assert len({system_of[thing["id"].split("-")[0]] for thing in things}) == 2  # both are sometimes the first
    lines = []
    for number, thing in enumerate(things):
        preferred = "a" if number >= 2 else "b"
        score = 1 if system_of[thing["id"].split("-")[0]] == preferred else -1
        lines.append({"id": thing["id"], "rater": "ann", "scores": {"overall": score}})
    (tmp_path / "ann.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = dialeval("rate", "merge", "ann.jsonl", "--sample", "to-rate", "--save", "preferred.jsonl")
    assert done.returncode == 0, done.stderr
    done = dialeval("rank", "preferred.jsonl", "-f", "json")
    assert done.returncode == 0, done.stderr
    ranking = json.loads(done.stdout)
    counts = {each["system"]: (each["wins"], each["ties"], each["losses"]) for each in ranking["systems"]}
    assert counts == {"a": (38, 0, 2), "b": (2, 0, 38)}
    assert ranking["systems"][0]["system"] == "a"
    assert ranking["between"]["a"]["b"] == [38, 0, 2]
