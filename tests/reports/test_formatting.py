"""Figures and names as people read them."""

from __future__ import annotations

import math

import pytest

from dialeval.reports.formatting import show_rounded, show_value, state_p


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
