"""The strips of the forest plot: better to the right, in standard deviations."""

from __future__ import annotations

from msgspec.structs import replace

from dialeval.reports.comparisons import choose_class, draw_strip, fit_scale
from reports.test_html import HOSTILE, Page
from reports.test_verdict import difference


def test_what_is_not_significant_is_unsettled_and_what_has_no_direction_is_other() -> None:
    assert choose_class(difference("m", 0.2, "higher", 0.2, False)) == "unsettled"
    assert choose_class(difference("length", 2.0, None, 0.01, True)) == "other"


def test_names_are_text() -> None:
    row = replace(difference(HOSTILE, 0.2, "higher", 0.001, True), system=HOSTILE)
    page = Page(draw_strip(row, fit_scale([row])))
    assert not page.of("script")
    assert not page.of("img")
