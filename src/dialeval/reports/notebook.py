"""What a notebook shows: verdict and tables of a run or of what was made of it, and the drawing of one metric.

    html(run)              what `_repr_html_` gives, of Run, Result, Comparison, Agreement, People, Ranking and others
    plot(run, "bleu-4")    what `Run.plot` gives

Sentences and figures are those of the terminal and of the report. Tables have no style and no script of their own, so
that they look like all tables of the notebook; every text from outside is escaped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import singledispatch
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import ref

from dialeval.analysis.agreement import Agreement
from dialeval.analysis.best import best_of
from dialeval.analysis.comparison import Comparison
from dialeval.analysis.merged_ratings import MergedRatings
from dialeval.analysis.pairing import keys_meant
from dialeval.analysis.people import People
from dialeval.analysis.ranking import Ranking
from dialeval.analysis.sequences import Watch
from dialeval.core.files import write_bytes
from dialeval.core.result import Result, Run
from dialeval.core.version import __version__
from dialeval.reports import agreement as agreements
from dialeval.reports import comparisons, people, sequences
from dialeval.reports.documents import Document, small, to_html
from dialeval.reports.figures import MISSING, plain, shorten, show, show_rounded, show_spread
from dialeval.reports.formats import Table, html_table
from dialeval.reports.metric_drawings import (
    HEIGHT,
    INTERVAL_WIDTH,
    ITEMS_WIDTH,
    Spread,
    axis,
    estimates_of,
    histogram,
    interval,
    scale_of_means,
)
from dialeval.reports.summary import has_best
from dialeval.reports.tables import ARROWS, better_of, footnotes, row_decimals
from dialeval.reports.verdict import Verdict, judge_run, mark_of, verdict

if TYPE_CHECKING:
    import os

_ROW = HEIGHT + 6
_NAME_WIDTH = 8
"""Of a character, in pixels: about what the fonts of notebooks take."""
_STYLE = (
    ".dialeval-plot text{font:12px sans-serif;fill:currentColor}.dialeval-plot .tick{font-size:11px;text-anchor:middle}"
    ".dialeval-plot .grid,.dialeval-plot .base{stroke:#8888;stroke-width:1}"
    ".dialeval-plot .range{stroke:#2a8a94;stroke-width:2}.dialeval-plot .mean{fill:#2a8a94}"
    ".dialeval-plot .bar{fill:#2a8a9488}"
)
"""Colours that are read on light and on dark paper alike; the names hold within the drawing only."""


@singledispatch
def html(shown: Any) -> str:
    """The markup of a result for a notebook."""
    raise TypeError(f"nothing is known of how to show a {type(shown).__name__}")


@html.register
def _(run: Run) -> str:
    found = _judged(run)
    comparison, said = found.comparison, found.sentences
    bold = has_best(comparison) and (comparison is not None or not said)
    table = html_table(_figures(run, comparison, bold), str)
    return "".join(f"<p>{escape(plain(line))}</p>" for line in said) + table + small(footnotes(run, comparison))


@html.register
def _(result: Result) -> str:
    run = Run({"value": result}, __version__)
    return html_table(_figures(run, None), str) + small(footnotes(run, None))


@html.register
def _(comparison: Comparison) -> str:
    tables = [comparisons.system_table(comparison, system) for system in comparison.systems]
    return to_html(Document(verdict(comparison), tables, comparisons.legend(comparison)))


@html.register
def _(agreement: Agreement) -> str:
    return to_html(agreements.document(agreement))


@html.register(People)
@html.register(Ranking)
@html.register(MergedRatings)
def _(found: Any) -> str:
    return to_html(people.document(found))


@html.register
def _(watch: Watch) -> str:
    return to_html(sequences.document(watch))


_last: list[tuple[ref[Run], Verdict]] = []


def _judged(run: Run) -> Verdict:
    """Return the verdict of a run; that of the run that was shown last is kept, since it takes a while."""
    if not _last or _last[0][0]() is not run:
        _last[:] = [(ref(run), judge_run(run))]
    return _last[0][1]


def _figures(run: Run, comparison: Comparison | None, bold: bool = True) -> Table:
    """The table of the terminal and of the report; with `bold` the best value of a metric is bold."""
    marks = {} if comparison is None else {(row.system, row.key): mark_of(row) for row in comparison.rows}
    rows = []
    for key in run.keys_in_order:
        better, decimals = better_of(run, key), row_decimals(run, key)
        means = {name: result[key].mean for name, result in run.items() if key in result and result.role == "system"}
        several = sum(not math.isnan(mean) for mean in means.values()) > 1
        best = best_of(means, better) if bold and several else []
        cells = []
        for name, result in run.items():
            mean = show(result[key].mean, decimals) if key in result else MISSING
            mean = f"<b>{mean}</b>" if name in best else mean
            spread = show_spread(result[key], decimals) if key in result else ""
            small = f"<small>{spread}</small>" if spread else ""
            cells.append(" ".join(filter(None, (mean, marks.get((name, key)), small))))
        rows.append([shorten(plain(key)) + ARROWS[better], *cells])
    return Table(["metric", *(shorten(plain(name)) for name in run)], rows)


@dataclass(frozen=True)
class Plot:
    """The drawing of a metric: a notebook shows it, `save` writes it as an SVG file."""

    key: str
    svg: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing to a file and give its path."""
        write_bytes(Path(path), self.svg.encode())
        return Path(path)


def plot(run: Run, key: str) -> Plot:
    """Means with intervals, and how the items are spread, a line per system on one scale; as in the report."""
    (key,) = keys_meant([key], run.keys_in_order, "the run has no", "it has")
    estimates = estimates_of(run, key)
    means, spread = scale_of_means(estimates.values(), INTERVAL_WIDTH), Spread.of(estimates, ITEMS_WIDTH)
    names = {name: shorten(plain(name)) for name in estimates}
    left = _NAME_WIDTH * max(map(len, names.values())) + 10
    parts = [f'<text x="0" y="14">{escape(shorten(plain(key)) + ARROWS[better_of(run, key)])}</text>']
    for at, (name, estimate) in enumerate(estimates.items(), 1):
        parts.append(f'<text x="0" y="{at * _ROW + 16}">{escape(names[name])}</text>')
        if means is not None:
            label = f"{names[name]}: {show_rounded(estimate.mean, estimate.interval)}"
            parts.append(_moved(interval(estimate, means, label), left, at * _ROW))
        if spread is not None and name in spread.items:
            drawn = histogram(spread, name, f"{names[name]}: spread over {estimate.scored:,} {estimate.level}s")
            parts.append(_moved(drawn, left + INTERVAL_WIDTH, at * _ROW))
    bottom = (len(estimates) + 1) * _ROW
    scales = ((means, left), (None if spread is None else spread.scale, left + INTERVAL_WIDTH))
    parts += [_moved(axis(scale), x, bottom) for scale, x in scales if scale is not None]
    width, height = left + INTERVAL_WIDTH + (0 if spread is None else ITEMS_WIDTH), bottom + 16
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" class="dialeval-plot" {size}><style>{_STYLE}</style>'
    return Plot(key, f"{opening}{''.join(parts)}</svg>")


def _moved(drawn: str, x: float, y: float) -> str:
    return f'<g transform="translate({x},{y})">{drawn}</g>'
