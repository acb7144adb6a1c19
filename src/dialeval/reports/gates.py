"""Gates for those who read them: test results for CI, and Markdown for a pull request.

    to_junit(gates, run)          JUnit XML: a test case for each gate, with its failure and the figure's signature
    to_github(gates, comparison)  Markdown: which gates failed, the verdict, the table, and how the figures were made

A run or a comparison is what the gates are about. Neither format has a time or a place in it: the same figures give the
same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from dialeval.analysis.comparison import Comparison
from dialeval.core.plain_text import plain
from dialeval.reports import comparisons, tables
from dialeval.reports.formats import markdown, markdown_table
from dialeval.reports.verdict import judge_run, verdict

if TYPE_CHECKING:
    from dialeval.analysis.gates import Gate
    from dialeval.core.result import Result, Run


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold."""


def to_junit(gates: Sequence[Gate], subject: Run | Comparison) -> str:
    """Test results that CI servers read; characters that XML cannot hold are written out."""
    failed = sum(gate.failure is not None for gate in gates)
    counts = f'tests="{len(gates)}" failures="{failed}" errors="0"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {counts}>"]
    lines.append(f'  <testsuite name="dialeval" {counts} skipped="0">')
    for gate in gates:
        lines.append(
            f"    <testcase classname={_attribute(gate.system)} name={_attribute(f'{gate.key} {gate.asked}')}>"
        )
        if gate.failure is not None:
            lines.append(f"      <failure message={_attribute(gate.failure)}>{_text(gate.failure)}</failure>")
        if signature := _signature(_results(subject)[gate.system], gate.key):
            lines.append(f"      <system-out>{_text(signature)}</system-out>")
        lines.append("    </testcase>")
    return "\n".join([*lines, "  </testsuite>", "</testsuites>", ""])


def to_github(gates: Sequence[Gate], subject: Run | Comparison) -> str:
    """Markdown as GitHub renders it, for a comment on a pull request or the summary of a job."""
    sentences = verdict(subject) if isinstance(subject, Comparison) else judge_run(subject).sentences
    parts = [f"### {_heading(gates)}\n", *_failures(gates), *(f"{markdown(sentence)}\n" for sentence in sentences)]
    if isinstance(subject, Comparison):
        parts += (markdown_table(comparisons.system_table(subject, system), markdown) for system in subject.systems)
        notes = comparisons.legend(subject)
    else:
        parts.append(tables.to_markdown(subject))
        notes = [*(f"skipped {key}: {reason}" for key, reason in subject.skipped.items()), *subject.warnings]
    return "\n".join([*parts, *_folded([*notes, *_signatures(_results(subject))])])


def _heading(gates: Sequence[Gate]) -> str:
    failed = sum(gate.failure is not None for gate in gates)
    if not gates:
        return "dialeval"
    if failed:
        return f"dialeval: {failed} of {len(gates)} gate{'s' * (len(gates) > 1)} failed"
    return "dialeval: the gate holds" if len(gates) == 1 else f"dialeval: all {len(gates)} gates hold"


def _failures(gates: Sequence[Gate]) -> list[str]:
    lines = [f"- {markdown(gate.failure)}\n" for gate in gates if gate.failure is not None]
    return ["".join(lines)] if lines else []


def _folded(lines: Sequence[str]) -> Iterator[str]:
    """Lines that are shown when somebody asks for them."""
    yield "<details><summary>How these figures were made</summary>\n"
    yield from (f"- {markdown(line)}" for line in lines)
    yield "\n</details>\n"


def _results(subject: Run | Comparison) -> Mapping[str, Result]:
    return subject.results if isinstance(subject, Comparison) else subject


def _signatures(results: Mapping[str, Result]) -> dict[str, None]:
    return dict.fromkeys(line for result in results.values() for key in result if (line := _signature(result, key)))


def _signature(result: Result, key: str) -> str:
    estimate = result.get(key)
    return "" if estimate is None or estimate.signature is None else str(estimate.signature)


def _attribute(text: str) -> str:
    return quoteattr(_valid(text))


def _text(text: str) -> str:
    return escape(_valid(text))


def _valid(text: str) -> str:
    """Write out what a terminal obeys, and replace characters that XML does not allow."""
    return _NOT_XML.sub("\ufffd", plain(text))
