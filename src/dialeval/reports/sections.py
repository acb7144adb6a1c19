"""Sections of the report: warnings, correlations of metrics, and provenance (skipped metrics, signatures, commands)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.core.fold import Level
from dialeval.reports import markup
from dialeval.reports.drawings import draw_metric_agreement, lay_out_figures, make_correlation_matrix
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval.core.result import Run


COMMANDS = "commands"
"""Where a run holds the command lines that made it."""
HUMAN_SECTION = "dialeval.human.report:make_human_section"
"""The function that makes the section on human evaluation."""


def make_provenance(run: Run, command: str | None) -> Section:
    """Return the section: what was left out, everything that each number depends on, and the commands that made it."""
    content = _list_skipped(run) + _list_signatures(run) + _list_commands(run, command)
    return Section("provenance", "Provenance", content)


def _make_part(name: str, title: str, content: str) -> str:
    return f'<section id="{name}" aria-labelledby="{name}-title"><h3 id="{name}-title">{title}</h3>{content}</section>'


def _list_skipped(run: Run) -> str:
    """Return metrics that were not computed, and what they lack."""
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
    return _make_part("skipped", "Not computed", content)


def make_warnings(run: Run) -> Section | None:
    """Return what should be read before the numbers are believed."""
    return Section("warnings", "Warnings", markup.notice(run.warnings)) if run.warnings else None


def _list_signatures(run: Run) -> str:
    """Return everything that each number depends on."""
    lines = []
    for key in run.keys_in_order:
        by_line: dict[str, list[str]] = {}
        for system, result in run.items():
            if key in result and result[key].signature is not None:
                by_line.setdefault(str(result[key].signature), []).append(system)
        for line, systems in by_line.items():
            whose = markup.names(systems, run) if len(by_line) > 1 else "all"
            lines.append(markup.row(markup.name(key), markup.cells(f"<code>{markup.text(line)}</code>", whose)))
    caption = "All settings that a score depends on. Scores are comparable where signatures are equal."
    content = markup.table("signatures", caption, markup.heads("Metric", "Signature", "Systems"), lines)
    return _make_part("signatures", "Signatures", content) if lines else ""


def _list_commands(run: Run, command: str | None) -> str:
    """Return the commands that made the runs and the page, each to be copied."""
    commands: Sequence[str] = [*run.details.get(COMMANDS, ()), *([] if command is None else [command])]
    note = f"Use dialeval {markup.text(run.version)} on the same inputs; the signatures name the settings and the data."
    blocks = "".join(
        f'<div class="command"><pre tabindex="0"><code>{markup.text(each, lines=True)}</code></pre>'
        '<button type="button" class="copy" hidden>Copy</button></div>'
        for each in commands
    )
    status = '<p class="hidden" role="status" id="copied"></p>' if blocks else ""
    return _make_part("again", "How to reproduce", f"<p>{note}</p>{blocks}{status}")


# The section that shows which metrics move together over the rows of a system: a heat map of rank correlations.

MOST_SYSTEMS = 12
"""Systems that are shown, the first ones."""


def make_correlations(run: Run) -> Section | None:
    """Return the section; None where no system has two metrics with a value per row."""
    tables = [
        (system, level)
        for system, result in run.items()
        if result.role == "system"
        for level in Level
        if make_correlation_matrix(result, level) is not None
    ]
    if not tables:
        return None
    note = markup.note(
        "Spearman’s rank correlation of metrics over the rows of one system. Highly correlated metrics are "
        "redundant; a metric that correlates with length may measure little else."
    )
    drawn = [_draw_correlations(run, *each, opened=at == 0) for at, each in enumerate(tables[:MOST_SYSTEMS])]
    left = len(tables) - MOST_SYSTEMS
    more = markup.note(f"{markup.count(left, 'further chart')} left out.") if left > 0 else ""
    return Section("correlations", "Correlations", note + "".join(drawn) + more)


def _draw_correlations(run: Run, system: str, level: Level, *, opened: bool) -> str:
    drawn = lay_out_figures([draw_metric_agreement(run, system, level=level)])
    return markup.details(f"{markup.name(system)} {markup.span('aside', f'over {level}s')}", drawn, opened=opened)
