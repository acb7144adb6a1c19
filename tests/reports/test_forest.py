"""The forest plot: better to the right, in standard deviations, metrics without a direction apart."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from dialeval.analysis.comparison import Comparison, Settings
from dialeval.core.fold import Better
from dialeval.reports.forest import WIDTH, forest
from reports.test_html import HOSTILE, Page
from reports.test_verdict import comparison, difference


def dots(markup: str) -> list[float]:
    return [float(each) for each in re.findall(r'class="mean" cx="([\d.]+)"', markup)]


@pytest.mark.parametrize(
    ("better", "by", "side"), [("higher", 0.2, 1), ("higher", -0.2, -1), ("lower", 0.2, -1), ("lower", -0.2, 1)]
)
def test_better_is_to_the_right(better: Better, by: float, side: int) -> None:
    drawn = forest(comparison(difference("m", by, better, 0.001, True)))
    (at,) = dots(drawn)
    assert math.copysign(1, at - WIDTH / 2) == side
    kind = "up" if side > 0 else "down"
    assert f'<div class="{kind}">' in drawn
    assert ("▲" if side > 0 else "▼") in drawn


def test_the_scale_is_that_of_effects_and_ends_somewhere() -> None:
    small = replace(difference("large-unit", 40.0, "higher", 0.001, True), interval=(30.0, 50.0), effect=0.5)
    large = replace(difference("small-unit", 0.02, "higher", 0.001, True), interval=(0.01, 0.03), effect=1.0)
    first, second = dots(forest(comparison(small, large)))
    assert (second - WIDTH / 2) == pytest.approx(2 * (first - WIDTH / 2), abs=0.2)
    huge = replace(large, effect=1e9)
    assert all(0 <= at <= WIDTH for at in dots(forest(comparison(small, huge))))


def test_metrics_without_a_direction_are_folded() -> None:
    page = Page(
        forest(comparison(difference("m", 0.2, "higher", 0.2, False), difference("length", 2.0, None, 0.01, True)))
    )
    assert "1 metric without a direction" in page.text
    assert len(page.of("details")) == 1
    assert 'class="unsure"' in forest(comparison(difference("m", 0.2, "higher", 0.2, False)))


def test_what_was_not_tested_is_not_drawn() -> None:
    assert forest(comparison(difference("m", 0.2, "higher", math.nan, False))) == ""
    equal = replace(difference("m", 0.1, "higher", 1.0, False), difference=0.0, interval=(0.0, 0.0), effect=0.0)
    drawn = forest(comparison(equal))
    assert dots(drawn) == []
    assert "0.0000" in drawn


def test_names_are_text() -> None:
    row = replace(difference(HOSTILE, 0.2, "higher", 0.001, True), system=HOSTILE)
    page = Page(forest(Comparison(HOSTILE, [HOSTILE], [row], Settings(), 60, "rows", {})))
    assert not page.of("script")
    assert not page.of("img")
