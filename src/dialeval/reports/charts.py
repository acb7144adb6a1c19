"""Charts: arrays in, SVG out. No chart knows a run, a file or a page.

    distribution({"a": values, "b": values}, "BLEU-4 of each response", "BLEU-4")     -> Figure
    forest(marks, ...), scatter(...), calibration(...), matrix(...), curves(...), bars(...), task_trial_grid(...)

Every chart has a title, axis titles, a legend where a color has a meaning, and a description in words for those who do
not see it. Colors are classes: the report's style paints them for light, dark and print, and a file has the same
classes with a style of its own (`Figure.svg`). Systems differ by shape and dash as well as by color, so that charts of
many systems can be read in grayscale. Texts are sized for the width that a chart is drawn for and are not scaled later.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from dialeval.core.arrays import Floats, Ints, Mask
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.files import write_bytes
from dialeval.reports.figures import plain, shorten, show, show_rounded, supported_decimals
from dialeval.stats.correlation import pearson, rank_values
from dialeval.stats.intervals import DEFAULT_LEVEL, student, t_factor, wilson

FigureFormat = Literal["svg", "png", "pdf"]
WIDTH = 460
"""Pixels of a chart in the report."""
PIXELS_PER_INCH = 96
"""Of a chart for a paper: texts of 12 pixels are 9 points."""
PNG_SCALE = 3.0
COLORS = 8
"""Colors of systems; the ninth has the first one's again, with another shape."""
MARGIN = 14
BINS = 24
SMALLEST_WIDTH = 1e-300
"""Below this floats run out of digits to cut into bins."""
MOST_POINTS = 1_500
"""Points of a scatter plot; of more a random part is drawn."""
HEIGHT = 24
"""Pixels of a strip next to a value."""
MOST_INTERVALS = 6
"""Systems of a chart of lines with intervals."""
_ASSETS = Path(__file__).with_name("assets")
_CHARACTER = 6.7
"""Pixels of a character, about what fonts of 12 pixels take."""
_LINE = 16
_SHAPES = 6
_PAINTS = ("#2f7fc1", "#d0660f", "#0f8f6c", "#b9578f", "#7a6fd0", "#8f7a10", "#b8433f", "#5f8a38")
"""Colors of systems in a file that are read on light and on dark paper alike."""


@dataclass(frozen=True, slots=True)
class ChartScale:
    """Where a value stands on a strip of some width."""

    low: float
    high: float
    width: float
    margin: float = MARGIN

    @classmethod
    def over(cls, values: Iterable[float], width: float, margin: float = MARGIN) -> ChartScale | None:
        """Return the scale that shows all finite values; None where there is nothing to show."""
        finite = [value for value in values if math.isfinite(value)]
        if not finite:
            return None
        low, high = min(finite), max(finite)
        if high - low <= max(1e-9 * max(abs(low), abs(high)), SMALLEST_WIDTH):  # all the same: a point in the middle
            half = abs(high) / 2 if abs(high) > SMALLEST_WIDTH else 1.0
            low, high = low - half, high + half
        return cls(low, high, width, margin) if math.isfinite(high - low) else None

    def __call__(self, value: float) -> float:
        inside = self.width - 2 * self.margin
        return round(self.margin + inside * (value - self.low) / (self.high - self.low), 1)

    @property
    def ticks(self) -> list[float]:
        """Two to six round values inside the scale."""
        rough = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
        first = math.ceil(self.low / step - 1e-9)
        return [n * step for n in range(first, first + 6) if n * step <= self.high + 1e-9 * step]


