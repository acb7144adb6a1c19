"""Curves hold the turns of a run, dialogue by dialogue; where there are many, the most contested ones."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval import sample
from dialeval.core.result import Run
from dialeval.engine.breakdown import BreakdownRun, evaluate_breakdown
from dialeval.engine.breakdown_curves import DIGITS, with_curves

HERE = sample.folder() / "breakdown"


@pytest.fixture(scope="module")
def run() -> BreakdownRun:
    return evaluate_breakdown(HERE / "data", [HERE / "keywords", HERE / "cautious"], anchors=False)


def test_every_turn_is_there_once_and_rounded(run: BreakdownRun) -> None:
    for system, curves in with_curves(run).details["curves"].items():
        rows = [row for row in run.turns() if row["system"] == system]
        assert [turn for curve in curves for turn in curve["turns"]] == [row["turn"] for row in rows]
        values = [value for curve in curves for turn in curve["probabilities"] for value in turn]
        assert values == [round(row[f"prob-{label}"], DIGITS) for row in rows for label in "OTX"]


def test_the_dialogues_on_which_all_detectors_are_furthest_off_are_kept(run: BreakdownRun) -> None:
    off: dict[str, list[float]] = {}
    for row in run.turns():
        off.setdefault(row["dialogue"], []).append(abs(row["share-O"] - row["prob-O"]))
    worst = max(off, key=lambda dialogue: float(np.mean(off[dialogue])))
    for curves in with_curves(run, most=1).details["curves"].values():
        assert [curve["dialogue"] for curve in curves] == [worst]


def test_a_run_without_turns_is_left_as_it_is() -> None:
    empty = BreakdownRun({}, "0")
    assert with_curves(empty) is empty
    assert isinstance(empty, Run)
