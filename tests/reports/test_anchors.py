"""Shares between floor and ceiling: below the table of a run, and in the report."""

from __future__ import annotations

import dialeval
from dialeval.core.result import Run
from dialeval.reports.html import combine_runs
from dialeval.reports.summary import make_standing as standing_section
from reports.test_html import HOSTILE, Page
from reports.test_summary import LOW, result


def test_shares_between_floor_and_ceiling_are_shown() -> None:
    shares = {HOSTILE: {"bleu-4": {"share": 0.5}}, "b": {"bleu-4": {"share": -0.2}}}
    run = Run({HOSTILE: result(LOW), "b": result(LOW)}, "0", details={"baselines": {"standing": shares}})
    section = standing_section(combine_runs([run]))
    assert section is not None
    page = Page(section.content)
    assert "50%" in page.text
    assert "-20%" in page.text
    assert not page.of("img")
    assert standing_section(dialeval.evaluate(["a"], metrics="length")) is None
