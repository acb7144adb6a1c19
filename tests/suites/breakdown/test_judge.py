"""The shipped judge detects breakdowns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.judge_training.breakdown_scale import breakdown_scores, score_left_out_systems

import dialeval
from dialeval import sample_data
from dialeval.breakdown import BreakdownRun, evaluate_breakdown
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import DataError, SettingError
from dialeval.judges.judge import BreakdownScale, label_shares
from dialeval.metrics.breakdown import LABELS
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
    assert run["labels"]["jsd-o-t-x"].scored == run["labels"]["jsd-o-t-x"].units == 16


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


def turns(systems: int = 3, many: int = 60) -> tuple[Floats, Floats, Ints]:
    """Turns of systems that break down more or less often, and a head that says too much."""
    dice = np.random.default_rng(0)
    number = np.repeat(np.arange(systems), many)
    bad = dice.normal(size=systems * many) + 0.5 * number
    logs = np.stack((-bad, np.zeros_like(bad), bad), axis=1)
    true = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    said = np.exp(4 * logs) / np.exp(4 * logs).sum(axis=1, keepdims=True)
    counts = np.array([dice.multinomial(30, share) for share in true], np.float64)
    return said, counts, number


def test_figures_are_those_of_the_challenge() -> None:
    said, counts, _ = turns(1, 7)
    labels = label_shares(BreakdownScale(), said)
    found = breakdown_scores(labels, counts)
    log = [
        {
            "turn-index": at,
            "speaker": "S",
            "annotations": [{"breakdown": LABELS[code]} for code in range(3) for _ in range(int(count[code]))],
        }
        for at, count in enumerate(counts)
    ]
    given = [
        {
            "turn-index": at,
            "labels": [{"breakdown": LABELS[int(row[0])], **{f"prob-{x}": row[n + 1] for n, x in enumerate(LABELS)}}],
        }
        for at, row in enumerate(labels.tolist())
    ]
    run = evaluate_breakdown(
        [{"dialogue-id": "d", "turns": log}], [{"dialogue-id": "d", "turns": given}], baselines=False
    )
    for ours, theirs in (("jsd", "jsd-o-t-x"), ("mse", "mse-o-t-x"), ("f1-tx", "f1-tx")):
        assert found[ours] == pytest.approx(run["labels"][theirs].mean)


def test_one_system_cannot_be_left_out() -> None:
    assert score_left_out_systems(*turns(1), ["a"]) == {}


# Breakdown detectors between floors and ceilings: roles, agreement, thresholds and rows per turn.


HERE = sample_data.folder() / "breakdown"


def test_a_threshold_is_needed() -> None:
    with pytest.raises(SettingError, match="at least one threshold"):
        evaluate_breakdown(HERE / "data", HERE / "keywords", [])


def test_runs_are_equal_where_all_that_is_saved_is(run: BreakdownRun, tmp_path: Path) -> None:
    loaded = dialeval.load(run.save(tmp_path / "run"))
    assert run == replace(loaded, details=run.details)
    changes: list[dict[str, Any]] = [{"systems": {}}, {"version": "0"}, {"warnings": ("x",)}, {"details": {}}]
    for change in changes:
        assert run != replace(run, **change)
    assert run != 5
    assert run.__eq__(5) is NotImplemented
