"""The section with a drawing per metric: means with intervals, and how the items are spread, a line per system.

What stands in the page is a table with small drawings: it prints, it is read aloud, and it needs no script. Where plots
are interactive (`reports.plots`), a script draws them in its place on the screen.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from dialeval.core.fold import Level
from dialeval.reports import charts, markup
from dialeval.reports.figures import plain, shorten, show, show_spread
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dialeval.core.fold import Estimate
    from dialeval.core.result import Run

INTERVAL_WIDTH, ITEMS_WIDTH = 330, 230
_CORPUS = "Value of the corpus"


def drawings(run: Run, interactive: bool = False) -> Section | None:
    """The section; `interactive` adds empty elements for the plots that a script draws."""
    drawn = [_metric(run, at, key, interactive) for at, key in enumerate(run.keys_in_order)]
    note = markup.note("All systems of a metric share one scale; the scale need not begin at zero.")
    return Section("metrics", "Metric by metric", note + "".join(drawn)) if drawn else None


def _metric(run: Run, at: int, key: str, interactive: bool) -> str:
    estimates = charts.estimates_of(run, key)
    spread = charts.Spread.of(estimates, ITEMS_WIDTH)
    level = next((est.level for est in estimates.values()), Level.TURN)
    titles = {"interval": "Mean and interval" if any(est.interval for est in estimates.values()) else _CORPUS}
    if spread is not None:
        titles["spread"] = f"Spread over {level}s"
    plots = _places(at, key, titles) if interactive else ""
    drawing = f'<div class="drawing">{_table(key, estimates, spread, titles)}</div>'
    return f'<section class="metric" id="metric-{at}"><h3>{markup.name(key)}</h3>{plots}{drawing}</section>'


def _table(key: str, estimates: Mapping[str, Estimate], spread: charts.Spread | None, titles: Mapping[str, str]) -> str:
    """The drawings of a metric, a line per system, with the axes below."""
    means = charts.scale_of_means(estimates.values(), INTERVAL_WIDTH)
    axes = [charts.axis(means) if means else ""]
    lines = []
    for name, est in estimates.items():
        shown = shorten(plain(name))
        label = f"{shown}: {show(est.mean)} {show_spread(est)}".strip()
        drawn = [charts.interval(est, means, label) if means else ""]
        if spread is not None:
            about = f"{shown}: spread over {markup.count(est.scored, str(est.level))}"
            drawn.append(charts.histogram(spread, name, about) if name in spread.items else "")
        lines.append(markup.row(markup.name(name), markup.figure(est) + markup.cells(*drawn, kind="chart")))
    if spread is not None:
        axes.append(charts.axis(spread.scale))
    below = f"<tr><td></td><td></td>{markup.cells(*axes, kind='chart')}</tr>"
    head = markup.heads(markup.hidden("System"), markup.hidden("Figure"), *titles.values())
    return markup.table("", markup.hidden(f"{markup.text(key)} by system"), head, lines, below)


def _places(at: int, key: str, titles: Mapping[str, str]) -> str:
    """The elements that a script draws its plots into; the table stays for those who see none."""
    figures = "".join(
        f'<figure><figcaption>{title}</figcaption><div data-plot="{kind}-{at}" role="group"'
        f' aria-label="{escape(f"{shorten(plain(key))}: {title}")}"></div></figure>'
        for kind, title in titles.items()
    )
    return f'<div class="plots" hidden>{figures}</div>'
