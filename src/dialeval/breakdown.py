"""Public names of dialogue breakdown detection: the evaluation of the challenge (DBDC).

    from dialeval.breakdown import evaluate_breakdown

    run = evaluate_breakdown("data/", "labels/", threshold=0.5)
    run["labels"]["f1-x"].mean
    run.tables["labels"][0.5].confusion

Nothing is computed here; see `dialeval.suites.breakdown.evaluation`.
"""

from dialeval.metrics.breakdown import Tables
from dialeval.stats.correlation import compute_krippendorff_alpha
from dialeval.suites.breakdown.evaluation import BreakdownRun, evaluate_breakdown
from dialeval.suites.breakdown.report import format_original, format_tables, format_turns

__all__ = [
    "BreakdownRun",
    "Tables",
    "compute_krippendorff_alpha",
    "evaluate_breakdown",
    "format_original",
    "format_tables",
    "format_turns",
]
