"""The fold: settings that are checked by their types, and estimates without an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_origin, get_type_hints

import numpy as np
import pytest

import dialeval
from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import SettingError
from dialeval.core.fold import RowMetric, check_column
from dialeval.metrics.registry import registry


@dataclass(frozen=True)
class Ends(RowMetric):
    family = "ends"
    presets = {"ends": {}}
    needs = frozenset({inputs.RESPONSE})

    side: Literal["left", "right"] = "left"
    width: Literal[1, 2] = 1

    def score(self, batch: Batch) -> Floats:
        return np.zeros(len(batch))


@dataclass(frozen=True)
class Checked(Ends):
    limit: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit < 0:
            raise SettingError("below 0")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"side": "top"}, r"^ends has side=left\|right, not 'top'$"),
        ({"width": 3}, r"^ends has width=1\|2, not 3$"),
        ({"width": "1"}, r"^ends has width=1\|2, not '1'$"),
    ],
)
def test_other_values_than_those_of_the_type_are_refused(settings: dict[str, Any], message: str) -> None:
    for metric in (Ends, Checked):
        with pytest.raises(SettingError, match=message):
            metric(**settings)
    assert Ends("right", 2).width == 2


@pytest.mark.parametrize("family", registry().families)
def test_every_built_in_metric_checks_its_choices(family: str) -> None:
    metric = registry().families[family]
    hints = get_type_hints(metric)
    for name in metric.setting_names():
        if get_origin(hints[name]) is Literal:
            with pytest.raises(SettingError, match=f"^{family} has {name}=.*, not 'nonsense'$"):
                metric(**{name: "nonsense"})


@pytest.mark.parametrize(
    ("values", "given"),
    [
        (np.zeros(2), r"an array of float64 of the shape \(2,\)"),
        (np.zeros((3, 1)), r"an array of float64 of the shape \(3, 1\)"),
        (np.zeros(3, np.int64), r"an array of int64 of the shape \(3,\)"),
        ([1.0, 2.0, 3.0], "a list"),
        (None, "a NoneType"),
    ],
)
def test_what_is_not_one_number_for_each_row_names_the_metric(values: Any, given: str) -> None:
    check_column("polite", np.zeros(3), 3)
    with pytest.raises(SettingError, match=f"the metric polite gave {given} for 3 rows; an array of 3 float64"):
        check_column("polite", values, 3)


def test_a_row_metric_that_gives_too_few_values_is_named() -> None:
    @dataclass(frozen=True)
    class Short(Ends):
        def score(self, batch: Batch) -> Floats:
            return np.zeros(len(batch) - 1)

    with pytest.raises(SettingError, match=r"the metric ends gave an array of float64 of the shape \(2,\) for 3 rows"):
        dialeval.evaluate(["a", "b", "c"], metrics=[Short()])
