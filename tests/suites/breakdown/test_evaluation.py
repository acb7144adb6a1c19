"""Breakdown detectors between floors and ceilings: roles, agreement, thresholds and rows per turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval import sample_data
from dialeval.core.errors import SettingError
from dialeval.suites.breakdown.evaluation import BreakdownRun, evaluate_breakdown

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
