"""A trend over systems in order, as a table: for the terminal, for pages, for other programs.

FORMATS["md"](trend)             json, csv, md, latex, each a str
console.print(table(trend))      the terminal
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dialeval.reports import formats
from dialeval.reports.documents import Document, laid_out, text_formats
from dialeval.reports.figures import MISSING, plain, shorten, show_p, show_rounded
from dialeval.reports.formats import LaidOut, Table
from dialeval.reports.tables import ARROWS

if TYPE_CHECKING:
    from dialeval.analysis.trends import MetricTrend, Trend


def document(trend: Trend) -> Document:
    """Describe the trend: sentences, a table with a row per metric, and notes."""
    return Document(_describe(trend), [_table(trend)], _notes(trend))


def table(trend: Trend) -> LaidOut:
    """Lay out the trend for a rich console."""
    return laid_out(document(trend))


def to_csv(trend: Trend) -> str:
    """Return a line per metric and system, with the slope of the metric in each."""
    head = ("metric", "system", "value", "low", "high", "slope", "slope_low", "slope_high", "p", "adjusted_p", "reason")
    lines = [
        [
            *(row.key, name, value, *(interval or (None, None)), row.slope, *(row.interval or (None, None))),
            *(row.p, row.adjusted_p, row.reason),
        ]
        for row in trend.rows
        for name, value, interval in zip(trend.systems, row.values, row.intervals, strict=True)
    ]
    return formats.csv_text(head, lines)


FORMATS = text_formats(document, to_csv)


def _describe(trend: Trend) -> list[str]:
    sizes = ", ".join(f"{units:,}" for units in trend.units)
    same = f"the same {trend.units[0]:,} {trend.unit} in all systems"
    design = same if trend.design == "paired" else f"independent samples of {sizes} {trend.unit}"
    sentences = [f"{trend.design.capitalize()} design: {design}."]
    found = [row for row in trend.rows if row.significant and row.key in trend.panel]
    for row in found:
        way = "rises" if row.slope > 0 else "falls"
        good = {"higher": row.slope > 0, "lower": row.slope < 0}.get(row.better or "")
        judged = "" if good is None else " (better)" if good else " (worse)"
        step = show_rounded(row.slope, row.interval, signed=True)
        sentences.append(f"{shorten(plain(row.key))} {way}{judged}: {step} per step.")
    if not found:
        sentences.append(f"No significant trend ({100 * trend.alpha:g}% level).")
    return sentences


def _table(trend: Trend) -> Table:
    names = [shorten(plain(name)) for name in trend.systems]
    return Table(["metric", *names, "slope per step", "adjusted p"], [_line(row) for row in trend.rows])


def _line(row: MetricTrend) -> list[str]:
    values = [show_rounded(value, interval) for value, interval in zip(row.values, row.intervals, strict=True)]
    slope = MISSING if math.isnan(row.slope) else show_rounded(row.slope, row.interval, signed=True)
    mark = "*" if row.significant else ""
    return [shorten(plain(row.key)) + ARROWS[row.better], *values, slope + mark, show_p(row.adjusted_p)]


def _notes(trend: Trend) -> list[str]:
    tests = sum(not math.isnan(row.p) and row.key in trend.panel for row in trend.rows)
    family = f", adjusted by Holm for {tests} tests" if tests > 1 else ""
    test = f"* p < {trend.alpha:g}: t test of a linear trend{family}. Change points are not tested."
    first = f"Values with {100 * trend.level:g}% confidence intervals; {test}"
    return [first, *dict.fromkeys(f"{plain(row.key)}: not tested, {row.reason}." for row in trend.rows if row.reason)]
