"""The front door to dialogue breakdown detection: the evaluation of the challenge (DBDC).

    from dialeval.breakdown import evaluate_breakdown

    run = evaluate_breakdown("data/", "labels/", threshold=0.5)
    run["labels"]["f1-x"].mean
    run.tables["labels"][0.5].confusion

Nothing is computed here; see `dialeval.engine.breakdown`.
"""

from dialeval.core.krippendorff import krippendorff_alpha
from dialeval.engine.breakdown import BreakdownRun, evaluate_breakdown
from dialeval.metrics.breakdown.detection import Tables
from dialeval.reports.breakdown import original, tables_text, turns_csv

__all__ = [
    "BreakdownRun",
    "Tables",
    "evaluate_breakdown",
    "krippendorff_alpha",
    "original",
    "tables_text",
    "turns_csv",
]
