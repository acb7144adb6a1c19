"""Shares between floor and ceiling: below the table of a run, and in the report."""

from __future__ import annotations

import io

from rich.console import Console

import dialeval
from dialeval.core.result import Run
from dialeval.reports.anchors import FORMATS, lines_of, standing, table
from dialeval.reports.html import together
from reports.test_html import HOSTILE, Page
from reports.test_summary import LOW, result

SHARES = {"a|b": {"bleu-4": {"share": 0.504}}, "c": {"bleu-4": {"share": -0.2}}, "none": {}}
RUN = Run({name: result(LOW) for name in SHARES}, "0", details={"anchors": {"standing": SHARES}})


def test_lines_have_a_dash_where_there_is_no_share() -> None:
    assert lines_of(RUN) == [["metric", "a|b", "c", "none"], ["bleu-4", "50%", "-20%", "–"]]
    assert lines_of(Run({"a": result(LOW)}, "0")) == []


def test_text_formats() -> None:
    title = "between floor (0%) and ceiling (100%)"
    assert FORMATS["md"](RUN).splitlines() == [
        "",
        rf"| metric, {title} | a\|b | c | none |",
        "| --- | ---: | ---: | ---: |",
        "| bleu-4 | 50% | -20% | – |",
    ]
    latex = FORMATS["latex"](RUN).splitlines()
    assert latex[:3] == ["", r"\begin{tabular}{lrrr}", r"\toprule"]
    assert latex[5] == r"bleu-4 & 50\% & -20\% & -- \\"
    console = Console(width=80, file=io.StringIO())
    console.print(table(RUN))
    assert title in console.file.getvalue()  # type: ignore[attr-defined]


def test_shares_between_floor_and_ceiling_are_shown() -> None:
    shares = {HOSTILE: {"bleu-4": {"share": 0.5}}, "b": {"bleu-4": {"share": -0.2}}}
    run = Run({HOSTILE: result(LOW), "b": result(LOW)}, "0", details={"anchors": {"standing": shares}})
    section = standing(together([run]))
    assert section is not None
    page = Page(section.content)
    assert "50%" in page.text
    assert "-20%" in page.text
    assert not page.of("img")
    assert standing(dialeval.evaluate(["a"], metrics="length")) is None