@dataclass(frozen=True)
class Figure:
    """A chart: a notebook shows it, `save` writes it as an SVG, PNG or PDF file."""

    name: str
    title: str
    description: str = field(repr=False)
    width: int = field(repr=False)
    height: int = field(repr=False)
    content: str = field(repr=False)

    @property
    def inline(self) -> str:
        """The chart for a page that has the style of charts."""
        return self._element("")

    @property
    def svg(self) -> str:
        """The chart as a document of its own."""
        style = (_ASSETS / "chart.css").read_text(encoding="utf-8")
        paints = "".join(f".chart .own-{at}{{color:{paint}}}" for at, paint in enumerate(_PAINTS))
        return self._element(f"<style>{style}{paints}</style>", ' xmlns="http://www.w3.org/2000/svg"')

    def _element(self, style: str, space: str = "") -> str:
        label = escape(f"{self.title}. {self.description}")
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        opening = f'<svg{space} class="chart" role="img" aria-label="{label}" {size}>'
        return f"{opening}{style}{self.content}</svg>"

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the figure to a file of the format that its suffix names, and return its path."""
        form = Path(path).suffix.removeprefix(".")
        if form not in get_args(FigureFormat):
            raise SettingError(f"figures are written as {', '.join(get_args(FigureFormat))}, not as {form!r}")
        content = self.svg.encode()
        if form != "svg":
            if find_spec("vl_convert") is None:
                raise NeedError("PNG and PDF files need vl-convert-python; install it: pip install 'dialeval[report]'")
            import vl_convert

            if form == "png":
                content = bytes(vl_convert.svg_to_png(self.svg, scale=PNG_SCALE))
            else:  # the unit of a PDF page is a point
                pixels = f'width="{self.width}" height="{self.height}"'
                points = 'width="{:.2f}" height="{:.2f}"'.format(
                    *(size * 72 / PIXELS_PER_INCH for size in (self.width, self.height))
                )
                content = bytes(vl_convert.svg_to_pdf(self.svg.replace(pixels, points, 1)))
        write_bytes(Path(path), content)
        return Path(path)


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


def mean_by_bin(bins: Ints, values: Floats, clusters: Ints | None = None) -> list[Point]:
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


def quantile_bins(values: Floats, most: int = 10) -> Ints:
    """Return the number of the quantile bin of each value; equal values share a bin."""
    finite = values[np.isfinite(values)]
    edges = np.unique(np.quantile(finite, np.linspace(0, 1, most + 1)[1:-1])) if len(finite) else np.zeros(0)
    bins: Ints = np.searchsorted(edges, values, side="right").astype(np.int64)
    return bins


class _Chart:
    """The parts of a chart while it is drawn; `y` is the next free line."""

    def __init__(self, name: str, title: str, width: int) -> None:
        self.name, self.title, self.width = name, plain(title), width
        self.parts: list[str] = []
        self.words: list[str] = []
        self.y = 0.0
        for line in textwrap.wrap(self.title, max(20, int(width / (_CHARACTER * 1.08)))):
            self.y += _LINE
            self.text(0, self.y - 3, line, "title")
        self.y += 4

    def text(self, x: float, y: float, words: str, kind: str = "", room: float | None = None) -> None:
        """Write words; those that are longer than the room are shortened in their middle."""
        shown = plain(words)
        most = max(3, int((self.width if room is None else room) / _CHARACTER))
        shown = shown if len(shown) <= most else f"{shown[: most - most // 2 - 1]}…{shown[len(shown) - most // 2 :]}"
        attribute = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{attribute}>{escape(shown)}</text>')

    def turned(self, x: float, y: float, angle: int, words: str, kind: str, room: float) -> None:
        """Write words at an angle."""
        self.parts.append(f'<g transform="translate({x:.1f},{y:.1f}) rotate({angle})">')
        self.text(0, 0, words, kind, room)
        self.parts.append("</g>")

    def axis_title(self, x: float, words: str, room: float) -> None:
        """Write the title of an axis below what is drawn, in as many lines as it takes."""
        for line in textwrap.wrap(plain(words), max(12, int(room / _CHARACTER))):
            self.text(x, self.y + 12, line, "axis-title")
            self.y += 14

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a line."""
        self.parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def legend(self, names: Sequence[str], numbers: Mapping[str, int], *, dashes: bool = False) -> None:
        """Write what colors, shapes and dashes stand for, in as many lines as it takes."""
        x = 0.0
        self.y += 2
        for name in names:
            size = min(_CHARACTER * len(plain(name)), self.width - 30.0) + 34
            if x and x + size > self.width:
                x, self.y = 0.0, self.y + _LINE
            self.parts.append(f'<g class="{color_of(numbers[name])}">')
            if dashes:
                self.line(x, self.y + 7, x + 20, self.y + 7, f"curve dash-{numbers[name] % _SHAPES}")
            self.parts.append(f"{marker(x + 10, self.y + 7, numbers[name])}</g>")
            self.text(x + 25, self.y + 11, name, room=self.width - 30)
            x += size
        self.y += _LINE + 4

    def axes(
        self, xs: Iterable[float], ys: Iterable[float], x_title: str, y_title: str, labels: Sequence[str] = ()
    ) -> _PlotArea:
        """Draw grid lines, ticks and titles of axes that show some values, and return the frame between them.

        `labels`: names of the x values 0, 1, and so on, in place of numbers.
        """
        width, height = self.width - 66.0, 210.0
        inside = 8 if all(map(str.isdigit, labels)) else 24  # names need more room at the ends than numbers
        x_scale = ChartScale.over(xs, width, inside) or ChartScale(0, 1, width, inside)
        y_scale = ChartScale.over(ys, height, 6) or ChartScale(0, 1, height, 6)
        frame = _PlotArea(58.0, self.y + 4, width, height, x_scale, y_scale)
        bottom, right = frame.top + frame.height, frame.left + frame.width
        names = {float(at): label for at, label in enumerate(labels)}
        for tick in names or frame.x.ticks:
            x = frame.left + frame.x(tick)
            self.line(x, frame.top, x, bottom, "grid")
            if not names:
                self.text(x, bottom + 14, f"{tick:.6g}", "tick")
        room = frame.width / max(1, len(names))
        slanted = any(_CHARACTER * len(plain(name)) > room for name in names.values())
        for at, name in names.items():
            x = frame.left + frame.x(at)
            if slanted:
                self.turned(x + 4, bottom + 12, -35, name, "tick end", 110)
            else:
                self.text(x, bottom + 14, name, "tick", room)
        for tick in frame.y.ticks:
            y = bottom - frame.y(tick)
            self.line(frame.left, y, right, y, "grid")
            self.text(frame.left - 6, y + 4, f"{tick:.6g}", "tick end")
        self.y = bottom + (75 if slanted else 18)
        self.axis_title(frame.left + frame.width / 2, x_title, frame.width)
        self.turned(11, frame.top + frame.height / 2, -90, y_title, "axis-title", frame.height + 40)
        return frame

    def notes(self, *lines: str) -> None:
        """Write small lines below."""
        for line in lines:
            for part in textwrap.wrap(plain(line), int(self.width / 6.0)):
                self.y += 14
                self.text(0, self.y, part, "small", 2 * self.width)

    def figure(self) -> Figure:
        """Return the chart as it is."""
        height = math.ceil(self.y + 6)
        return Figure(self.name, self.title, " ".join(self.words), self.width, height, "".join(self.parts))


