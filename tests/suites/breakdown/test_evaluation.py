"""Breakdown detectors between floors and ceilings: roles, agreement, thresholds and rows per turn."""

from __future__ import annotations

import math

import pytest

from dialeval import sample_data
from dialeval.core.errors import SettingError
from dialeval.suites.breakdown.evaluation import BreakdownRun, evaluate_breakdown

HERE = sample_data.folder() / "breakdown"


def test_roles(run: BreakdownRun) -> None:
    assert run.detectors == ["keywords", "cautious"]
    assert [name for name in run if run[name].role == "system"] == run.detectors
    assert run["ceiling/annotator"].role == run["ceiling/oracle"].role == "ceiling"
    assert {run[name].role for name in run if name.startswith("floor/")} == {"floor"}


def test_the_ceiling_has_the_agreement_of_annotators(run: BreakdownRun) -> None:
    for key in ("alpha-nominal", "alpha-ordinal"):
        assert math.isfinite(run["ceiling/annotator"][key].mean)
        assert key not in run["keywords"]


def test_several_thresholds_are_scored_in_one_run(run: BreakdownRun) -> None:
    for threshold in (0.0, 0.5):
        one = evaluate_breakdown(HERE / "data", HERE / "keywords", threshold, baselines=False)
        name = f"accuracy(threshold={threshold})" if threshold else "accuracy"
        assert run["keywords"][name].mean == one["keywords"]["accuracy"].mean
        assert run.tables["keywords"][threshold] == one.tables["keywords"][threshold]


def test_turns_repeat_what_the_figures_say(run: BreakdownRun) -> None:
    rows = [row for row in run.turns(0.5) if row["system"] == "cautious"]
    accuracy = run["cautious"]["accuracy(threshold=0.5)"]
    assert len(rows) == accuracy.rows
    assert sum(bool(row["correct"]) for row in rows) / len(rows) == pytest.approx(accuracy.mean)


def test_a_threshold_is_needed() -> None:
    with pytest.raises(SettingError, match="at least one threshold"):
        evaluate_breakdown(HERE / "data", HERE / "keywords", [])
