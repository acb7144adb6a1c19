"""The canvas that charts are drawn on: scales, text, lines, legends, axes, marks, and the figure that results.

Colors are classes: the report's style paints them for light, dark and print, and a file has the same classes with a
style of its own (`Figure.svg`). Systems differ by shape and dash as well as by color, so that charts of many systems
can be read in grayscale. Texts are sized for the width that a chart is drawn for and are not scaled later.
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
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from dialeval.core.errors import NeedError, SettingError
from dialeval.core.files import write_bytes
from dialeval.reports.formatting import MINUS, plain, shorten

FigureFormat = Literal["svg", "png", "pdf"]
WIDTH = 460
"""Pixels of a chart in the report."""
PIXELS_PER_INCH = 96
"""Of a chart for a paper: texts of 12 pixels are 9 points."""
PNG_SCALE = 300 / PIXELS_PER_INCH
COLORS = 8
"""Colors of systems; the ninth has the first one's again, with another shape."""
MARGIN = 14
SMALLEST_WIDTH = 1e-300
"""Below this, floats have too few digits for bins."""
_ASSETS = Path(__file__).with_name("assets")
CHARACTER = 6.7
"""Pixels of a character, about what fonts of 12 pixels take."""
LINE = 16
SHAPES = 6
_PAINTS = ("#2f7fc1", "#d0660f", "#0f8f6c", "#b9578f", "#7a6fd0", "#8f7a10", "#b8433f", "#5f8a38")
"""Colors of systems in a file, readable on light and on dark backgrounds."""


_TITLE = re.compile(r'<text [^>]*class="title">.*?</text>')


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
    content: str = field(repr=False)
    top: float = field(default=0.0, repr=False)
    """The upper edge in the coordinates of the content."""

    def without_title(self) -> Figure:
        """Return the chart for a paper, which has a caption: without its title, on white."""
        content, titles = _TITLE.subn("", self.content)
        top = float(LINE * titles)
        size = f'y="{top:g}" width="{self.width}" height="{self.height - top:g}"'
        white = f'<rect x="0" {size} fill="#ffffff"/>'
        return replace(self, height=int(self.height - top), top=top, content=white + content)

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
        size = f'width="{self.width}" height="{self.height}" viewBox="0 {self.top:g} {self.width} {self.height}"'
        opening = f'<svg{space} class="chart" role="img" aria-label="{label}" {size}>'
        return f"{opening}{style}{self.content}</svg>"

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
                pixels = f'width="{self.width}" height="{self.height}"'
                width, height = (size * 72 / PIXELS_PER_INCH for size in (self.width, self.height))
                points = f'width="{width:.2f}" height="{height:.2f}"'
                content = bytes(vl_convert.svg_to_pdf(self.svg.replace(pixels, points, 1)))
        write_bytes(Path(path), content)
        return Path(path)