class _PlotArea(NamedTuple):
    """The rectangle between two axes."""

    left: float
    top: float
    width: float
    height: float
    x: ChartScale
    y: ChartScale

    def __call__(self, x: float, y: float) -> tuple[float, float]:
        return self.left + self.x(x), self.top + self.height - self.y(y)


def color_of(number: int) -> str:
    """Return the class of a system's color by its number; below 0 that of floors and ceilings."""
    return "anchor" if number < 0 else f"own-{number % COLORS}"


def _numbers(names: Iterable[str], given: Mapping[str, int] | None) -> dict[str, int]:
    return {name: at if given is None else given.get(name, -1) for at, name in enumerate(names)}


def marker(x: float, y: float, number: int, size: float = 4) -> str:
    """Return a mark: six shapes, filled or hollow, so that twelve systems differ without color."""
    at = number % _SHAPES if number >= 0 else 0
    hollow = " hollow" if number < 0 or number // _SHAPES % 2 else ""
    if at == 0:
        return f'<circle class="mean{hollow}" cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'
    s = size
    path = {
        1: f"M{-s},{-s}H{s}V{s}H{-s}Z",
        2: f"M0,{-s - 1}L{s + 1},{s}H{-s - 1}Z",
        3: f"M0,{-s - 1.5}L{s + 1.5},0L0,{s + 1.5}L{-s - 1.5},0Z",
        4: f"M0,{s + 1}L{s + 1},{-s}H{-s - 1}Z",
        5: f"M{-s},{-1.5}H-1.5V{-s}H1.5V-1.5H{s}V1.5H1.5V{s}H-1.5V1.5H{-s}Z",
    }[at]
    return f'<path class="mean{hollow}" transform="translate({x:.1f},{y:.1f})" d="{path}"/>'


