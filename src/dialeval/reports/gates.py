"""Gates for those who read them: test results for CI, and Markdown for a pull request.

    to_junit(gates, results)             JUnit XML: a test case for each gate, with its failure and signature
    to_github(gates, subject, results)   Markdown: which gates failed, the verdict, the table, and how it was made

Neither format has a time or a place in it: the same values give the same text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from dialeval.analysis.comparison import Comparison
from dialeval.reports import comparisons, tables
from dialeval.reports.documents import Document, to_markdown
from dialeval.reports.figures import plain
from dialeval.reports.formats import markdown

if TYPE_CHECKING:
    from dialeval.analysis.gates import Gate
    from dialeval.core.result import Result, Run

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold."""


def to_junit(gates: Sequence[Gate], results: Mapping[str, Result]) -> str:
    """Return test results that CI servers read; characters that XML cannot hold are written out."""
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
        if signature := _signature(results[gate.system], gate.key):
            lines.append(f"      <system-out>{_text(signature)}</system-out>")
        lines.append("    </testcase>")
    return "\n".join([*lines, "  </testsuite>", "</testsuites>", ""])


def to_github(gates: Sequence[Gate], subject: Run | Comparison, results: Mapping[str, Result]) -> str:
    """Return Markdown as GitHub renders it, for a comment on a pull request or the summary of a job."""
    shown_document = comparisons.document(subject) if isinstance(subject, Comparison) else _describe_run(subject)
    failures = "".join(f"- {markdown(gate.failure)}\n" for gate in gates if gate.failure is not None)
    shown = to_markdown(Document(shown_document.said, shown_document.tables, []))
    signatures = (_signature(result, key) for result in results.values() for key in result)
    details = [*shown_document.notes, *dict.fromkeys(filter(None, signatures))]
    folded = [
        "<details><summary>How these figures were made</summary>\n",
        *(f"- {markdown(line)}" for line in details),
        "\n</details>\n",
    ]
    return "\n".join([f"### {_heading(gates)}\n", *([failures] if failures else []), shown, *folded])


def _describe_run(run: Run) -> Document:
    shown = tables.document(run)
    notes = [*shown.notes, *(f"skipped {key}: {reason}" for key, reason in run.skipped.items()), *run.warnings]
    return Document(comparisons.judge_run(run).sentences, shown.tables, notes)


def _heading(gates: Sequence[Gate]) -> str:
    failed = sum(gate.failure is not None for gate in gates)
    if not gates:
        return "dialeval"
    if failed:
        return f"dialeval: {failed} of {len(gates)} gate{'s' * (len(gates) > 1)} failed"
    return "dialeval: the gate holds" if len(gates) == 1 else f"dialeval: all {len(gates)} gates hold"


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