class Canvas:
    """A chart while it is drawn; `y` is the next free line."""

    def __init__(self, name: str, title: str, width: int) -> None:
        self.name, self.title, self.width = name, plain(title), width
        self.parts: list[str] = []
        self.words: list[str] = []
        self.y = 0.0
        for line in textwrap.wrap(self.title, max(20, int(width / (CHARACTER * 1.08)))):
            self.y += LINE
            self.write(0, self.y - 3, line, "title")
        self.y += 4

    def write(self, x: float, y: float, words: str, kind: str = "", room: float | None = None) -> None:
        """Write words; longer ones than there is room for are shortened in their middle."""
        shown = shorten(words, max(3, int((self.width if room is None else room) / CHARACTER)))
        attribute = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{attribute}>{escape(shown)}</text>')

    def write_rotated(self, x: float, y: float, angle: int, words: str, kind: str, room: float) -> None:
        """Write words at an angle."""
        self.parts.append(f'<g transform="translate({x:.1f},{y:.1f}) rotate({angle})">')
        self.write(0, 0, words, kind, room)
        self.parts.append("</g>")

    def write_axis_title(self, x: float, words: str, room: float) -> None:
        """Write the title of an axis below the chart, in as many lines as needed."""
        for line in textwrap.wrap(plain(words), max(12, int(room / CHARACTER))):
            self.write(x, self.y + 12, line, "axis-title")
            self.y += 14

    def draw_line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a line."""
        self.parts.append(make_line(x1, y1, x2, y2, kind))

    def draw_group(self, kind: str, about: str, *elements: str) -> None:
        """Draw elements of one color; `about`: the tooltip."""
        attribute = f' class="{kind}"' if kind else ""
        title = f"<title>{escape(about)}</title>" if about else ""
        self.parts.append(f"<g{attribute}>{title}{''.join(elements)}</g>")

    def draw_legend(self, names: Sequence[str], numbers: Mapping[str, int], *, dashes: bool = False) -> None:
        """Draw what colors, shapes and dashes mean, in as many lines as needed."""
        x = 0.0
        self.y += 2
        for name in names:
            size = min(self.measure_text(name), self.width - 30.0) + 34
            if x and x + size > self.width:
                x, self.y = 0.0, self.y + LINE
            y, number = self.y + 7, numbers[name]
            dash = make_line(x, y, x + 20, y, f"curve dash-{number % SHAPES}") if dashes else ""
            self.draw_group(get_color_class(number), "", dash, draw_marker(x + 10, y, number))
            self.write(x + 25, self.y + 11, name, room=self.width - 30)
            x += size
        self.y += LINE + 4

    def draw_axes(self, xs: Sequence[float], ys: Iterable[float], x_title: str, y_title: str) -> PlotArea:
        """Draw grid lines, ticks and titles of axes that show some values, and return the area between them."""
        width, height = self.width - 66.0, 210.0
        x_scale = ChartScale.from_values(xs, width) or ChartScale(0, 1, width)
        y_scale = ChartScale.from_values(ys, height, 6) or ChartScale(0, 1, height, 6)
        area = PlotArea(58.0, self.y + 4, width, height, x_scale, y_scale)
        bottom, right = area.top + area.height, area.left + area.width
        whole = all(float(x).is_integer() for x in xs)
        for tick in area.x.ticks:
            if not whole or float(tick).is_integer():
                x = area.left + area.x(tick)
                self.draw_line(x, area.top, x, bottom, "grid")
                self.write(x, bottom + 14, show_tick(tick), "tick")
        for tick in area.y.ticks:
            y = bottom - area.y(tick)
            self.draw_line(area.left, y, right, y, "grid")
            self.write(area.left - 6, y + 4, show_tick(tick), "tick end")
        self.y = bottom + 18
        self.write_axis_title(area.left + area.width / 2, x_title, area.width)
        self.write_rotated(11, area.top + area.height / 2, -90, y_title, "axis-title", area.height + 40)
        return area

    def write_notes(self, *lines: str) -> None:
        """Write small lines below."""
        for line in lines:
            for part in textwrap.wrap(plain(line), int(self.width / 6.0)):
                self.y += 14
                self.write(0, self.y, part, "small", 2 * self.width)

    @staticmethod
    def measure_text(words: str) -> float:
        """Return about how wide a text is."""
        return CHARACTER * len(plain(words))

    def measure_labels(self, labels: Iterable[str]) -> float:
        """Return the width of a column of labels, at most about a third of the chart."""
        return min(max(map(self.measure_text, labels), default=4 * CHARACTER) + 12, 0.36 * self.width)

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


def make_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a line as SVG."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def get_color_class(number: int) -> str:
    """Return the class of a system's color by its number; below 0 that of floors and ceilings."""
    return "anchor" if number < 0 else f"own-{number % COLORS}"


def draw_marker(x: float, y: float, number: int, size: float = 4) -> str:
    """Return a mark: six shapes, filled or hollow, so that twelve systems differ without color."""
    at = number % SHAPES if number >= 0 else 0
    hollow = " hollow" if number < 0 or number // SHAPES % 2 else ""
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
