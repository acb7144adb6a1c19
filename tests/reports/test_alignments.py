"""The report's section on where hypotheses landed: well-formed, escaped, short."""

from __future__ import annotations

import dialeval
from dialeval.core.result import Run
from dialeval.reports.alignments import SHOWN_QUERIES, alignments
from dialeval.reports.html import render, together
from reports.test_html import HOSTILE, Page

GROUPS = [[["a b c d", "a b"], ["x y"]]]


def run_of(text: str = "a b c d", queries: int = 1, system: str = "one") -> Run:
    settings = {"coverage": {"aligner": "sacre"}}
    return dialeval.evaluate({system: [[text, "zz"]] * queries}, reference_groups=GROUPS * queries, settings=settings)


def test_the_page_shows_groups_and_those_nobody_reached() -> None:
    page = Page(render(run_of()))
    assert "Where hypotheses landed" in page.text
    assert "1 of 2 groups were reached by no hypothesis" in page.text
    assert "nobody" in page.text
    assert "zz" in page.text
    assert {"href": "#alignments"} in page.of("a")


def test_texts_from_outside_stay_texts() -> None:
    hostile = HOSTILE.replace("\udc80", "")
    run = dialeval.evaluate({hostile: [[hostile]]}, reference_groups={hostile: {hostile: [hostile], "b": ["c"]}})
    page = Page(render(run))
    assert not page.of("img")
    assert all("<script>" not in text for text in page.scripts)
    assert page.text.count("<script>") > 3


def test_a_long_table_is_cut_short() -> None:
    section = alignments(run_of(queries=SHOWN_QUERIES + 5))
    assert section is not None
    assert section[2].count("<details>") == SHOWN_QUERIES
    assert f"The first {SHOWN_QUERIES} of {SHOWN_QUERIES + 5} queries" in section[2]


def test_runs_without_hypotheses_have_no_such_section() -> None:
    assert alignments(dialeval.evaluate(["a b"], metrics="length")) is None


def test_runstogether_keep_their_tables() -> None:
    both = together([run_of("a b c d"), run_of("x y"), dialeval.evaluate(["a"], metrics="length")])
    assert list(both.details["alignments"]) == ["one", "one (run 2)"]
