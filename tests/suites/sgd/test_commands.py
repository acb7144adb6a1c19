from __future__ import annotations

import json
from pathlib import Path

import dialeval as package
from conftest import Dialeval
from dialeval import sample_data

FRAMES = sample_data.folder() / "frames"
STEADY, FORGETFUL, REFERENCES = (str(FRAMES / name) for name in ("steady", "forgetful.json", "references"))
TRAIN = str(FRAMES / "train-schema.json")


def test_systems_side_by_side(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("sgd", STEADY, f"old={FORGETFUL}", "-r", REFERENCES, "-o", "run")
    assert done.returncode == 0, done.stderr
    assert "joint-goal-accuracy" in done.stdout
    assert "slot-tagging" not in done.stdout
    assert "old covers 5 of 6 dialogues and 16 of 18 frames" in done.stderr
    assert list(package.load(tmp_path / "run")) == ["steady", "old"]


def test_by_services_seen_in_training(dialeval: Dialeval) -> None:
    done = dialeval("sgd", STEADY, "-r", REFERENCES, "--train-schema", TRAIN, "--by", "seen", "-f", "json")
    slices = json.loads(done.stdout)["slices"]["slices"]
    assert {(each["field"], each["slice"], each["units"]) for each in slices} == {
        ("seen", "seen", 12),
        ("seen", "unseen", 6),
    }
    refused = dialeval("sgd", STEADY, "-r", REFERENCES, "--by", "seen")
    assert refused.returncode == 2
    assert "only service, domain" in refused.stderr


def test_settings_and_gates(dialeval: Dialeval) -> None:
    arguments = ("sgd", FORGETFUL, "-r", REFERENCES, "--schema", f"{REFERENCES}/schema.json", "-m", "all", "-f", "csv")
    done = dialeval(*arguments, "--match", "exact", "--strict", "--fail-under", "active-intent-accuracy=0.9")
    assert done.returncode == 1
    assert "active-intent-accuracy of forgetful is 0.83" in done.stderr
    assert "match:exact" in done.stdout
    assert "joint-noncat-accuracy" in done.stdout


def test_every_problem_is_printed(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('[{"dialogue_id": "x", "turns": []}, {"dialogue_id": "y", "turns": []}]')
    done = dialeval("sgd", "bad.json", "-r", REFERENCES)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 2
