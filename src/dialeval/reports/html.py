"""The HTML report of runs, one file that is offline, printable, light or dark; and what a notebook shows.

    report(run, "report.html")
    report([monday, tuesday], "report.html", command="dialeval score ...")
    html(run)                            what `_repr_html_` gives

The page has a verdict with key figures and a figure whose marks lead to dialogues, the dialogues side by side, slices,
sections of suites and human ratings, a table of all metrics, and the method in drawers. Sections are made by modules of
their own (`summary`, `slices`, `explorer`); this one combines them.

Equal runs give equal bytes: the page has no date unless one is passed.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import ref

from msgspec import structs

from dialeval.analysis.comparison import Comparison
from dialeval.analysis.slices import Slices, compare_slices, list_kept_fields
from dialeval.analysis.values import find_better
from dialeval.core.display import Displayable
from dialeval.core.errors import SettingError
from dialeval.core.features import find_place
from dialeval.core.files import write_bytes
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import TRIALS
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.reports import comparisons, markup, summary
from dialeval.reports.comparisons import RunVerdict, judge_run
from dialeval.reports.documents import Document, Table, describe_result, find_extensions, to_html
from dialeval.reports.drawings import draw_differences
from dialeval.reports.explorer import make_data, write_agents
from dialeval.reports.formatting import describe_intervals, list_names, plain, shorten
from dialeval.reports.markup import Section
from dialeval.reports.slices import MOST_TESTS, write_where
from dialeval.reports.summary import Block
from dialeval.reports.tables import describe, describe_unscored, list_accounts

if TYPE_CHECKING:
    from dialeval.analysis.agreement import Agreement

# The frame of the page: head, policy, contents, sections, scripts.
#
# A content security policy forbids every request. It allows the page's own style and scripts by their hashes and
# nothing else: no handler in an attribute, no `eval`, no style attribute. What the scripts show comes from JSON in
# the page.

ASSETS = Path(__file__).with_name("assets")


def read_assets(*files: str) -> str:
    """Return files of the package that become part of the page, one after the other."""
    return "".join((ASSETS / file).read_text(encoding="utf-8") for file in files)


def make_script(*files: str) -> str:
    """Return scripts of the package as one, with names of their own."""
    return f'(() => {{\n"use strict";\n{read_assets(*files)}}})();\n'


_SKIP = '<a class="skip" href="#main">Skip to the results</a>\n'
MARK = '<meta name="generator" content="dialeval">'
"""The line that distinguishes our pages from other files."""


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


MOST_SLICED = 10_000
"""Rows of a system that are sliced by turn without being asked."""
_MOST_NAMED = 3
"""Systems that the title names before the rest is counted."""
COMMANDS = "commands"
"""Where a run holds the command lines that made it."""


def report(
    runs: Run | Sequence[Run],
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
    merged: Displayable | None = None,
    card: str | os.PathLike[str] | None = None,
) -> Path:
    """Write the HTML report of one or several runs: one file that needs no network.

    Args:
        runs: A run, or several, whose systems are compared.
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
        merged: The merged ratings, for a section about raters.
        card: A file for the verdict as a picture to share, `.png` (1200 by 630) or `.svg`.

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
    opinions = (people, agreement, ranking, merged)
    human = None
    if any(part is not None for part in opinions):
        human = find_place("loaders", "people")(*opinions)
    block = summary.make_block(run, compared, _slice(run, by, bool(compared)), people)
    write_bytes(path, _render_block(block, command, title, date, human).encode())
    if card is not None:
        summary.write_card(block, run.version, date).save(card, scale=1.0)
    return path


def _as_section(made: Section | Document | None) -> Section | None:
    """Return a section of a feature; one that is plain texts and tables is escaped here."""
    if not isinstance(made, Document):
        return made
    name = re.sub(r"\W+", "-", made.headline.lower())
    return Section(name, markup.attribute(made.headline), to_html(replace(made, headline="")))


