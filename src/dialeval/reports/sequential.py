"""Interim looks and trends over systems in order, in every format: `SEQUENTIAL` and `TREND` print them."""

from __future__ import annotations

import math

from dialeval.analysis.sequential import MetricTrend, SequentialDifference, SequentialTest, Trend
from dialeval.reports.documents import Document, Printer, Table
from dialeval.reports.formatting import BETTER, DIFFERENT, MISSING, WORSE, plain, shorten, show_p, show_rounded
from dialeval.reports.tables import ARROWS


def describe_sequential_test(test: SequentialTest) -> Document:
    """Describe the differences at an interim look."""
    designs = (design.describe(plain(test.baseline), plain(name)) for name, design in test.designs.items())
    head = ["metric", "system", test.unit, "difference", "by", "decided after"]
    what = f"Differences to {plain(test.baseline)}, {test.unit} in the order of the run"
    notes = [
        f"{what}, with {100 * (1 - test.alpha):g}% confidence sequences.",
        "Valid at every interim look, with any stopping rule.",
        "Assumes independent dialogues from one source.",
        "betting: exact for values with bounds where all dialogues count equally.",
    ]
    if any(row.by == "asymptotic" for row in test.differences):
        notes.append("asymptotic: for many dialogues; invalid if rare large differences have not occurred yet.")
    if test.tests > 1:
        notes.append(f"Alpha is divided by {test.tests}, so that all intervals hold simultaneously (Bonferroni).")
    notes += dict.fromkeys(f"{plain(row.key)}: {row.reason}." for row in test.differences if row.reason)
    return Document(
        [*dict.fromkeys(designs)], [Table(head, list(map(_make_difference_cells, test.differences)))], notes
    )


def _make_difference_cells(row: SequentialDifference) -> list[str]:
    mark = "" if row.decided is None else DIFFERENT if row.better is None else BETTER if row.better else WORSE
    return [
        shorten(row.key),
        shorten(row.system),
        f"{row.dialogues:,}",
        f"{show_rounded(row.difference, row.interval, signed=True)} {mark}".strip(),
        row.by or MISSING,
        MISSING if row.decided is None else f"{row.decided:,}",
    ]


def describe_trend(trend: Trend) -> Document:
    """Describe a trend: sentences, a table with a row per metric, and notes."""
    names = [shorten(name) for name in trend.systems]
    table = Table(["metric", *names, "slope per step", "adjusted p"], [_make_trend_cells(row) for row in trend.metrics])
    tests = sum(not math.isnan(row.p) and row.key in trend.panel for row in trend.metrics)
    family = f", adjusted by Holm for {tests} tests" if tests > 1 else ""
    test = f"* p < {trend.alpha:g}: t test of a linear trend{family}. Change points are not tested."
    notes = [f"Values with {100 * trend.confidence:g}% confidence intervals; {test}"]
    notes += dict.fromkeys(f"{plain(row.key)}: not tested, {row.reason}." for row in trend.metrics if row.reason)
    return Document(_state_trends(trend), [table], notes)


def _state_trends(trend: Trend) -> list[str]:
    design = f"independent samples of {', '.join(f'{units:,}' for units in trend.units)} {trend.unit}"
    if trend.design == "paired":
        design = f"the same {trend.units[0]:,} {trend.unit} in all systems"
    sentences = [f"{trend.design.capitalize()} design: {design}."]
    for row in trend.metrics:
        if row.significant and row.key in trend.panel:
            way = "rises" if row.slope > 0 else "falls"
            good = {"higher": row.slope > 0, "lower": row.slope < 0}.get(row.better or "")
            judged = "" if good is None else " (better)" if good else " (worse)"
            step = show_rounded(row.slope, row.interval, signed=True)
            sentences.append(f"{shorten(row.key)} {way}{judged}: {step} per step.")
    nothing = f"No significant trend (significance level {trend.alpha:g})."
    return sentences if len(sentences) > 1 else [*sentences, nothing]


def _make_trend_cells(row: MetricTrend) -> list[str]:
    values = [show_rounded(value, interval) for value, interval in zip(row.values, row.intervals, strict=True)]
    slope = MISSING if math.isnan(row.slope) else show_rounded(row.slope, row.interval, signed=True)
    slope += "*" if row.significant else ""
    return [shorten(row.key) + ARROWS[row.better], *values, slope, show_p(row.adjusted_p)]


SEQUENTIAL = Printer(describe_sequential_test)
TREND = Printer(describe_trend)
