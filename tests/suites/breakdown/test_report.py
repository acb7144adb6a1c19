"""A run of detectors as text: the lines of the original program, the confusion tables, a row per turn."""

from __future__ import annotations

from dialeval.suites.breakdown.evaluation import BreakdownRun
from dialeval.suites.breakdown.report import format_original


def test_the_original_prints_the_first_detector_and_threshold_unless_given(run: BreakdownRun) -> None:
    assert format_original(run) == format_original(run, "keywords", 0.0)
    assert len({format_original(run), format_original(run, "cautious"), format_original(run, threshold=0.5)}) == 3
    table = run.tables["keywords"][0.0]
    assert f"Accuracy : \t\t{table.correct / table.scored:f} ({table.correct}/{table.scored})\n" in format_original(run)
    assert f"JS divergence (O,T,X) : \t{run['keywords']['jsd-o-t-x'].mean:f}\n" in format_original(run)
