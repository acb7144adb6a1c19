"""The section that everybody reads: a table of metrics by systems, with intervals."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from dialeval.core.result import Result, Run
from dialeval.reports import markup
from dialeval.reports.figures import plain, shorten
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

_CAPTION = (
    "Mean per metric and system, with its confidence interval where the value is a mean over rows. A value of the "
    "whole corpus has none. Intervals describe one system each; they do not test whether two systems differ."
)


def summary(run: Run) -> Section:
    """The section; systems that share no metric stand in tables of their own."""
    if not run.keys_in_order:
        return Section("summary", "Summary", "<p>No metric was computed.</p>")
    places = {key: at for at, key in enumerate(run.keys_in_order)}
    captions = [_CAPTION, *["Further systems, measured by other metrics."] * len(run)]
    tables = [_table(block, places, caption) for block, caption in zip(blocks(run), captions, strict=False)]
    return Section("summary", "Summary", "".join(tables) + _long_names(run))


def blocks(run: Run) -> list[Run]:
    """The systems that share a metric, directly or through others, together: a table of dashes tells nobody much."""
    found: list[dict[str, Result]] = []
    for system, result in run.items():
        near = [at for at, block in enumerate(found) if any(result.keys() & other.keys() for other in block.values())]
        first = near[0] if near else len(found)
        merged = {name: other for at in near for name, other in found[at].items()} | {system: result}
        found = [block for at, block in enumerate(found) if at not in near]
        found.insert(first, merged)
    return [Run(block, run.version) for block in found]


def _table(run: Run, places: Mapping[str, int], caption: str) -> str:
    heads = "".join(f'<th scope="col" class="figure">{markup.name(name)}{_rows(run, name)}</th>' for name in run)
    lines = []
    for key in run.keys_in_order:
        cells = "".join(markup.figure(result.get(key)) for result in run.values())
        lines.append(f'<tr><th scope="row"><a href="#metric-{places[key]}">{markup.name(key)}</a></th>{cells}</tr>')
    return markup.table("summary", caption, f'<tr><th scope="col">Metric</th>{heads}</tr>', lines)


def _rows(run: Run, system: str) -> str:
    rows = {est.level: est.rows for est in run[system].values()}
    return f'<span class="aside">{", ".join(markup.count(rows[level], str(level)) for level in rows)}</span>'


def _long_names(run: Run) -> str:
    """The full text of names that are too long to be shown everywhere."""
    names = [plain(name) for name in (*run, *run.keys_in_order)]
    long = [f"<li><bdi>{escape(name)}</bdi></li>" for name in names if shorten(name) != name]
    return f"<details><summary>Names in full</summary><ul>{''.join(long)}</ul></details>" if long else ""
