"""Figures and names as people read them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dialeval.core.fold import Analytic, Estimate, Resampling
from dialeval.reports.figures import (
    interval_words,
    plain,
    shorten,
    show,
    show_fixed,
    show_interval,
    show_scored,
    show_signed,
    show_spread,
)
from reports.test_tables import NOTHING, corpus_estimate, rows_estimate


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0.0, "0.0000"),
        (1 / 3, "0.3333"),
        (-12.34567, "-12.3457"),
        (0.00001234, "1.23e-05"),
        (12345678.0, "1.23e+07"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
    ],
)
def test_show(number: float, shown: str) -> None:
    assert show(number) == shown


def test_spread_follows_the_interval_and_not_the_confidence() -> None:
    assert show_spread(rows_estimate(0.0, 1.0)) == "±0.6965"
    assert show_spread(replace(corpus_estimate(0.5), interval=(0.4, 0.7))) == "[0.4000, 0.7000]"
    assert show_spread(replace(corpus_estimate(0.5), interval=(0.5, 0.5))) == "±0.0000"
    assert show_spread(corpus_estimate(0.5)) == show_spread(NOTHING) == ""


def test_intervals_in_words() -> None:
    made = Estimate(0.5, 0.1, 9, 9, interval=(0.4, 0.6))
    student = replace(made, analytic=Analytic("student", 0.95, "dialogues", 4, 3.18, 3.0, 0.03))
    shares = replace(made, analytic=Analytic("wilson", 0.95, "dialogues", 4, 3.18, 3.0, 0.03))
    alone = replace(made, analytic=Analytic("student", 0.9, "rows", 9, 1.86, 8.0, 0.03))
    original = replace(made, analytic=Analytic("rows", None, "rows", 9, 1.97))
    before = replace(made, analytic=Analytic("rows", None, "rows", 9, None))
    drawn = replace(made, resampling=Resampling("bca", 0.95, 1000, 1, 4))
    assert interval_words([student, shares, alone]) == "95% over dialogues (Student, Wilson); 90% over rows (Student)"
    assert interval_words([original]) == "over rows (mean ± 1.97 · std / √n)"
    assert interval_words([before]) == "over rows (mean ± t · std / √n)"
    assert interval_words([drawn]) == "95% by 1,000 resamples of dialogues, or of rows that stand alone (BCa)"
    assert interval_words([replace(student, interval=None), made]) == ""


def test_names_stay_inside_their_place() -> None:
    assert plain("a\x1b[31m\nb\u202ec\udcff") == r"a\x1b[31m\nb\u202ec\udcff"
    assert plain("naïve 系统 عربي") == "naïve 系统 عربي"
    assert shorten("x" * 17 + "middle" + "y" * 18) == "x" * 17 + "…" + "y" * 18


def test_a_tiny_half_width_beside_an_ordinary_mean_is_no_exponent() -> None:
    assert show_spread(replace(corpus_estimate(0.5), interval=(0.49999, 0.50001))) == "±0.0000"
    assert show_spread(replace(corpus_estimate(1e-5), interval=(0.9e-5, 1.1e-5))) == "±1.00e-06"


def test_intervals_signs_and_fixed_decimals() -> None:
    assert show_interval((-0.5, math.inf)) == "[-0.5000, ∞]"
    assert [show_signed(number) for number in (0.5, 0.0, -0.5, math.nan)] == ["+0.5000", "0.0000", "-0.5000", "–"]
    assert [show_fixed(number, 3) for number in (0.00001, math.nan)] == ["0.000", "–"]


def test_rows_that_could_not_be_scored_are_counted() -> None:
    assert show_scored(rows_estimate(1.0, math.nan)) == "1/2"
    assert show_scored(rows_estimate(1.0, 2.0)) == ""
