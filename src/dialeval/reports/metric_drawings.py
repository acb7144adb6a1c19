"""The section with a drawing per metric: means with intervals, and how the items are spread, a line per system.

What stands in the page is a table with small drawings: it prints, it is read aloud, and it needs no script. Where plots
are interactive (`reports.plots`), a script draws them in its place on the screen.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from dialeval.core.fold import Level
from dialeval.reports import charts, markup
from dialeval.reports.figures import plain, shorten, show, show_spread
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from dialeval.core.fold import Estimate
    from dialeval.core.result import Run

INTERVAL_WIDTH, ITEMS_WIDTH = 330, 230


def drawings(run: Run, interactive: bool = False) -> Section | None:
    """The section; `interactive` leaves room for the plots that a script draws."""
    drawn = [_metric(run, at, key, interactive) for at, key in enumerate(run.keys_in_order)]
    note = '<p class="note">All systems of a metric share one scale; the scale need not begin at zero.</p>'
    return Section("metrics", "Metric by metric", note + "".join(drawn)) if drawn else None


def estimates_of(run: Run, key: str) -> dict[str, Estimate]:
    """The estimates of one metric by system."""
    return {name: result[key] for name, result in run.items() if key in result}


def _metric(run: Run, at: int, key: str, interactive: bool) -> str:
    estimates = estimates_of(run, key)
    means = charts.scale_of_means(estimates.values(), INTERVAL_WIDTH)
    items = {
        name: est.items for name, est in estimates.items() if est.items is not None and np.isfinite(est.items).any()
    }
    spread = charts.scale_of_items(items.values(), ITEMS_WIDTH)
    bins = {name: charts.shares(values, spread) for name, values in items.items()} if spread else {}
    tallest = max((share for shares in bins.values() for share in shares), default=1.0)
    level = next((est.level for est in estimates.values()), Level.TURN)

    lines = []
    for name, est in estimates.items():
        label = f"{shorten(plain(name))}: {show(est.mean)} {show_spread(est)}".strip()
        strip = charts.interval(est, means, label) if means else ""
        about = f"{shorten(plain(name))}: spread over {markup.count(est.scored, str(level))}"
        bars = charts.histogram(bins[name], tallest, spread, about) if spread and name in bins else ""
        cells = f'<td class="chart">{strip}</td>' + (f'<td class="chart">{bars}</td>' if spread else "")
        lines.append(f'<tr><th scope="row">{markup.name(name)}</th>{markup.figure(est)}{cells}</tr>')
    below = f'<tr><td></td><td></td><td class="chart">{charts.axis(means) if means else ""}</td>'
    below += (f'<td class="chart">{charts.axis(spread)}</td>' if spread else "") + "</tr>"
    interval_head = "Mean and interval" if any(est.interval for est in estimates.values()) else "Value of the corpus"
    titles = ['<span class="hidden">System</span>', '<span class="hidden">Figure</span>', interval_head]
    head = markup.heads(*titles, *([f"Spread over {level}s"] if spread else []))
    caption = f'<span class="hidden">{markup.text(key)} by system</span>'
    drawing = f'<div class="drawing">{markup.table("", caption, head, lines, below)}</div>'
    plots = _places(at, key, interval_head, f"Spread over {level}s" if spread else None) if interactive else ""
    return f'<section class="metric" id="metric-{at}"><h3>{markup.name(key)}</h3>{plots}{drawing}</section>'


def _places(at: int, key: str, interval_head: str, spread_head: str | None) -> str:
    """Where a script puts its plots; a drawing of the same stands beside them for those who see none."""
    titles = [("interval", interval_head), *([("spread", spread_head)] if spread_head else [])]
    figures = "".join(
        f'<figure><figcaption>{title}</figcaption><div data-plot="{kind}-{at}" role="group"'
        f' aria-label="{escape(f"{shorten(plain(key))}: {title}")}"></div></figure>'
        for kind, title in titles
    )
    return f'<div class="plots" hidden>{figures}</div>'
