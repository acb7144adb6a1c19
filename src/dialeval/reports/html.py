"""The HTML report of runs, one file that is offline, printable, light or dark; and what a notebook shows.

    report(run, "report.html")
    report([monday, tuesday], "report.html", command="dialeval score ...")
    html(run), plot(run, "bleu-4")       what `_repr_html_` and `Run.plot` give

The page has the verdict and the summary (metrics by systems), a plot per metric, correlations of metrics, every row
with its texts and scores, sections of suites and judges, and the provenance of the numbers. Larger sections are
made by modules of their own; this one combines them.

Equal runs give equal bytes: the page has no date unless one is passed.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from dialeval.analysis.comparison import Comparison
from dialeval.analysis.slices import Slices, compare_slices, list_kept_fields
from dialeval.core.display import Displayable
from dialeval.core.errors import SettingError
from dialeval.core.features import find_place
from dialeval.core.files import write_bytes
from dialeval.core.fold import Level
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import PROMPT, REFERENCE
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.reports import markup
from dialeval.reports.comparisons import RunVerdict, judge_run
from dialeval.reports.documents import describe_result, find_extensions, to_html
from dialeval.reports.drawings import (
    draw_causes,
    draw_figure,
    draw_metric_agreement,
    draw_slices,
    lay_out_figures,
    make_correlation_matrix,
)
from dialeval.reports.explorer import make_explorer
from dialeval.reports.formatting import list_names, plain
from dialeval.reports.markup import Section
from dialeval.reports.slices import MOST_TESTS, choose_keys, make_section, state_losses
from dialeval.reports.summary import DATA_SETS, make_metric_section, make_standing, make_summary, split_blocks
from dialeval.reports.tables import describe
from dialeval.reports.trials import make_agents_section

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from dialeval.analysis.agreement import Agreement
    from dialeval.reports.canvas import Figure

# The frame of the page: head, policy, contents, sections, scripts.
#
# A content security policy forbids every request. It allows the page's own style and scripts by their hashes and
# nothing else: no handler in an attribute, no `eval`, no style attribute. What the scripts show comes from JSON in
# the page.

__all__ = ["html", "plot", "report"]

plot = draw_figure

ASSETS = Path(__file__).with_name("assets")
_THEME = (
    '<button type="button" id="theme" hidden aria-label="Colors"><span aria-hidden="true">◐</span> '
    '<span id="theme-now">Auto</span></button>'
)


def read_assets(*files: str) -> str:
    """Return files of the package that become part of the page, one after the other."""
    return "".join((ASSETS / file).read_text(encoding="utf-8") for file in files)


def make_script(*files: str) -> str:
    """Return scripts of the package as one, with names of their own."""
    return f'(() => {{\n"use strict";\n{read_assets(*files)}}})();\n'


MARK = '<meta name="generator" content="dialeval">'
"""The line that distinguishes our pages from other files."""


def make_page(heading: str, lead: str, sections: Sequence[Section], data: str, scripts: Sequence[str]) -> str:
    """Return the page; `lead` and `data` are markup; the first of the `scripts` runs before anything is shown."""
    contents = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in sections)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>{content}</section>\n'
        for name, title, content in sections
    )
    return make_html(
        heading,
        '<a class="skip" href="#main">Skip to the results</a>\n'
        f"{make_heading(heading, lead)}"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n'
        f'<main id="main" tabindex="-1">\n{body}</main>\n{data}',
        read_assets("chart.css", "report.css"),
        scripts,
    )


def make_heading(title: str, lead: str) -> str:
    """Return the head of a page: its title, the choice of colors, and some markup."""
    shown = escape(plain(title))
    return f'<header><div class="top"><h1><bdi dir="auto">{shown}</bdi></h1>{_THEME}</div>{lead}</header>\n'


def make_html(title: str, body: str, style: str, scripts: Sequence[str], more_policy: str = "") -> str:
    """Return a whole document from its body, which is markup; the first script runs before anything is shown."""
    scripts = [re.sub("</(?=script)", r"<\\/", script, flags=re.IGNORECASE) for script in scripts]
    allowed = " ".join(map(_hash, scripts))
    policy = f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    first, *rest = (f"<script>{script}</script>\n" for script in scripts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}{more_policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"{MARK}\n"
        f"<title>{escape(plain(title))}</title>\n<style>{style}</style>\n{first}</head>\n<body>\n"
        f"{body}{''.join(rest)}</body>\n</html>\n"
    )


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


_MOST_NAMED = 3
"""Systems that the title names before the rest is counted."""
COMMANDS = "commands"
"""Where a run holds the command lines that made it."""
SHARED = 0.1
"""Fraction of prompts and references that two runs of the same data have in common, at least."""
_BY_SYSTEM = ("standing", "alignments", "transcripts", "failures", "curves", "trials")
"""Details of a run by system that sections are made of."""


def report(
    runs: Run | Sequence[Run] | Mapping[str, Run],
    path: str | os.PathLike[str],
    command: str | None = None,
    *,
    title: str | None = None,
    date: str | None = None,
    compared: bool | Comparison = True,
    by: str | Sequence[str] | None = None,
    people: Displayable | None = None,
    agreement: Agreement | None = None,
    ranking: Displayable | None = None,
    rated: Mapping[str, object] | None = None,
    merged: Displayable | None = None,
    pairs: object = None,
) -> Path:
    """Write the HTML report of one or several runs: one file that needs no network.

    Args:
        runs: A run, or several, whose systems are shown together; or a mapping of names to runs of different data,
            which are kept apart.
        path: The file to write.
        command: The command that made the runs, to be shown.
        title: The title; None: the names of the systems.
        date: A date to be shown; without one, equal runs give equal files.
        compared: Test the differences to the first system; or the comparison of all systems with the first, where there
            is one already.
        by: Fields to slice the rows by; None: those that the run kept.
        people: What `dialeval.estimate_ratings` returned, to be shown.
        agreement: What `dialeval.measure_agreement` returned, to be shown.
        ranking: What `dialeval.rank` returned, to be shown.
        rated: The rated rows by system, for figures.
        merged: The merged ratings, for a section about raters.
        pairs: The compared responses, for figures.

    Returns:
        The path.

    Raises:
        DataError: The file cannot be written.
        SettingError: There is no run.

    Examples:
        >>> import dialeval
        >>> run = dialeval.evaluate(["yes", "no thanks"], metrics="length")
        >>> dialeval.report(run, "report.html").name
        'report.html'
    """
    path = Path(path)
    run = combine_runs([runs] if isinstance(runs, Run) else runs)
    opinions = (people, agreement, ranking, rated, merged, pairs)
    human = None
    if any(part is not None for part in opinions):
        human = find_place("loaders", "people")(*opinions)
    shown = render(run, command, title=title, date=date, compared=compared, by=by, people=human)
    write_bytes(path, shown.encode())
    return path


def render(
    run: Run,
    command: str | None = None,
    *,
    title: str | None = None,
    date: str | None = None,
    compared: bool | Comparison = True,
    by: str | Sequence[str] | None = None,
    people: Section | None = None,
) -> str:
    """Return the page as text."""
    parts = _slice_blocks(run, by, bool(compared))
    rows, losses = make_explorer(run, parts), [sentence for part in parts for sentence in state_losses(part)]
    sections = [
        make_summary(run, compared, losses, _draw_failures(run, parts)),
        make_warnings(run),
        people,
        make_section(parts) if parts else None,
        make_agents_section(run),
        make_metric_section(run),
        make_correlations(run),
        rows and rows[0],
        make_standing(run),
        *(make(run) for make in find_extensions(run, "section")),
        make_provenance(run, command),
    ]
    scripts, data = [make_script("page.js")], ""
    if rows is not None:
        scripts.append(make_script("text.js", "rows.js", "list.js", "detail.js", "explorer.js"))
        data += markup.embed_json("explorer-data", rows[1])
    return make_page(title or _make_title(run), _make_lead(run, date), list(filter(None, sections)), data, scripts)


def _draw_failures(run: Run, parts: Sequence[Slices]) -> dict[str, Figure]:
    """Return by system a chart for the first screen: causes of failure, or slices of the first field."""
    charts: dict[str, Figure] = {}
    for part in parts:
        drawn = draw_slices(part, part.by[0], choose_keys(part)[0]) if choose_keys(part) else None
        charts |= {} if drawn is None else dict.fromkeys(part.whole, drawn)
    causes = draw_causes(run)
    return charts if causes is None else charts | dict.fromkeys(run.details["failures"], causes)


def _slice_blocks(run: Run, by: str | Sequence[str] | None, compared: bool) -> list[Slices]:
    """Slice each block of systems with common metrics by `by`, or by the fields that it kept."""
    fields = [(block, list_kept_fields(block) if by is None else by) for block in split_blocks(run)]
    return [compare_slices(block, names, compared=compared, most_tests=MOST_TESTS) for block, names in fields if names]


def combine_runs(runs: Iterable[Run] | Mapping[str, Run]) -> Run:
    """Return several runs as one; a name that another run has already gets the number of its run."""
    labels = list(runs) if isinstance(runs, Mapping) else []
    runs = [run.with_report_details() for run in (runs.values() if isinstance(runs, Mapping) else runs)]
    data = _name_data(runs, labels)
    if not runs:
        raise SettingError("there is nothing to report: pass at least one run")
    systems: dict[str, Result] = {}
    details: JsonObject = {}
    for number, run in enumerate(runs, 1):
        names = {}
        for system, result in run.items():
            name = system
            while name in systems:
                name = f"{name} (run {number})"
            names[system], systems[name] = name, result
        for kind in _BY_SYSTEM:
            holder = run.details.get("baselines", {}) if kind == "standing" else run.details
            by_system = holder.get(kind, {}).items()
            details.setdefault(kind, {}).update({names[name]: entry for name, entry in by_system if name in names})
        if len(set(data)) > 1:
            details.setdefault(DATA_SETS, {}).update(dict.fromkeys(names.values(), data[number - 1]))
        if "command" in run.details:
            details.setdefault(COMMANDS, []).append(str(run.details["command"]))
    versions = dict.fromkeys(run.version for run in runs)
    warnings = tuple(dict.fromkeys(text for run in runs for text in run.warnings))
    return Run(systems, ", ".join(versions), warnings, {name: value for name, value in details.items() if value})


def _name_data(runs: Sequence[Run], labels: Sequence[str]) -> list[str]:
    """Return the name of the data of each run; runs that share a tenth of their prompts or references have the same."""
    seen = [_collect_units(run) for run in runs]
    names: list[str] = []
    for at, units in enumerate(seen):
        label = labels[at] if labels else f"data {len(set(names)) + 1}"
        near = (names[to] for to in range(at) if _has_common_units(units, seen[to]))
        names.append(next(near, label))
    return names


def _collect_units(run: Run) -> set[int]:
    """Return digests of what the rows of a run are about; none where they are not known."""
    tables = [result.rows for result in run.values() if result.rows is not None]
    columns = [table.digests[name] for table in tables for name in (PROMPT, REFERENCE) if name in table.digests]
    return {int(digest) for column in columns for digest in np.unique(column) if digest}


def _has_common_units(one: set[int], other: set[int]) -> bool:
    return not one or not other or len(one & other) >= SHARED * min(len(one), len(other))


def _make_title(run: Run) -> str:
    """Return the systems of a run, the first few of them by name."""
    names = [name for name, result in run.items() if result.role == "system"] or list(run)
    return list_names(names, _MOST_NAMED) or "Evaluation report"


def _make_lead(run: Run, date: str | None) -> str:
    systems = markup.count(len(run) - len(run.baselines), "system")
    baselines = f" and {markup.count(len(run.baselines), 'baseline')}" if run.baselines else ""
    rows = {(est.level, est.units) for result in run.values() for est in result.values()}
    alike = len({level for level, _ in rows}) == len(rows)  # systems of several runs may have other rows
    sizes = [markup.count(number, str(level)) for level, number in sorted(rows)] if alike else []
    facts = [systems + baselines, *sizes, markup.count(len(run.keys_in_order), "metric")]
    version = f"Made {f'on {markup.text(date)} ' if date else ''}with dialeval {markup.text(run.version)}."
    link = f' <a class="notice" href="#warnings">{markup.count(len(run.warnings), "warning")}</a>'
    return f'<p class="lead">{", ".join(facts)}. {version}{link if run.warnings else ""}</p>'


# Sections: warnings, correlations of metrics, and provenance (skipped metrics, signatures, commands).


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
        f'<div class="command"><pre tabindex="0"><code>{markup.text(line, lines=True)}</code></pre>'
        '<button type="button" class="copy" hidden>Copy</button></div>'
        for line in commands
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
    drawn = [_draw_correlations(run, *place, opened=at == 0) for at, place in enumerate(tables[:MOST_SYSTEMS])]
    left = len(tables) - MOST_SYSTEMS
    more = markup.note(f"{markup.count(left, 'further chart')} left out.") if left > 0 else ""
    return Section("correlations", "Correlations", note + "".join(drawn) + more)


def _draw_correlations(run: Run, system: str, level: Level, *, opened: bool) -> str:
    drawn = lay_out_figures([draw_metric_agreement(run, system, level=level)])
    return markup.details(f"{markup.name(system)} {markup.span('aside', f'over {level}s')}", drawn, opened=opened)


# What a notebook shows.


def html(shown: Displayable) -> str:
    """Return the markup of a result for a notebook, which `_repr_html_` gives.

    Sentences and values are those of the terminal. Tables have no style and no script of their own, so that they look
    like all tables of the notebook; every text from outside is escaped.
    """
    if not isinstance(shown, Run | Result):
        return to_html(describe_result(shown))
    run = shown if isinstance(shown, Run) else Run({"value": shown}, __version__)
    return to_html(describe(run, _compare(run)))


_last: list[tuple[ref[Run], RunVerdict]] = []


def _compare(run: Run) -> RunVerdict:
    """Return the verdict of a run; that of the run that was shown last is kept, since it takes a while."""
    if not _last or _last[0][0]() is not run:
        _last[:] = [(ref(run), judge_run(run))]
    return _last[0][1]
