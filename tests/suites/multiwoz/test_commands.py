from __future__ import annotations

import json
from pathlib import Path

import pytest

import dialeval as package
from conftest import Dialeval
from dialeval import sample_data

PREDICTIONS = sample_data.folder() / "town" / "predictions"
PATIENT, HASTY = str(PREDICTIONS / "patient.json"), str(PREDICTIONS / "hasty.json")


def test_scores(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("multiwoz", "-i", HASTY, "--data", "town", "-b", "-s", "-r", "-d", "-o", "run")
    assert done.returncode == 0, done.stderr
    assert "inform" in done.stdout
    assert "joint-accuracy" in done.stdout
    assert "hasty covers 7 of 8 dialogues" in done.stderr
    assert round(package.load(tmp_path / "run")["hasty"]["inform"].mean, 1) == 42.9


def test_only_what_is_asked_for(dialeval: Dialeval) -> None:
    done = dialeval("multiwoz", "-i", PATIENT, "--data", "town", "-s", "-f", "json")
    metrics = set(json.loads(done.stdout)["systems"]["patient"]["metrics"])
    assert metrics >= {"inform", "success", "inform/inn"}
    assert not any(key.startswith(("bleu", "msttr", "joint")) for key in metrics)


def test_several_systems(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("multiwoz", "-i", str(PREDICTIONS), "--data", "town", "-o", "run", "--dialogues", "d.jsonl")
    assert done.returncode == 0, done.stderr
    assert set(package.load(tmp_path / "run")) == {"patient", "hasty"}
    rows = [json.loads(line) for line in (tmp_path / "d.jsonl").read_text().splitlines()]
    assert len(rows) == 8 + 7
    assert next(row for row in rows if row["system"] == "patient") == {
        "system": "patient",
        "dialog_id": "town01",
        "inform": {"total": True, "eatery": True},
        "success": {"total": True, "eatery": True},
    }


def test_strict_and_gates(dialeval: Dialeval) -> None:
    done = dialeval(
        "multiwoz", "-i", HASTY, "--data", "town", "-s", "--strict", "--fail-under", "inform=40", "-f", "csv"
    )
    assert done.returncode == 1
    assert "inform of hasty is 37.5" in done.stderr
    assert "missing:failed" in done.stdout


def test_explain(dialeval: Dialeval) -> None:
    done = dialeval("multiwoz", "explain", "town03", "-i", HASTY, "--data", "town")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("town03: inform no, success no\n")
    assert "lost inform, ferry: no offer; turn 1: no venue has from=town square" in done.stdout
    both = dialeval("multiwoz", "explain", "town08", "-i", PATIENT, "-i", HASTY, "--data", "town")
    assert both.returncode == 0
    assert both.stdout.startswith("patient\n\ntown08: inform yes, success yes\n")
    assert both.stderr == "hasty does not give town08\n"
    done = dialeval("multiwoz", "explain", "town08", "-i", HASTY, "--data", "town")
    assert done.returncode == 2
    assert "hasty does not give town08" in done.stderr
    done = dialeval("multiwoz", "explain", "town99", "-i", HASTY, "--data", "town")
    assert done.returncode == 2
    assert "no dialogue 'town99'" in done.stderr


def test_failures(dialeval: Dialeval) -> None:
    done = dialeval("multiwoz", "-i", HASTY, "--data", "town", "--failures")
    assert done.returncode == 0
    for cause in (
        "wrong venue", "no offer", "never informed", "missing PHONE", "reference before booking", "domain estimate",
    ):  # fmt: skip
        assert cause in done.stdout
    rows = json.loads(dialeval("multiwoz", "-i", HASTY, "--data", "town", "--failures", "-f", "json").stdout)
    assert len(rows) == 6
    assert set(rows[0]) == {"system", "dialogue", "lost", "domain", "cause", "detail"}
    lines = dialeval("multiwoz", "-i", HASTY, "--data", "town", "--failures", "-f", "csv").stdout.splitlines()
    assert len(lines) == 7


def test_all_problems_are_printed(dialeval: Dialeval, tmp_path: Path) -> None:
    bad: dict[str, object] = {f"wrong{number}": [{"response": None, "state": []}] for number in range(4)}
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    done = dialeval("multiwoz", "-i", "bad.json", "--data", "town")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 12
    assert "bad.json: wrong3[0].state: is a list" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [[], ["--failures"], ["explain", "town01"]])
def test_predictions_must_be_named(dialeval: Dialeval, arguments: list[str]) -> None:
    done = dialeval("multiwoz", *arguments)
    assert done.returncode == 2
    assert "-i PREDICTIONS.json" in done.stderr


@pytest.mark.parametrize("command", [[], ["explain"]])
def test_help_has_an_example(dialeval: Dialeval, command: list[str]) -> None:
    done = dialeval("multiwoz", *command, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout


def test_without_data_the_remedy_is_named(dialeval: Dialeval, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    done = dialeval("multiwoz", "-i", HASTY)
    assert done.returncode == 2
    assert "dialeval data add multiwoz" in done.stderr


def test_slices_by_domain(dialeval: Dialeval) -> None:
    done = dialeval("multiwoz", "-i", PATIENT, "-i", HASTY, "--data", "town", "-s", "--by", "domain")
    assert done.returncode == 0, done.stderr
    assert "success ↑ by domain" in done.stdout
    assert "fewer than 10 dialogues" in " ".join(done.stdout.split())
    for domain in ("cart", "eatery", "ferry", "inn"):
        assert f"\n{domain} " in done.stdout
