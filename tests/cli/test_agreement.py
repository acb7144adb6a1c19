"""`dialeval agreement` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.test_agreement import rated
from conftest import Dialeval

FEW = ["--resamples", "20"]


@pytest.fixture(autouse=True)
def ratings(tmp_path: Path) -> Path:
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rated()))
    return file


def test_rated_rows_alone(dialeval: Dialeval) -> None:
    done = dialeval("agreement", "ratings.jsonl", "--human", "overall", "-m", "rouge-l,length", "-f", "json", *FEW)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found["agreement"]) == ["rouge-l", "length"]
    assert set(found["agreement"]["length"]) == {"turn", "dialogue", "system"}
    assert found["ceiling"]["n"] == 60


def test_a_saved_run_with_ratings(dialeval: Dialeval) -> None:
    assert dialeval("score", "ratings.jsonl", "-m", "rouge-l,chrf", "-o", "run").returncode == 0
    done = dialeval("agreement", "run", "--human", "ratings.jsonl", "--quality", "fluent", "-f", "json", *FEW)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["quality"] == "fluent"
    assert list(found["agreement"]) == ["rouge-l", "chrf", "length"]
    assert "no response has the values of two annotators" in found["ceiling"]["reason"]


def test_the_table_goes_to_stdout_or_to_a_file(dialeval: Dialeval, tmp_path: Path) -> None:
    same = ["agreement", "ratings.jsonl", "--human", "overall", "-m", "rouge-l", "--level", "turn", *FEW]
    table = dialeval(*same).stdout
    assert table.startswith("length has the highest correlation with human ratings: Spearman rho 0.")
    assert "\nturn level, n = 60\nmetric" in table
    assert "dialogue level" not in table
    written = dialeval(*same, "--save", "table.csv", "-f", "csv")
    assert written.stdout == ""
    assert (tmp_path / "table.csv").read_text().startswith("metric,level,n,pearson")


def test_tables_of_ratings(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(
        "answer,mark,who\n" + "".join(f"{'word ' * n},{n % 5},s{n % 4}\n" for n in range(1, 30))
    )
    names = ["--field", "response=answer", "--field", "scores=mark", "--field", "system=who"]
    done = dialeval("agreement", "r.csv", "--human", "overall", "-m", "length", *names, "-f", "json", *FEW)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["agreement"]["length"]["turn"]["n"] == 29


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.jsonl", "--human", "overall"], "does not exist"),
        (["ratings.jsonl", "--human", "funny"], "no ratings of 'funny'"),
        (["ratings.jsonl", "--human", "overall", "-m", "blue-4"], "did you mean 'bleu-4'?"),
        (["ratings.jsonl", "--human", "overall", "--quality", "fluent"], "--human fluent names it"),
        (["ratings.jsonl"], "--human"),
        (["ratings.jsonl", "--human", "overall", "--confidence", "95"], "between 0 and 1"),
        ([".", "--human", "missing.jsonl"], "no file"),
        ([".", "--human", "ratings.jsonl"], "holds no saved run"),
        (["broken.jsonl", "--human", "overall"], "broken.jsonl:2"),
    ],
)
def test_bad_input_is_one_clear_message(dialeval: Dialeval, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "broken.jsonl").write_text('{"response": "a", "scores": 1}\n{"response": "b", "scores": "good"}\n')
    done = dialeval("agreement", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_help_has_an_example(dialeval: Dialeval) -> None:
    done = dialeval("agreement", "--help")
    assert "dialeval agreement ratings.jsonl --human overall" in done.stdout
