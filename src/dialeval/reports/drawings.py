"""The charts of a run: the numbers that each shows, the section of the report that has them, and files for papers.

    draw_figure(run, "distribution", "bleu-4")    a chart by its name (`KINDS`), as `Run.plot` gives it
    write_figures(run, "figures", "pdf", 3.3)     every chart that the run has numbers for, 3.3 inches wide

`charts` draws; this module only selects columns.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dialeval.analysis.comparison import compare
from dialeval.analysis.pairing import choose_main_keys, find_keys
from dialeval.analysis.values import find_better
from dialeval.core.errors import SettingError
from dialeval.core.fold import Level
from dialeval.core.rowtable import NO_TURN
from dialeval.reports import charts, markup
from dialeval.reports.canvas import PIXELS_PER_INCH, WIDTH, Figure, FigureFormat
from dialeval.reports.charts import Mark, Point, average_by_bin
from dialeval.reports.comparisons import choose_class, standardize_interval
from dialeval.reports.formatting import plain, shorten
from dialeval.reports.tables import ARROWS

if TYPE_CHECKING:
    from dialeval.analysis.comparison import Comparison
    from dialeval.core.fold import Estimate
    from dialeval.core.result import Run

MOST_TURNS = 30
"""Turns of the chart of scores over turns; later ones are left out."""
_NARROWEST = 240


def collect_estimates(run: Run, key: str) -> dict[str, Estimate]:
    """Return the estimates of one metric by system."""
    return {name: result[key] for name, result in run.items() if key in result}


def _make_point(x: float, estimate: Estimate) -> Point:
    return Point(x, estimate.mean, *(estimate.interval or (math.nan, math.nan)))


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
    items = {name: est.scores for name, est in collect_estimates(run, key).items() if est.scores is not None}
    unit = f"{_find_level(run, key)}s"
    titles = f"{_make_title(run, key)} of single {unit}", _make_axis_title(run, key)
    return charts.distribution(items, *titles, unit=unit, numbers=markup.number_colors(run), width=width)


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


def draw_turns(run: Run, key: str, width: int = WIDTH) -> Figure | None:
    """Draw the mean of a metric over the turns of dialogues."""
    series: dict[str, list[Point]] = {}
    for name, est in collect_estimates(run, key).items():
        rows, items = run[name].table, est.scores
        if rows is None or items is None or len(items) != len(rows) or run[name].role != "system":
            continue
        turns = np.arange(len(rows)) - rows.offsets[rows.clusters] + 1 if rows.turns is None else rows.turns
        drawn = (turns != NO_TURN) & (turns < turns.min(initial=0) + MOST_TURNS)
        points = average_by_bin(turns[drawn], items[drawn], rows.clusters[drawn])
        series |= {name: points} if len(points) > 1 else {}
    if not series:
        return None
    titles = f"{_make_title(run, key)} over the turns of a dialogue", "turn", shorten(key)
    notes, numbers = ["95% confidence intervals over dialogues."], markup.number_colors(run)
    return charts.curves(series, *titles, name="turns", numbers=numbers, notes=notes, width=width)


def draw_pass_k(run: Run, width: int = WIDTH) -> Figure | None:
    """Draw pass^k of each system over k."""
    series: dict[str, list[Point]] = {}
    for name, result in run.items():
        for key, est in result.items():
            number = re.fullmatch(r"pass-hat-(\d+)", key)
            if number and math.isfinite(est.mean):
                series.setdefault(name, []).append(_make_point(float(number[1]), est))
    if not any(len(points) > 1 for points in series.values()):
        return None
    x_title, y_title = "k: trials of a task that must all pass", "fraction of tasks"
    titles = "Reliability over repeated trials (pass^k)", x_title, y_title
    notes = ["95% confidence intervals over tasks."]
    return charts.curves(series, *titles, name="pass-k", numbers=markup.number_colors(run), notes=notes, width=width)


_OF_METRIC = {"means": draw_means, "distribution": draw_distribution, "turns": draw_turns}
KINDS = (*_OF_METRIC, "forest", "pass-k")
"""Names of the charts of a run."""


def draw_figure(
    run: Run,
    kind: str = "distribution",
    metric: str | None = None,
    *,
    system: str | None = None,
    width: float | None = None,
) -> Figure:
    """Return a chart of a run by its name (`KINDS`).

    Args:
        run: The run.
        kind: The name of the chart.
        metric: The metric; the first of the panel unless given.
        system: The system of `forest`; the first that is compared unless given.
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
    pixels = _to_pixels(width)
    if kind in _OF_METRIC:
        drawn = _OF_METRIC[kind](run, key, pixels)
    elif kind == "pass-k":
        drawn = draw_pass_k(run, pixels)
    else:
        comparison = compare(run)
        drawn = draw_differences(comparison, system or comparison.systems[0], pixels)
    if drawn is None:
        raise SettingError(f"the run has no numbers for the figure {kind!r} of {key}")
    return drawn


def write_figures(
    run: Run,
    folder: str | os.PathLike[str],
    form: FigureFormat = "svg",
    width: float | None = None,
    more: Sequence[Figure] = (),
    every: bool = False,
) -> list[Path]:
    """Write the figures of a run for a paper into a folder, on white and without titles, and return their paths.

    Four by default: differences to the baseline, and means, distributions and turns under the main metric. `every`:
    means and distributions per metric, turns for the metrics of the panel, and pass^k. `more` are figures that were
    drawn before, such as those of human evaluation.
    """
    paths: dict[str, Path] = {}
    draw = _draw_all if every else _draw_main
    for name, drawn in (*draw(run, _to_pixels(width)), *((figure.name, figure) for figure in more)):
        stem = re.sub(r"[^\w.()=,-]+", "-", plain(name)).strip("-.")[:80]  # whatever the metric is called
        stem = re.sub("-{2,}", "-", stem) or "figure"
        numbered = (stem, *(f"{stem}-{number}" for number in range(2, len(paths) + 2)))
        stem = next(name for name in numbered if name not in paths)
        paths[stem] = drawn.without_title().save(Path(folder) / f"{stem}.{form}")
    return list(paths.values())


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
        charts_of = {
            "means": draw_means(run, key, pixels, ranked=True),
            "distribution": draw_distribution(run, key, pixels),
            "turns": draw_turns(run, key, pixels),
        }
        yield from ((f"{kind}-{key}", drawn) for kind, drawn in charts_of.items() if drawn is not None)


def _draw_all(run: Run, pixels: int) -> Iterator[tuple[str, Figure]]:
    panel = choose_main_keys(run)
    for kind, draw in _OF_METRIC.items():
        for key in panel if kind == "turns" else run.keys_in_order:
            if (drawn := draw(run, key, pixels)) is not None:
                yield f"{kind}-{key}", drawn
    if (drawn := draw_pass_k(run, pixels)) is not None:
        yield "pass-k", drawn


def lay_out_figures(drawn: Sequence[Figure | None]) -> str:
    """Return charts next to each other, as many as there is room for."""
    shown = "".join(f"<figure>{figure.inline}</figure>" for figure in drawn if figure is not None)
    return f'<div class="figures">{shown}</div>' if shown else ""
