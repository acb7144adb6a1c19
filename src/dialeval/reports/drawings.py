"""The charts of a run: the numbers that each shows, the section of the report that has them, and files for papers.

    draw_figure(run, "distribution", "bleu-4")    a chart by its name (`KINDS`), as `Run.plot` gives it
    write_figures(run, "figures", "pdf", 3.3)     every chart that the run has numbers for, 3.3 inches wide

`charts` draws; this module only selects columns.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dialeval.analysis.comparison import compare
from dialeval.analysis.pairing import choose_main_keys, find_keys
from dialeval.analysis.slices import Slices, list_kept_fields, slices
from dialeval.analysis.values import find_better
from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.core.fold import Level
from dialeval.core.rowtable import NO_TURN
from dialeval.reports import charts, markup
from dialeval.reports.canvas import PIXELS_PER_INCH, WIDTH, Figure, FigureFormat
from dialeval.reports.charts import Mark, Point, average_by_bin
from dialeval.reports.comparisons import choose_class, standardize_interval
from dialeval.reports.formatting import plain, shorten, show
from dialeval.reports.tables import ARROWS
from dialeval.stats.correlation import FEWEST_POINTS, spearman_matrix

if TYPE_CHECKING:
    from dialeval.analysis.comparison import Comparison
    from dialeval.core.fold import Estimate
    from dialeval.core.result import Result, Run

MOST_TURNS = 30
"""Turns of the chart of scores over turns; later ones are left out."""
MOST_SLICES = 24
MOST_AGENTS = 4
"""Systems whose trials are drawn side by side."""
_NARROWEST = 240


def collect_estimates(run: Run, key: str) -> dict[str, Estimate]:
    """Return the estimates of one metric by system."""
    return {name: result[key] for name, result in run.items() if key in result}


def _make_title(run: Run, key: str) -> str:
    return f"{shorten(key)}{ARROWS[find_better(run, key)]}"


def _make_axis_title(run: Run, key: str) -> str:
    better = find_better(run, key)
    return shorten(key) if better is None else f"{shorten(key)} ({better} is better)"


def _find_level(run: Run, key: str) -> Level:
    return next((est.level for est in collect_estimates(run, key).values()), Level.TURN)


def draw_means(run: Run, key: str, width: int = WIDTH, ranked: bool = False) -> Figure | None:
    """Draw the value of each system under a key with its confidence interval; `ranked`: the highest value first."""
    colors = markup.assign_colors(run)
    marks = [
        Mark(name, est.mean, est.interval, colors[name])
        for name, est in collect_estimates(run, key).items()
        if math.isfinite(est.mean)
    ]
    marks = sorted(marks, key=lambda mark: -mark.value) if ranked else marks
    title = f"{_make_title(run, key)}, by system"
    return charts.forest(marks, title, _make_axis_title(run, key), width=width) if marks else None


def draw_distribution(run: Run, key: str, width: int = WIDTH) -> Figure | None:
    """Draw how the per-row scores of each system are distributed."""
    items = {name: est.items for name, est in collect_estimates(run, key).items() if est.items is not None}
    unit = f"{_find_level(run, key)}s"
    title = f"{_make_title(run, key)} of single {unit}"
    return charts.distribution(
        items, title, _make_axis_title(run, key), unit=unit, numbers=markup.number_colors(run), width=width
    )


def draw_differences(comparison: Comparison, system: str, width: int = WIDTH) -> Figure | None:
    """Draw the differences of a system to the baseline, metric by metric, in standard deviations."""
    marks = [
        Mark(row.key, ends[1], (ends[0], ends[2]), choose_class(row))
        for row in comparison.of(system)
        if row.better is not None and (ends := standardize_interval(row)) is not None
    ]
    title = f"{shorten(system)} against {shorten(comparison.baseline)}"
    axis = "difference in standard deviations, better to the right"
    note = f"Intervals: {100 * comparison.confidence:g}%. Green: better, red: worse, gray: no significant difference."
    return charts.forest(marks, title, axis, zero=True, notes=[note], width=width) if marks else None


def is_binary(run: Run, key: str) -> bool:
    """Return whether all per-row scores of a metric are 0 or 1 (or 100), so that only the mean is of interest."""
    items = [est.items for est in collect_estimates(run, key).values() if est.items is not None]
    known = [values[np.isfinite(values)] for values in items]
    return bool(known) and all(np.isin(values, (0, 1)).all() or np.isin(values, (0, 100)).all() for values in known)


def draw_turns(run: Run, key: str, width: int = WIDTH) -> Figure | None:
    """Draw the mean of a metric over the turns of dialogues."""
    series: dict[str, list[Point]] = {}
    for name, est in collect_estimates(run, key).items():
        rows, items = run[name].rows, est.items
        if rows is None or items is None or len(items) != len(rows) or run[name].role != "system":
            continue
        turns = np.arange(len(rows)) - rows.offsets[rows.clusters] + 1 if rows.turns is None else rows.turns
        known = (turns != NO_TURN) & (turns < turns.min(initial=0) + MOST_TURNS)
        found = average_by_bin(turns[known], items[known], rows.clusters[known])
        if len(found) > 1:
            series[name] = found
    if not series:
        return None
    title, notes = f"{_make_title(run, key)} over the turns of a dialogue", ["95% confidence intervals over dialogues."]
    return charts.curves(
        series, title, "turn", shorten(key), name="turns", numbers=markup.number_colors(run), notes=notes, width=width
    )


def draw_trend(run: Run, key: str, width: int = WIDTH) -> Figure | None:
    """Draw a metric over the systems in their order, for versions of one system."""
    estimates = collect_estimates(run, key)
    known = {name: est for name, est in estimates.items() if name not in run.baselines and est.mean == est.mean}
    if len(known) < 2:
        return None
    points = [Point(at, est.mean, *(est.interval or (math.nan, math.nan))) for at, est in enumerate(known.values())]
    title = f"{_make_title(run, key)} from version to version"
    notes = ["Versions in the order in which they were given, with confidence intervals."]
    titles = (title, "version", shorten(key))
    return charts.curves({"value": points}, *titles, name="trend", labels=list(known), notes=notes, width=width)


def draw_scatter(run: Run, key: str, against: str, width: int = WIDTH) -> Figure | None:
    """Draw the per-row scores of one metric against those of another."""
    points = {}
    for name, result in run.items():
        known = [result[name] for name in (against, key) if name in result]
        items = [est.items for est in known if est.items is not None]
        if len(items) == 2 and len(items[0]) == len(items[1]) and result.role == "system":
            points[name] = (items[0], items[1])
    if not points:
        return None
    words = f"{shorten(key)} against {shorten(against)}", shorten(against), shorten(key)
    return charts.scatter(points, *words, numbers=markup.number_colors(run), width=width)


def draw_metric_agreement(
    run: Run, system: str | None = None, width: int | None = None, level: Level = Level.TURN
) -> Figure | None:
    """Draw the rank correlations of metrics over the rows of a system; of the first one unless named."""
    for name, result in run.items():
        if name == (system or name) and (found := make_correlation_matrix(result, level)) is not None:
            keys, matrix = found
            width = width or max(WIDTH, 200 + 42 * len(keys))
            texts = [["" if at == to else show(v, 2) for to, v in enumerate(x)] for at, x in enumerate(matrix)]
            title = f"Agreement between metrics over the rows of {shorten(name)}"
            axis = "Spearman's rank correlation"
            return charts.matrix(matrix, keys, keys, title, axis, name="agreement", texts=texts, width=width)
    return None


def make_correlation_matrix(result: Result, level: Level) -> tuple[list[str], Floats] | None:
    """Return the keys with a value per row and their rank correlations; None for fewer than two."""
    columns: Mapping[str, Floats] = {
        key: est.items
        for key, est in result.items()
        if est.items is not None and est.level is level and len(est.items) >= FEWEST_POINTS
    }
    if len(columns) < 2 or len({len(values) for values in columns.values()}) > 1:
        return None
    return list(columns), spearman_matrix(columns)


def draw_slices(found: Slices, field: str, key: str, width: int = WIDTH) -> Figure | None:
    """Draw the values of a metric by slice and system; cells that differ from the baseline have a frame."""
    parts, systems = found.worst_first(field, key)[:MOST_SLICES], list(found.whole)
    known = [[each.estimate(name, key) for name in systems] for each in parts]
    values = np.array([[math.nan if est is None else est.mean for est in line] for line in known])
    if not np.isfinite(values).any():
        return None
    rows = [[each.difference(name, key) for name in systems] for each in parts]
    marked = np.array([[row is not None and row.significant for row in differences] for differences in rows])
    labels = [f"{shorten(each.label)} ({each.dialogues:,})" for each in parts]
    sign = -1.0 if find_better(found.whole, key) == "lower" else 1.0
    center = float(np.nanmean(values)) if find_better(found.whole, key) else float(np.nanmin(values))
    texts = [[show(value, 2) for value in line] for line in values.tolist()]
    notes = [
        f"In parentheses: {parts[0].unit}. Darker: further from the mean of all cells, teal better and orange worse."
    ]
    if found.comparisons:
        notes.append(f"Framed: differs significantly from {shorten(found.comparisons[0].baseline)}.")
    title = f"{_make_title(found.whole, key)} by {shorten(field)}"
    return charts.matrix(
        sign * values,
        labels,
        systems,
        title,
        "system",
        name="slices",
        center=sign * center,
        texts=texts,
        marked=marked,
        notes=notes,
        width=width,
    )


def draw_causes(run: Run, width: int = WIDTH) -> Figure | None:
    """Draw how many dialogues each system lost by each cause."""
    failures: Mapping[str, Mapping[str, Sequence[str]]] = run.details.get("failures", {})
    causes = dict.fromkeys(cause for mine in failures.values() for cause in mine)
    totals = {cause: sum(len(mine.get(cause, ())) for mine in failures.values()) for cause in causes}
    counts = {
        plain(cause): {system: len(mine.get(cause, ())) for system, mine in failures.items()}
        for cause in sorted(totals, key=lambda cause: -totals[cause])
    }
    title = "Causes of failed dialogues"
    return charts.bars(counts, title, "dialogues", numbers=markup.number_colors(run), width=width) if counts else None


def draw_pass_k(run: Run, width: int = WIDTH) -> Figure | None:
    """Draw pass^k of each system over k."""
    series: dict[str, list[Point]] = {}
    for name, result in run.items():
        for key, est in result.items():
            number = re.fullmatch(r"pass-hat-(\d+)", key)
            if number and math.isfinite(est.mean):
                ends = est.interval or (math.nan, math.nan)
                series.setdefault(name, []).append(Point(float(number[1]), est.mean, *ends))
    if not any(len(each) > 1 for each in series.values()):
        return None
    titles = (
        "Reliability over repeated trials (pass^k)",
        "k: trials of a task that must all pass",
        "fraction of tasks",
    )
    notes = ["95% confidence intervals over tasks."]
    return charts.curves(series, *titles, name="pass-k", numbers=markup.number_colors(run), notes=notes, width=width)


def draw_tasks(run: Run, system: str | None = None, width: int | None = None) -> Figure | None:
    """Draw which trials of each task passed: of one system, or of the first few side by side."""
    systems = [system] if system else [name for name, result in run.items() if result.role == "system"]
    found: dict[str, dict[str, list[float]]] = {}
    for name, trials in run.details.get("trials", {}).items():
        if trials and name in systems and len(found) < MOST_AGENTS:
            own = found.setdefault(name, {})
            for trial in trials:
                reward = math.nan if trial["reward"] is None else float(trial["reward"])
                own.setdefault(trial["task"], []).append(reward)
    if not found:
        return None
    columns = sum(max(map(len, own.values())) for own in found.values())
    title = f"Trials of each task by {shorten(next(iter(found)))}" if len(found) == 1 else "Trials of each task"
    return charts.task_trial_grid(found, title, width=width or max(WIDTH, 150 + 24 * columns))


def draw_wins(run: Run, key: str, width: int = WIDTH) -> Figure | None:
    """Draw how often each system has the better value in a row than each other system, of systems with equal rows."""
    better = find_better(run, key)
    known = {name: est for name, est in collect_estimates(run, key).items() if name not in run.baselines}
    items = {name: est.items for name, est in known.items() if est.items is not None}
    if better is None or len(items) < 2 or len({len(each) for each in items.values()}) > 1:
        return None
    sign = -1.0 if better == "lower" else 1.0

    def count_outcomes(one: Floats, other: Floats) -> tuple[int, int, int]:
        apart = sign * (one - other)
        return int((apart > 0).sum()), int((apart == 0).sum()), int((apart < 0).sum())

    between = {
        name: {other: count_outcomes(own, theirs) for other, theirs in items.items() if other != name}
        for name, own in items.items()
    }
    title = f"Wins by {_make_title(run, key)} over {_find_level(run, key)}s, a tie counting half"
    return charts.win_matrix(between, title, width=width)


_BY_KEY = {
    "means": draw_means,
    "distribution": draw_distribution,
    "turns": draw_turns,
    "trend": draw_trend,
    "wins": draw_wins,
}
_OF_RUN = {"causes": draw_causes, "pass-k": draw_pass_k}
_OF_SYSTEM = {"tasks": draw_tasks, "agreement": draw_metric_agreement}
KINDS = (*_BY_KEY, "scatter", "forest", "slices", *_OF_RUN, *_OF_SYSTEM)
"""Names of the charts of a run."""


def draw_figure(
    run: Run,
    kind: str = "distribution",
    metric: str | None = None,
    *,
    against: str | None = None,
    by: str | None = None,
    system: str | None = None,
    width: float | None = None,
) -> Figure:
    """Return a chart of a run by its name (`KINDS`).

    Args:
        run: The run.
        kind: The name of the chart.
        metric: The metric; the first of the panel unless given.
        against: The second metric of `scatter`; `length` unless given.
        by: The field of `slices`; the first that the run kept unless given.
        system: The system of `forest`, `tasks` and `agreement`; the first that has one, or of `tasks` the first four,
            unless given.
        width: Inches; as wide as in the report unless given.

    Returns:
        The chart.

    Raises:
        SettingError: The run has no numbers for such a chart.
    """
    if kind not in KINDS:
        raise SettingError(f"there is no figure {kind!r}; there are {', '.join(KINDS)}")
    key = metric or next(iter(choose_main_keys(run)), "")
    (key,) = find_keys([key], run.keys_in_order, "the run has no", "it has")
    pixels = WIDTH if width is None else max(_NARROWEST, round(width * PIXELS_PER_INCH))
    drawn: Figure | None
    if kind in _BY_KEY:
        drawn = _BY_KEY[kind](run, key, pixels)
    elif kind in _OF_RUN:
        drawn = _OF_RUN[kind](run, pixels)
    elif kind in _OF_SYSTEM:
        drawn = _OF_SYSTEM[kind](run, system, pixels)
    elif kind == "scatter":
        drawn = draw_scatter(run, key, against or "length", pixels)
    elif kind == "forest":
        comparison = compare(run)
        drawn = draw_differences(comparison, system or comparison.systems[0], pixels)
    else:
        field = by or next(iter(list_kept_fields(run)), "turn")
        drawn = draw_slices(slices(run, field, metrics=[key], compared=len(run) > 1), field, key, pixels)
    if drawn is None:
        raise SettingError(f"the run has no numbers for the figure {kind!r} of {key}")
    return drawn


def write_figures(
    run: Run,
    folder: str | os.PathLike[str],
    form: FigureFormat = "svg",
    width: float | None = None,
    more: Sequence[Figure] = (),
) -> list[Path]:
    """Write the figures of a run into a folder, and return their paths.

    A figure of means and one of distributions per metric; over turns and wins for the metrics of the panel; all others
    that the run has numbers for. `more` are figures that were drawn before, such as those of human evaluation.
    """
    paths: dict[str, Path] = {}
    pixels = WIDTH if width is None else max(_NARROWEST, round(width * PIXELS_PER_INCH))
    for name, drawn in (*_draw_all(run, pixels), *((each.name, each) for each in more)):
        stem = re.sub(r"[^\w.()=,-]+", "-", plain(name)).strip("-.")[:80]  # whatever the metric is called
        stem = re.sub("-{2,}", "-", stem) or "figure"
        numbered = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
        stem = next(each for each in numbered if each not in paths)
        paths[stem] = drawn.save(Path(folder) / f"{stem}.{form}")
    return list(paths.values())


def _draw_all(run: Run, pixels: int) -> Iterator[tuple[str, Figure]]:
    panel = choose_main_keys(run)
    several = len(run) - len(run.baselines) > 1
    for kind, draw in _BY_KEY.items():
        for key in run.keys_in_order if kind in ("means", "distribution") else panel:
            if (several or kind != "trend") and (drawn := draw(run, key, pixels)) is not None:
                yield f"{kind}-{key}", drawn
    others: dict[str, Figure | None] = {kind: draw(run, pixels) for kind, draw in _OF_RUN.items()}
    for name in run:
        others |= {f"{kind}-{name}": draw(run, name, pixels) for kind, draw in _OF_SYSTEM.items()}
    yield from ((name, drawn) for name, drawn in others.items() if drawn is not None)


def draw_metrics(run: Run, prefix: str = "") -> str:
    """Return the charts of each metric: the panel first, the others folded; `prefix`: of the places of metrics."""
    places = {key: f"{prefix}{at}" for at, key in enumerate(run.keys_in_order)}
    panel = [key for key in choose_main_keys(run) if key in places]
    others = [key for key in places if key not in panel]
    content = "".join(_draw_metric(run, places[key], key, panel=True) for key in panel)
    content = f'<div class="metrics">{content}</div>' if panel else ""
    if others:
        inside = "".join(_draw_metric(run, places[key], key) for key in others)
        content += markup.details(markup.count(len(others), "more metric"), f'<div class="metrics">{inside}</div>')
    return content


def _draw_metric(run: Run, place: str, key: str, *, panel: bool = False) -> str:
    spread = None if is_binary(run, key) else draw_distribution(run, key)
    figures = [draw_means(run, key), spread, draw_turns(run, key) if panel else None]
    drawn = "".join(f"<figure>{each.inline}</figure>" for each in figures if each is not None)
    head = f'<h3 class="hidden">{markup.name(key)}{markup.arrow(find_better(run, key))}</h3>'
    return f'<section class="metric" id="metric-{place}">{head}{drawn or markup.note("No value.")}</section>'


def lay_out_figures(drawn: Sequence[Figure | None]) -> str:
    """Return charts next to each other, as many as there is room for."""
    shown = "".join(f"<figure>{each.inline}</figure>" for each in drawn if each is not None)
    return f'<div class="figures">{shown}</div>' if shown else ""
