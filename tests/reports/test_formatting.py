"""Figures and names as people read them."""

from __future__ import annotations

from dataclasses import replace

from dialeval.core.fold import Analytic, Estimate, Resampling
from dialeval.reports.formatting import describe_intervals, show_rounded


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
    for how in ("studentized", "jackknife"):
        words = describe_intervals([replace(made, interval_by=Resampling(how, 0.95, 1000, 1, 4))])
        assert words == f"95% by 1,000 bootstrap resamples of dialogues, or of independent rows ({how})"
    assert describe_intervals([replace(student, interval=None), made]) == ""


def test_figures_are_rounded_to_what_their_interval_supports() -> None:
    assert show_rounded(0.24213, (0.205, 0.2834)) == "0.242 [0.205, 0.283]"
    assert show_rounded(9.6167, (8.55, 10.767), signed=True) == "+9.6 [8.6, 10.8]"
    assert show_rounded(-9.6167, None, signed=True) == "-9.6167"
    assert show_rounded(-0.0014, (-0.0028, -0.000112)) == "-0.0014 [-0.0028, -0.0001]", "one style in one interval"
    assert show_rounded(1e-6, (-0.00001, 0.00002)) == "1.00e-06 [-1.00e-05, 2.00e-05]"
    assert show_rounded(-2.75e-17, (-0.63, 0.63), signed=True) == "0.00 [-0.63, 0.63]", "a rounding error"
