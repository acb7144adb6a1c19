"""One HTML file that shows runs to people: offline, printable, light or dark, without any script.

    report(run, "report.html")
    report([monday, tuesday], "report.html", command="dialeval score ...")

The page holds the summary (metrics by systems), a drawing per metric (means with intervals, and how the items are
spread), what was not computed and why, the warnings, the signatures and how to make the numbers again. It ranks
nothing: which direction is better depends on the metric, and whether two systems differ is a matter for a paired test.

A content security policy forbids every request and every script; the only style is the page's own, by its hash. Each
text that comes from outside is escaped and set apart in `<bdi>`. Equal runs give equal bytes: there is no date in it.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dialeval.core.errors import SettingError
from dialeval.core.files import write_bytes
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run
from dialeval.reports import charts
from dialeval.reports.alignments import alignments
from dialeval.reports.figures import MISSING, plain, shorten, show, show_scored, show_spread

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

INTERVAL_WIDTH, ITEMS_WIDTH = 330, 230
STYLE = Path(__file__).with_name("report.css")


def report(runs: Run | Sequence[Run], path: str | os.PathLike[str], command: str | None = None) -> Path:
    """Write the report of one or several runs to a file and give its path; `command` is what made the runs."""
    path = Path(path)
    page = render(_together([runs] if isinstance(runs, Run) else runs), command)
    write_bytes(path, page.encode())
    return path


def render(run: Run, command: str | None = None) -> str:
    """The page as text."""
    style = STYLE.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    sections = [section for make in _SECTIONS if (section := make(run))]
    contents = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in sections)
    body = "".join(f'<section id="{name}"><h2>{title}</h2>{inside}</section>\n' for name, title, inside in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>dialeval report: {_count(len(run), 'system')}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header><h1>Evaluation report</h1>{_lead(run)}"
        f'<nav aria-label="Contents"><ul>{contents}<li><a href="#again">How to reproduce</a></li></ul></nav></header>\n'
        f"<main>\n{body}{_again(run, command)}</main>\n</body>\n</html>\n"
    )


def _together(runs: Iterable[Run]) -> Run:
    """Several runs as one; a system that is in several of them is told apart by the number of its run."""
    runs = list(runs)
    if not runs:
        raise SettingError("there is nothing to report: pass at least one run")
    systems, aligned = {}, {}
    for number, run in enumerate(runs, 1):
        for system, result in run.items():
            name = system
            while name in systems:
                name = f"{name} (run {number})"
            systems[name] = result
            if system in run.details.get("alignments", {}):
                aligned[name] = run.details["alignments"][system]
    versions = dict.fromkeys(run.version for run in runs)
    warnings = tuple(dict.fromkeys(text for run in runs for text in run.warnings))
    return Run(systems, ", ".join(versions), warnings, {"alignments": aligned} if aligned else {})


_Section = tuple[str, str, str]


def _summary(run: Run) -> _Section | None:
    if not run.keys_in_order:
        return "summary", "Summary", "<p>No metric was computed.</p>"
    places = {key: at for at, key in enumerate(run.keys_in_order)}
    captions = [_CAPTION, *["Further systems, measured by other metrics."] * len(run)]
    tables = [_summary_table(block, places, caption) for block, caption in zip(_blocks(run), captions, strict=False)]
    return "summary", "Summary", "".join(tables) + _long_names(run)


_CAPTION = (
    "Mean per metric and system, with its confidence interval where the value is a mean over rows. A value of the "
    "whole corpus has none. Intervals describe one system each; they do not test whether two systems differ."
)


def _summary_table(run: Run, places: Mapping[str, int], caption: str) -> str:
    heads = "".join(f'<th scope="col" class="figure">{_name(name)}{_rows(run, name)}</th>' for name in run)
    lines = []
    for key in run.keys_in_order:
        cells = "".join(_figure(result.get(key)) for result in run.values())
        lines.append(f'<tr><th scope="row"><a href="#metric-{places[key]}">{_name(key)}</a></th>{cells}</tr>')
    return _table("summary", caption, f'<tr><th scope="col">Metric</th>{heads}</tr>', lines)


def _blocks(run: Run) -> list[Run]:
    """The systems that share a metric, directly or through others, together: a table of dashes tells nobody much."""
    blocks: list[dict[str, Result]] = []
    for system, result in run.items():
        near = [at for at, block in enumerate(blocks) if any(result.keys() & other.keys() for other in block.values())]
        first = near[0] if near else len(blocks)
        merged = {name: other for at in near for name, other in blocks[at].items()} | {system: result}
        blocks = [block for at, block in enumerate(blocks) if at not in near]
        blocks.insert(first, merged)
    return [Run(block, run.version) for block in blocks]


def _metrics(run: Run) -> _Section | None:
    drawn = [_metric(run, at, key) for at, key in enumerate(run.keys_in_order)]
    note = '<p class="note">All systems of a metric share one scale; the scale need not begin at zero.</p>'
    return ("metrics", "Metric by metric", note + "".join(drawn)) if drawn else None


def _metric(run: Run, at: int, key: str) -> str:
    """The drawing of one metric: a line per system, with the mean on a scale and the spread of the items."""
    estimates = {name: result[key] for name, result in run.items() if key in result}
    bounds = [value for est in estimates.values() for value in (est.mean, *(est.interval or ()))]
    means = charts.Scale.over(bounds, INTERVAL_WIDTH)
    items = {
        name: est.items for name, est in estimates.items() if est.items is not None and np.isfinite(est.items).any()
    }
    finite = [values[np.isfinite(values)] for values in items.values()]
    spread = charts.Scale.over([float(end(values)) for values in finite for end in (np.min, np.max)], ITEMS_WIDTH)
    bins = {name: charts.shares(values, spread) for name, values in items.items()} if spread else {}
    tallest = max((share for shares in bins.values() for share in shares), default=1.0)
    level = next((est.level for est in estimates.values()), Level.TURN)

    lines = []
    for name, est in estimates.items():
        label = f"{shorten(plain(name))}: {show(est.mean)} {show_spread(est)}".strip()
        strip = charts.interval(est, means, label) if means else ""
        about = f"{shorten(plain(name))}: spread over {_count(est.scored, str(level))}"
        bars = charts.histogram(bins[name], tallest, spread, about) if spread and name in bins else ""
        cells = f'{_figure(est)}<td class="chart">{strip}</td>' + (f'<td class="chart">{bars}</td>' if spread else "")
        lines.append(f'<tr><th scope="row">{_name(name)}</th>{cells}</tr>')
    below = f'<tr><td></td><td></td><td class="chart">{charts.axis(means) if means else ""}</td>'
    below += (f'<td class="chart">{charts.axis(spread)}</td>' if spread else "") + "</tr>"
    interval_head = "Mean and interval" if any(est.interval for est in estimates.values()) else "Value of the corpus"
    heads = ['<span class="hidden">System</span>', '<span class="hidden">Figure</span>', interval_head]
    heads += [f"Spread over {level}s"] if spread else []
    head = "<tr>" + "".join(f'<th scope="col">{text}</th>' for text in heads) + "</tr>"
    drawing = _table("", f'<span class="hidden">{_text(key)} by system</span>', head, lines, below)
    return f'<section class="metric" id="metric-{at}"><h3>{_name(key)}</h3>{drawing}</section>'


def _skipped(run: Run) -> _Section | None:
    found: dict[tuple[str, str], list[str]] = {}
    for system, result in run.items():
        for key, reason in result.skipped.items():
            found.setdefault((key, reason), []).append(system)
    if not found:
        return None
    lines = [
        f'<tr><th scope="row">{_name(key)}</th><td>{_text(reason)}</td><td>{_whose(systems, run)}</td></tr>'
        for (key, reason), systems in found.items()
    ]
    head = '<tr><th scope="col">Metric</th><th scope="col">Reason</th><th scope="col">Systems</th></tr>'
    return "skipped", "Not computed", _table("skipped", "Metrics that were left out, and what they lack.", head, lines)


def _warnings(run: Run) -> _Section | None:
    lines = "".join(f"<li>{_text(text, lines=True)}</li>" for text in run.warnings)
    return ("warnings", "Warnings", f'<div class="notice"><ul>{lines}</ul></div>') if lines else None


def _signatures(run: Run) -> _Section | None:
    lines = []
    for key in run.keys_in_order:
        found: dict[str, list[str]] = {}
        for system, result in run.items():
            if key in result and result[key].signature is not None:
                found.setdefault(str(result[key].signature), []).append(system)
        for line, systems in found.items():
            whose = _whose(systems, run) if len(found) > 1 else "all"
            lines.append(
                f'<tr><th scope="row">{_name(key)}</th><td><code>{_text(line)}</code></td><td>{whose}</td></tr>'
            )
    head = '<tr><th scope="col">Metric</th><th scope="col">Signature</th><th scope="col">Systems</th></tr>'
    caption = "Everything a number depends on. Numbers may be compared where these lines agree."
    return ("signatures", "Signatures", _table("signatures", caption, head, lines)) if lines else None


_SECTIONS: tuple[Callable[[Run], _Section | None], ...] = (
    _summary,
    _metrics,
    alignments,
    _skipped,
    _warnings,
    _signatures,
)


def _lead(run: Run) -> str:
    facts = [_count(len(run), "system"), _count(len(run.keys_in_order), "metric")]
    lead = f'<p class="lead">{", ".join(facts)}. Made with dialeval {_text(run.version)}.</p>'
    if run.warnings:
        lead += f'<p class="notice"><a href="#warnings">{_count(len(run.warnings), "warning")}</a> to read first.</p>'
    return lead


def _again(run: Run, command: str | None) -> str:
    """The section that says how the numbers were made."""
    how = f"<p>Use dialeval {_text(run.version)} on the same inputs; the signatures name the settings and the data.</p>"
    if command is not None:
        how += f"<pre><code>{_text(command, lines=True)}</code></pre>"
    return f'<section id="again"><h2>How to reproduce</h2>{how}</section>\n'


def _table(kind: str, caption: str, head: str, lines: Iterable[str], below: str = "") -> str:
    foot = f"<tfoot>{below}</tfoot>" if below else ""
    inside = f"<caption><span>{caption}</span></caption><thead>{head}</thead><tbody>{''.join(lines)}</tbody>{foot}"
    # Focusable, so that a table wider than the window scrolls by keyboard as well.
    return f'<div class="wide" tabindex="0"><table class="{kind}">{inside}</table></div>'


def _figure(estimate: Estimate | None) -> str:
    if estimate is None:
        return f'<td class="figure">{MISSING}<span class="spread"></span></td>'
    scored = show_scored(estimate).replace("/", " of ")
    note = f'<span class="scored">scored {scored}</span>' if scored else ""
    return f'<td class="figure">{show(estimate.mean)}<span class="spread">{show_spread(estimate)}</span>{note}</td>'


def _rows(run: Run, system: str) -> str:
    rows = {est.level: est.rows for est in run[system].values()}
    return f'<span class="aside">{", ".join(_count(count, str(level)) for level, count in rows.items())}</span>'


def _whose(systems: Sequence[str], run: Run) -> str:
    return "all" if len(systems) == len(run) else ", ".join(map(_name, systems))


def _long_names(run: Run) -> str:
    """The full text of names that are too long to be shown everywhere."""
    names = [plain(name) for name in (*run, *run.keys_in_order)]
    long = [f"<li><bdi>{escape(name)}</bdi></li>" for name in names if shorten(name) != name]
    return f"<details><summary>Names in full</summary><ul>{''.join(long)}</ul></details>" if long else ""


def _name(name: str) -> str:
    return f'<bdi class="name">{escape(shorten(plain(name)))}</bdi>'


def _text(text: str, *, lines: bool = False) -> str:
    shown = "\n".join(map(plain, text.splitlines())) if lines else plain(text)
    return f"<bdi>{escape(shown)}</bdi>"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
