"""The section that shows which metrics move together over the rows of a system: a table of rank correlations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dialeval.analysis.correlation import FEWEST_POINTS, spearman_matrix
from dialeval.core.fold import Level
from dialeval.reports import markup
from dialeval.reports.figures import MISSING
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dialeval.core.arrays import Floats
    from dialeval.core.result import Result, Run

MOST_SYSTEMS = 12
"""Systems that are shown, the first ones."""
STEPS = 5
"""Shades on each side of zero."""


def correlations(run: Run) -> Section | None:
    """The section; None where no system has two metrics with a value per row."""
    tables = [
        (system, level, matrix)
        for system, result in run.items()
        if result.role == "system"
        for level in Level
        if (matrix := _matrix(result, level)) is not None
    ]
    if not tables:
        return None
    note = markup.note(
        "Spearman’s rank correlation of metrics over the rows of one system. Metrics that always agree say one thing "
        "twice; one that follows length may measure nothing else."
    )
    drawn = [_table(*each, opened=at == 0) for at, each in enumerate(tables[:MOST_SYSTEMS])]
    left = len(tables) - MOST_SYSTEMS
    more = markup.note(f"{markup.count(left, 'further table')} left out.") if left > 0 else ""
    return Section("correlations", "Correlations", note + "".join(drawn) + more)


def _matrix(result: Result, level: Level) -> tuple[list[str], Floats] | None:
    columns: Mapping[str, Floats] = {
        key: est.items
        for key, est in result.items()
        if est.items is not None and est.level is level and len(est.items) >= FEWEST_POINTS
    }
    if len(columns) < 2 or len({len(values) for values in columns.values()}) > 1:
        return None
    return list(columns), spearman_matrix(columns)


def _table(system: str, level: Level, keys_and_matrix: tuple[list[str], Floats], *, opened: bool) -> str:
    keys, matrix = keys_and_matrix
    heads = "".join(f'<th scope="col"><span>{markup.name(key)}</span></th>' for key in keys[:-1])
    lines = [
        markup.row(markup.name(key), "".join(map(_cell, matrix[at, :at].tolist()))) for at, key in enumerate(keys) if at
    ]
    caption = markup.span("hidden", f"Rank correlations of the metrics of {markup.name(system)}, over {level}s")
    table = markup.table("heat", caption, f"<tr><td></td>{heads}</tr>", lines)
    return markup.details(f"{markup.name(system)} {markup.span('aside', f'over {level}s')}", table, opened=opened)


def _cell(value: float) -> str:
    if math.isnan(value):
        return markup.cells(MISSING, kind="figure")
    step = min(STEPS, math.floor(abs(value) * STEPS + 0.5))
    kind = f"{'less' if value < 0 else 'more'}-{step}" if step else "none"
    return markup.cells(f"{round(value, 2) + 0.0:.2f}", kind=f"figure {kind}")
