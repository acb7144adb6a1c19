"""dialeval: is this dialogue system better, by how much, with what uncertainty, and where does it fail?

The names below are the public interface. They are imported on first use, so that `import dialeval` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dialeval.core.version import __version__

if TYPE_CHECKING:
    from dialeval.analysis.agreement import Agreement, agreement
    from dialeval.analysis.comparison import compare
    from dialeval.analysis.gates import assert_no_worse
    from dialeval.analysis.sequential import sequential, trend
    from dialeval.analysis.slices import slices
    from dialeval.analysis.values import with_intervals
    from dialeval.core.errors import DataError, DialevalError, NeedError, SettingError
    from dialeval.core.result import Result, Run, load
    from dialeval.engine.evaluate import evaluate
    from dialeval.engine.tally import Tally, metric
    from dialeval.human.estimate import estimate
    from dialeval.human.rank import rank
    from dialeval.human.sample import sample
    from dialeval.metrics.registry import metric_of_rows
    from dialeval.reports.html import report

_HOMES = {
    "Agreement": "dialeval.analysis.agreement",
    "agreement": "dialeval.analysis.agreement",
    "assert_no_worse": "dialeval.analysis.gates",
    "DataError": "dialeval.core.errors",
    "DialevalError": "dialeval.core.errors",
    "NeedError": "dialeval.core.errors",
    "SettingError": "dialeval.core.errors",
    "Result": "dialeval.core.result",
    "Run": "dialeval.core.result",
    "load": "dialeval.core.result",
    "compare": "dialeval.analysis.comparison",
    "estimate": "dialeval.human.estimate",
    "evaluate": "dialeval.engine.evaluate",
    "Tally": "dialeval.engine.tally",
    "metric": "dialeval.engine.tally",
    "metric_of_rows": "dialeval.metrics.registry",
    "rank": "dialeval.human.rank",
    "report": "dialeval.reports.html",
    "sample": "dialeval.human.sample",
    "sequential": "dialeval.analysis.sequential",
    "slices": "dialeval.analysis.slices",
    "trend": "dialeval.analysis.sequential",
    "with_intervals": "dialeval.analysis.values",
}

__all__ = [
    "Agreement",
    "DataError",
    "DialevalError",
    "NeedError",
    "Result",
    "Run",
    "SettingError",
    "Tally",
    "__version__",
    "agreement",
    "assert_no_worse",
    "compare",
    "estimate",
    "evaluate",
    "load",
    "metric",
    "metric_of_rows",
    "rank",
    "report",
    "sample",
    "sequential",
    "slices",
    "trend",
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
