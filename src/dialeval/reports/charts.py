"""Charts: arrays in, SVG out. No chart knows a run or a page.

    distribution({"a": values, "b": values}, "BLEU-4 of each response", "BLEU-4")     -> Figure
    forest(marks, ...), curves(...)

Functions have the names of their charts, as in plotting libraries. Every chart has a title, axis titles, names next
to what they name, so that it can be read in grayscale, and a description in words for screen readers.

Colors are classes: the report's style paints them for light, dark and print, and a file has the same classes with a
style of its own (`Figure.svg`). Texts are sized for the width that a chart is drawn for and are not scaled later.
"""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.files import write_bytes
from dialeval.reports.formatting import MINUS, count_supported_decimals, plain, shorten, show, show_rounded
from dialeval.stats.intervals import DEFAULT_LEVEL, student, t_factor, wilson

FigureFormat = Literal["svg", "png", "pdf"]
WIDTH = 460
"""Pixels of a chart in the report."""
PIXELS_PER_INCH = 96
"""Of a chart for a paper: texts of 12 pixels are 9 points."""
PNG_SCALE = 300 / PIXELS_PER_INCH
COLORS = 8
"""Colors of systems; the ninth has the first one's again."""
MARGIN = 14
SMALLEST_WIDTH = 1e-300
"""Below this, floats have too few digits for bins."""
_ASSETS = Path(__file__).with_name("assets")
CHARACTER = 6.7
"""Pixels of a character, about what fonts of 12 pixels take."""
LINE = 16
_PAINTS = ("#2f7fc1", "#d0660f", "#0f8f6c", "#b9578f", "#7a6fd0", "#8f7a10", "#b8433f", "#5f8a38")
"""Colors of systems in a file, readable on light and on dark backgrounds."""


def show_tick(value: float, signed: bool = False) -> str:
    """Return a number of an axis; that of differences (`signed`) has its sign."""
    shown = f"{abs(value):.6g}"
    return (f"{MINUS}{shown}" if value < 0 else f"+{shown}" if value > 0 and signed else shown) if value else "0"


@dataclass(frozen=True, slots=True)
class ChartScale:
    """The mapping of values to pixels of a strip."""

    low: float
    high: float
    width: float
    margin: float = MARGIN

    @classmethod
    def from_values(cls, values: Iterable[float], width: float, margin: float = MARGIN) -> ChartScale | None:
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
    """Without the title, which is above the content."""
    content: str = field(repr=False)
    titled: bool = field(default=True, repr=False)

    def without_title(self) -> Figure:
        """Return the chart for a paper, which has a caption: without its title, on white."""
        white = f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>'
        return replace(self, content=white + self.content, titled=False)

    @property
    def inline(self) -> str:
        """The chart for a page that has the style of charts."""
        return self._make_element("")

    @property
    def svg(self) -> str:
        """The chart as a document of its own."""
        style = (_ASSETS / "chart.css").read_text(encoding="utf-8")
        paints = "".join(f".chart .own-{at}{{color:{paint}}}" for at, paint in enumerate(_PAINTS))
        return self._make_element(f"<style>{style}{paints}</style>", ' xmlns="http://www.w3.org/2000/svg"')

    def _make_element(self, style: str, space: str = "") -> str:
        label = escape(f"{self.title}. {self.description}")
        lines = textwrap.wrap(self.title, max(20, int(self.width / (CHARACTER * 1.08)))) if self.titled else []
        top = LINE * len(lines) + 4 if lines else 0
        title = "".join(make_text("title", 0, LINE * (at + 1) - 3 - top, line) for at, line in enumerate(lines))
        size = f'width="{self.width}" height="{self.height + top}" viewBox="0 {-top} {self.width} {self.height + top}"'
        opening = f'<svg{space} class="chart" role="img" aria-label="{label}" {size}>'
        return f"{opening}{style}{title}{self.content}</svg>"

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str], scale: float = PNG_SCALE) -> Path:
        """Write the figure to a file of the format that its suffix names, and return its path.

        `scale`: pixels of a PNG file per pixel of the figure.
        """
        form = Path(path).suffix.removeprefix(".")
        if form not in get_args(FigureFormat):
            raise SettingError(f"figures are written as {', '.join(get_args(FigureFormat))}, not as {form!r}")
        content = self.svg.encode()
        if form != "svg":
            if find_spec("vl_convert") is None:
                raise NeedError("PNG and PDF files need vl-convert-python; install it: pip install 'dialeval[report]'")
            import vl_convert

            if form == "png":
                content = bytes(vl_convert.svg_to_png(self.svg, scale=scale))
            else:  # the unit of a PDF page is a point
                points = re.sub(
                    r'(width|height)="(\d+)"',
                    lambda size: f'{size[1]}="{int(size[2]) * 72 / PIXELS_PER_INCH:.2f}"',
                    self.svg,
                    count=2,
                )
                content = bytes(vl_convert.svg_to_pdf(points))
        write_bytes(Path(path), content)
        return Path(path)