def _render_block(
    block: Block,
    command: str | None,
    title: str | None = None,
    date: str | None = None,
    people: Section | None = None,
) -> str:
    made = (_as_section(make(block.run)) for make in find_extensions(block.run, "section"))
    sections = [part for part in made if part is not None]
    parts = [summary.write_verdict(block), summary.write_hero(block), *(markup.section(*part) for part in sections)]
    parts += [write_agents(block) or ""]
    data = []
    if block.aligned is not None and block.dialogue_key:
        keys = list(dict.fromkeys((block.dialogue_key, block.key, *block.run.keys_in_order)))
        data = [make_data(block.run, block.aligned, block.dialogue_key, keys, block.slices)]
        data[0]["system"] = block.systems.index(block.system)
        where, read = write_where(block), _write_dialogues(block)
        parts.append(f'<div class="cols">{read}{where}</div>' if where else read)
    last = [*([] if people is None else [people]), Section("method", "Method", _write_method(block, command))]
    body = "".join([*parts, summary.write_metrics(block), *(markup.section(*part) for part in last)])
    links = [(part.name, part.title) for part in sections]
    links += [link for link in _CONTENTS if f'<section id="{link[0]}"' in body]
    links += [(part.name, part.title) for part in last]
    top = _SKIP + _write_top(block, title, date, links)
    main = f'<main class="wrap" id="main" tabindex="-1">\n{body}</main>\n'
    return make_html(
        title or summary.write_headline(block)[1],
        f"{top}{main}{markup.embed_json('explorer-data', data)}",
        read_assets("base.css", "chart.css", "report.css"),
        [make_script("page.js"), make_script("text.js", "dialogues.js")],
        "; img-src data:",
    )


_CONTENTS = (("tasks", "Tasks"), ("dialogues", "Dialogues"), ("where", "Where"), ("metrics", "All metrics"))


def _write_top(block: Block, title: str | None, date: str | None, links: Sequence[tuple[str, str]]) -> str:
    """Return the bar at the top: what the page is about, links to its parts, and the verdict to be copied."""
    names = block.systems
    about = " against ".join(map(shorten, names[::-1])) if len(names) == 2 else list_names(names, _MOST_NAMED)
    shown = "".join(f'<a href="#{name}">{text}</a>' for name, text in links)
    verdict = f"{summary.write_headline(block)[1]}. {' '.join(summary.state_lead(block))}".strip()
    copied = markup.attribute(f"{verdict}\ndialeval {block.run.version}")
    day = f'<span class="opt">{markup.text(date)}</span>' if date else ""
    return (
        f'<header class="top"><div><b>dialeval</b><span>{markup.text(title or about)}</span>{day}'
        f'<nav aria-label="Contents">{shown}</nav>'
        f'<button type="button" class="btn" data-copy="{copied}" hidden>Copy verdict</button>'
        "</div></header>\n"
    )


def _write_dialogues(block: Block) -> str:
    """Return the section whose dialogues the script of the page shows."""
    above = "".join(describe(block.run) for describe in find_extensions(block.run, "note"))
    above += '<noscript><p class="note">The dialogues need JavaScript.</p></noscript>'
    title = "Read what got worse" if block.comparison is not None else "Read the worst dialogues"
    title = title if find_better(block.run, block.dialogue_key) is not None else "Read the dialogues"
    return markup.section("dialogues", title, f"{above}<div data-dialogues></div>", "<span data-about></span>")


def _slice(run: Run, by: str | Sequence[str] | None, compared: bool) -> Slices | None:
    """Slice the rows by some fields, or by those that the run kept."""
    fields = _choose_fields(run) if by is None else by
    return compare_slices(run, fields, compared=compared, most_tests=MOST_TESTS) if fields else None


def _choose_fields(block: Run) -> list[str]:
    """Return the fields that a run kept; else the turn of one or two systems with turns."""
    kept = list_kept_fields(block)
    tables = [result.table for result in block.values() if result.role == "system"]
    few = len(tables) <= 2 and all(table is not None and len(table) <= MOST_SLICED for table in tables)
    turns = few and all(table is not None and len(table) > len(table.offsets) - 1 for table in tables)
    trials = any(table is not None and TRIALS in table.digests for table in tables)
    return kept or (["turn"] if turns and not trials else [])


def combine_runs(runs: Iterable[Run]) -> Run:
    """Return several runs as one; a name that another run has already gets the number of its run."""
    runs = [run.with_report_details() for run in runs]
    if not any(runs):
        raise SettingError("there is nothing to report: pass at least one run with a system")
    systems: dict[str, Result] = {}
    details: JsonObject = {}
    for number, run in enumerate(runs, 1):
        names = {}
        for system, result in run.items():
            name = system
            while name in systems:
                name = f"{name} (run {number})"
            names[system], systems[name] = name, result
        for kind in summary.BY_SYSTEM:
            by_system = run.details.get(kind, {}).items()
            details.setdefault(kind, {}).update({names[name]: entry for name, entry in by_system if name in names})
        details.setdefault(COMMANDS, []).extend(map(str, filter(None, [run.details.get("command")])))
    versions = dict.fromkeys(run.version for run in runs)
    warnings = tuple(dict.fromkeys(text for run in runs for text in run.warnings))
    return Run(systems, ", ".join(versions), warnings, {name: value for name, value in details.items() if value})


