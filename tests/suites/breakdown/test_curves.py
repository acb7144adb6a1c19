"""Curves hold the turns of a run, dialogue by dialogue; where there are many, the most contested ones."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dialeval import sample_data
from dialeval.core.result import Run
from dialeval.suites.breakdown.curves import DIGITS, BreakdownDetails, Curve, with_curves
from dialeval.suites.breakdown.evaluation import BreakdownRun, evaluate_breakdown

HERE = sample_data.folder() / "breakdown"


@pytest.fixture(scope="module")
def run() -> BreakdownRun:
    return evaluate_breakdown(HERE / "data", [HERE / "keywords", HERE / "cautious"], baselines=False)


def test_every_turn_is_there_once_and_rounded(run: BreakdownRun) -> None:
    for system, curves in with_curves(run).details["curves"].items():
        order = [curve["dialogue"] for curve in curves]
        rows = [row for row in run.turns() if row["system"] == system]
        rows.sort(key=lambda row: order.index(row["dialogue"]))
        assert [turn for curve in curves for turn in curve["turns"]] == [row["turn"] for row in rows]
        values = [value for curve in curves for turn in curve["probabilities"] for value in turn]
        assert values == [round(row[f"prob-{label}"], DIGITS) for row in rows for label in "OTX"]


def test_the_dialogues_on_which_all_detectors_are_furthest_off_are_kept(run: BreakdownRun) -> None:
    off: dict[str, list[float]] = {}
    for row in run.turns():
        off.setdefault(row["dialogue"], []).append(abs(row["share-O"] - row["prob-O"]))
    worst = max(off, key=lambda dialogue: float(np.mean(off[dialogue])))
    for most in (1, 9):
        for curves in with_curves(run, most=most).details["curves"].values():
            assert curves[0]["dialogue"] == worst
            assert len(curves) == min(most, len(off))


def test_a_curve_has_what_was_said(run: BreakdownRun) -> None:
    for curves in with_curves(run).details["curves"].values():
        for curve in curves:
            spoken = [turn for turn, by_user, _ in curve["said"] if not by_user]
            assert set(curve["turns"]) <= set(spoken)
            document = json.loads((HERE / "data" / f"{curve['dialogue']}.log.json").read_text())
            assert [text for _, _, text in curve["said"]] == [turn["utterance"] for turn in document["turns"]]


def judged(dialogue: str, *annotations: str) -> dict[str, Any]:
    turns = [
        {"turn-index": at, "speaker": "S", "annotations": [{"breakdown": letter} for letter in letters]}
        for at, letters in enumerate(annotations)
    ]
    return {"dialogue-id": dialogue, "turns": turns}


def guessed(dialogue: str, *probabilities: float) -> dict[str, Any]:
    rest = [{"prob-O": o, "prob-T": (1 - o) / 2, "prob-X": (1 - o) / 2} for o in probabilities]
    turns = [{"turn-index": at, "labels": [{"breakdown": "O", **each}]} for at, each in enumerate(rest)]
    return {"dialogue-id": dialogue, "turns": turns}


def test_distances_are_means_over_turns_and_detectors() -> None:
    data = [judged("a", "OO", "OX"), judged("b", "O", "X"), judged("c", "OOX")]
    # Means of the distances of a: 0.25 and 0.25; of b: 0.75 and 0; of c: 0 and 0.6.
    labels = {
        "one": [guessed("a", 1.0, 0.0), guessed("b", 0.0, 0.5), guessed("c", 2 / 3)],
        "two": [guessed("a", 0.5, 0.5), guessed("b", 1.0, 0.0), guessed("c", 0.0666)],
    }
    found = with_curves(evaluate_breakdown(data, labels, baselines=False)).details["curves"]
    for curves in found.values():
        assert [curve["dialogue"] for curve in curves] == ["b", "c", "a"]
    assert found["one"][1] == {
        "dialogue": "c",
        "turns": [0],
        "reference": ["O"],
        "label": ["O"],
        "shares": [[0.6667, 0.0, 0.3333]],
        "probabilities": [[0.6667, 0.1667, 0.1667]],
        "said": [],
    }


def test_turns_without_labels_or_references_have_no_distance_and_sixty_dialogues_are_kept() -> None:
    data = [judged(f"d{at}", "O") for at in range(61)]
    data[3] = judged("d3", "O", "?")
    data[59] = judged("d59", "X", "X")
    labels = [guessed(f"d{at}", 0.75) for at in range(61)]
    labels[3] = guessed("d3", 0.5, 0.5)
    labels[60] = guessed("d60")
    run = evaluate_breakdown(data, labels, lenient=True, baselines=False)
    (curves,) = with_curves(run).details["curves"].values()
    assert [curve["dialogue"] for curve in curves] == ["d59", "d3", *(f"d{at}" for at in range(59) if at != 3)]
    assert curves[0]["probabilities"] == [[0.75, 0.125, 0.125], [None, None, None]]
    assert curves[0]["label"] == ["O", ""]
    assert curves[1]["shares"] == [[1.0, 0.0, 0.0], [None, None, None]]


@pytest.mark.parametrize("column", ["reference", "label", "shares", "probabilities"])
def test_columns_of_a_curve_have_one_value_per_turn(column: str) -> None:
    columns: dict[str, Any] = {"reference": ["O"], "label": ["T"], "shares": [(1, 0, 0)], "probabilities": [(0, 1, 0)]}
    assert Curve("d", [2], **columns).said == []
    with pytest.raises(ValueError, match="a curve has columns of different lengths"):
        Curve("d", [2], **{**columns, column: columns[column] * 2})


def test_detectors_have_curves_of_the_same_turns() -> None:
    def of_turn(turn: int, dialogue: str = "d") -> Curve:
        return Curve(dialogue, [turn], ["O"], ["O"], [(1, 0, 0)], [(1, 0, 0)])

    BreakdownDetails(curves={"a": [of_turn(1)], "b": [of_turn(1), of_turn(2, "e")]})
    with pytest.raises(ValueError, match="the curves of 'd' are of different turns"):
        BreakdownDetails(curves={"a": [of_turn(1)], "b": [of_turn(2)]})


def test_a_run_without_turns_is_left_as_it_is() -> None:
    empty = BreakdownRun({}, "0")
    assert with_curves(empty) is empty
    assert isinstance(empty, Run)