def forest(
    marks: Sequence[Mark], title: str, axis: str, *, zero: bool = False, notes: Sequence[str] = (), width: int = WIDTH
) -> Figure:
    """Draw values with intervals below each other; `zero`: with a line at 0, for differences."""
    chart = _Chart("forest", title, width)
    values = [end for each in marks for end in (each.value, *(each.interval or ()))]
    numbers = width >= 400
    left = _label_room([each.label for each in marks], width)
    figures = [show_rounded(each.value, each.interval, signed=zero) for each in marks]
    right = 6.4 * max(map(len, figures), default=0) + 12 if numbers else 8
    scale = ChartScale.over([*values, 0.0] if zero else values, width - left - right, 10) or ChartScale(0, 1, 100, 10)
    top, bottom = chart.y, chart.y + 24 * len(marks)
    for tick in scale.ticks:
        chart.line(left + scale(tick), top, left + scale(tick), bottom, "grid")
        chart.text(left + scale(tick), bottom + 14, f"{tick:.6g}", "tick")
    if zero:
        chart.line(left + scale(0), top, left + scale(0), bottom, "zero")
    for at, (each, figure) in enumerate(zip(marks, figures, strict=True)):
        y = top + 24 * at + 12
        chart.text(0, y + 4, each.label, room=left - 6)
        chart.words.append(f"{shorten(each.label)}: {figure}.")
        chart.parts.append(f'<g class="{each.kind}"><title>{escape(shorten(each.label))}: {figure}</title>')
        if each.interval is not None and all(map(math.isfinite, each.interval)):
            low, high = (left + scale(end) for end in each.interval)
            chart.line(low, y, high, y, "range")
            for x in (low, high):
                chart.line(x, y - 4, x, y + 4, "range")
        if math.isfinite(each.value):
            chart.parts.append(marker(left + scale(each.value), y, 0))
        chart.parts.append("</g>")
        if numbers:
            chart.text(width - right + 6, y + 4, figure, "number", width)
    chart.y = bottom + 18
    chart.axis_title(left + scale.width / 2, axis, width - left)
    chart.notes(*notes)
    return chart.figure()


