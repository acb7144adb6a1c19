"""The section that everybody reads: the verdict, the differences to the baseline, and a table of metrics by systems.

The first system of a table is the baseline. Marks are those of `dialeval compare`: `*` and `**` where a difference is
significant after correction for all tests of the table. The best value of a metric is bold where a direction is known;
floors and ceilings take no part in that. Metrics that have no direction stand in a table of their own, to be opened.
The figures of all differences stand below, to be opened as well.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from dialeval.analysis.best import best_of
from dialeval.analysis.comparison import STRONG, Comparison, compare
from dialeval.core.errors import SettingError
from dialeval.core.result import Result, Run
from dialeval.reports import markup
from dialeval.reports.comparisons import legend, mark, show_detectable
from dialeval.reports.figures import (
    MISSING,
    interval_words,
    plain,
    shorten,
    show,
    show_fixed,
    show_interval,
    show_signed,
)
from dialeval.reports.forest import forest
from dialeval.reports.markup import Section
from dialeval.reports.tables import better_of, row_decimals, unscored
from dialeval.reports.verdict import MOST_TESTS, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dialeval.analysis.comparison import Difference
    from dialeval.core.fold import Better

_CAPTION = (
    "Mean per metric and system, with its confidence interval where there is one, to the digits that it supports. An "
    "arrow says which values are better, and the best one is bold."
)


def summary(run: Run, compared: bool = True) -> Section:
    """The section; systems that share no metric stand in tables of their own, each with a baseline of its own."""
    if not run.keys_in_order:
        return Section("summary", "Summary", "<p>No metric was computed.</p>")
    places = {key: at for at, key in enumerate(run.keys_in_order)}
    captions = [_CAPTION, *["Further systems, measured by other metrics."] * len(run)]
    tables = ""
    for block, caption in zip(blocks(run), captions, strict=False):
        comparison, reason = None, ""
        if compared and len(block) - len(block.anchors) > 1:
            try:
                comparison = compare(block, most_tests=MOST_TESTS)
            except SettingError as error:
                reason = markup.note(f"Not compared: {markup.text(str(error))}")
        tables += "" if comparison is None else _verdict(comparison) + forest(comparison)
        tables += _tables(block, places, caption + _intervals(block) + _marks(comparison), comparison)
        tables += reason if comparison is None else _differences(comparison)
    return Section("summary", "Summary", tables + _long_names(run))


def blocks(run: Run) -> list[Run]:
    """The systems that share a metric, directly or through others, together: one table would be mostly dashes."""
    groups: list[dict[str, Result]] = []
    for system, result in run.items():
        near = [at for at, group in enumerate(groups) if any(result.keys() & other.keys() for other in group.values())]
        first = near[0] if near else len(groups)
        merged = {name: other for at in near for name, other in groups[at].items()} | {system: result}
        groups = [group for at, group in enumerate(groups) if at not in near]
        groups.insert(first, merged)
    return [Run(group, run.version) for group in groups]


def _intervals(run: Run) -> str:
    """Which intervals the figures have."""
    words = interval_words(estimate for result in run.values() for estimate in result.values())
    return f" Intervals: {markup.text(words)}." if words else ""


def _marks(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    alpha = comparison.settings.alpha
    return (
        f" Marks are differences to the baseline, {markup.name(comparison.baseline)}: * p&nbsp;&lt;&nbsp;{alpha:g}, "
        f"** p&nbsp;&lt;&nbsp;{STRONG * alpha:g}, after correction for all tests of the table."
    )


def _verdict(comparison: Comparison) -> str:
    items = "".join(f"<li>{markup.text(sentence)}</li>" for sentence in verdict(comparison))
    return f'<ul class="answer">{items}</ul>'


def _tables(run: Run, places: Mapping[str, int], caption: str, comparison: Comparison | None) -> str:
    """The table of metrics with a direction, and below it that of the others; one table if all are of one kind."""
    directions = {key: better_of(run, key) for key in run.keys_in_order}
    directed = [key for key, better in directions.items() if better is not None]
    other = [key for key in directions if key not in directed]
    notes = "".join(map(markup.note, map(markup.text, unscored(run))))
    if not directed or not other:
        return _table(run, places, directed or other, caption, comparison) + notes
    folded = _table(run, places, other, "Neither high nor low values are better.", comparison)
    title = f"{markup.count(len(other), 'metric')} without a direction"
    return _table(run, places, directed, caption, comparison) + markup.details(title, folded) + notes


def _table(
    run: Run, places: Mapping[str, int], keys: Sequence[str], caption: str, comparison: Comparison | None
) -> str:
    colours = markup.colours(run)
    heads = "".join(
        f'<th scope="col" class="figure {colours[name]}"><span class="swatch"></span>{markup.name(name)}'
        f"{_rows(run, name)}{_role(name, result, comparison)}</th>"
        for name, result in run.items()
    )
    rows = {} if comparison is None else {(row.key, row.system): row for row in comparison.rows}
    lines = []
    for key in keys:
        better, decimals = better_of(run, key), row_decimals(run, key)
        best = _best(run, key, better)
        cells = "".join(
            markup.figure(
                result.get(key), decimals, "best" if name in best else "", _mark(rows.get((key, name)), comparison)
            )
            for name, result in run.items()
        )
        link = f'<a href="#metric-{places[key]}">{markup.name(key)}</a>{markup.arrow(better)}'
        lines.append(markup.row(link, cells))
    return markup.table("summary", caption, f'<tr><th scope="col">Metric</th>{heads}</tr>', lines)


def _rows(run: Run, system: str) -> str:
    rows = {est.level: est.rows for est in run[system].values()}
    return markup.span("aside", ", ".join(markup.count(rows[level], str(level)) for level in rows))


def _role(system: str, result: Result, comparison: Comparison | None) -> str:
    is_baseline = comparison is not None and system == comparison.baseline
    role = "baseline" if is_baseline else result.role
    return "" if role == "system" else markup.span("role", role)


def _best(run: Run, key: str, better: Better | None) -> list[str]:
    """The real systems with the best value, if there are others."""
    means = {name: result[key].mean for name, result in run.items() if key in result and result.role == "system"}
    known = [mean for mean in means.values() if not math.isnan(mean)]
    return best_of(means, better) if len(known) > 1 else []


def _mark(row: Difference | None, comparison: Comparison | None) -> str:
    """The marks of a cell; in a table with marks every cell has space for two, so that figures are aligned."""
    if comparison is None:
        return ""
    marks = "" if row is None else mark(row, comparison.settings.alpha)
    aloud = markup.span("hidden", f" differs, p = {row.adjusted_p:.4f}") if row is not None and marks else ""
    return markup.span("sure", f'<span aria-hidden="true">{marks}</span>{aloud}')


def _differences(comparison: Comparison) -> str:
    """The differences to the baseline, system by system, with what the columns mean."""
    tables = "".join(_difference_table(comparison, system) for system in comparison.systems)
    words = "".join(f"<li>{markup.text(line)}</li>" for line in legend(comparison))
    title = f"Differences from {markup.name(comparison.baseline)}"
    return markup.details(title, f'{tables}<ul class="note">{words}</ul>', "differences")


def _difference_table(comparison: Comparison, system: str) -> str:
    lines = [_difference(row, comparison) for row in comparison.of(system)]
    heads = ("Metric", "Difference", "Interval", "p, adjusted", "Effect", "Won, tied, lost", "Detectable")
    caption = f"{markup.name(system)} against {markup.name(comparison.baseline)}."
    head = f'<tr><th scope="col">{heads[0]}</th>'
    head += "".join(f'<th scope="col" class="figure">{title}</th>' for title in heads[1:]) + "</tr>"
    return markup.table("difference", caption, head, lines)


def _difference(row: Difference, comparison: Comparison) -> str:
    cells = (
        f"{show_signed(row.difference)}{_mark(row, comparison)}",
        show_interval(row.interval) if row.interval else MISSING,
        show_fixed(row.adjusted_p, 4),
        show(row.effect, 2),
        MISSING if row.wins is None else f"{row.wins}, {row.ties}, {row.losses}",
        show_detectable(row),
    )
    return markup.row(markup.name(row.key), markup.cells(*cells, kind="figure"))


def _long_names(run: Run) -> str:
    """The full text of names that are too long to be shown everywhere."""
    names: Iterable[str] = (plain(name) for name in (*run, *run.keys_in_order))
    long = [f"<li><bdi>{escape(name)}</bdi></li>" for name in names if shorten(name) != name]
    return markup.details("Names in full", f"<ul>{''.join(long)}</ul>") if long else ""
