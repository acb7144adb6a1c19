"""The charts of a run: the numbers that each shows, the section of the report that has them, and files for papers.

    draw_figure(run, "distribution", "bleu-4")    a chart by its name (`KINDS`), as `Run.plot` gives it
    write_figures(run, "figures", "pdf", 3.3)     the charts of most papers, 3.3 inches wide

`charts` draws; this module only selects columns.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from dialeval.analysis.comparison import Comparison, compare
from dialeval.analysis.pairing import choose_main_keys, find_keys
from dialeval.analysis.values import find_better
from dialeval.analysis.verdict import Decision, decide
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Run
from dialeval.core.rowtable import NO_TURN
from dialeval.reports import charts
from dialeval.reports.charts import PIXELS_PER_INCH, WIDTH, Figure, FigureFormat, Mark, Point
from dialeval.reports.comparisons import standardize_interval
from dialeval.reports.formatting import plain, shorten
from dialeval.reports.tables import ARROWS

MOST_TURNS = 30
"""Turns of the chart of scores over turns; later ones are left out."""
_NARROWEST = 240
_KINDS: Mapping[Decision, str] = {"better": "up", "worse": "down", "different": "other"}
"""Classes of differences."""


def assign_colors(run: Run) -> dict[str, str]:
    """Return the class of each system's color; floors and ceilings have a common one."""
    systems = [name for name, result in run.items() if result.role == "system"]
    return {name: charts.get_color_class(systems.index(name) if name in systems else -1) for name in run}


def collect_estimates(run: Run, key: str) -> dict[str, Estimate]:
    """Return the estimates of one metric by system."""
    return {name: result[key] for name, result in run.items() if key in result}


def _make_title(run: Run, key: str) -> str:
    return f"{shorten(key)}{ARROWS[find_better(run, key)]}"


def _make_axis_title(run: Run, key: str) -> str:
    better = find_better(run, key)
    return shorten(key) if better is None else f"{shorten(key)} ({better} is better)"


def draw_means(run: Run, key: str, width: int = WIDTH) -> Figure | None:
    """Draw the value of each system under a key with its confidence interval, the highest first."""
    colors, values = assign_colors(run), collect_estimates(run, key).items()
    marks = [Mark(name, est.mean, est.interval, colors[name]) for name, est in values if math.isfinite(est.mean)]
    marks = sorted(marks, key=lambda mark: -mark.value)
    title = f"{_make_title(run, key)}, by system"
    return charts.forest(marks, title, _make_axis_title(run, key), width=width) if marks else None


def draw_distribution(run: Run, key: str, width: int = WIDTH) -> Figure | None:
    """Draw how the per-row scores of each system are distributed."""
    scored = {name: est for name, est in collect_estimates(run, key).items() if est.scores is not None}
    unit = f"{next(iter(scored.values())).level}s" if scored else "rows"
    items = {name: est.scores for name, est in scored.items() if est.scores is not None}
    titles = f"{_make_title(run, key)} of single {unit}", _make_axis_title(run, key)
    return charts.distribution(items, *titles, unit=unit, colors=assign_colors(run), width=width)


def draw_differences(comparison: Comparison, system: str, width: int = WIDTH) -> Figure | None:
    """Draw the differences of a system to the baseline, metric by metric, in standard deviations."""
    marks = [
        Mark(row.key, ends[1], (ends[0], ends[2]), _KINDS.get(decide(row), "unsettled"))
        for row in comparison.of(system)
        if row.better is not None and (ends := standardize_interval(row)) is not None
    ]
    title = f"{shorten(system)} against {shorten(comparison.baseline)}"
    axis = "difference in standard deviations, better to the right"
    note = f"Intervals: {100 * comparison.confidence:g}%. Green: better, red: worse, gray: no significant difference."
    return charts.forest(marks, title, axis, zero=True, notes=[note], width=width) if marks else None


def draw_forest(run: Run, _key: str = "", width: int = WIDTH) -> Figure | None:
    """Draw the differences of the first system that is compared."""
    comparison = compare(run)
    return draw_differences(comparison, comparison.systems[0], width)


