"""Charts: arrays in, SVG out. No chart knows a run, a file or a page.

    distribution({"a": values, "b": values}, "BLEU-4 of each response", "BLEU-4")     -> Figure
    forest(marks, ...), calibration(...), curves(...)

Functions have the names of their charts, as in plotting libraries. Every chart has a title, axis titles, names next
to what they name, and a description in words for screen readers. `canvas` draws the parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.reports import canvas
from dialeval.reports.canvas import WIDTH, Canvas, ChartScale, Figure, get_color_class, make_dot, make_line
from dialeval.reports.formatting import count_supported_decimals, shorten, show, show_rounded
from dialeval.stats.intervals import DEFAULT_LEVEL, student, t_factor, wilson

BINS = 24
LABEL = 14.0
"""Pixels between the names of two lines."""
MOST_INTERVALS = 6
"""Systems of a chart of lines with intervals."""
Colors: TypeAlias = Mapping[str, str] | None
"""By system the class of its color; None: systems in their order."""


class Mark(NamedTuple):
    """A value with its interval, on a line of its own."""

    label: str
    value: float
    interval: tuple[float, float] | None = None
    kind: str = "own-0"
    """Class of its color: `own-N`, or `up`, `down`, `other`, `unsettled` of a difference."""


class Point(NamedTuple):
    """A value over some x, such as the mean of a bin, with its interval; NaN where there is none."""

    x: float
    y: float
    low: float = math.nan
    high: float = math.nan


def average_by_bin(bins: Ints, values: Floats, clusters: Ints | None = None) -> list[Point]:
    """Return the mean of the values of each bin with its interval: clustered standard errors, Wilson for 0 and 1.

    A bin with values of fewer than two clusters has no interval (NaN).
    """
    points = []
    clusters = np.arange(len(values)) if clusters is None else clusters
    scored = np.isfinite(values)
    for at in np.unique(bins[scored]):
        inside = (bins == at) & scored
        scores, groups = values[inside], np.unique(clusters[inside], return_inverse=True)[1]
        mean, interval = float(scores.mean()), (math.nan, math.nan)
        number = int(groups.max()) + 1
        if number > 1:
            residuals = np.bincount(groups, scores - mean)
            error = math.sqrt(float((residuals**2).sum()) * number / (number - 1)) / len(scores)
            t = t_factor(DEFAULT_LEVEL, number - 1)
            if np.isin(scores, (0.0, 1.0)).all():
                size = mean * (1 - mean) / error**2 if error > 0 else float(number)
                interval = wilson(mean, size, (0.0, 1.0), t)
            else:
                interval = student(mean, error, (-math.inf, math.inf), t)
        points.append(Point(float(at), mean, *interval))
    return points


def assign_quantile_bins(values: Floats, most: int = 10) -> Ints:
    """Return the number of the quantile bin of each value; equal values share a bin."""
    finite = values[np.isfinite(values)]
    edges = np.unique(np.quantile(finite, np.linspace(0, 1, most + 1)[1:-1])) if len(finite) else np.zeros(0)
    return np.searchsorted(edges, values, side="right").astype(np.int64)


def _choose_colors(names: Iterable[str], colors: Colors) -> Mapping[str, str]:
    return {name: get_color_class(at) for at, name in enumerate(names)} if colors is None else colors


def forest(
    marks: Sequence[Mark], title: str, axis: str, *, zero: bool = False, notes: Sequence[str] = (), width: int = WIDTH
) -> Figure:
    """Draw values with intervals below each other; `zero`: with a line at 0, for differences."""
    chart = Canvas("forest", title, width)
    values = [end for mark in marks for end in (mark.value, *(mark.interval or ()))] + [0.0] * zero
    has_figures = width >= 400
    left = chart.measure_labels([mark.label for mark in marks])
    figures = [show_rounded(mark.value, mark.interval, signed=zero) for mark in marks]
    right = 6.4 * max(map(len, figures), default=0) + 12 if has_figures else 8
    scale = ChartScale.from_values(values, width - left - right, 10) or ChartScale(0, 1, 100, 10)
    top, bottom = chart.y, chart.y + 24 * len(marks)
    chart.parts.append(canvas.draw_ticks(scale, left, top, bottom))
    chart.parts += [make_line("zero", left + scale(0), top, left + scale(0), bottom)] * zero
    for at, (mark, figure) in enumerate(zip(marks, figures, strict=True)):
        y, about, elements = top + 24 * at + 12, f"{shorten(mark.label)}: {figure}", []
        chart.write(0, y + 4, mark.label, room=left - 6)
        chart.words.append(f"{about}.")
        if mark.interval is not None and all(map(math.isfinite, mark.interval)):
            low, high = (left + scale(end) for end in mark.interval)
            elements = [make_line("range", low, y, high, y)]
            elements += [make_line("range", x, y - 4, x, y + 4) for x in (low, high)]
        if math.isfinite(mark.value):
            elements.append(make_dot("mean", left + scale(mark.value), y))
        chart.draw_group(mark.kind, about, *elements)
        if has_figures:
            chart.write(width - right + 6, y + 4, figure, "number", width)
    chart.y = bottom + 18
    chart.write_axis_title(left + scale.width / 2, axis, width - left)
    chart.write_notes(*notes)
    return chart.to_figure()


def distribution(
    values: Mapping[str, Floats],
    title: str,
    axis: str,
    *,
    unit: str = "rows",
    colors: Colors = None,
    width: int = WIDTH,
) -> Figure | None:
    """Draw a histogram per system on one scale, with a line at its mean; None where there is no value."""
    scored = {name: scores[np.isfinite(scores)] for name, scores in values.items()}
    items = {name: scores for name, scores in scored.items() if len(scores)}
    chart, colors = Canvas("distribution", title, width), _choose_colors(values, colors)
    left = chart.measure_labels([*items, "mean 0.0000"])
    ends = [float(end(scores)) for scores in items.values() for end in (np.min, np.max)]
    scale = ChartScale.from_values(ends, width - left - 6, 6)
    if scale is None:
        return None
    edges = _choose_bin_edges(items.values(), scale)
    scale = ChartScale(min(scale.low, edges[0]), max(scale.high, edges[-1]), scale.width, scale.margin)
    fractions = {name: np.histogram(scores, edges)[0] / len(scores) for name, scores in items.items()}
    tallest = max(float(heights.max()) for heights in fractions.values())
    height = 42 if len(items) <= 12 else 26
    for name, heights in fractions.items():
        base, mean = chart.y + height - 4, float(items[name].mean())
        points = []
        for (low, high), fraction in zip(pairwise(edges.tolist()), heights.tolist(), strict=True):
            tall = max(1.0, (height - 8) * fraction / tallest) if fraction else 0.0  # what occurs is seen
            points.append(f"{left + scale(low):.1f},{base - tall:.1f} {left + scale(high):.1f},{base - tall:.1f}")
        around = f"{left + scale(edges[0]):.1f},{base} {' '.join(points)} {left + scale(edges[-1]):.1f},{base}"
        where = f"mean {show(mean, count_supported_decimals((scale.low, scale.high)) or 0)}"
        about = f"{shorten(name)}: {where}, {len(items[name]):,} {unit}"
        line = make_line("range", left + scale(mean), base - height + 8, left + scale(mean), base + 3)
        chart.draw_group(colors[name], about, f'<polygon class="bar" points="{around}"/>', line)
        chart.parts.append(make_line("grid", left, base, width, base))
        chart.write(0, base - 16 if height > 30 else base - 3, name, room=left - 6)
        if height > 30:
            chart.write(0, base - 2, where, "small", left - 6)
        chart.words.append(f"{about}.")
        chart.y += height
    for tick in scale.ticks:
        chart.write(left + scale(tick), chart.y + 12, canvas.show_tick(tick), "m")
    chart.write(left + scale.width / 2, chart.y + 28, axis, "axis-title", scale.width)
    chart.y += 32
    chart.write_notes(f"Height: fraction of {unit}; the tallest bar is {100 * tallest:.0f}%. Line: mean.")
    return chart.to_figure()


def _choose_bin_edges(columns: Iterable[Floats], scale: ChartScale) -> Floats:
    """Return the ends of bins: one for each whole number where there are few and no others, equal ones elsewhere."""
    if scale.high - scale.low <= BINS and all(bool((scores == np.round(scores)).all()) for scores in columns):
        return np.arange(math.floor(scale.low) - 0.5, math.ceil(scale.high) + 1)
    return np.linspace(scale.low, scale.high, BINS + 1)


def calibration(
    predicted: Floats,
    observed: Floats,
    title: str,
    x_title: str,
    y_title: str,
    *,
    clusters: Ints | None = None,
    width: int = WIDTH,
) -> Figure:
    """Draw the mean of observed values by tenths of predicted ones."""
    pairs = np.isfinite(predicted) & np.isfinite(observed)
    bins = assign_quantile_bins(predicted[pairs])
    means = {point.x: point.y for point in average_by_bin(bins, predicted[pairs])}
    points = average_by_bin(bins, observed[pairs], None if clusters is None else clusters[pairs])
    series = [point._replace(x=means[point.x]) for point in points]
    notes = [f"{int(pairs.sum()):,} rows in tenths of the predicted value, with 95% confidence intervals."]
    return curves({"all rows": series}, title, x_title, y_title, name="calibration", notes=notes, width=width)


def curves(
    series: Mapping[str, Sequence[Point]],
    title: str,
    x_title: str,
    y_title: str,
    *,
    name: str = "curves",
    colors: Colors = None,
    notes: Sequence[str] = (),
    width: int = WIDTH,
) -> Figure:
    """Draw a line per system with intervals, its name at its end: score over turns, pass^k over k."""
    colors = _choose_colors(series, colors)
    chart = Canvas(name, title, width)
    xs = [point.x for points in series.values() for point in points]
    ys = [y for points in series.values() for point in points for y in point[1:]]
    right = chart.measure_labels(series) if len(series) > 1 else 14.0
    area = chart.draw_axes(xs, ys, (x_title, y_title), right, max(210.0, LABEL * len(series)))
    crowded = len(series) > MOST_INTERVALS
    ends = []
    for number, (system, points) in enumerate(series.items()):
        # A little to the side, so that intervals of several systems do not hide each other.
        pixels = (number - (len(series) - 1) / 2) * min(3.0, 16 / len(series))
        aside = pixels * (area.x.high - area.x.low) / max(1.0, area.width)
        elements = [
            make_line("range thin", *area(x + aside, low), *area(x + aside, high))
            for x, _, low, high in points
            if math.isfinite(low) and math.isfinite(high) and not crowded
        ]
        places = [area(point.x + aside, point.y) for point in points if math.isfinite(point.y)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        elements += [f'<polyline class="curve" points="{line}"/>'] if len(places) > 1 else []
        elements += [make_dot("mean", *place, 3.5) for place in places]
        chart.draw_group(colors[system], "", *elements)
        values = [show(point.y, 3) for point in (points[0], points[-1])] if points else ["–", "–"]
        chart.words.append(f"{shorten(system)}: from {values[0]} to {values[1]}.")
        ends += [(places[-1][1], system)] if places and len(series) > 1 else []
    y = area.top - LABEL
    for at, (end, system) in enumerate(sorted(ends)):
        lowest = area.top + area.height - LABEL * (len(ends) - 1 - at)
        y = max(y + LABEL, min(end, lowest))
        chart.write(area.left + area.width, y + 4, system, colors[system], right)
    chart.write_notes(*([f"Intervals of more than {MOST_INTERVALS} systems are left out."] if crowded else notes))
    return chart.to_figure()
