"""The strips of the forest plot: better to the right, in standard deviations."""

from __future__ import annotations

import math
import re

import pytest
from msgspec.structs import replace

from dialeval.analysis.difference import Difference
from dialeval.core.fold import Better
from dialeval.reports.comparisons import WIDTH, choose_class, draw_strip, fit_scale
from reports.test_html import HOSTILE, Page
from reports.test_verdict import difference


def dots(*rows: Difference) -> list[float]:
    """Where the dots of differences stand on one scale."""
    scale = fit_scale(rows)
    found = [re.findall(r'class="mean" cx="([\d.]+)"', draw_strip(row, scale)) for row in rows]
    return [float(at) for each in found for at in each]


@pytest.mark.parametrize(
    ("better", "by", "side"), [("higher", 0.2, 1), ("higher", -0.2, -1), ("lower", 0.2, -1), ("lower", -0.2, 1)]
)
def test_better_is_to_the_right(better: Better, by: float, side: int) -> None:
    row = difference("m", by, better, 0.001, True)
    (at,) = dots(row)
    assert math.copysign(1, at - WIDTH / 2) == side
    assert choose_class(row) == ("up" if side > 0 else "down")
    assert (", better" if side > 0 else ", worse") in draw_strip(row, fit_scale([row]))


def test_the_scale_is_that_of_effects_and_ends_somewhere() -> None:
    small = replace(difference("large-unit", 40.0, "higher", 0.001, True), interval=(30.0, 50.0), effect=0.5)
    large = replace(difference("small-unit", 0.02, "higher", 0.001, True), interval=(0.01, 0.03), effect=1.0)
    first, second = dots(small, large)
    assert (second - WIDTH / 2) == pytest.approx(2 * (first - WIDTH / 2), abs=0.2)
    assert all(0 <= at <= WIDTH for at in dots(small, replace(large, effect=1e9)))


def test_half_of_the_intervals_are_whole() -> None:
    wide = replace(difference("wide", 0.1, "higher", 0.4, False), interval=(-0.2, 0.4), effect=0.5)
    narrow = replace(wide, key="narrow", interval=(0.05, 0.15))
    assert fit_scale([wide]).high == pytest.approx(2.0), "0.4 is four times the difference, whose effect is 0.5"
    assert fit_scale([replace(wide, interval=(-0.3, 0.1))]).high == pytest.approx(1.5)
    assert fit_scale([wide, narrow, narrow]).high == pytest.approx(0.75)
    assert fit_scale([narrow]).high == pytest.approx(0.75)
    assert fit_scale([replace(narrow, interval=(0.09, 0.11))]).high == pytest.approx(1.3 * 0.5)
    assert fit_scale([replace(wide, interval=(-9.0, 9.0))]).high == 4
    assert fit_scale([]).high == pytest.approx(1.3)


def test_what_is_not_significant_is_unsettled_and_what_has_no_direction_is_other() -> None:
    assert choose_class(difference("m", 0.2, "higher", 0.2, False)) == "unsettled"
    assert choose_class(difference("length", 2.0, None, 0.01, True)) == "other"


def test_no_difference_has_no_dot() -> None:
    equal = replace(difference("m", 0.1, "higher", 1.0, False), difference=0.0, interval=(0.0, 0.0), effect=0.0)
    assert dots(equal) == []
    assert "0.0000" in draw_strip(equal, fit_scale([equal]))


def test_names_are_text() -> None:
    row = replace(difference(HOSTILE, 0.2, "higher", 0.001, True), system=HOSTILE)
    page = Page(draw_strip(row, fit_scale([row])))
    assert not page.of("script")
    assert not page.of("img")
