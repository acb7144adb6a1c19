"""Evaluating task dialogues: names of results, what is skipped, explanations from the same turns, one reading."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from dialeval import sample_data
from dialeval.core.errors import NeedError, SettingError
from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz.data import load_task, read_predictions
from dialeval.suites.multiwoz.evaluation import (
    Choices,
    Explanations,
    evaluate_task,
    explain_dialogues,
    list_dialogue_rows,
    make_original_output,
)

TOWN = sample_data.folder() / "town"
TASK = load_task("town")


def predictions(system: str = "patient") -> dict[str, Any]:
    document: dict[str, Any] = json.loads((TOWN / "predictions" / f"{system}.json").read_text())
    return document


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
    rows = {(row["system"], row["dialog_id"]): row for row in list_dialogue_rows(run, TASK)}
    explained = explain_dialogues(TOWN / "predictions", TASK)
    assert set(explained) == set(run)
    for system, found in explained.items():
        for each in found:
            row = rows[system, each.dialogue]
            assert (row["inform"]["total"], row["success"]["total"]) == (each.verdict.inform, each.verdict.success)
            assert bool(each.causes) == (not each.verdict.success)
    facts, (first, *others) = Explanations(Choices()), explained["patient"]
    assert facts.merge(facts.merge(facts.empty(), (first,)), tuple(others)) == (first, *others)
    (one,) = explain_dialogues(predictions(), TASK, dialogue="town01")["predictions"]
    assert one.dialogue == "town01"
    with pytest.raises(SettingError, match=r"no dialogue 'TOWN01.json'; did you mean 'town01'"):
        explain_dialogues(predictions(), TASK, dialogue="TOWN01.json")


def test_what_is_missing_is_said_as_it_is() -> None:
    document = predictions()
    named = list(document)
    document[named[0]] = []
    document[named[1]].pop()
    del document[named[2]]
    loose, strict = (evaluate_task(document, TASK, Choices(strict=flag)) for flag in (False, True))
    result = loose["predictions"]
    assert (result["inform"].units, result["inform"].scored) == (8, 7)
    [line] = [line for line in loose.warnings if "covers" in line]
    assert line.startswith("predictions covers 7 of 8 dialogues and ")
    assert (
        "; as in the original, missing dialogues are left out, dialogues that lack turns are judged by those they "
        "have, dialogues without any turn (1) are judged too; --strict counts dialogues without a turn as failed and "
        "missing turns as empty: inform "
    ) in line
    # What the warning says of --strict is what it gives.
    for key in ("inform", "success"):
        assert f"{key} {result[key].mean:.1f} would be {strict['predictions'][key].mean:.1f}" in line
    [line] = [line for line in strict.warnings if "covers" in line]
    assert line.endswith("; --strict counts dialogues without a turn as failed and missing turns as empty")
    whole = evaluate_task(predictions(), TASK)
    assert not [line for line in whole.warnings if "covers" in line]


def test_a_file_without_any_turn_has_no_figures_of_turns() -> None:
    output = make_original_output(evaluate_task({"town01": []}, TASK)["predictions"], Choices())
    assert output["success"]["success"]["total"] == 0
    assert all(math.isnan(value) for value in (*output["bleu"].values(), *output["richness"].values()))


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
    output = make_original_output(evaluate_task(predictions(), TASK, choices)["predictions"], choices)
    assert output["bleu"] is output["richness"] is None
    assert set(output["success"]) == {"inform", "success"}
    assert "total" in output["success"]["inform"]
