"""The section that everybody reads: the verdict, and a table of metrics by systems that is a forest plot as well.

The first system of a table is the baseline. Next to the value of each other system a strip shows its difference to the
baseline (`forest`), green and red where it is significant after correction for all tests of the table. The best value
of a metric is bold where higher or lower is better; floors and ceilings are last and are never bold. From `MANY`
systems on each is a row, and metrics are columns. Where the window is narrow, rows become cards. Metrics where neither
higher nor lower is better and those outside of the panel are in folded tables of their own, and so are all differences.
The page's script makes a table narrower that does not fit its window.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dialeval.analysis.comparison import MOST_TESTS, Best, Comparison, compare, find_best_systems
from dialeval.analysis.difference import Difference
from dialeval.analysis.pairing import choose_main_keys
from dialeval.analysis.values import find_better
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.reports import comparisons, markup
from dialeval.reports import formatting as fmt
from dialeval.reports.canvas import ChartScale, Figure, draw_tick_labels
from dialeval.reports.comparisons import (
    MOST_UNASKED,
    WIDTH,
    choose_class,
    choose_mark,
    draw_strip,
    fit_scale,
    state_verdict,
)
from dialeval.reports.documents import Document
from dialeval.reports.drawings import draw_distribution, draw_means, draw_metrics, is_binary, lay_out_figures
from dialeval.reports.formatting import MISSING, describe_intervals, plain, shorten, show, show_spread
from dialeval.reports.markup import Section
from dialeval.reports.tables import (
    choose_decimals,
    collect_positions,
    describe_unscored,
    explain_best,
    list_accounts,
    show_fraction,
)

MANY = 9
"""The number of systems from which on each is a row."""
MOST_COLUMNS = 8
"""Metrics that are next to each other; further ones are in a table below."""
NARROW = 84
"""The width of a strip below a value."""
MOST_NAMED = 4
"""Systems that are named as the best of a metric before the rest is counted."""

_NOTHING: Mapping[str, Figure] = {}


def make_summary(
    run: Run, compared: bool | Comparison = True, more: Sequence[str] = (), charts: Mapping[str, Figure] = _NOTHING
) -> Section:
    """Return the section; systems that share no metric are in tables of their own, each with its own baseline.

    `compared`: whether systems are compared, or the comparison of all of them. `more`: sentences of the verdict.
    `charts`: by system, a chart that is shown next to its table where there is room.
    """
    if not run.keys_in_order:
        return Section("summary", "Summary", "<p>No metric was computed.</p>")
    groups = split_blocks(run)
    apart = "Systems with different data or metrics are in separate parts, each with its own baseline and best values."
    tables = markup.note(apart) if len(groups) > 1 else ""
    for at, block in enumerate(groups):
        comparison = compared if isinstance(compared, Comparison) and len(groups) == 1 else None
        reason = ""
        tables += make_block_title(run, block) if len(groups) > 1 else ""
        if compared and comparison is None and len(block) - len(block.baselines) > 1:
            try:
                comparison = compare(block, most_tests=MOST_TESTS)
            except SettingError as error:
                reason = markup.note(f"Not compared: {markup.text(str(error))}")
        best = Best({}, 0) if reason else _find_best(block, bool(compared), comparison)
        accounts = "".join(map(markup.note, map(markup.text, list_accounts(block))))
        tables += accounts if comparison is None else _write_verdict(comparison, best, more)
        places = {key: f"{at or ''}{'-' if at else ''}{place}" for place, key in enumerate(block.keys_in_order)}
        values = _make_tables(block, places, comparison, best)
        values += reason if comparison is None else _list_differences(comparison)
        drawn = [*(charts[name] for name in block if name in charts)][:1] + _draw_first_chart(block)
        tables += f'<div class="overview"><div class="values">{values}</div>{lay_out_figures(drawn)}</div>'
        more = ()
    return Section("summary", "Summary", tables + _list_long_names(run))


DATA_SETS = "data_sets"
"""Where a run of several runs holds the name of the data of each system, if not all have the same."""


def split_blocks(run: Run) -> list[Run]:
    """Group the systems with the same data that share a metric, directly or through others."""
    groups: list[dict[str, Result]] = []
    data: Mapping[str, str] = run.details.get(DATA_SETS, {})

    def is_near(system: str, other: str) -> bool:
        return bool(run[system].keys() & run[other].keys()) and data.get(system) == data.get(other)

    for system, result in run.items():
        near = [at for at, group in enumerate(groups) if any(is_near(system, other) for other in group)]
        first = near[0] if near else len(groups)
        merged = {name: other for at in near for name, other in groups[at].items()} | {system: result}
        groups = [group for at, group in enumerate(groups) if at not in near]
        groups.insert(first, merged)
    return [Run(group, run.version) for group in groups]


def make_block_title(run: Run, block: Run) -> str:
    """Return a heading for a block where there are several: its data, or its systems."""
    data: Mapping[str, str] = run.details.get(DATA_SETS, {})
    systems = [name for name in block if name not in block.baselines] or list(block)
    words = ", ".join(map(markup.name, [data[systems[0]]] if data.get(systems[0]) else systems))
    rows = max((est.units for result in block.values() for est in result.values()), default=0)
    return f"<h3>{words} {markup.span('aside', f'{rows:,} rows')}</h3>"


def _make_caption(run: Run, comparison: Comparison | None, best: Best) -> str:
    words = describe_intervals(estimate for result in run.values() for estimate in result.values())
    parts = [f"Means with intervals, {markup.text(words)}." if words else "Means."]
    if comparison is not None:
        baseline = markup.name(comparison.baseline)
        strips = f"Strips: differences to {baseline} in standard deviations, better to the right."
        marks = f"{fmt.BETTER}&nbsp;better, {fmt.WORSE}&nbsp;worse, {fmt.DIFFERENT}&nbsp;different"
        parts.append(f"{strips} {marks}: significant after correction for all tests.")
    parts += map(markup.text, explain_best(best))
    if comparison is not None and comparison.ranking is not None and comparison.ranking.key in best.systems:
        parts.append(f"Bold values of {markup.name(comparison.ranking.key)} are those of the ranking.")
    return " ".join(parts)


def make_metric_section(run: Run) -> Section | None:
    """Return the section with the charts of each metric, those of systems with other data apart."""
    groups = split_blocks(run) if run.keys_in_order else []
    parts = [
        (make_block_title(run, block) if len(groups) > 1 else "") + draw_metrics(block, f"{at}-" if at else "")
        for at, block in enumerate(groups)
    ]
    return Section("metrics", "Metric by metric", "".join(parts)) if parts else None


def _write_verdict(comparison: Comparison, best: Best, more: Sequence[str]) -> str:
    """Return the verdict; of several systems also the best of each metric and, folded, the verdict on each."""
    sentences = state_verdict(comparison)
    if len(comparison.systems) == 1:
        return markup.bullets([*sentences, *more], "answer")
    ranked = "" if comparison.ranking is None else comparison.ranking.key
    others = [key for key in comparison.panel if key in best.systems and key != ranked]
    leaders = [f"{shorten(key)} {fmt.list_some_names(best.systems[key], MOST_NAMED)}" for key in others]
    beyond = " and those not significantly worse" if best.tests else ""
    first = [*sentences, *more[:1], *([f"Best{beyond}: {'; '.join(leaders)}."] if leaders else [])]
    rest = markup.bullets([*comparisons.state_system_verdicts(comparison), *more[1:]])
    return markup.bullets(first, "answer") + markup.details("System by system", rest)


def _find_best(run: Run, tested: bool, comparison: Comparison | None) -> Best:
    """Return the best systems of each metric: with those not significantly worse where that is tested.

    There are none where systems were scored on other units, or where nothing differs.
    """
    if comparison is not None and any(design.name != "paired" for design in comparison.designs.values()):
        return Best({}, 0)
    few = (len(run) - len(run.baselines) - 1) * len(run.keys_in_order) <= MOST_UNASKED
    return find_best_systems(run, run.keys_in_order, tested and few, comparison)


def _draw_first_chart(run: Run) -> list[Figure]:
    """Return the chart of the first metric of the panel: distributions, or means of many systems or of 0 and 1."""
    key = next(iter(choose_main_keys(run)), "")
    ranks = len(run) >= MANY or is_binary(run, key)
    drawn = draw_means(run, key, ranked=True) if ranks else None
    chart = drawn or draw_distribution(run, key) or draw_means(run, key)
    return [] if chart is None else [chart]


def _make_tables(run: Run, places: Mapping[str, str], comparison: Comparison | None, best: Best) -> str:
    """Return the table of the panel, then, folded, those of other metrics, first where higher or lower is better."""
    directions = {key: find_better(run, key) for key in run.keys_in_order}
    panel = [key for key in choose_main_keys(run) if key in directions]
    more = [key for key, better in directions.items() if better is not None and key not in panel]
    other = [key for key, better in directions.items() if better is None and key not in panel]
    notes = "".join(map(markup.note, map(markup.text, describe_unscored(run))))
    page = _Page(run, places, comparison, best)
    panel, more = (panel, more) if panel else (more, [])
    panel, other = (panel, other) if panel else (other, [])
    content = _make_table(page, panel, _make_caption(run, comparison, best))
    if more:
        content += markup.details(markup.count(len(more), "more metric"), _make_table(page, more, "Other metrics."))
    if other:
        folded = _make_table(page, other, "Neither higher nor lower values are better.")
        title = f"{markup.count(len(other), 'metric')} where neither higher nor lower is better"
        content += markup.details(title, folded)
    return content + notes


class _Page(NamedTuple):
    """The common content of the tables of a block."""

    run: Run
    places: Mapping[str, str]
    """By key the number of its charts."""
    comparison: Comparison | None
    best: Best


def _make_table(page: _Page, keys: Sequence[str], caption: str) -> str:
    run, comparison = page.run, page.comparison
    systems = sorted(run, key=lambda name: run[name].role != "system")
    as_rows = len(run) >= MANY
    if as_rows and len(keys) > MOST_COLUMNS:
        parts = [keys[at : at + MOST_COLUMNS] for at in range(0, len(keys), MOST_COLUMNS)]
        return "".join(_make_table(page, part, caption if at == 0 else "Continued.") for at, part in enumerate(parts))
    # Strips of columns have an axis below them; those of rows have none, so all tables share a scale.
    tested = [] if comparison is None else [row for row in comparison.differences if as_rows or row.key in keys]
    scale = None if comparison is None else fit_scale(tested, NARROW if as_rows else WIDTH)
    rows = {(row.key, row.system): row for row in tested if not math.isnan(row.p)}
    arrows = {key: markup.arrow(find_better(run, key)) for key in keys}
    cells: dict[tuple[str, str], str] = {}
    for key in keys:
        best, decimals = page.best.systems.get(key, ()), choose_decimals(run, key)
        for name in systems:
            kinds = ["best" if name in best else "", "anchor" if name in run.baselines else ""]
            who = markup.name(key) + arrows[key] if as_rows else markup.name(name)
            cells[key, name] = make_cell(who, run[name].get(key), decimals, rows.get((key, name)), scale, *kinds)
    linked = [f'<a href="#metric-{page.places[key]}">{markup.name(key)}</a>{arrows[key]}' for key in keys]
    named = [_write_system_name(page, name) for name in systems]
    if as_rows:
        pairs = zip(named, systems, strict=True)
        lines = [markup.row(title, "".join(cells[key, name] for key in keys)) for title, name in pairs]
        return markup.table("summary", caption, markup.figure_heads("System", linked), lines)
    pairs = zip(linked, keys, strict=True)
    lines = [markup.row(title, "".join(cells[key, name] for name in systems)) for title, key in pairs]
    below = make_axes_row(scale, [(keys[0], name) in rows for name in systems])
    return markup.table("summary", caption, markup.figure_heads("Metric", named), lines, below)


def _write_system_name(page: _Page, name: str) -> str:
    """Return the name of a system with its color, its rows where not all have as many, and its role."""
    run, comparison = page.run, page.comparison
    swatch = f'<span class="system-name {markup.assign_colors(run)[name]}"><span class="swatch"></span>'
    role = "baseline" if comparison is not None and name == comparison.baseline else run[name].role
    shown = "" if role == "system" else markup.span("role", role)
    return f"{swatch}{markup.name(name)}{_write_row_counts(run, name)}{shown}</span>"


def make_axes_row(scale: ChartScale | None, drawn: Iterable[bool]) -> str:
    """Return the last row of a table of strips: the axis of each column that has some."""
    if scale is None:
        return ""
    axes = (f"<div>{draw_tick_labels(scale)}</div>" if has_strips else "" for has_strips in drawn)
    return f"<tr><td></td>{markup.cells(*axes, kind='figure')}</tr>"


def make_cell(
    who: str, estimate: Estimate | None, decimals: int, row: Difference | None, scale: ChartScale | None, *kinds: str
) -> str:
    """Return a cell: a value, its mark and interval, and its difference as a strip; `who` is markup."""
    drawn = "" if row is None or scale is None else draw_strip(row, scale)
    classes = " ".join(filter(None, ("figure", *kinds, "" if row is None else choose_class(row))))
    value = markup.span("who", who) + _write_value(estimate, decimals, row)
    return f'<td class="{classes}"><div>{value}{drawn}</div></td>'


def _write_value(estimate: Estimate | None, decimals: int, row: Difference | None) -> str:
    """Return a value with its mark and its interval."""
    mark = markup.span("sure", "" if row is None else choose_mark(row))  # room for one, so that values are aligned
    if estimate is None:
        return markup.span("number", MISSING + mark)
    spread = markup.span("spread", show_spread(estimate, decimals))
    return markup.span("number", show(estimate.mean, decimals) + mark) + spread


def _write_row_counts(run: Run, system: str) -> str:
    """Return how many rows a system has, where not all have as many."""
    sizes = {name: {str(est.level): est.units for est in result.values()} for name, result in run.items()}
    counts = sizes[system].items()
    if all(others.items() <= counts or counts <= others.items() for others in sizes.values()):
        return ""
    return markup.span("aside", ", ".join(markup.count(rows, level) for level, rows in counts))


def _list_differences(comparison: Comparison) -> str:
    """Return the differences to the baseline, system by system, with what the columns mean."""
    tables = [comparisons.make_system_table(comparison, system) for system in comparison.systems]
    captions = [f"{shorten(system)} against {shorten(comparison.baseline)}." for system in comparison.systems]
    shown = markup.document(Document([], tables, comparisons.explain_columns(comparison)), "difference", captions)
    return markup.details(f"Differences from {markup.name(comparison.baseline)}", shown, "differences")


def _list_long_names(run: Run) -> str:
    """Return the full text of names that are too long to be shown everywhere."""
    long = [name for name in map(plain, (*run, *run.keys_in_order)) if shorten(name) != name]
    return markup.details("Names in full", markup.bullets(long)) if long else ""


def make_standing(run: Run) -> Section | None:
    """Return the section about positions between floor and ceiling; None for a run without such systems."""
    systems = run.details.get("standing", {})
    rows = collect_positions(run, systems)
    if not rows:
        return None
    lines = [markup.row(markup.name(key), markup.cells(*map(_draw_bar, shares))) for key, shares in rows.items()]
    caption = "Position between the best floor (0%) and the gold replies (100%)."
    drawn = markup.table("standing", caption, markup.heads("Metric", *map(markup.name, systems)), lines)
    return Section("standing", "Between floor and ceiling", drawn)


def _draw_bar(share: float | None) -> str:
    if share is None:
        return MISSING
    size = 'width="90" height="10"'
    filled = round(90 * min(max(share, 0.0), 1.0), 1)
    kind = "bar below" if share < 0 else "bar"
    drawn = f'<rect class="trough" {size}/><rect class="{kind}" width="{filled}" height="10"/>'
    return f'<span class="share">{show_fraction(share)}</span><svg aria-hidden="true" {size}>{drawn}</svg>'
