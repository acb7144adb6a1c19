"""`dialeval estimate` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Dialeval
from dialeval.human.sample import sample as draw_sample
from human.rated_runs import ratings_of, run_of

SAME = ["estimate", "run", "--human", "ratings.jsonl", "--sample", "to-rate", "--judge", "judge"]
BESIDE = ["estimate", "run", "--human", "ratings.jsonl", "--judge", "judge"]


@pytest.fixture(autouse=True)
def rated(tmp_path: Path) -> None:
    run, opinions = run_of()
    run.save(tmp_path / "run")
    sample = draw_sample(run, 120)
    sample.save(tmp_path / "to-rate")
    lines = "".join(json.dumps(line) + "\n" for line in ratings_of(sample, opinions))
    (tmp_path / "ratings.jsonl").write_text(lines)
    (tmp_path / "second.jsonl").write_text(lines.replace("ann", "bob"))


def test_figures_and_verdict(dialeval: Dialeval) -> None:
    done = dialeval(*SAME)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The mean human rating of b is significantly higher than that of a")
    assert done.stderr == ""
    document = json.loads(dialeval(*SAME, "-f", "json").stdout)
    assert document["at_random"] is True
    assert document["population"] == "dialogues"
    narrower = json.loads(dialeval(*SAME, "-f", "json", "--population", "run").stdout)
    assert narrower["systems"][0]["error"] < document["systems"][0]["error"]
    assert json.loads(dialeval(*SAME, "-f", "json", "--baseline", "b").stdout)["differences"][0]["system"] == "a"


def test_several_files_of_ratings(dialeval: Dialeval) -> None:
    one = json.loads(dialeval(*SAME, "-f", "json").stdout)
    both = json.loads(dialeval(*SAME, "--human", "second.jsonl", "-f", "json").stdout)
    assert both["systems"] == one["systems"]


def test_the_folder_beside_the_ratings_is_found(dialeval: Dialeval) -> None:
    named, found = (dialeval(*command, "-f", "json") for command in (SAME, BESIDE))
    assert found.stdout == named.stdout


def test_without_the_folder_ratings_are_refused(dialeval: Dialeval, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "ratings.jsonl"
    elsewhere.parent.mkdir()
    (tmp_path / "ratings.jsonl").rename(elsewhere)
    done = dialeval("estimate", "run", "--human", elsewhere, "--judge", "judge")
    assert done.returncode == 2
    assert "--assume-random" in done.stderr


def test_meta_reads_the_same_ratings(dialeval: Dialeval) -> None:
    done = dialeval(
        *("agreement", "run", "--human", "ratings.jsonl", "--sample", "to-rate", "-m", "judge"),
        *("-f", "json", "--resamples", "20"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["agreement"]["judge"]["turn"]["n"] == 120


def test_a_file_is_written_and_inputs_are_kept(dialeval: Dialeval, tmp_path: Path) -> None:
    assert dialeval(*SAME, "-f", "csv", "--save", "table.csv").returncode == 0
    assert (tmp_path / "table.csv").read_text().startswith("system,baseline,value")
    before = (tmp_path / "ratings.jsonl").read_bytes()
    assert dialeval(*SAME, "-o", "ratings.jsonl").returncode == 2
    assert (tmp_path / "ratings.jsonl").read_bytes() == before
