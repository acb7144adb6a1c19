"""The section on metrics that move together."""

from __future__ import annotations

import math

import numpy as np

from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.reports.html import MOST_SYSTEMS, make_correlations
from reports.test_html import Page


def result(**items: list[float]) -> Result:
    columns = {key: np.array(values) for key, values in items.items()}
    return Result({key: Estimate(0.0, 0.0, len(c), len(c), scores=c) for key, c in columns.items()})


TWO = result(x=[1.0, 2.0, 3.0, 4.0], y=[4.0, 3.0, 2.0, 1.0], z=[0.0, 0.0, 0.0, math.nan])


def test_of_many_systems_the_first_are_shown() -> None:
    section = make_correlations(Run({f"s{number}": TWO for number in range(MOST_SYSTEMS + 2)}, "0"))
    assert section is not None
    assert section.content.count("<svg") == MOST_SYSTEMS
    assert "2 further charts left out." in Page(section.content).text
