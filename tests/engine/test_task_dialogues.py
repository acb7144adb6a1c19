"""Evaluating task dialogues: names of results, what is skipped, explanations from the same turns, one reading."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialeval import sample
from dialeval.core.errors import NeedError, SettingError
from dialeval.data.task.predictions import read_predictions
from dialeval.engine.task_dialogues import Choices, dialogue_rows, evaluate_task, explanations, original_output
from dialeval.multiwoz import Evaluator
from dialeval.resources.task import load_task

TOWN = sample.folder() / "town"
TASK = load_task("town")


def predictions(system: str = "patient") -> dict[str, Any]:
    document: dict[str, Any] = json.loads((TOWN / "predictions" / f"{system}.json").read_text())
    return document


def test_results_have_the_names_people_know_whatever_the_settings() -> None:
    plain = evaluate_task(predictions(), TASK, Choices(dst=True))["predictions"]
    changed = evaluate_task(
        predictions(), TASK, Choices(dst=True, fallback="turn", strict=True, ratio="exact", unify_booking=True)
    )["predictions"]
    assert list(plain) == list(changed)
    assert {"inform", "inform/inn", "success", "bleu/town", "entropy", "joint-accuracy"} <= set(plain)
    assert str(changed["inform"].signature).startswith("inform(fallback=turn,missing=failed,ratio=exact)|")


def test_tracking_without_states_is_skipped_or_refused() -> None:
    bare = {name: [{"response": turn["response"]} for turn in turns] for name, turns in predictions().items()}
    run = evaluate_task({"with": predictions(), "without": bare}, TASK, Choices(dst=True))
    assert "joint-accuracy" in run["with"]
    assert run["without"].skipped["joint-accuracy"].startswith("needs a `state` in every turn")
    with pytest.raises(NeedError, match="state tracking"):
        evaluate_task(bare, TASK, Choices(dst=True))
    with pytest.raises(SettingError, match="nothing was asked for"):
        evaluate_task(bare, TASK, Choices(bleu=False, success=False, richness=False))


def test_explanations_agree_with_the_metrics() -> None:
    run = evaluate_task(TOWN / "predictions", TASK)
    rows = {(row["system"], row["dialog_id"]): row for row in dialogue_rows(run, TASK)}
    explained = explanations(TOWN / "predictions", TASK)
    assert set(explained) == set(run)
    for system, found in explained.items():
        for each in found:
            row = rows[system, each.dialogue]
            assert (row["inform"]["total"], row["success"]["total"]) == (each.verdict.inform, each.verdict.success)
            assert bool(each.causes) == (not each.verdict.success)
    (one,) = explanations(predictions(), TASK, dialogue="town01")["predictions"]
    assert one.dialogue == "town01"
    with pytest.raises(SettingError, match=r"no dialogue 'TOWN01.json'; did you mean 'town01'"):
        explanations(predictions(), TASK, dialogue="TOWN01.json")


def test_predictions_are_read_once_for_several_uses() -> None:
    evaluator = Evaluator(data=TASK)
    read = evaluator.read(TOWN / "predictions")
    assert read_predictions(read, TASK.files) is read
    run = evaluator.run(read)
    assert (
        evaluator.with_transcripts(run, read).details
        == evaluator.with_transcripts(evaluator.run(TOWN / "predictions"), TOWN / "predictions").details
    )


def test_the_original_output_has_what_was_asked_for() -> None:
    choices = Choices(bleu=False, richness=False)
    output = original_output(evaluate_task(predictions(), TASK, choices)["predictions"], choices)
    assert output["bleu"] is output["richness"] is None
    assert set(output["success"]) == {"inform", "success"}
    assert "total" in output["success"]["inform"]
