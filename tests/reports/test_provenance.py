"""The end of the report: what was skipped, warnings, signatures, commands."""

from __future__ import annotations

from dialeval.core.result import Result, Run
from dialeval.reports import html as sections
from dialeval.reports.html import render
from reports.test_html import Page, estimate


def part(run: Run, name: str, command: str | None = None) -> str:
    """The markup of a part of the section, empty if it has none of that name."""
    content = sections.make_provenance(run, command).content
    return content.partition(f'<section id="{name}" ')[2].partition(">")[2].partition("</section>")[0]


def text(run: Run, name: str, command: str | None = None) -> str:
    return Page(part(run, name, command)).text


def test_commands_come_before_that_of_the_page() -> None:
    run = Run({}, "1.2", details={sections.COMMANDS: ["made it"]})
    shown = text(run, "again", "wrote it")
    assert shown.index("made it") < shown.index("wrote it")
    assert "dialeval 1.2" in shown
    assert not Page(part(Run({}, "0"), "again")).of("button")


def test_the_section_comes_last() -> None:
    run = Run({"a": Result({"k": estimate("k", 1.0)}, {"x": "no"})}, "0")
    titles = [attrs["id"] for attrs in Page(render(run)).of("h2")]
    assert titles[-1] == "provenance-title"
