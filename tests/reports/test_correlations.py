"""The section on metrics that move together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.reports.html import MOST_SYSTEMS, make_correlations
from reports.test_html import Page


def result(**items: list[float]) -> Result:
    columns = {key: np.array(values) for key, values in items.items()}
    return Result({key: Estimate(0.0, 0.0, len(c), len(c), items=c) for key, c in columns.items()})


TWO = result(x=[1.0, 2.0, 3.0, 4.0], y=[4.0, 3.0, 2.0, 1.0], z=[0.0, 0.0, 0.0, math.nan])


def test_a_cell_for_every_two_metrics() -> None:
    section = make_correlations(Run({"a": TWO}, "0"))
    assert section is not None
    page = Page(section.content)
    assert [attrs["fill-opacity"] for attrs in page.of("rect") if attrs["class"] == "less"] == ["0.60", "0.60"]
    assert "x, y: -1.00" in page.text
    assert page.text.count("–") == 4, "z does not vary"
    assert page.of("details") == [{"open": None}]


def test_a_correlation_near_zero_has_no_shade_and_no_sign() -> None:
    flat = result(x=[1.0, 2.0, 3.0, 4.0, 5.0], y=[2.0, 5.0, 3.0, 1.0, 4.0])
    section = make_correlations(Run({"a": flat}, "0"))
    assert section is not None
    page = Page(section.content)
    assert "x, y: 0.00" in page.text
    assert {attrs["fill-opacity"] for attrs in page.of("rect")} == {"0.00", "0.60"}


def test_nothing_to_correlate_has_no_section() -> None:
    floor = replace(TWO, role="floor")
    for other in (Result({}), result(x=[1.0, 2.0, 3.0]), result(x=[1.0, 2.0], y=[1.0, 2.0]), floor):
        assert make_correlations(Run({"a": other}, "0")) is None


def test_of_many_systems_the_first_are_shown() -> None:
    section = make_correlations(Run({f"s{number}": TWO for number in range(MOST_SYSTEMS + 2)}, "0"))
    assert section is not None
    assert section.content.count("<svg") == MOST_SYSTEMS
    assert "2 further charts left out." in Page(section.content).text
