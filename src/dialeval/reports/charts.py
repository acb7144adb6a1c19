"""Charts: arrays in, SVG out. No chart knows a run, a file or a page.

    distribution({"a": values, "b": values}, "BLEU-4 of each response", "BLEU-4")     -> Figure
    forest(marks, ...), scatter(...), calibration(...), win_matrix(...), curves(...)

Functions have the names of their charts, as in plotting libraries. Every chart has a title, axis titles, a legend
where a color has a meaning, and a description in words for screen readers. `canvas` draws the parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.reports import canvas
from dialeval.reports.canvas import SHAPES, WIDTH, Canvas, ChartScale, Figure, draw_marker, get_color_class
from dialeval.reports.formatting import count_supported_decimals, shorten, show, show_rounded
from dialeval.stats.correlation import pearson, rank_values
from dialeval.stats.intervals import DEFAULT_LEVEL, student, t_factor, wilson

BINS = 24
MOST_POINTS = 1_500
"""Points of a scatter plot; of more a random part is drawn."""
MOST_INTERVALS = 6
"""Systems of a chart of lines with intervals."""
Numbers: TypeAlias = Mapping[str, int] | None
"""By system the number of its color and shape, below 0 for a floor or ceiling; None: systems in their order."""


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


def _number_systems(names: Iterable[str], numbers: Numbers) -> dict[str, int]:
    return {name: at if numbers is None else numbers.get(name, -1) for at, name in enumerate(names)}


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
    for tick in scale.ticks:
        chart.draw_line(left + scale(tick), top, left + scale(tick), bottom, "grid")
        chart.write(left + scale(tick), bottom + 14, canvas.show_tick(tick), "tick")
    if zero:
        chart.draw_line(left + scale(0), top, left + scale(0), bottom, "zero")
    for at, (mark, figure) in enumerate(zip(marks, figures, strict=True)):
        y, about, elements = top + 24 * at + 12, f"{shorten(mark.label)}: {figure}", []
        chart.write(0, y + 4, mark.label, room=left - 6)
        chart.words.append(f"{about}.")
        if mark.interval is not None and all(map(math.isfinite, mark.interval)):
            low, high = (left + scale(end) for end in mark.interval)
            elements = [canvas.make_line(low, y, high, y, "range")]
            elements += [canvas.make_line(x, y - 4, x, y + 4, "range") for x in (low, high)]
        if math.isfinite(mark.value):
            elements.append(draw_marker(left + scale(mark.value), y, 0))
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
    numbers: Numbers = None,
    width: int = WIDTH,
) -> Figure | None:
    """Draw a histogram per system on one scale, with a line at its mean; None where there is no value."""
    scored = {name: scores[np.isfinite(scores)] for name, scores in values.items()}
    items = {name: scores for name, scores in scored.items() if len(scores)}
    chart, colors = Canvas("distribution", title, width), _number_systems(values, numbers)
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
        line = canvas.make_line(left + scale(mean), base - height + 8, left + scale(mean), base + 3, "range")
        chart.draw_group(get_color_class(colors[name]), about, f'<polygon class="bar" points="{around}"/>', line)
        chart.draw_line(left, base, width, base, "grid")
        chart.write(0, base - 16 if height > 30 else base - 3, name, room=left - 6)
        if height > 30:
            chart.write(0, base - 2, where, "small", left - 6)
        chart.words.append(f"{about}.")
        chart.y += height
    for tick in scale.ticks:
        chart.write(left + scale(tick), chart.y + 12, canvas.show_tick(tick), "tick")
    chart.write(left + scale.width / 2, chart.y + 28, axis, "axis-title", scale.width)
    chart.y += 32
    chart.write_notes(f"Height: fraction of {unit}; the tallest bar is {100 * tallest:.0f}%. Line: mean.")
    return chart.to_figure()


def _choose_bin_edges(columns: Iterable[Floats], scale: ChartScale) -> Floats:
    """Return the ends of bins: one for each whole number where there are few and no others, equal ones elsewhere."""
    if scale.high - scale.low <= BINS and all(bool((scores == np.round(scores)).all()) for scores in columns):
        return np.arange(math.floor(scale.low) - 0.5, math.ceil(scale.high) + 1)
    return np.linspace(scale.low, scale.high, BINS + 1)


def scatter(
    points: Mapping[str, tuple[Floats, Floats]],
    title: str,
    x_title: str,
    y_title: str,
    *,
    numbers: Numbers = None,
    width: int = WIDTH,
) -> Figure:
    """Draw points of systems and state Pearson's r and Spearman's rho over all of them."""
    colors = _number_systems(points, numbers)
    scored = {name: np.isfinite(x) & np.isfinite(y) for name, (x, y) in points.items()}
    xs, ys = (np.concatenate([np.zeros(0), *(points[n][at][mask] for n, mask in scored.items())]) for at in (0, 1))
    chart = Canvas("scatter", title, width)
    if len(points) > 1:
        chart.draw_legend(list(points), colors)
    area = chart.draw_axes(xs.tolist(), ys.tolist(), x_title, y_title)
    part = min(1.0, MOST_POINTS / max(1, len(xs)))
    random = np.random.default_rng(0)
    for name, (x, y) in points.items():
        drawn = scored[name] & (random.random(len(x)) < part)
        places = (area(one, two) for one, two in zip(x[drawn].tolist(), y[drawn].tolist(), strict=True))
        dots = (draw_marker(*place, colors[name], 2.5) for place in places)
        chart.draw_group(f"{get_color_class(colors[name])} points", "", *dots)
    words = f"{len(xs):,} points"
    if len(xs) > 2:
        rho = pearson(rank_values(xs), rank_values(ys))
        words += f"; Pearson's r {show(pearson(xs, ys), 2)}, Spearman's rho {show(rho, 2)}"
    chart.words.append(f"{words}.")
    chart.write_notes(f"{words}." + (f" {MOST_POINTS:,} of them are drawn, sampled at random." if part < 1 else ""))
    return chart.to_figure()


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
    series = _average_by_quantile(predicted[pairs], observed[pairs], 10, None if clusters is None else clusters[pairs])
    notes = [f"{int(pairs.sum()):,} rows in tenths of the predicted value, with 95% confidence intervals."]
    return curves({"all rows": series}, title, x_title, y_title, name="calibration", notes=notes, width=width)


def _average_by_quantile(x: Floats, y: Floats, most: int, clusters: Ints | None) -> list[Point]:
    """Return the mean of y in the quantile bins of x, at the mean of x."""
    bins = assign_quantile_bins(x, most)
    means = {point.x: point.y for point in average_by_bin(bins, x)}
    return [point._replace(x=means[point.x]) for point in average_by_bin(bins, y, clusters)]


def curves(
    series: Mapping[str, Sequence[Point]],
    title: str,
    x_title: str,
    y_title: str,
    *,
    name: str = "curves",
    numbers: Numbers = None,
    notes: Sequence[str] = (),
    width: int = WIDTH,
) -> Figure:
    """Draw a line per system with intervals: score over turns, pass^k over k."""
    colors = _number_systems(series, numbers)
    chart = Canvas(name, title, width)
    if len(series) > 1:
        chart.draw_legend(list(series), colors, dashes=True)
    xs = [point.x for points in series.values() for point in points]
    ys = [y for points in series.values() for point in points for y in point[1:]]
    area = chart.draw_axes(xs, ys, x_title, y_title)
    crowded = len(series) > MOST_INTERVALS
    for system, points in series.items():
        number = colors[system]
        # A little to the side, so that intervals of several systems do not hide each other.
        pixels = (number - (len(series) - 1) / 2) * min(3.0, 16 / len(series))
        aside = pixels * (area.x.high - area.x.low) / max(1.0, area.width)
        elements = [
            canvas.make_line(*area(x + aside, low), *area(x + aside, high), "range thin")
            for x, _, low, high in points
            if math.isfinite(low) and math.isfinite(high) and not crowded
        ]
        places = [area(point.x + aside, point.y) for point in points if math.isfinite(point.y)]
        if len(places) > 1:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            elements.append(f'<polyline class="curve dash-{number % SHAPES}" points="{line}"/>')
        elements += [draw_marker(*place, number, 3.5) for place in places]
        chart.draw_group(get_color_class(number), "", *elements)
        ends = [show(point.y, 3) for point in (points[0], points[-1])] if points else ["–", "–"]
        chart.words.append(f"{shorten(system)}: from {ends[0]} to {ends[1]}.")
    chart.write_notes(*([f"Intervals of more than {MOST_INTERVALS} systems are left out."] if crowded else notes))
    return chart.to_figure()


def win_matrix(
    between: Mapping[str, Mapping[str, tuple[int, int, int]]],
    title: str = "Wins between systems, a tie counting half",
    *,
    width: int = WIDTH,
) -> Figure:
    """Draw the fraction of comparisons (wins, ties, losses) that each system wins against each other one.

    Cells are darker further from one half; those whose interval does not contain it have a frame.
    """
    systems = list(between)
    chart = Canvas("wins", title, width)
    left = chart.measure_labels(systems)
    size = (width - left) / max(1, len(systems))
    slanted = any(chart.measure_text(name) > size - 4 for name in systems)
    size = (width - left - 48) / max(1, len(systems)) if slanted else size  # room for the last title
    chart.y += 74 if slanted else 16
    for at, name in enumerate(systems):
        x = left + size * (at + 0.5)
        if slanted:
            chart.write_rotated(x, chart.y - 6, -50, name, "tick start", 92)
        else:
            chart.write(x, chart.y - 5, name, "tick", size)
    for one in systems:
        chart.write(0, chart.y + 24, one, room=left - 8)
        for place, other in enumerate(systems):
            wins, ties, losses = between[one].get(other, (0, 0, 0)) if one != other else (0, 0, 0)
            if not (total := wins + ties + losses):
                continue
            value, x = (wins + ties / 2) / total, left + size * place
            low, high = wilson(value, total, (0.0, 1.0), t_factor(DEFAULT_LEVEL, math.inf))
            lines = f"{100 * value:.0f}%", f"[{100 * low:.0f}, {100 * high:.0f}]"
            kind = ("less" if value < 0.5 else "more") + (" marked" if low > 0.5 or high < 0.5 else "")
            about = f"{shorten(one)}, {shorten(other)}: {' '.join(lines)}"
            box = f'x="{x + 1:.1f}" y="{chart.y + 1:.1f}" width="{size - 2:.1f}" height="38"'
            opacity = f'fill-opacity="{1.2 * abs(value - 0.5):.2f}"'
            chart.draw_group("", about, f'<rect class="{kind}" {opacity} {box}/>')
            for number, line in enumerate(lines if chart.measure_text(lines[1]) <= size else ()):
                chart.write(
                    x + size / 2, chart.y + 18 + 14 * number, line, "cell small" if number else "cell", size + 8
                )
            chart.words.append(f"{about}{' (marked)' if 'marked' in kind else ''}.")
        chart.y += 40
    chart.write(left + (width - left) / 2, chart.y + 16, "against", "axis-title", width - left)
    chart.y += 20
    chart.write_notes(
        "Rows win against columns. In brackets: 95% Wilson interval in percent. Framed: it does not contain 50%."
    )
    return chart.to_figure()


def length_preference(ratio: Floats, preferred: Floats, *, width: int = WIDTH) -> Figure:
    """Draw how often a response is preferred by how much longer it is than the other one.

    Args:
        ratio: Length of the first response over that of the second, in words, of each pair.
        preferred: 1 where the first is preferred, 0 where the second is, 0.5 for a tie.
        width: Pixels of the chart.
    """
    doublings = np.log2(np.concatenate((ratio, 1 / ratio)))
    both = np.concatenate((preferred, 1 - preferred))
    pairs = np.tile(np.arange(len(ratio)), 2)
    series = _average_by_quantile(doublings, both, 8, pairs)
    title = "Length and preference"
    x_title, y_title = "length against the other response, in doublings", "fraction preferred"
    notes = [f"{len(ratio):,} pairs, each seen from both sides; 95% confidence intervals over pairs."]
    return curves({"all pairs": series}, title, x_title, y_title, name="length-preference", notes=notes, width=width)