def draw_turns(run: Run, key: str, width: int = WIDTH) -> Figure | None:
    """Draw the mean of a metric over the turns of dialogues."""
    series: dict[str, list[Point]] = {}
    for name, est in collect_estimates(run, key).items():
        rows, items = run[name].table, est.scores
        if rows is None or items is None or len(items) != len(rows) or run[name].role != "system":
            continue
        turns = np.arange(len(rows)) - rows.offsets[rows.clusters] + 1 if rows.turns is None else rows.turns
        drawn = (turns != NO_TURN) & (turns < turns.min(initial=0) + MOST_TURNS)
        points = charts.average_by_bin(turns[drawn], items[drawn], rows.clusters[drawn])
        series |= {name: points} if len(points) > 1 else {}
    if not series:
        return None
    titles = f"{_make_title(run, key)} over the turns of a dialogue", "turn", shorten(key)
    notes, colors = ["95% confidence intervals over dialogues."], assign_colors(run)
    return charts.curves(series, *titles, name="turns", colors=colors, notes=notes, width=width)


def draw_pass_k(run: Run, _key: str = "", width: int = WIDTH) -> Figure | None:
    """Draw pass^k of each system over k."""
    series: dict[str, list[Point]] = {}
    for name, result in run.items():
        for key, est in result.items():
            number = re.fullmatch(r"pass-hat-(\d+)", key)
            if number and math.isfinite(est.mean):
                ends = est.interval or (math.nan, math.nan)
                series.setdefault(name, []).append(Point(float(number[1]), est.mean, *ends))
    if not any(len(points) > 1 for points in series.values()):
        return None
    x_title, y_title = "k: trials of a task that must all pass", "fraction of tasks"
    titles = "Reliability over repeated trials (pass^k)", x_title, y_title
    notes, colors = ["95% confidence intervals over tasks."], assign_colors(run)
    return charts.curves(series, *titles, name="pass-k", colors=colors, notes=notes, width=width)


KINDS: Mapping[str, Callable[[Run, str, int], Figure | None]] = {
    "means": draw_means,
    "distribution": draw_distribution,
    "turns": draw_turns,
    "forest": draw_forest,
    "pass-k": draw_pass_k,
}
"""The charts of a run by name: functions of run, metric and width."""


def draw_figure(
    run: Run,
    kind: str = "distribution",
    metric: str | None = None,
    *,
    width: float | None = None,
) -> Figure:
    """Return a chart of a run by its name (`KINDS`).

    Args:
        run: The run.
        kind: The name of the chart.
        metric: The metric; the first of the panel unless given.
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
    drawn = KINDS[kind](run, key, _to_pixels(width))
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
    """Write the figures of a run for a paper into a folder, on white and without titles, and return their paths.

    Differences to the baseline, and means, distributions and turns under the main metric. `more` are figures that were
    drawn before, such as those of human evaluation.
    """
    paths = []
    for name, drawn in (*_draw_main(run, _to_pixels(width)), *((figure.name, figure) for figure in more)):
        stem = re.sub(r"[^\w.()=,]+", "-", plain(name)).strip("-.")[:80]  # whatever the metric is called
        paths.append(drawn.without_title().save(Path(folder) / f"{stem}.{form}"))
    return paths


def _to_pixels(width: float | None) -> int:
    """Return pixels from inches; None: as wide as in the report."""
    return WIDTH if width is None else max(_NARROWEST, round(width * PIXELS_PER_INCH))


def _draw_main(run: Run, pixels: int) -> Iterator[tuple[str, Figure]]:
    """Yield the figures that most papers need, the differences of two systems first."""
    if len(run) - len(run.baselines) == 2:
        with suppress(SettingError):  # systems that cannot be compared
            comparison = compare(run, metrics=choose_main_keys(run))
            if (drawn := draw_differences(comparison, comparison.systems[0], pixels)) is not None:
                yield "differences", drawn
    for key in choose_main_keys(run)[:1]:
        for kind in ("means", "distribution", "turns"):
            if (figure := KINDS[kind](run, key, pixels)) is not None:
                yield f"{kind}-{key}", figure
