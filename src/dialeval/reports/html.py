"""The HTML report of runs, one file that is offline, printable, light or dark; and what a notebook shows.

    report(run, "report.html")
    report([monday, tuesday], "report.html", command="dialeval score ...")
    html(run), plot(run, "bleu-4")       what `_repr_html_` and `Run.plot` give

The page has the verdict and the summary (metrics by systems), a plot per metric, correlations of metrics, every row
with its texts and scores, sections of suites and judges, and the provenance of the numbers. Sections are made by
modules of their own; this one combines them.

Equal runs give equal bytes: the page has no date unless one is passed.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from dialeval.analysis.comparison import Comparison
from dialeval.analysis.slices import Slices, list_kept_fields, slices
from dialeval.core.arguments import check_arguments
from dialeval.core.display import Displayable
from dialeval.core.errors import SettingError
from dialeval.core.files import write_bytes
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import PROMPT, REFERENCE
from dialeval.core.version import __version__
from dialeval.reports import markup, sections
from dialeval.reports.comparisons import RunVerdict, judge_run
from dialeval.reports.documents import find_extensions, to_html
from dialeval.reports.drawings import draw_causes, draw_figure, draw_slices
from dialeval.reports.explorer import make_explorer
from dialeval.reports.formatting import list_names, plain
from dialeval.reports.sections import make_correlations
from dialeval.reports.slices import MOST_TESTS, choose_keys, make_section, state_losses
from dialeval.reports.summary import DATA_SETS, make_metric_section, make_standing, make_summary, split_blocks
from dialeval.reports.tables import describe
from dialeval.reports.trials import make_agents_section

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from dialeval.analysis.agreement import Agreement
    from dialeval.reports.canvas import Figure
    from dialeval.reports.markup import Section


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


def make_page(title: str, lead: str, sections: Sequence[Section], data: str, scripts: Sequence[str]) -> str:
    """Return the page; `lead` and `data` are markup; the first of the `scripts` runs before anything is shown."""
    contents = "".join(f'<li><a href="#{each.name}">{each.title}</a></li>' for each in sections)
    body = "".join(
        f'<section id="{each.name}" aria-labelledby="{each.name}-title">'
        f'<h2 id="{each.name}-title">{each.title}</h2>{each.content}</section>\n'
        for each in sections
    )
    return make_html(
        title,
        '<a class="skip" href="#main">Skip to the results</a>\n'
        f"{make_heading(title, lead)}"
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
    scripts = [re.sub("</(?=script)", r"<\\/", each, flags=re.IGNORECASE) for each in scripts]
    allowed = " ".join(map(_hash, scripts))
    policy = f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    first, *rest = (f"<script>{each}</script>\n" for each in scripts)
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
SHARED = 0.1
"""Fraction of prompts and references that two runs of the same data have in common, at least."""
_BY_SYSTEM = ("standing", "alignments", "transcripts", "failures", "curves", "trials")
"""Details of a run by system that sections are made of."""


@check_arguments
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
    rated: Mapping[str, Any] | None = None,
    merged: Displayable | None = None,
    pairs: Any = None,
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
        people: What `dialeval.estimate` returned, to be shown.
        agreement: What `dialeval.agreement` returned, to be shown.
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
    human = resolve_name(sections.HUMAN_SECTION)(*opinions) if any(each is not None for each in opinions) else None
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
    cut = _slice_blocks(run, by, bool(compared))
    rows, losses = make_explorer(run, cut), [sentence for each in cut for sentence in state_losses(each)]
    found = [
        make_summary(run, compared, losses, _draw_failures(run, cut)),
        sections.make_warnings(run),
        people,
        make_section(cut) if cut else None,
        make_agents_section(run),
        make_metric_section(run),
        make_correlations(run),
        rows and rows[0],
        make_standing(run),
        *(make(run) for make in find_extensions(run, "section")),
        sections.make_provenance(run, command),
    ]
    scripts, data = [make_script("page.js")], ""
    if rows is not None:
        scripts.append(make_script("text.js", "rows.js", "list.js", "detail.js", "explorer.js"))
        data += markup.embed_json("explorer-data", rows[1])
    known = [each for each in found if each is not None]
    return make_page(title or _make_title(run), _make_lead(run, date), known, data, scripts)


def _draw_failures(run: Run, cut: Sequence[Slices]) -> dict[str, Figure]:
    """Return by system a chart for the first screen: causes of failure, or slices of the first field."""
    found: dict[str, Figure] = {}
    for each in cut:
        drawn = draw_slices(each, each.by[0], choose_keys(each)[0]) if choose_keys(each) else None
        found |= {} if drawn is None else dict.fromkeys(each.whole, drawn)
    causes = draw_causes(run)
    return found if causes is None else found | dict.fromkeys(run.details["failures"], causes)


def _slice_blocks(run: Run, by: str | Sequence[str] | None, compared: bool) -> list[Slices]:
    """Return the slices of systems that share a metric by some fields, or by the fields that they kept."""
    fields = [(block, list_kept_fields(block) if by is None else by) for block in split_blocks(run)]
    return [slices(block, each, compared=compared, most_tests=MOST_TESTS) for block, each in fields if each]


def combine_runs(runs: Iterable[Run] | Mapping[str, Run]) -> Run:
    """Return several runs as one; a name that another run has already gets the number of its run."""
    labels = list(runs) if isinstance(runs, Mapping) else []
    runs = [run.with_report_details() for run in (runs.values() if isinstance(runs, Mapping) else runs)]
    data = _name_data(runs, labels)
    if not runs:
        raise SettingError("there is nothing to report: pass at least one run")
    systems: dict[str, Any] = {}
    details: dict[str, Any] = {}
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
            details.setdefault(sections.COMMANDS, []).append(str(run.details["command"]))
    versions = dict.fromkeys(run.version for run in runs)
    warnings = tuple(dict.fromkeys(text for run in runs for text in run.warnings))
    return Run(systems, ", ".join(versions), warnings, {name: value for name, value in details.items() if value})


def _name_data(runs: Sequence[Run], labels: Sequence[str]) -> list[str]:
    """Return the name of the data of each run; runs that share a tenth of their prompts or references have the same."""
    seen = [_collect_units(run) for run in runs]
    names: list[str] = []
    for at, units in enumerate(seen):
        own = labels[at] if labels else f"data {len(set(names)) + 1}"
        near = (names[to] for to in range(at) if _has_common_units(units, seen[to]))
        names.append(next(near, own))
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
    rows = {(est.level, est.rows) for result in run.values() for est in result.values()}
    alike = len({level for level, _ in rows}) == len(rows)  # systems of several runs may have other rows
    sizes = [markup.count(number, str(level)) for level, number in sorted(rows)] if alike else []
    facts = [systems + baselines, *sizes, markup.count(len(run.keys_in_order), "metric")]
    version = f"Made {f'on {markup.text(date)} ' if date else ''}with dialeval {markup.text(run.version)}."
    many = (
        f' <a class="notice" href="#warnings">{markup.count(len(run.warnings), "warning")}</a>' if run.warnings else ""
    )
    return f'<p class="lead">{", ".join(facts)}. {version}{many}</p>'


# What a notebook shows.


def html(shown: Displayable) -> str:
    """Return the markup of a result for a notebook, which `_repr_html_` gives.

    Sentences and values are those of the terminal. Tables have no style and no script of their own, so that they look
    like all tables of the notebook; every text from outside is escaped.
    """
    if not isinstance(shown, Run | Result):
        return to_html(resolve_name(shown.document_maker)(shown))
    run = shown if isinstance(shown, Run) else Run({"value": shown}, __version__)
    return to_html(describe(run, _compare(run)))


_last: list[tuple[ref[Run], RunVerdict]] = []


def _compare(run: Run) -> RunVerdict:
    """Return the verdict of a run; that of the run that was shown last is kept, since it takes a while."""
    if not _last or _last[0][0]() is not run:
        _last[:] = [(ref(run), judge_run(run))]
    return _last[0][1]