class Canvas:
    """A chart while it is drawn; `y` is the next free line."""

    def __init__(self, name: str, title: str, width: int) -> None:
        self.name, self.title, self.width = name, plain(title), width
        self.parts: list[str] = []
        self.words: list[str] = []
        self.y = 0.0

    def write(self, x: float, y: float, words: str, kind: str = "", room: float | None = None) -> None:
        """Write words; longer ones than there is room for are shortened in their middle."""
        shown = shorten(words, max(3, int((self.width if room is None else room) / CHARACTER)))
        self.parts.append(make_text(kind, x, y, shown))

    def write_axis_title(self, x: float, words: str, room: float) -> None:
        """Write the title of an axis below the chart, in as many lines as needed."""
        for line in textwrap.wrap(plain(words), max(12, int(room / CHARACTER))):
            self.write(x, self.y + 12, line, "axis-title")
            self.y += 14

    def draw_group(self, kind: str, about: str, *elements: str) -> None:
        """Draw elements of one color; `about`: the tooltip."""
        attribute = f' class="{kind}"' if kind else ""
        title = f"<title>{escape(about)}</title>" if about else ""
        self.parts.append(f"<g{attribute}>{title}{''.join(elements)}</g>")

    def draw_axes(
        self, xs: Sequence[float], ys: Iterable[float], titles: tuple[str, str], right: float, height: float
    ) -> PlotArea:
        """Draw grid lines, ticks and titles of axes that show some values, and return the area between them."""
        width = self.width - 52.0 - right
        x_scale = ChartScale.from_values(xs, width) or ChartScale(0, 1, width)
        y_scale = ChartScale.from_values(ys, height, 6) or ChartScale(0, 1, height, 6)
        self.write(0, self.y + 12, titles[1], "small")
        area = PlotArea(44.0, self.y + 20, width, height, x_scale, y_scale)
        bottom = area.top + height
        whole = [tick for tick in x_scale.ticks if float(tick).is_integer()]
        ticks = whole if all(float(x).is_integer() for x in xs) else x_scale.ticks
        self.parts.append(draw_ticks(x_scale, area.left, area.top, bottom, ticks))
        for tick in y_scale.ticks:
            y = bottom - y_scale(tick)
            self.parts.append(make_line("grid", area.left, y, area.left + width, y))
            self.write(area.left - 6, y + 4, show_tick(tick), "tick")
        self.y = bottom + 18
        self.write_axis_title(area.left + width / 2, titles[0], width)
        return area

    def write_notes(self, *lines: str) -> None:
        """Write small lines below."""
        for line in lines:
            for part in textwrap.wrap(plain(line), int(self.width / 6.0)):
                self.y += 14
                self.write(0, self.y, part, "small", 2 * self.width)

    def measure_labels(self, labels: Iterable[str]) -> float:
        """Return the width of a column of labels, at most about a third of the chart."""
        widths = (CHARACTER * len(plain(label)) for label in labels)
        return min(max(widths, default=4 * CHARACTER) + 12, 0.36 * self.width)

    def to_figure(self) -> Figure:
        """Return what was drawn so far."""
        height = math.ceil(self.y + 6)
        return Figure(self.name, self.title, " ".join(self.words), self.width, height, "".join(self.parts))


class PlotArea(NamedTuple):
    """The rectangle between two axes."""

    left: float
    top: float
    width: float
    height: float
    x: ChartScale
    y: ChartScale

    def __call__(self, x: float, y: float) -> tuple[float, float]:
        return self.left + self.x(x), self.top + self.height - self.y(y)


def make_text(kind: str, x: float, y: float, words: str) -> str:
    """Return a text as SVG."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def make_line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a line as SVG."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def make_rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    """Return a rectangle as SVG."""
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def make_dot(kind: str, x: float, y: float, radius: float = 4) -> str:
    """Return a filled circle as SVG."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'


def draw_ticks(
    scale: ChartScale, left: float, top: float, bottom: float, ticks: Iterable[float] | None = None, zero: bool = False
) -> str:
    """Return vertical lines at round values with their numbers below; `zero`: of differences."""
    shown = ""
    for tick in scale.ticks if ticks is None else ticks:
        x = left + scale(tick)
        shown += make_line("zero" if zero and not tick else "grid", x, top, x, bottom)
        shown += make_text("m", x, bottom + 15, show_tick(tick, zero))
    return shown


def get_color_class(number: int) -> str:
    """Return the class of a system's color by its number; below 0 that of floors and ceilings."""
    return "anchor" if number < 0 else f"own-{number % COLORS}"


# The charts.

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
    chart.parts.append(draw_ticks(scale, left, top, bottom))
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
        chart.write(left + scale(tick), chart.y + 12, show_tick(tick), "m")
    chart.write(left + scale.width / 2, chart.y + 28, axis, "axis-title", scale.width)
    chart.y += 32
    chart.write_notes(f"Height: fraction of {unit}; the tallest bar is {100 * tallest:.0f}%. Line: mean.")
    return chart.to_figure()


def _choose_bin_edges(columns: Iterable[Floats], scale: ChartScale) -> Floats:
    """Return the ends of bins: one for each whole number where there are few and no others, equal ones elsewhere."""
    if scale.high - scale.low <= BINS and all(bool((scores == np.round(scores)).all()) for scores in columns):
        return np.arange(math.floor(scale.low) - 0.5, math.ceil(scale.high) + 1)
    return np.linspace(scale.low, scale.high, BINS + 1)


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
