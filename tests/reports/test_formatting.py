"""Figures and names as people read them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dialeval.core.fold import Analytic, Estimate, Resampling
from dialeval.reports.formatting import (
    count_supported_decimals,
    describe_intervals,
    plain,
    shorten,
    show,
    show_fixed,
    show_interval,
    show_p,
    show_rounded,
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
    assert show_spread(rows_estimate(0.0, 1.0)) == "[-0.1965, 1.1965]"
    assert show_spread(replace(corpus_estimate(0.5), interval=(0.4, 0.7))) == "[0.4000, 0.7000]"
    assert show_spread(replace(corpus_estimate(0.5), interval=(0.5, 0.5))) == "[0.5000, 0.5000]"
    assert show_spread(corpus_estimate(0.5)) == show_spread(NOTHING) == ""


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


def test_names_stay_inside_their_place() -> None:
    assert plain("a\x1b[31m\nb\u202ec\udcff") == r"a\x1b[31m\nb\u202ec\udcff"
    assert plain("naïve 系统 عربي") == "naïve 系统 عربي"
    assert shorten("x" * 17 + "middle" + "y" * 18) == "x" * 17 + "…" + "y" * 18


@pytest.mark.parametrize(
    ("interval", "decimals"),
    [((0.205, 0.283), 3), ((0.0045, 0.0055), 4), ((8.5, 10.8), 1), ((12.0, 63.0), 0), ((0.5, 0.5), None), (None, None)],
)
def test_an_interval_supports_two_digits_of_its_half_width(
    interval: tuple[float, float] | None, decimals: int | None
) -> None:
    assert count_supported_decimals(interval) == decimals


def test_figures_are_rounded_to_what_their_interval_supports() -> None:
    assert show_rounded(0.24213, (0.205, 0.2834)) == "0.242 [0.205, 0.283]"
    assert show_rounded(9.6167, (8.55, 10.767), signed=True) == "+9.6 [8.6, 10.8]"
    assert show_rounded(-9.6167, None, signed=True) == "-9.6167"
    assert show_rounded(-0.0014, (-0.0028, -0.000112)) == "-0.0014 [-0.0028, -0.0001]", "one style in one interval"
    assert show_rounded(1e-6, (-0.00001, 0.00002)) == "1.00e-06 [-1.00e-05, 2.00e-05]"
    assert show_rounded(-2.75e-17, (-0.63, 0.63), signed=True) == "0.00 [-0.63, 0.63]", "a rounding error"


def test_intervals_signs_and_fixed_decimals() -> None:
    assert show_interval((-0.5, math.inf)) == "[-0.5000, ∞]"
    assert [show_signed(number) for number in (0.5, 0.0, -0.5, math.nan)] == ["+0.5000", "0.0000", "-0.5000", "–"]
    assert [show_fixed(number, 3) for number in (0.00001, math.nan)] == ["0.000", "–"]


def test_rows_that_could_not_be_scored_are_counted() -> None:
    assert show_scored(rows_estimate(1.0, math.nan)) == "1/2"
    assert show_scored(rows_estimate(1.0, 2.0)) == ""


def test_no_p_is_shown_as_zero() -> None:
    assert [show_p(p) for p in (0.0, 0.00009, 0.0001, 0.04, 1.0, math.nan)] == [
        *("< 0.0001", "< 0.0001", "0.0001", "0.0400", "1.0000", "–")
    ]
