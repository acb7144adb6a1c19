"""The end of the report: what was skipped, warnings, signatures, commands."""

from __future__ import annotations

from dialeval.core.result import Result, Run
from dialeval.reports.html import COMMANDS, render
from reports.test_html import Page, estimate


def test_commands_come_before_that_of_the_page() -> None:
    shown = Page(render(Run({}, "1.2", details={COMMANDS: ["made it"]}), "wrote it")).text
    assert 0 < shown.index("made it") < shown.index("wrote it")
    assert "Use dialeval 1.2" in shown
    assert "Run it again" not in Page(render(Run({}, "0"))).text


def test_the_section_comes_last() -> None:
    run = Run({"a": Result({"k": estimate("k", 1.0)}, {"x": "no"})}, "0")
    titles = [attrs["id"] for attrs in Page(render(run)).of("h2")]
    assert titles[-1] == "method-title"
