"""Curves hold the turns of a run, dialogue by dialogue; where there are many, the most contested ones."""

from __future__ import annotations

import pytest

from dialeval import sample_data
from dialeval.breakdown import BreakdownRun, evaluate_breakdown
from dialeval.core.result import Run
from dialeval.suites.breakdown.report import with_curves

HERE = sample_data.folder() / "breakdown"


@pytest.fixture(scope="module")
def run() -> BreakdownRun:
    return evaluate_breakdown(HERE / "data", [HERE / "keywords", HERE / "cautious"], baselines=False)


def test_a_run_without_turns_is_left_as_it_is() -> None:
    empty = BreakdownRun({}, "0")
    assert with_curves(empty) is empty
    assert isinstance(empty, Run)
