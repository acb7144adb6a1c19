"""The end of the report: what was left out and why, warnings, signatures, and how to make the numbers again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.reports import markup
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval.core.result import Run

COMMANDS = "commands"
"""Where a run holds the command lines that made it."""


def provenance(run: Run, command: str | None) -> Section:
    """The section: what was left out, everything that each number depends on, and the commands that made it."""
    return Section("provenance", "Provenance", _skipped(run) + _signatures(run) + _again(run, command))


def _part(name: str, title: str, content: str) -> str:
    return f'<section id="{name}" aria-labelledby="{name}-title"><h3 id="{name}-title">{title}</h3>{content}</section>'


def _skipped(run: Run) -> str:
    """Metrics that were not computed, and what they lack."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for system, result in run.items():
        for key, reason in result.skipped.items():
            lacking.setdefault((key, reason), []).append(system)
    if not lacking:
        return ""
    lines = [
        markup.row(markup.name(key), markup.cells(markup.text(reason), markup.names(systems, run)))
        for (key, reason), systems in lacking.items()
    ]
    caption = "Metrics that were left out, and what they lack."
    content = markup.table("skipped", caption, markup.heads("Metric", "Reason", "Systems"), lines)
    return _part("skipped", "Not computed", content)


def warnings(run: Run) -> Section | None:
    """What should be read before the numbers are believed."""
    lines = "".join(f"<li>{markup.text(text, lines=True)}</li>" for text in run.warnings)
    return Section("warnings", "Warnings", f'<div class="notice"><ul>{lines}</ul></div>') if lines else None


def _signatures(run: Run) -> str:
    """Everything that each number depends on."""
    lines = []
    for key in run.keys_in_order:
        by_line: dict[str, list[str]] = {}
        for system, result in run.items():
            if key in result and result[key].signature is not None:
                by_line.setdefault(str(result[key].signature), []).append(system)
        for line, systems in by_line.items():
            whose = markup.names(systems, run) if len(by_line) > 1 else "all"
            lines.append(markup.row(markup.name(key), markup.cells(f"<code>{markup.text(line)}</code>", whose)))
    caption = "Everything a number depends on. Numbers may be compared where these lines agree."
    content = markup.table("signatures", caption, markup.heads("Metric", "Signature", "Systems"), lines)
    return _part("signatures", "Signatures", content) if lines else ""


def _again(run: Run, command: str | None) -> str:
    """The commands that made the runs and the page, each to be copied."""
    commands: Sequence[str] = [*run.details.get(COMMANDS, ()), *([] if command is None else [command])]
    note = f"Use dialeval {markup.text(run.version)} on the same inputs; the signatures name the settings and the data."
    blocks = "".join(
        f'<div class="command"><pre tabindex="0"><code>{markup.text(each, lines=True)}</code></pre>'
        '<button type="button" class="copy" hidden>Copy</button></div>'
        for each in commands
    )
    status = '<p class="hidden" role="status" id="copied"></p>' if blocks else ""
    return _part("again", "How to reproduce", f"<p>{note}</p>{blocks}{status}")
