"""Figures and names as people read them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import pytest

from dialeval.core.fold import Analytic, Estimate, Resampling
from dialeval.reports.formatting import describe_intervals, show_rounded, show_value, state_p


def test_intervals_in_words() -> None:
    made = Estimate(0.5, 0.1, 9, 9, interval=(0.4, 0.6))
    student = replace(made, interval_by=Analytic("student", 0.95, "dialogues", 4, 3.18, 3.0, 0.03))
    shares = replace(made, interval_by=Analytic("wilson", 0.95, "dialogues", 4, 3.18, 3.0, 0.03))
    alone = replace(made, interval_by=Analytic("student", 0.9, "rows", 9, 1.86, 8.0, 0.03))
    original = replace(made, interval_by=Analytic("rows", None, "rows", 9, 1.97))
    before = replace(made, interval_by=Analytic("rows", None, "rows", 9, None))
    assert (
        describe_intervals([student, shares, alone]) == "95% over dialogues (Student, Wilson); 90% over rows (Student)"
    )
    assert describe_intervals([original]) == "over rows (mean ± 1.97 · std / √n)"
    assert describe_intervals([before]) == "over rows (mean ± t · std / √n)"
    by: dict[Literal["studentized", "jackknife"], str] = {
        "studentized": "by 1,000 bootstrap resamples of dialogues, or of",
        "jackknife": "over dialogues, or over",
    }
    for how, start in by.items():
        words = describe_intervals([replace(made, interval_by=Resampling(how, 0.95, 1000, 1, 4))])
        assert words == f"95% {start} independent rows ({how})"
    assert describe_intervals([replace(student, interval=None), made]) == ""


@pytest.mark.parametrize(
    ("number", "interval", "shown"),
    [
        (0.24213, (0.205, 0.2834), "+0.242 (0.205 to 0.283)"),
        (9.6167, (8.55, 10.767), "+9.6 (8.6 to 10.8)"),
        (-0.2039, (-0.348, -0.0598), "−0.20 (−0.35 to −0.06)"),
        (-0.0014, (-0.0028, -0.000112), "−0.0014 (−0.0028 to −0.0001)"),
        (1234.5, (1100.2, 1368.1), "+1,234 (1,100 to 1,368)"),
        (-0.0004, (-0.21, 0.2), "0.00 (−0.21 to 0.20)"),
        (-2.75e-17, (-0.63, 0.63), "0.00 (−0.63 to 0.63)"),
        (-9.6167, None, "−9.62"),
        (57.8579, None, "+57.9"),
        (3.15e-9, None, "+3.2×10⁻⁹"),
        (math.nan, None, "–"),
        (-math.inf, None, "−∞"),
    ],
)
def test_the_uncertainty_decides_the_digits(number: float, interval: tuple[float, float] | None, shown: str) -> None:
    assert show_rounded(number, interval, signed=True) == shown
    assert show_value(number, interval) == shown.split(" ", maxsplit=1)[0].removeprefix("+")


def test_p_values_are_never_zero_and_never_cross_a_usual_level() -> None:
    shown = {0.0: "p < 0.001", 0.00099: "p < 0.001", 0.006: "p = 0.006", 0.049: "p = 0.049", 0.438: "p = 0.44"}
    assert {p: state_p(p) for p in shown} == shown
