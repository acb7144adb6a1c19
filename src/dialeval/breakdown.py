"""Public names of dialogue breakdown detection: the evaluation of the challenge (DBDC).

    from dialeval.breakdown import evaluate_breakdown

    run = evaluate_breakdown("data/", "labels/", threshold=0.5)
    run["labels"]["f1-x"].mean
    run.tables["labels"][0.5].confusion

Nothing is computed here; see `dialeval.suites.breakdown.evaluation`.
"""

from dialeval.metrics.breakdown import Tables
from dialeval.stats.correlation import krippendorff_alpha
from dialeval.suites.breakdown.evaluation import BreakdownRun, evaluate_breakdown
from dialeval.suites.breakdown.report import original, tables_text, turns_csv

__all__ = [
    "BreakdownRun",
    "Tables",
    "evaluate_breakdown",
    "krippendorff_alpha",
    "original",
    "tables_text",
    "turns_csv",
]
