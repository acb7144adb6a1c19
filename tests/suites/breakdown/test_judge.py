"""Detecting breakdowns: labels of chats and of dialogues of the challenge, and files that can be evaluated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval import sample_data
from dialeval.breakdown import evaluate_breakdown
from dialeval.core.errors import DataError, SettingError
from dialeval.suites.breakdown.judge import detect, save_labels
from judges.tiny_judges import tiny_dialogue_judge

DATA = sample_data.folder() / "breakdown" / "data"


@pytest.fixture
def judge(tmp_path: Path) -> dict[str, Any]:
    tiny_dialogue_judge(tmp_path)
    return {"judge_dir": tmp_path / "judge", "encoder": tmp_path / "encoder"}


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def said(*texts: str) -> list[dict[str, str]]:
    roles = ("assistant", "user")
    return [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]


@pytest.mark.parametrize("name", ["labels", "labels.jsonl"])
def test_labels_of_the_challenge_can_be_evaluated(tmp_path: Path, judge: dict[str, Any], name: str) -> None:
    documents = detect(data=DATA, **judge)
    save_labels(documents, tmp_path / name)
    run = evaluate_breakdown(DATA, tmp_path / name, baselines=False)
    assert run["labels"]["jsd-o-t-x"].scored == run["labels"]["jsd-o-t-x"].rows == 16


def test_what_cannot_be_labeled_is_refused(tmp_path: Path, judge: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="name the chats"):
        detect()
    bare = write(tmp_path / "bare.jsonl", {"response": "hello"})
    with pytest.raises(DataError, match="no contexts"):
        detect([bare], **judge)
    row = {"dialog_id": "d", "turn": 1, "context": ["hello"], "response": "fine"}
    with pytest.raises(DataError, match="occurs twice"):
        detect([write(tmp_path / "two.jsonl", {**row, "system": "a"}, {**row, "system": "b"})], **judge)


@pytest.mark.parametrize("name", ["../d", "", "x" * 300])
def test_a_name_leads_out_of_no_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot be the name of a file"):
        save_labels([{"dialogue-id": name, "turns": []}], tmp_path / "labels")
    assert not (tmp_path / "labels").exists()
