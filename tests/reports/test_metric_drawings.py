"""A drawing per metric, a line per system: scales, bins, and what is drawn."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run
from dialeval.reports import drawings as module
from dialeval.reports.drawings import Scale, Spread, drawings, estimates_of, scale_of_means
from reports.test_html import Page, estimate

CORPUS = Estimate(0.25, 0.0, 3, 3, corpus=True)


def page_of(run: Run) -> Page:
    section = drawings(run)
    assert section is not None
    return Page(section.content)


def test_means_and_items_are_drawn_beside_each_other() -> None:
    page = page_of(Run({"a": Result({"k": estimate("k", 1.0, 3.0)}), "b": Result({"k": CORPUS})}, "0"))
    assert [attrs["aria-label"] for attrs in page.of("svg") if "aria-label" in attrs] == [
        "a: 2.0 [0.6, 3.4]",
        "a: spread over 2 turns",
        "b: 0.2500",
    ]
    assert "Mean and interval" in page.text
    assert "Spread over turns" in page.text
    assert len(page.of("td")) == 2 * 2 + 3


def test_a_value_of_the_corpus_has_no_spread() -> None:
    page = page_of(Run({"a": Result({"k": CORPUS})}, "0"))
    assert "Value of the corpus" in page.text
    assert "Spread" not in page.text


def test_each_metric_has_a_place_that_links_lead_to() -> None:
    items = estimate("k", 1.0, 0.0, level=Level.DIALOGUE)
    page = page_of(Run({"a": Result({"k": items, "m": items})}, "0"))
    assert [attrs["id"] for attrs in page.of("section")] == ["metric-0", "metric-1"]
    assert "Spread over dialogues" in page.text


def test_systems_have_colors_of_their_own_and_anchors_one() -> None:
    results = {name: Result({"k": CORPUS}) for name in ("a", "b")}
    floors = {f"floor/{n}": Result({"k": CORPUS}, role="floor") for n in range(2)}
    classes = [attrs["class"] for attrs in page_of(Run({**results, **floors}, "0")).of("tr") if "class" in attrs]
    assert classes == ["own-0", "own-1", "anchor", "anchor"]


def test_no_metrics_have_no_section() -> None:
    assert drawings(Run({"a": Result({})}, "0")) is None


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.0, 7.5), (0.1814, 0.1815), (0.0, 1e-12), (1e9, 1e9 + 1), (4.0, 4.0)])
def test_ticks_are_round_and_inside(ends: tuple[float, float]) -> None:
    scale = Scale.over(ends, 300)
    assert scale is not None
    assert 1 <= len(scale.ticks) <= 6
    assert all(0 <= scale(tick) <= 300 for tick in scale.ticks)
    assert scale(scale.low) < scale(scale.high)


def test_a_scale_without_a_finite_value_is_none() -> None:
    assert Scale.over([], 100) is None
    assert Scale.over([math.nan, math.inf], 100) is None
    assert Scale.over([-1e308, 1e308], 100) is None, "its width is no float"


def test_equal_values_stand_in_the_middle() -> None:
    for value in (4.0, 0.0, -2.0):
        scale = Scale.over([value, value], 100)
        assert scale is not None
        assert scale(value) == 50


def test_the_scale_of_means_holds_intervals_too() -> None:
    wide = replace(estimate("k", 1.0, 2.0), interval=(0.0, 5.0))
    scale = scale_of_means([wide, replace(wide, interval=None, mean=-1.0)], 100)
    assert scale is not None
    assert (scale.low, scale.high) == (-1.0, 5.0)


def test_shares_are_those_of_a_histogram_over_all_systems() -> None:
    estimates = {"a": estimate("k", 0.0, 1.0, math.nan), "b": estimate("k", 24.0, 24.0, 24.0), "none": estimate("k")}
    spread = Spread.of(estimates, 100)
    assert spread is not None
    assert list(spread.items) == ["a", "b"]
    assert spread.items["a"].tolist() == [0, 1]
    assert spread.shares["a"] == [0.5, 0.5] + [0.0] * (module.BINS - 2)
    assert spread.shares["b"] == [0.0] * (module.BINS - 1) + [1.0]
    assert spread.tallest == 1.0
    assert Spread.of({"none": estimate("k")}, 100) is None
    assert Spread.of({}, 100) is None


def test_the_tallest_bar_has_the_full_height_and_a_rare_value_is_seen() -> None:
    spread = Spread.of({"a": estimate("k", *[0.0] * 999, 1.0), "b": estimate("k", 0.0, 0.0, 1.0, 1.0)}, 100)
    assert spread is not None
    heights = [float(attrs["height"] or 0) for attrs in Page(module.histogram(spread, "a", "<a>")).of("rect")]
    assert heights == [module.HEIGHT - 2, module.MIN_BAR]
    heights = [float(attrs["height"] or 0) for attrs in Page(module.histogram(spread, "b", "b")).of("rect")]
    assert np.allclose(heights, (module.HEIGHT - 2) * 0.5 / 0.999, atol=0.05)


def test_an_interval_is_drawn_where_there_is_one() -> None:
    scale = Scale(0.0, 10.0, 100)
    drawn = replace(estimate("k", 2.0, 4.0), interval=(1.0, 5.0))
    page = Page(module.interval(drawn, scale, "label"))
    ends = [attrs for attrs in page.of("line") if attrs["class"] == "range"]
    assert len(ends) == 3
    assert (ends[0]["x1"], ends[0]["x2"]) == (str(scale(1.0)), str(scale(5.0)))
    assert page.of("circle")[0]["cx"] == str(scale(3.0))
    bare = Page(module.interval(replace(drawn, interval=None, mean=math.nan), scale, "label"))
    assert not bare.of("circle")
    assert not [attrs for attrs in bare.of("line") if attrs["class"] == "range"]


def test_estimates_of_a_metric_are_those_of_systems_that_have_it() -> None:
    one = estimate("k", 1.0)
    assert estimates_of(Run({"a": Result({"k": one}), "b": Result({})}, "0"), "k") == {"a": one}
