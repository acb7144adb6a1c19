"""Curves hold the turns of a run, dialogue by dialogue; where there are many, the most contested ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dialeval import sample_data
from dialeval.core.result import Run
from dialeval.suites.breakdown.curves import DIGITS, with_curves
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


def test_a_run_without_turns_is_left_as_it_is() -> None:
    empty = BreakdownRun({}, "0")
    assert with_curves(empty) is empty
    assert isinstance(empty, Run)
