"""The strips of the forest plot: better to the right, in standard deviations."""

from __future__ import annotations

from dialeval.reports.comparisons import choose_class
from reports.test_verdict import difference


def test_what_is_not_significant_is_unsettled_and_what_has_no_direction_is_other() -> None:
    assert choose_class(difference("m", 0.2, "higher", 0.2, False)) == "unsettled"
    assert choose_class(difference("length", 2.0, None, 0.01, True)) == "other"
