"""A drawing per metric, a line per system."""

from __future__ import annotations

from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run
from dialeval.reports.metric_drawings import drawings
from reports.test_html import Page, estimate

CORPUS = Estimate(0.25, 0.0, 3, 3, corpus=True)


def page_of(run: Run, interactive: bool = False) -> Page:
    section = drawings(run, interactive)
    assert section is not None
    return Page(section.content)


def test_means_and_items_are_drawn_beside_each_other() -> None:
    page = page_of(Run({"a": Result({"k": estimate("k", 1.0, 3.0)}), "b": Result({"k": CORPUS})}, "0"))
    assert [attrs["aria-label"] for attrs in page.of("svg") if "aria-label" in attrs] == [
        "a: 2.0000 ±1.3930",
        "a: spread over 2 turns",
        "b: 0.2500",
    ]
    assert "Mean and interval" in page.text
    assert "Spread over turns" in page.text
    assert len(page.of("td")) == 2 * 3 + 4


def test_a_value_of_the_corpus_has_no_spread() -> None:
    page = page_of(Run({"a": Result({"k": CORPUS})}, "0"), interactive=True)
    assert "Value of the corpus" in page.text
    assert "Spread" not in page.text
    assert [attrs["data-plot"] for attrs in page.of("div") if "data-plot" in attrs] == ["interval-0"]


def test_each_plot_has_a_place() -> None:
    items = estimate("k", 1.0, 0.0, level=Level.DIALOGUE)
    page = page_of(Run({"a": Result({"k": items, "m": items})}, "0"), interactive=True)
    places = [attrs["data-plot"] for attrs in page.of("div") if "data-plot" in attrs]
    assert places == ["interval-0", "spread-0", "interval-1", "spread-1"]
    assert [attrs["id"] for attrs in page.of("section")] == ["metric-0", "metric-1"]
    assert "Spread over dialogues" in page.text


def test_no_metrics_have_no_section() -> None:
    assert drawings(Run({"a": Result({})}, "0")) is None
