"""The public names for authors of metrics, judges, formats, report sections and commands.

A package adds them by one record and one entry point:

    from dialeval.plugin import Feature

    FEATURE = Feature("my-lab", metrics={"response": ("my_lab.metrics:Politeness",)})

    [project.entry-points."dialeval.features"]
    my-lab = "my_lab:FEATURE"

Names that are not listed here may change between versions. `docs/python.md` shows a whole package.
"""

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import DataError, DialevalError, NeedError, SettingError
from dialeval.core.exact import Moments
from dialeval.core.features import Command, Feature
from dialeval.core.fold import Estimate, Fact, Level, Metric, Partial, RowMetric
from dialeval.core.inputs import Column, Input, Resource
from dialeval.engine.resources import JudgeProtocol as Judge
from dialeval.io.row_shapes import RowShape as Format
from dialeval.metrics.functions import metric_of_rows
from dialeval.reports.documents import Document, Table

__all__ = [
    "Batch",
    "Column",
    "Command",
    "DataError",
    "DialevalError",
    "Document",
    "Estimate",
    "Fact",
    "Feature",
    "Floats",
    "Format",
    "Input",
    "Judge",
    "Level",
    "Metric",
    "Moments",
    "NeedError",
    "Partial",
    "Resource",
    "RowMetric",
    "SettingError",
    "Table",
    "inputs",
    "metric_of_rows",
]
