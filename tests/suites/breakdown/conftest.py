"""The detectors of the sample, evaluated once."""

from __future__ import annotations

import pytest

from dialeval import sample_data
from dialeval.suites.breakdown.evaluation import BreakdownRun, evaluate_breakdown


@pytest.fixture(scope="session")
def run() -> BreakdownRun:
    here = sample_data.folder() / "breakdown"
    return evaluate_breakdown(here / "data", [here / "keywords", here / "cautious"], [0.0, 0.5])
