"""dialeval: is this dialogue system better, by how much, with what uncertainty, and where does it fail?

The names below are the public interface. They are imported on first use, so that `import dialeval` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dialeval.core.version import __version__

if TYPE_CHECKING:
    from dialeval.analysis.agreement import Agreement, Correlation, measure_agreement
    from dialeval.analysis.comparison import Comparison, compare
    from dialeval.analysis.crossed import with_clusters
    from dialeval.analysis.difference import Difference
    from dialeval.analysis.discovery import DiscoveredGroup, Discovery, discover
    from dialeval.analysis.gates import assert_no_worse
    from dialeval.analysis.sequential import (
        MetricTrend,
        SequentialDifference,
        SequentialTest,
        Trend,
        fit_trend,
        run_sequential_test,
    )
    from dialeval.analysis.slices import Slice, Slices, compare_slices
    from dialeval.analysis.survival import Survival, SystemSurvival, estimate_survival
    from dialeval.analysis.users import Habit, UserComparison, compare_users
    from dialeval.analysis.values import with_intervals
    from dialeval.analysis.verdict import Verdict, VerdictNumber
    from dialeval.core.display import ScoreTable
    from dialeval.core.errors import DataError, DialevalError, NeedError, SettingError
    from dialeval.core.fold import Estimate
    from dialeval.core.result import Result, Run, load
    from dialeval.engine.evaluate import Execution, Reading, Tally, evaluate, make_tally
    from dialeval.human.estimate import HumanEstimate, HumanEstimates, estimate_ratings
    from dialeval.human.rank import Ranked, Ranking, rank
    from dialeval.human.sample import sample
    from dialeval.human.sample_files import Sample, SampledRow
    from dialeval.metrics.functions import metric_of_rows
    from dialeval.reports.html import report

_NAMES = {
    "analysis.agreement": "Agreement Correlation measure_agreement",
    "analysis.comparison": "Comparison compare",
    "analysis.difference": "Difference",
    "analysis.discovery": "DiscoveredGroup Discovery discover",
    "analysis.survival": "Survival SystemSurvival estimate_survival",
    "analysis.users": "Habit UserComparison compare_users",
    "analysis.gates": "assert_no_worse",
    "analysis.sequential": "MetricTrend SequentialDifference SequentialTest Trend fit_trend run_sequential_test",
    "analysis.slices": "Slice Slices compare_slices",
    "analysis.crossed": "with_clusters",
    "analysis.values": "with_intervals",
    "analysis.verdict": "Verdict VerdictNumber",
    "core.display": "ScoreTable",
    "core.errors": "DataError DialevalError NeedError SettingError",
    "core.fold": "Estimate",
    "core.result": "Result Run load",
    "engine.evaluate": "Execution Reading Tally evaluate make_tally",
    "human.estimate": "HumanEstimate HumanEstimates estimate_ratings",
    "human.rank": "Ranked Ranking rank",
    "human.sample": "sample",
    "human.sample_files": "Sample SampledRow",
    "metrics.functions": "metric_of_rows",
    "reports.html": "report",
}
"""The module of each name, as above; the names of a module are in one text."""
_HOMES = {name: f"dialeval.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Agreement",
    "Comparison",
    "Correlation",
    "DataError",
    "DialevalError",
    "Difference",
    "DiscoveredGroup",
    "Discovery",
    "Estimate",
    "Execution",
    "Habit",
    "HumanEstimate",
    "HumanEstimates",
    "MetricTrend",
    "NeedError",
    "Ranked",
    "Ranking",
    "Reading",
    "Result",
    "Run",
    "Sample",
    "SampledRow",
    "ScoreTable",
    "SequentialDifference",
    "SequentialTest",
    "SettingError",
    "Slice",
    "Slices",
    "Survival",
    "SystemSurvival",
    "Tally",
    "Trend",
    "UserComparison",
    "Verdict",
    "VerdictNumber",
    "__version__",
    "assert_no_worse",
    "compare",
    "compare_slices",
    "compare_users",
    "discover",
    "estimate_ratings",
    "estimate_survival",
    "evaluate",
    "fit_trend",
    "load",
    "make_tally",
    "measure_agreement",
    "metric_of_rows",
    "rank",
    "report",
    "run_sequential_test",
    "sample",
    "with_clusters",
    "with_intervals",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dialeval' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
