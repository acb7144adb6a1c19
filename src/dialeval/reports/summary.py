"""The section that everybody reads: the verdict, and a table of metrics by systems that is a forest plot as well.

The first system of a table is the baseline. Beside the value of each other system a strip shows its difference to the
baseline (`forest`), green and red where it is significant after correction for all tests of the table. The best value
of a metric is bold where a direction is known; floors and ceilings stand last and take no part in that. From `MANY`
systems on each is a row, and metrics are columns. Where the window is narrow, rows become cards. Metrics that have no
direction stand in a table of their own, to be opened, and so do the figures of all differences.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from dialeval.analysis.best import best_of
from dialeval.analysis.comparison import Comparison, compare
from dialeval.core.errors import SettingError
from dialeval.core.result import Result, Run
from dialeval.reports import markup
from dialeval.reports.comparisons import legend, mark, show_detectable
from dialeval.reports.figures import (
    BETTER,
    DIFFERENT,
    MISSING,
    WORSE,
    interval_words,
    plain,
    shorten,
    show,
    show_interval,
    show_p,
    show_signed,
    show_spread,
)
from dialeval.reports.forest import WIDTH, kind_of, scale_of, strip
from dialeval.reports.markup import Section
from dialeval.reports.metric_drawings import axis
from dialeval.reports.tables import better_of, row_decimals, unscored
from dialeval.reports.verdict import MOST_TESTS, describe_designs, mark_of, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dialeval.analysis.comparison import Difference
    from dialeval.core.fold import Better, Estimate
    from dialeval.reports.metric_drawings import Scale

ROOM, BASELINE, COMPARED, ANCHOR = 1220, 290, 320, 150
"""Pixels of the page, and what columns need: metric and baseline, each other system with its strip, each anchor.
Where that is more than there is, strips stand below the values, and intervals are left to the drawings of metrics."""
MANY = 9
"""From so many systems on each is a row."""
NARROW = 84
"""The width of a strip below a value."""
MOST_SENTENCES = 3
"""Sentences of the verdict; of more the design and one about all systems are shown, and the rest is folded."""


def summary(run: Run, compared: bool = True, more: Sequence[str] = ()) -> Section:
    """The section; systems that share no metric stand in tables of their own, each with a baseline of its own.

    `more`: sentences that belong to the verdict.
    """
    if not run.keys_in_order:
        return Section("summary", "Summary", "<p>No metric was computed.</p>")
    places = {key: at for at, key in enumerate(run.keys_in_order)}
    tables = ""
    for at, block in enumerate(blocks(run)):
        comparison, reason = None, ""
        if compared and len(block) - len(block.anchors) > 1:
            try:
                comparison = compare(block, most_tests=MOST_TESTS)
            except SettingError as error:
                reason = markup.note(f"Not compared: {markup.text(str(error))}")
        tables += markup.note("Further systems, measured by other metrics.") if at else ""
        tables += "" if comparison is None else _verdict(comparison, more)
        more = ()
        tables += _tables(block, places, comparison, bold=not reason and has_best(comparison))
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


def _caption(run: Run, comparison: Comparison | None) -> str:
    words = interval_words(estimate for result in run.values() for estimate in result.values())
    parts = [f"Means with intervals, {markup.text(words)}." if words else "Means."]
    if comparison is not None:
        parts.append(
            f"Strips: differences to {markup.name(comparison.baseline)} in standard deviations, better to the right. "
            f"{BETTER}&nbsp;better, {WORSE}&nbsp;worse, {DIFFERENT}&nbsp;different: significant after correction for "
            "all tests."
        )
    return " ".join(parts)


def _verdict(comparison: Comparison, more: Sequence[str]) -> str:
    items = [f"<li>{markup.text(sentence)}</li>" for sentence in (*verdict(comparison), *more)]
    shown = len(items)
    if shown > MOST_SENTENCES:
        shown = len(describe_designs(comparison)) + 1  # the designs, and one sentence about all systems
    answer = f'<ul class="answer">{"".join(items[:shown])}</ul>'
    return answer + (markup.details("System by system", f"<ul>{''.join(items[shown:])}</ul>") if items[shown:] else "")


def has_best(comparison: Comparison | None) -> bool:
    """Tell whether systems can be ranked by their values: not where they were scored on other units."""
    return comparison is None or all(design.name == "paired" for design in comparison.designs.values())


def _tables(run: Run, places: Mapping[str, int], comparison: Comparison | None, bold: bool) -> str:
    """The table of metrics with a direction, and below it that of the others; one table if all are of one kind."""
    directions = {key: better_of(run, key) for key in run.keys_in_order}
    directed = [key for key, better in directions.items() if better is not None]
    other = [key for key in directions if key not in directed]
    notes = "".join(map(markup.note, map(markup.text, unscored(run))))
    first = _table(run, places, directed or other, _caption(run, comparison), comparison, bold)
    if not directed or not other:
        return first + notes
    folded = _table(run, places, other, "Neither high nor low values are better.", comparison, bold)
    return first + markup.details(f"{markup.count(len(other), 'metric')} without a direction", folded) + notes


def _table(
    run: Run, places: Mapping[str, int], keys: Sequence[str], caption: str, comparison: Comparison | None, bold: bool
) -> str:
    colours = markup.colours(run)
    systems = sorted(run, key=lambda name: run[name].role != "system")
    as_rows = len(run) >= MANY
    few = has_room(run)
    scale = None if comparison is None else scale_of(comparison.rows, WIDTH if few else NARROW)
    tested = () if comparison is None else comparison.rows
    rows = {(row.key, row.system): row for row in tested if not math.isnan(row.p)}
    metrics = {key: markup.name(key) + markup.arrow(better_of(run, key)) for key in keys}
    cells: dict[tuple[str, str], str] = {}
    for key in keys:
        best, decimals = _best(run, key, better_of(run, key)) if bold else [], row_decimals(run, key)
        for name in systems:
            kinds = ["best" if name in best else "", "anchor" if name in run.anchors else ""]
            who = metrics[key] if as_rows else markup.name(name)
            cells[key, name] = cell(who, run[name].get(key), decimals, rows.get((key, name)), scale, *kinds)
    linked = {
        key: f'<a href="#metric-{places[key]}">{markup.name(key)}</a>{markup.arrow(better_of(run, key))}'
        for key in keys
    }
    named = {
        name: f'<span class="system-name {colours[name]}"><span class="swatch"></span>{markup.name(name)}'
        f"{_rows(run, name)}{_role(name, run[name], comparison)}</span>"
        for name in systems
    }
    if as_rows:
        lines = [markup.row(named[name], "".join(cells[key, name] for key in keys)) for name in systems]
        return markup.table("summary dense", caption, heads("System", linked.values()), lines)
    lines = [markup.row(linked[key], "".join(cells[key, name] for name in systems)) for key in keys]
    axes = ("" if scale is None or (keys[0], name) not in rows else f"<div>{axis(scale)}</div>" for name in systems)
    below = f"<tr><td></td>{markup.cells(*axes, kind='figure')}</tr>" if few and scale is not None else ""
    kind = "summary" if few else "summary dense"
    return markup.table(kind, caption, heads("Metric", named.values()), lines, below)


def has_room(run: Run) -> bool:
    """Whether values of all systems fit beside each other, with intervals and strips."""
    return BASELINE + COMPARED * (len(run) - len(run.anchors) - 1) + ANCHOR * len(run.anchors) <= ROOM


def cell(
    who: str, estimate: Estimate | None, decimals: int, row: Difference | None, scale: Scale | None, *kinds: str
) -> str:
    """A cell with a value, its mark and interval, and its difference to the baseline as a strip; `who` is markup."""
    drawn = "" if row is None or scale is None else strip(row, scale)
    classes = " ".join(filter(None, ("figure", *kinds, "" if row is None else kind_of(row))))
    return f'<td class="{classes}"><div>{markup.span("who", who)}{_figure(estimate, decimals, row)}{drawn}</div></td>'


def heads(first: str, titles: Iterable[str]) -> str:
    """The head of a table of values; titles are markup."""
    cells = "".join(f'<th scope="col" class="figure">{title}</th>' for title in titles)
    return f'<tr><th scope="col">{first}</th>{cells}</tr>'


def _figure(estimate: Estimate | None, decimals: int, row: Difference | None) -> str:
    """A value with its mark and its interval."""
    mark = markup.span("sure", "" if row is None else mark_of(row))  # room for one, so that figures are aligned
    if estimate is None:
        return markup.span("number", MISSING + mark)
    return markup.span("number", show(estimate.mean, decimals) + mark) + markup.span(
        "spread", show_spread(estimate, decimals)
    )


def _rows(run: Run, system: str) -> str:
    """How many rows a system has, where not all have as many."""
    sizes = {name: {str(est.level): est.rows for est in result.values()} for name, result in run.items()}
    if all(
        sizes[name].items() <= sizes[system].items() or sizes[system].items() <= sizes[name].items() for name in run
    ):
        return ""
    return markup.span("aside", ", ".join(markup.count(rows, level) for level, rows in sizes[system].items()))


def _role(system: str, result: Result, comparison: Comparison | None) -> str:
    is_baseline = comparison is not None and system == comparison.baseline
    role = "baseline" if is_baseline else result.role
    return "" if role == "system" else markup.span("role", role)


def _best(run: Run, key: str, better: Better | None) -> list[str]:
    """The real systems with the best value, if there are others."""
    means = {name: result[key].mean for name, result in run.items() if key in result and result.role == "system"}
    known = [mean for mean in means.values() if not math.isnan(mean)]
    return best_of(means, better) if len(known) > 1 else []


def _differences(comparison: Comparison) -> str:
    """The differences to the baseline, system by system, with what the columns mean."""
    tables = "".join(_difference_table(comparison, system) for system in comparison.systems)
    words = "".join(f"<li>{markup.text(line)}</li>" for line in legend(comparison))
    title = f"Differences from {markup.name(comparison.baseline)}"
    return markup.details(title, f'{tables}<ul class="note">{words}</ul>', "differences")


def _difference_table(comparison: Comparison, system: str) -> str:
    lines = [_difference(row, comparison) for row in comparison.of(system)]
    titles = ("Difference", "Interval", "p, adjusted", "Effect", "Won, tied, lost", "Detectable")
    caption = f"{markup.name(system)} against {markup.name(comparison.baseline)}."
    return markup.table("difference", caption, heads("Metric", titles), lines)


def _difference(row: Difference, comparison: Comparison) -> str:
    cells = (
        f"{show_signed(row.difference)}{markup.span('sure', mark(row, comparison.settings.alpha))}",
        show_interval(row.interval) if row.interval else MISSING,
        escape(show_p(row.adjusted_p)),
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