# The method, last and folded: how values were computed, notes about the data, signatures, commands.


def _write_method(block: Block, command: str | None) -> str:
    """Return the drawers at the end of the page."""
    run, comparison, how, read = block.run, block.comparison, [], []
    if comparison is not None:
        how += comparisons.describe_methods(comparison) + comparisons.explain_rows(comparison)
        read += comparisons.list_what_was_read(comparison)
    words = describe_intervals(est for result in run.values() for est in result.values())
    how += [f"Intervals of values: {words}."] if words else []
    read += [*list_accounts(run), *describe_unscored(run), *run.warnings]
    commands = [*run.details.get(COMMANDS, ()), *([] if command is None else [command])]
    drawers = [
        ("How this was computed", "", markup.bullets(dict.fromkeys(how))),
        ("What was read", markup.count(len(read), "note"), markup.bullets(dict.fromkeys(read))),
        ("Not computed", markup.count(len(run.skipped), "metric"), _list_skipped(run)),
        ("Settings and signatures", f"dialeval {markup.text(run.version)}", _list_signatures(run)),
        ("Run it again", markup.count(len(commands), "command"), _list_commands(run, commands)),
    ]
    return "".join(starmap(_write_drawer, drawers))


def _write_drawer(title: str, gist: str, content: str) -> str:
    summary = f'{title} <span>{gist}</span><i class="chev"></i>'
    return markup.details(summary, f'<div class="inside">{content}</div>', "drawer") if content else ""


def _list_skipped(run: Run) -> str:
    """Return metrics that were not computed, and what they lack."""
    lacking = [(key, reason, name) for name, result in run.items() for key, reason in result.skipped.items()]
    return _list_by_system(run, "skipped", ["Metric", "Needs", "Systems"], lacking)


def _list_signatures(run: Run) -> str:
    """Return everything that each number depends on."""
    values = [(key, name, result[key]) for key in run.keys_in_order for name, result in run.items() if key in result]
    signed = [(key, str(estimate.signature), name) for key, name, estimate in values if estimate.signature is not None]
    table = _list_by_system(run, "signatures", ["Metric", "Signature", "Systems"], signed)
    return markup.note("Scores are comparable where signatures are equal.") + table if table else ""


def _list_by_system(run: Run, kind: str, head: Sequence[str], lines: Iterable[tuple[str, str, str]]) -> str:
    """Return a table of metrics and texts with the systems of each."""
    systems: dict[tuple[str, str], list[str]] = {}
    for key, words, name in lines:
        systems.setdefault((key, words), []).append(shorten(name))
    rows = [
        [shorten(key), words, "all" if len(names) == len(run) else ", ".join(names)]
        for (key, words), names in systems.items()
    ]
    return markup.plain_table(kind, Table(head, rows)) if rows else ""


def _list_commands(run: Run, commands: Sequence[str]) -> str:
    """Return the commands that made the runs and the page, each to be copied."""
    blocks = "".join(
        f'<div class="command"><pre tabindex="0"><code>{markup.text(line, lines=True)}</code></pre>'
        '<button type="button" class="btn copy" hidden>Copy</button></div>'
        for line in commands
    )
    note = f"Use dialeval {markup.text(run.version)} on the same inputs; the signatures name the settings and the data."
    return f"<p>{note}</p>{blocks}" if blocks else ""


# What a notebook shows.


def html(shown: Displayable) -> str:
    """Return the markup of a result for a notebook, which `_repr_html_` gives.

    Sentences and values are those of the terminal; of two systems there is a figure of the differences that decide.
    Tables have no style and no script of their own, so that they look like all tables of the notebook; every text from
    outside is escaped.
    """
    comparison = shown if isinstance(shown, Comparison) else None
    if isinstance(shown, Run | Result):
        run = shown if isinstance(shown, Run) else Run({"value": shown}, __version__)
        verdict = _compare(run)
        document, comparison = describe(run, verdict), verdict.comparison
    else:
        document = describe_result(shown)
    figure = None
    if comparison is not None and len(comparison.systems) == 1:
        panel = [row for row in comparison.differences if row.key in comparison.panel]
        figure = draw_differences(structs.replace(comparison, differences=panel), comparison.systems[0], NOTEBOOK_WIDTH)
    return to_html(document, "" if figure is None else figure.svg)


NOTEBOOK_WIDTH = 420
_last: list[tuple[ref[Run], RunVerdict]] = []


def _compare(run: Run) -> RunVerdict:
    """Return the verdict of a run; that of the run that was shown last is kept, since it takes a while."""
    if not _last or _last[0][0]() is not run:
        _last[:] = [(ref(run), judge_run(run))]
    return _last[0][1]
