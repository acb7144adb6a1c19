"""Shares between floor and ceiling: below the table of a run, and in the report."""

from __future__ import annotations

import dialeval
from dialeval.core.result import Run
from dialeval.reports.documents import to_latex, to_markdown
from dialeval.reports.html import combine_runs
from dialeval.reports.summary import make_standing as standing_section
from dialeval.reports.tables import describe_standing
from reports.test_html import HOSTILE, Page
from reports.test_summary import LOW, result

SHARES = {"a|b": {"bleu-4": {"share": 0.504}}, "c": {"bleu-4": {"share": -0.2}}, "none": {}}
RUN = Run({name: result(LOW) for name in SHARES}, "0", details={"baselines": {"standing": SHARES}})


def test_lines_have_a_dash_where_there_is_no_share() -> None:
    document = describe_standing(RUN)
    assert document is not None
    assert [[*line] for line in (document.tables[0].head, *document.tables[0].rows)] == [
        ["metric", "a|b", "c", "none"],
        ["bleu-4", "50%", "-20%", "–"],
    ]
    assert r"| metric | a\|b | c | none |" in to_markdown(document)
    assert r"bleu-4 & 50\% & -20\% & -- \\" in to_latex(document)
    assert describe_standing(Run({"a": result(LOW)}, "0")) is None


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
