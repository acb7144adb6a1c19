"""The end of the report: what was skipped, warnings, signatures, commands."""

from __future__ import annotations

from dialeval.core.result import Result, Run
from dialeval.reports import provenance
from reports.test_html import Page, estimate


def text(section: object) -> str:
    assert section is not None
    return Page(section.content).text  # type: ignore[attr-defined]


def test_skipped_metrics_are_named_once_with_their_systems() -> None:
    run = Run({"a": Result({}, {"x": "no", "y": "no"}), "b": Result({}, {"x": "no", "y": "never"})}, "0")
    section = provenance.skipped(run)
    assert text(section).endswith("xnoallynoaynever" + "b")
    assert provenance.skipped(Run({"a": Result({})}, "0")) is None


def test_warnings_keep_their_lines() -> None:
    assert text(provenance.warnings(Run({}, "0", ("one\ntwo", "three")))) == "one\ntwothree"
    assert provenance.warnings(Run({}, "0")) is None


def test_equal_signatures_are_shown_once() -> None:
    run = Run({name: Result({"k": estimate("k", 1.0)}) for name in ("a", "b")}, "0")
    assert text(provenance.signatures(run)).count("k|n:2") == 1
    assert provenance.signatures(Run({"a": Result({})}, "0")) is None


def test_commands_come_before_that_of_the_page() -> None:
    run = Run({}, "1.2", details={provenance.COMMANDS: ["made it"]})
    shown = provenance.again(run, "wrote it")
    assert text(shown).index("made it") < text(shown).index("wrote it")
    assert "dialeval 1.2" in text(shown)
    assert not Page(provenance.again(Run({}, "0"), None).content).of("button")