def _label_room(labels: Iterable[str], width: float) -> float:
    longest = max((len(plain(label)) for label in labels), default=4)
    return min(_CHARACTER * longest + 12, 0.36 * width)


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
    chart, own = _Chart("distribution", title, width), _numbers(values, numbers)
    left = _label_room([*items, "mean 0.0000"], width)
    ends = [float(end(each)) for each in items.values() for end in (np.min, np.max)]
    scale = ChartScale.over(ends, width - left - 6, 6)
    if scale is None:
        return None
    edges = _bin_edges(items.values(), scale)
    scale = ChartScale(min(scale.low, edges[0]), max(scale.high, edges[-1]), scale.width, scale.margin)
    shares = {name: np.histogram(each, edges)[0] / len(each) for name, each in items.items()}
    tallest = max(float(share.max()) for share in shares.values())
    height = 42 if len(items) <= 12 else 26
    for name, share in shares.items():
        base, mean = chart.y + height - 4, float(items[name].mean())
        points = []
        for low, high, each in zip(edges[:-1].tolist(), edges[1:].tolist(), share.tolist(), strict=True):
            tall = max(1.0, (height - 8) * each / tallest) if each else 0.0  # what occurs is seen
            points.append(f"{left + scale(low):.1f},{base - tall:.1f} {left + scale(high):.1f},{base - tall:.1f}")
        around = f"{left + scale(edges[0]):.1f},{base} {' '.join(points)} {left + scale(edges[-1]):.1f},{base}"
        where = f"mean {show(mean, supported_decimals((scale.low, scale.high)) or 0)}"
        about = f"{shorten(name)}: {where}, {len(items[name]):,} {unit}"
        chart.parts.append(f'<g class="{color_of(own[name])}"><title>{escape(about)}</title>')
        chart.parts.append(f'<polygon class="bar" points="{around}"/>')
        chart.line(left + scale(mean), base - height + 8, left + scale(mean), base + 3, "range")
        chart.parts.append("</g>")
        chart.line(left, base, width, base, "grid")
        chart.text(0, base - 16 if height > 30 else base - 3, name, room=left - 6)
        if height > 30:
            chart.text(0, base - 2, where, "small", left - 6)
        chart.words.append(f"{about}.")
        chart.y += height
    for tick in scale.ticks:
        chart.text(left + scale(tick), chart.y + 12, f"{tick:.6g}", "tick")
    chart.y += 16
    chart.text(left + scale.width / 2, chart.y + 12, axis, "axis-title", scale.width)
    chart.y += 16
    chart.notes(f"Height: fraction of {unit}; the tallest bar is {100 * tallest:.0f}%. Line: mean.")
    return chart.figure()


def _bin_edges(columns: Iterable[Floats], scale: ChartScale) -> Floats:
    """Return the ends of bins: one for each whole number where there are few and no others, equal ones elsewhere."""
    columns = list(columns)
    whole = scale.high - scale.low <= BINS and all(bool((each == np.round(each)).all()) for each in columns)
    if whole:
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
    own = _numbers(points, numbers)
    known = {name: np.isfinite(x) & np.isfinite(y) for name, (x, y) in points.items()}
    xs, ys = (np.concatenate([np.zeros(0), *(points[n][at][mask] for n, mask in known.items())]) for at in (0, 1))
    chart = _Chart("scatter", title, width)
    if len(points) > 1:
        chart.legend(list(points), own)
    frame = chart.axes(xs.tolist(), ys.tolist(), x_title, y_title)
    part = min(1.0, MOST_POINTS / max(1, len(xs)))
    random = np.random.default_rng(0)
    for name, (x, y) in points.items():
        drawn = known[name] & (random.random(len(x)) < part)
        places = (frame(one, two) for one, two in zip(x[drawn].tolist(), y[drawn].tolist(), strict=True))
        dots = "".join(marker(*place, own[name], 2.5) for place in places)
        chart.parts.append(f'<g class="{color_of(own[name])} points">{dots}</g>')
    words = f"{len(xs):,} points"
    if len(xs) > 2:
        rho = pearson(rank_values(xs), rank_values(ys))
        words += f"; Pearson's r {show(pearson(xs, ys), 2)}, Spearman's rho {show(rho, 2)}"
    chart.words.append(f"{words}.")
    chart.notes(f"{words}." + (f" {MOST_POINTS:,} of them are drawn, sampled at random." if part < 1 else ""))
    return chart.figure()


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
    series = _mean_by_quantile(predicted[known], observed[known], 10, None if clusters is None else clusters[known])
    notes = [f"{int(known.sum()):,} rows in tenths of the predicted value, with 95% confidence intervals."]
    return curves({"all rows": series}, title, x_title, y_title, name="calibration", notes=notes, width=width)


