"""Breakdown detectors between floors and ceilings: roles, agreement, thresholds and rows per turn."""

from __future__ import annotations

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


def test_a_threshold_is_needed() -> None:
    with pytest.raises(SettingError, match="at least one threshold"):
        evaluate_breakdown(HERE / "data", HERE / "keywords", [])
