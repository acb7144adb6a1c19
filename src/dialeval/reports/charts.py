"""Charts: arrays in, SVG out. No chart knows a run, a file or a page.

    distribution({"a": values, "b": values}, "BLEU-4 of each response", "BLEU-4")     -> Figure
    forest(marks, ...), scatter(...), calibration(...), matrix(...), curves(...), bars(...), task_trial_grid(...)

Functions have the names of their charts, as in plotting libraries. Every chart has a title, axis titles, a legend
where a color has a meaning, and a description in words for screen readers. `canvas` draws the parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dialeval.core.arrays import Floats, Ints, Mask
from dialeval.reports.canvas import LINE, SHAPES, WIDTH, Canvas, ChartScale, Figure, draw_marker, get_color_class
from dialeval.reports.formatting import count_supported_decimals, shorten, show, show_rounded
from dialeval.stats.correlation import pearson, rank_values
from dialeval.stats.intervals import DEFAULT_LEVEL, student, t_factor, wilson

BINS = 24
MOST_POINTS = 1_500
"""Points of a scatter plot; of more a random part is drawn."""
MOST_INTERVALS = 6
"""Systems of a chart of lines with intervals."""


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
    found = []
    clusters = np.arange(len(values)) if clusters is None else clusters
    for at in np.unique(bins):
        inside = (bins == at) & np.isfinite(values)
        here, groups = values[inside], np.unique(clusters[inside], return_inverse=True)[1]
        if not len(here):
            continue
        mean, low, high = float(here.mean()), math.nan, math.nan
        number = int(groups.max()) + 1
        if number > 1:
            residuals = np.bincount(groups, here - mean)
            error = math.sqrt(float((residuals**2).sum()) * number / (number - 1)) / len(here)
            t = t_factor(DEFAULT_LEVEL, number - 1)
            if np.isin(here, (0.0, 1.0)).all():
                size = mean * (1 - mean) / error**2 if error > 0 else float(number)
                low, high = wilson(mean, size, (0.0, 1.0), t)
            else:
                low, high = student(mean, error, (-math.inf, math.inf), t)
        found.append(Point(float(at), mean, low, high))
    return found


def assign_quantile_bins(values: Floats, most: int = 10) -> Ints:
    """Return the number of the quantile bin of each value; equal values share a bin."""
    finite = values[np.isfinite(values)]
    edges = np.unique(np.quantile(finite, np.linspace(0, 1, most + 1)[1:-1])) if len(finite) else np.zeros(0)
    return np.searchsorted(edges, values, side="right").astype(np.int64)


def _number_systems(names: Iterable[str], given: Mapping[str, int] | None) -> dict[str, int]:
    return {name: at if given is None else given.get(name, -1) for at, name in enumerate(names)}


def forest(
    marks: Sequence[Mark], title: str, axis: str, *, zero: bool = False, notes: Sequence[str] = (), width: int = WIDTH
) -> Figure:
    """Draw values with intervals below each other; `zero`: with a line at 0, for differences."""
    chart = Canvas("forest", title, width)
    values = [end for each in marks for end in (each.value, *(each.interval or ()))] + [0.0] * zero
    numbers = width >= 400
    left = chart.measure_labels([each.label for each in marks])
    figures = [show_rounded(each.value, each.interval, signed=zero) for each in marks]
    right = 6.4 * max(map(len, figures), default=0) + 12 if numbers else 8
    scale = ChartScale.from_values(values, width - left - right, 10) or ChartScale(0, 1, 100, 10)
    top, bottom = chart.y, chart.y + 24 * len(marks)
    for tick in scale.ticks:
        chart.draw_line(left + scale(tick), top, left + scale(tick), bottom, "grid")
        chart.write(left + scale(tick), bottom + 14, f"{tick:.6g}", "tick")
    if zero:
        chart.draw_line(left + scale(0), top, left + scale(0), bottom, "zero")
    for at, (each, figure) in enumerate(zip(marks, figures, strict=True)):
        y = top + 24 * at + 12
        chart.write(0, y + 4, each.label, room=left - 6)
        chart.words.append(f"{shorten(each.label)}: {figure}.")
        chart.parts.append(f'<g class="{each.kind}"><title>{escape(shorten(each.label))}: {figure}</title>')
        if each.interval is not None and all(map(math.isfinite, each.interval)):
            low, high = (left + scale(end) for end in each.interval)
            chart.draw_line(low, y, high, y, "range")
            for x in (low, high):
                chart.draw_line(x, y - 4, x, y + 4, "range")
        if math.isfinite(each.value):
            chart.parts.append(draw_marker(left + scale(each.value), y, 0))
        chart.parts.append("</g>")
        if numbers:
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
    numbers: Mapping[str, int] | None = None,
    width: int = WIDTH,
) -> Figure | None:
    """Draw a histogram per system on one scale, with a line at its mean; None where there is no value."""
    items = {name: each[np.isfinite(each)] for name, each in values.items()}
    items = {name: each for name, each in items.items() if len(each)}
    chart, own = Canvas("distribution", title, width), _number_systems(values, numbers)
    left = chart.measure_labels([*items, "mean 0.0000"])
    ends = [float(end(each)) for each in items.values() for end in (np.min, np.max)]
    scale = ChartScale.from_values(ends, width - left - 6, 6)
    if scale is None:
        return None
    edges = _choose_bin_edges(items.values(), scale)
    scale = ChartScale(min(scale.low, edges[0]), max(scale.high, edges[-1]), scale.width, scale.margin)
    shares = {name: np.histogram(each, edges)[0] / len(each) for name, each in items.items()}
    tallest = max(float(share.max()) for share in shares.values())
    height = 42 if len(items) <= 12 else 26
    for name, share in shares.items():
        base, mean = chart.y + height - 4, float(items[name].mean())
        points = []
        for (low, high), each in zip(pairwise(edges.tolist()), share.tolist(), strict=True):
            tall = max(1.0, (height - 8) * each / tallest) if each else 0.0  # what occurs is seen
            points.append(f"{left + scale(low):.1f},{base - tall:.1f} {left + scale(high):.1f},{base - tall:.1f}")
        around = f"{left + scale(edges[0]):.1f},{base} {' '.join(points)} {left + scale(edges[-1]):.1f},{base}"
        where = f"mean {show(mean, count_supported_decimals((scale.low, scale.high)) or 0)}"
        about = f"{shorten(name)}: {where}, {len(items[name]):,} {unit}"
        chart.parts.append(f'<g class="{get_color_class(own[name])}"><title>{escape(about)}</title>')
        chart.parts.append(f'<polygon class="bar" points="{around}"/>')
        chart.draw_line(left + scale(mean), base - height + 8, left + scale(mean), base + 3, "range")
        chart.parts.append("</g>")
        chart.draw_line(left, base, width, base, "grid")
        chart.write(0, base - 16 if height > 30 else base - 3, name, room=left - 6)
        if height > 30:
            chart.write(0, base - 2, where, "small", left - 6)
        chart.words.append(f"{about}.")
        chart.y += height
    for tick in scale.ticks:
        chart.write(left + scale(tick), chart.y + 12, f"{tick:.6g}", "tick")
    chart.y += 16
    chart.write(left + scale.width / 2, chart.y + 12, axis, "axis-title", scale.width)
    chart.y += 16
    chart.write_notes(f"Height: fraction of {unit}; the tallest bar is {100 * tallest:.0f}%. Line: mean.")
    return chart.to_figure()


def _choose_bin_edges(columns: Iterable[Floats], scale: ChartScale) -> Floats:
    """Return the ends of bins: one for each whole number where there are few and no others, equal ones elsewhere."""
    if scale.high - scale.low <= BINS and all(bool((each == np.round(each)).all()) for each in columns):
        return np.arange(math.floor(scale.low) - 0.5, math.ceil(scale.high) + 1)
    return np.linspace(scale.low, scale.high, BINS + 1)


def scatter(
    points: Mapping[str, tuple[Floats, Floats]],
    title: str,
    x_title: str,
    y_title: str,
    *,
    numbers: Mapping[str, int] | None = None,
    width: int = WIDTH,
) -> Figure:
    """Draw points of systems and state Pearson's r and Spearman's rho over all of them."""
    own = _number_systems(points, numbers)
    known = {name: np.isfinite(x) & np.isfinite(y) for name, (x, y) in points.items()}
    xs, ys = (np.concatenate([np.zeros(0), *(points[n][at][mask] for n, mask in known.items())]) for at in (0, 1))
    chart = Canvas("scatter", title, width)
    if len(points) > 1:
        chart.draw_legend(list(points), own)
    area = chart.draw_axes(xs.tolist(), ys.tolist(), x_title, y_title)
    part = min(1.0, MOST_POINTS / max(1, len(xs)))
    random = np.random.default_rng(0)
    for name, (x, y) in points.items():
        drawn = known[name] & (random.random(len(x)) < part)
        places = (area(one, two) for one, two in zip(x[drawn].tolist(), y[drawn].tolist(), strict=True))
        dots = "".join(draw_marker(*place, own[name], 2.5) for place in places)
        chart.parts.append(f'<g class="{get_color_class(own[name])} points">{dots}</g>')
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
    known = np.isfinite(predicted) & np.isfinite(observed)
    series = _average_by_quantile(predicted[known], observed[known], 10, None if clusters is None else clusters[known])
    notes = [f"{int(known.sum()):,} rows in tenths of the predicted value, with 95% confidence intervals."]
    return curves({"all rows": series}, title, x_title, y_title, name="calibration", notes=notes, width=width)


def _average_by_quantile(x: Floats, y: Floats, most: int, clusters: Ints | None) -> list[Point]:
    """Return the mean of y in the quantile bins of x, at the mean of x."""
    bins = assign_quantile_bins(x, most)
    means = {each.x: each.y for each in average_by_bin(bins, x)}
    return [each._replace(x=means[each.x]) for each in average_by_bin(bins, y, clusters)]


def curves(
    series: Mapping[str, Sequence[Point]],
    title: str,
    x_title: str,
    y_title: str,
    *,
    name: str = "curves",
    numbers: Mapping[str, int] | None = None,
    labels: Sequence[str] = (),
    notes: Sequence[str] = (),
    width: int = WIDTH,
) -> Figure:
    """Draw a line per system with intervals: score over turns, pass^k over k, a trend over versions."""
    own = _number_systems(series, numbers)
    chart = Canvas(name, title, width)
    if len(series) > 1:
        chart.draw_legend(list(series), own, dashes=True)
    xs = [point.x for each in series.values() for point in each]
    ys = [y for each in series.values() for point in each for y in point[1:]]
    whole = sorted({float(x) for x in xs})
    if not labels and whole == [*range(len(whole))]:
        labels = [f"{x:g}" for x in whole]
    area = chart.draw_axes(xs, ys, x_title, y_title, labels)
    crowded = len(series) > MOST_INTERVALS
    for each, points in series.items():
        # A little to the side, so that intervals of several systems do not hide each other.
        pixels = (own[each] - (len(series) - 1) / 2) * min(3.0, 16 / len(series))
        aside = pixels * (area.x.high - area.x.low) / max(1.0, area.width)
        chart.parts.append(f'<g class="{get_color_class(own[each])}">')
        for x, _, low, high in points:
            if math.isfinite(low) and math.isfinite(high) and not crowded:
                chart.draw_line(*area(x + aside, low), *area(x + aside, high), "range thin")
        places = [area(point.x + aside, point.y) for point in points if math.isfinite(point.y)]
        if len(places) > 1:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            chart.parts.append(f'<polyline class="curve dash-{own[each] % SHAPES}" points="{line}"/>')
        chart.parts.append("".join(draw_marker(*place, own[each], 3.5) for place in places) + "</g>")
        ends = [show(point.y, 3) for point in (points[0], points[-1])] if points else ["–", "–"]
        chart.words.append(f"{shorten(each)}: from {ends[0]} to {ends[1]}.")
    chart.write_notes(*([f"Intervals of more than {MOST_INTERVALS} systems are left out."] if crowded else notes))
    return chart.to_figure()


def bars(
    counts: Mapping[str, Mapping[str, float]],
    title: str,
    axis: str,
    *,
    numbers: Mapping[str, int] | None = None,
    width: int = WIDTH,
) -> Figure:
    """Draw a bar for each system in each category, the categories below each other."""
    systems = list(dict.fromkeys(name for each in counts.values() for name in each))
    own = _number_systems(systems, numbers)
    chart = Canvas("bars", title, width)
    chart.draw_legend(systems, own)
    most = max((value for each in counts.values() for value in each.values()), default=1.0) or 1.0
    scale = ChartScale(0.0, most, width - 50.0, 0)
    for category, found in counts.items():
        chart.y += LINE
        chart.write(0, chart.y - 2, category)
        for name, value in found.items():
            size = scale(value)
            about = f"{shorten(category)}, {shorten(name)}: {value:,.6g}"
            chart.parts.append(f'<g class="{get_color_class(own[name])}"><title>{escape(about)}</title>')
            chart.parts.append(f'<rect class="bar" x="0" y="{chart.y + 2:.1f}" width="{size}" height="10"/>')
            chart.parts.append(f"{draw_marker(size + 7, chart.y + 7, own[name], 3)}</g>")
            chart.write(size + 15, chart.y + 11, f"{value:,.6g}", "small")
            chart.words.append(f"{about}.")
            chart.y += 14
        chart.y += 5
    chart.write(width / 2, chart.y + 12, axis, "axis-title")
    chart.y += 14
    return chart.to_figure()


def matrix(
    values: Floats,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    axis: str,
    *,
    name: str = "matrix",
    center: float = 0.0,
    texts: Sequence[Sequence[str]] | None = None,
    marked: Mask | None = None,
    notes: Sequence[str] = (),
    width: int = WIDTH,
) -> Figure:
    """Draw a heat map: darker where values are further from the center, with the value in each cell.

    `texts`: texts of the cells in place of their values; `marked`: cells with a frame; NaN is an empty cell.
    """
    chart = Canvas(name, title, width)
    left = chart.measure_labels(rows)
    size = (width - left) / max(1, len(columns))
    slanted = any(chart.measure_text(each) > size - 4 for each in columns)
    size = (width - left - 48) / max(1, len(columns)) if slanted else size  # room for the last title
    shown = [[show(value, 2) for value in line] for line in values.tolist()] if texts is None else texts
    lines = max(1, *(cell.count("\n") + 1 for line in shown for cell in line)) if shown else 1
    height = 12 + 14 * lines
    chart.y += 74 if slanted else 16
    for at, each in enumerate(columns):
        x = left + size * (at + 0.5)
        if slanted:
            chart.write_rotated(x, chart.y - 6, -50, each, "tick start", 92)
        else:
            chart.write(x, chart.y - 5, each, "tick", size)
    finite = values[np.isfinite(values)]
    furthest = float(np.abs(finite - center).max(initial=0.0)) or 1.0
    written = all(chart.measure_text(part) <= size for line in shown for cell in line for part in cell.split("\n"))
    for at, row in enumerate(rows):
        chart.write(0, chart.y + height / 2 + 4, row, room=left - 8)
        for place, column in enumerate(columns):
            value, x = float(values[at, place]), left + size * place
            if not math.isfinite(value):
                chart.write(x + size / 2, chart.y + height / 2 + 4, shown[at][place], "cell small", size)
                continue
            kind, part = ("less" if value < center else "more"), 0.6 * abs(value - center) / furthest
            frame = " marked" if marked is not None and marked[at, place] else ""
            words = shown[at][place].replace("\n", " ")
            about = f"{shorten(row)}, {shorten(column)}: {words}"
            box = f'x="{x + 1:.1f}" y="{chart.y + 1:.1f}" width="{size - 2:.1f}" height="{height - 2}"'
            chart.parts.append(
                f'<g><title>{escape(about)}</title><rect class="{kind}{frame}" fill-opacity="{part:.2f}" {box}/></g>'
            )
            for number, line in enumerate(shown[at][place].split("\n") if written else ()):
                kind = "cell" if number == 0 else "cell small"
                chart.write(x + size / 2, chart.y + 18 + 14 * number, line, kind, size + 8)
            chart.words.append(f"{about}{' (marked)' if frame else ''}.")
        chart.y += height
    chart.write(left + (width - left) / 2, chart.y + 16, axis, "axis-title", width - left)
    chart.y += 20
    chart.write_notes(*notes)
    return chart.to_figure()


def win_matrix(
    between: Mapping[str, Mapping[str, tuple[int, int, int]]],
    title: str = "Wins between systems, a tie counting half",
    *,
    width: int = WIDTH,
) -> Figure:
    """Draw the fraction of comparisons (wins, ties, losses) that each system wins against each other one."""
    systems = list(between)
    values = np.full((len(systems), len(systems)), np.nan)
    texts = [["" for _ in systems] for _ in systems]
    marked = np.zeros(values.shape, np.bool_)
    for at, one in enumerate(systems):
        for place, other in enumerate(systems):
            wins, ties, losses = between[one].get(other, (0, 0, 0)) if one != other else (0, 0, 0)
            if total := wins + ties + losses:
                value = (wins + ties / 2) / total
                low, high = wilson(value, total, (0.0, 1.0), t_factor(DEFAULT_LEVEL, math.inf))
                values[at, place], marked[at, place] = value, low > 0.5 or high < 0.5
                texts[at][place] = f"{100 * value:.0f}%\n[{100 * low:.0f}, {100 * high:.0f}]"
    note = "Rows win against columns. In brackets: 95% Wilson interval in percent. Framed: it does not contain 50%."
    return matrix(
        values,
        systems,
        systems,
        title,
        "against",
        name="wins",
        center=0.5,
        texts=texts,
        marked=marked,
        notes=[note],
        width=width,
    )


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


def task_trial_grid(
    outcomes: Mapping[str, Mapping[str, Sequence[float]]], title: str, *, most: int = 60, width: int = WIDTH
) -> Figure:
    """Draw which trials of each task passed (filled) and failed (crossed), systems side by side, tasks that flip first.

    Args:
        outcomes: By system and task the rewards of its trials: 1 passed, less failed, NaN if there was no reward.
        title: The title.
        most: Tasks that are drawn.
        width: Pixels of the chart.
    """
    means: dict[str, dict[str, float]] = {system: {} for system in outcomes}
    for system, rewarded in outcomes.items():
        for task, rewards in rewarded.items():
            known = [reward >= 1 - 1e-6 for reward in rewards if not math.isnan(reward)]
            means[system] |= {task: sum(known) / len(known)} if known else {}
    flips = {system: {task for task, mean in own.items() if 0 < mean < 1} for system, own in means.items()}

    def rank_task(task: str) -> tuple[int, float]:
        known = [own[task] for own in means.values() if task in own]
        return -sum(task in own for own in flips.values()), abs(sum(known) / max(1, len(known)) - 0.5)

    tasks = sorted(dict.fromkeys(task for own in outcomes.values() for task in own), key=rank_task)
    chart, shown = Canvas("task-trial-grid", title, width), tasks[:most]
    left = chart.measure_labels(shown)
    trials = {system: max(map(len, own.values()), default=1) for system, own in outcomes.items()}
    size = min(22.0, (width - left - 12 * (len(trials) - 1)) / max(1, sum(trials.values())))
    starts, x = {}, left
    for system, number in trials.items():
        starts[system] = x
        words = system if len(trials) > 1 else f"trial 1 to {number}"
        chart.write(x + 2, chart.y + 12, words, "tick start", size * number + 6)
        x += size * number + 12
    chart.y += 18
    for task in shown:
        chart.write(0, chart.y + 13, task, room=left - 8)
        for system, own in outcomes.items():
            for trial, value in enumerate(own.get(task, ())):
                if math.isnan(value):
                    continue
                x, y, side, passed = starts[system] + trial * size + 2, chart.y + 2, size - 4, value >= 1 - 1e-6
                result = "passed" if passed else f"failed, reward {value:g}"
                words = escape(f"{shorten(system)}, {shorten(task)}, trial {trial + 1}: {result}")
                kind = "passed" if passed else "failed"
                box = f'<rect class="{kind}" x="{x}" y="{y}" width="{side}" height="{side}"/>'
                cross = "" if passed else f'<path class="cross" d="M{x},{y}l{side},{side}m0,{-side}l{-side},{side}"/>'
                chart.parts.append(f"<g><title>{words}</title>{box}{cross}</g>")
        chart.y += max(18.0, size)
    counts = [f"{shorten(system)}: {len(own)} of {len(means[system])} tasks" for system, own in flips.items()]
    more = f" {len(tasks) - most:,} more tasks are not drawn." if len(tasks) > most else ""
    chart.write_notes(
        f"Filled: passed. Crossed: failed. Tasks that flip between trials come first ({'; '.join(counts)}).{more}"
    )
    chart.words.append(f"Tasks that pass in some trials and fail in others: {'; '.join(counts)}.")
    return chart.to_figure()
