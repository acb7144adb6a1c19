"""What a notebook shows: verdict and tables of a run or of what was made of it, and the drawing of one metric.

    html(run)              what `_repr_html_` gives, of Run, Result, Comparison, Agreement, People, Ranking and others
    plot(run, "bleu-4")    what `Run.plot` gives

Sentences and figures are those of the terminal and of the report. Tables have no style and no script of their own, so
that they look like all tables of the notebook; every text from outside is escaped.
"""

from __future__ import annotations

import math
from html import escape
from pkgutil import resolve_name
from weakref import ref

from dialeval.analysis.comparison import Comparison, best_of
from dialeval.analysis.values import better_of
from dialeval.core.display import Shown
from dialeval.core.result import Result, Run
from dialeval.core.version import __version__
from dialeval.reports.comparisons import Verdict, judge_run, mark_of
from dialeval.reports.documents import Table, html_table, small, to_html
from dialeval.reports.drawings import plot
from dialeval.reports.figures import MISSING, plain, shorten, show, show_spread
from dialeval.reports.summary import has_best
from dialeval.reports.tables import ARROWS, footnotes, row_decimals

__all__ = ["html", "plot"]


def html(shown: Shown) -> str:
    """Return the markup of a result for a notebook."""
    if not isinstance(shown, Run | Result):
        return to_html(resolve_name(shown.document_maker)(shown))
    run = shown if isinstance(shown, Run) else Run({"value": shown}, __version__)
    found = _judged(run)
    comparison, said = found.comparison, found.sentences
    bold = has_best(comparison) and (comparison is not None or not said)
    table = html_table(_figures(run, comparison, bold), str)
    return "".join(f"<p>{escape(plain(line))}</p>" for line in said) + table + small(footnotes(run, comparison))


_last: list[tuple[ref[Run], Verdict]] = []


def _judged(run: Run) -> Verdict:
    """Return the verdict of a run; that of the run that was shown last is kept, since it takes a while."""
    if not _last or _last[0][0]() is not run:
        _last[:] = [(ref(run), judge_run(run))]
    return _last[0][1]


def _figures(run: Run, comparison: Comparison | None, bold: bool = True) -> Table:
    """Return the table of the terminal and of the report; with `bold` the best value of a metric is bold."""
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
