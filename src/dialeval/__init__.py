"""dialeval: is this dialogue system better, by how much, how sure can one be, and where does it fail?

The names below are the public interface. They are imported on first use, so that `import dialeval` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dialeval.core import display
from dialeval.core.version import __version__ as __version__

if TYPE_CHECKING:
    from dialeval.analysis.agreement import Agreement as Agreement
    from dialeval.analysis.agreement import agreement as agreement
    from dialeval.analysis.assertions import assert_no_worse as assert_no_worse
    from dialeval.analysis.comparison import compare as compare
    from dialeval.analysis.intervals import with_intervals as with_intervals
    from dialeval.analysis.people import estimate as estimate
    from dialeval.analysis.ranking import rank as rank
    from dialeval.analysis.sampling import draw as draw
    from dialeval.analysis.sequences import watch as watch
    from dialeval.analysis.slices import slices as slices
    from dialeval.analysis.trends import trend as trend
    from dialeval.core.errors import DataError as DataError
    from dialeval.core.errors import DialevalError as DialevalError
    from dialeval.core.errors import NeedError as NeedError
    from dialeval.core.errors import SettingError as SettingError
    from dialeval.core.result import Result as Result
    from dialeval.core.result import Run as Run
    from dialeval.core.result import load as load
    from dialeval.engine.evaluate import evaluate as evaluate
    from dialeval.engine.tally import Tally as Tally
    from dialeval.engine.tally import metric as metric
    from dialeval.metrics.row_functions import metric_of_rows as metric_of_rows
    from dialeval.reports.html import report as report

_PUBLIC = {
    "analysis.agreement": ("Agreement", "agreement"),
    "analysis.assertions": ("assert_no_worse",),
    "analysis.comparison": ("compare",),
    "analysis.intervals": ("with_intervals",),
    "analysis.people": ("estimate",),
    "analysis.ranking": ("rank",),
    "analysis.sampling": ("draw",),
    "analysis.sequences": ("watch",),
    "analysis.slices": ("slices",),
    "analysis.trends": ("trend",),
    "core.errors": ("DataError", "DialevalError", "NeedError", "SettingError"),
    "core.result": ("Result", "Run", "load"),
    "engine.evaluate": ("evaluate",),
    "engine.tally": ("Tally", "metric"),
    "metrics.row_functions": ("metric_of_rows",),
    "reports.html": ("report",),
}
_HOMES = {name: f"dialeval.{module}" for module, names in _PUBLIC.items() for name in names}

__all__ = list(_HOMES)
__all__ += ["__version__"]

display.home = "dialeval.reports.notebook"


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dialeval' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