def _mean_by_quantile(x: Floats, y: Floats, most: int, clusters: Ints | None) -> list[Point]:
    """Return the mean of y in the quantile bins of x, at the mean of x."""
    bins = quantile_bins(x, most)
    means = {each.x: each.y for each in mean_by_bin(bins, x)}
    return [each._replace(x=means[each.x]) for each in mean_by_bin(bins, y, clusters)]


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
    own = _numbers(series, numbers)
    chart = _Chart(name, title, width)
    if len(series) > 1:
        chart.legend(list(series), own, dashes=True)
    xs = [point.x for each in series.values() for point in each]
    ys = [y for each in series.values() for point in each for y in point[1:]]
    whole = sorted({float(x) for x in xs})
    if not labels and whole == [*range(len(whole))]:
        labels = [f"{x:g}" for x in whole]
    frame = chart.axes(xs, ys, x_title, y_title, labels)
    crowded = len(series) > MOST_INTERVALS
    for each, points in series.items():
        # A little to the side, so that intervals of several systems do not hide each other.
        pixels = (own[each] - (len(series) - 1) / 2) * min(3.0, 16 / len(series))
        aside = pixels * (frame.x.high - frame.x.low) / max(1.0, frame.width)
        chart.parts.append(f'<g class="{color_of(own[each])}">')
        for x, _, low, high in points:
            if math.isfinite(low) and math.isfinite(high) and not crowded:
                chart.line(*frame(x + aside, low), *frame(x + aside, high), "range thin")
        places = [frame(point.x + aside, point.y) for point in points if math.isfinite(point.y)]
        if len(places) > 1:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            chart.parts.append(f'<polyline class="curve dash-{own[each] % _SHAPES}" points="{line}"/>')
        chart.parts.append("".join(marker(*place, own[each], 3.5) for place in places) + "</g>")
        ends = [show(point.y, 3) for point in (points[0], points[-1])] if points else ["–", "–"]
        chart.words.append(f"{shorten(each)}: from {ends[0]} to {ends[1]}.")
    chart.notes(*([f"Intervals of more than {MOST_INTERVALS} systems are left out."] if crowded else notes))
    return chart.figure()


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
    own = _numbers(systems, numbers)
    chart = _Chart("bars", title, width)
    chart.legend(systems, own)
    most = max((value for each in counts.values() for value in each.values()), default=1.0) or 1.0
    scale = ChartScale(0.0, most, width - 50.0, 0)
    for category, found in counts.items():
        chart.y += _LINE
        chart.text(0, chart.y - 2, category)
        for name, value in found.items():
            size = scale(value)
            about = f"{shorten(category)}, {shorten(name)}: {value:,.6g}"
            chart.parts.append(f'<g class="{color_of(own[name])}"><title>{escape(about)}</title>')
            chart.parts.append(f'<rect class="bar" x="0" y="{chart.y + 2:.1f}" width="{size}" height="10"/>')
            chart.parts.append(f"{marker(size + 7, chart.y + 7, own[name], 3)}</g>")
            chart.text(size + 15, chart.y + 11, f"{value:,.6g}", "small")
            chart.words.append(f"{about}.")
            chart.y += 14
        chart.y += 5
    chart.text(width / 2, chart.y + 12, axis, "axis-title")
    chart.y += 14
    return chart.figure()


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

    `texts`: what cells say in place of their values; `marked`: cells with a frame; NaN is an empty cell.
    """
    chart = _Chart(name, title, width)
    left = _label_room(rows, width)
    size = (width - left) / max(1, len(columns))
    slanted = any(_CHARACTER * len(plain(each)) > size - 4 for each in columns)
    size = (width - left - 48) / max(1, len(columns)) if slanted else size  # room for the last title
    shown = [[show(value, 2) for value in line] for line in values.tolist()] if texts is None else texts
    lines = max(1, *(cell.count("\n") + 1 for line in shown for cell in line)) if shown else 1
    height = 12 + 14 * lines
    chart.y += 74 if slanted else 16
    for at, each in enumerate(columns):
        x = left + size * (at + 0.5)
        if slanted:
            chart.turned(x, chart.y - 6, -50, each, "tick start", 92)
        else:
            chart.text(x, chart.y - 5, each, "tick", size)
    finite = values[np.isfinite(values)]
    furthest = float(np.abs(finite - center).max(initial=0.0)) or 1.0
    fits = [[_CHARACTER * max(map(len, cell.split("\n"))) <= size for cell in line] for line in shown]
    written = all(fit for line in fits for fit in line)
    for at, row in enumerate(rows):
        chart.text(0, chart.y + height / 2 + 4, row, room=left - 8)
        for place, column in enumerate(columns):
            value, x = float(values[at, place]), left + size * place
            if not math.isfinite(value):
                chart.text(x + size / 2, chart.y + height / 2 + 4, shown[at][place], "cell small", size)
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
                chart.text(x + size / 2, chart.y + 18 + 14 * number, line, kind, size + 8)
            chart.words.append(f"{about}{' (marked)' if frame else ''}.")
        chart.y += height
    chart.text(left + (width - left) / 2, chart.y + 16, axis, "axis-title", width - left)
    chart.y += 20
    chart.notes(*notes)
    return chart.figure()


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
    series = _mean_by_quantile(doublings, both, 8, pairs)
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

    def uncertainty(task: str) -> tuple[int, float]:
        known = [own[task] for own in means.values() if task in own]
        return -sum(task in own for own in flips.values()), abs(sum(known) / max(1, len(known)) - 0.5)

    tasks = sorted(dict.fromkeys(task for own in outcomes.values() for task in own), key=uncertainty)
    chart, shown = _Chart("task-trial-grid", title, width), tasks[:most]
    left = _label_room(shown, width)
    trials = {system: max(map(len, own.values()), default=1) for system, own in outcomes.items()}
    size = min(22.0, (width - left - 12 * (len(trials) - 1)) / max(1, sum(trials.values())))
    starts, x = {}, left
    for system, number in trials.items():
        starts[system] = x
        words = system if len(trials) > 1 else f"trial 1 to {number}"
        chart.text(x + 2, chart.y + 12, words, "tick start", size * number + 6)
        x += size * number + 12
    chart.y += 18
    for task in shown:
        chart.text(0, chart.y + 13, task, room=left - 8)
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
    chart.notes(
        f"Filled: passed. Crossed: failed. Tasks that flip between trials come first ({'; '.join(counts)}).{more}"
    )
    chart.words.append(f"Tasks that pass in some trials and fail in others: {'; '.join(counts)}.")
    return chart.figure()


# Strips of a few pixels next to the values of the summary.


def axis(scale: ChartScale) -> str:
    """Return the figures below a column of strips; they are for the eye, the table has all of them as text."""
    shown = "".join(f'<text class="tick" x="{scale(tick)}" y="11">{tick:.6g}</text>' for tick in scale.ticks)
    return f'<svg aria-hidden="true" width="{scale.width}" height="14" viewBox="0 0 {scale.width} 14">{shown}</svg>'


def grid(scale: ChartScale) -> str:
    """Return lines through a strip at the ticks of its scale."""
    return "".join(f'<line class="grid" x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}"/>' for x in map(scale, scale.ticks))


def svg(drawn: str, width: float, label: str) -> str:
    """Return a strip of a drawing; its label is read aloud, and shown to the mouse."""
    size = f'width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}"'
    shown = escape(label)
    return f'<svg role="img" aria-label="{shown}" {size}><title>{shown}</title>{drawn}</svg>'
