"""The canvas that charts are drawn on: scales, elements of SVG, axes, and the figure that results.

Colors are classes: the report's style paints them for light, dark and print, and a file has the same classes with a
style of its own (`Figure.svg`). Names are next to what they name, so that charts of many systems can be read in
grayscale. Texts are sized for the width that a chart is drawn for and are not scaled later.
"""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections.abc import Iterable, Sequence
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


def make_link(href: str, about: str, *elements: str) -> str:
    """Return elements that lead to an address of the page; `about`: the tooltip."""
    title = f"<title>{escape(about)}</title>" if about else ""
    return f'<a href="{href}">{title}{"".join(elements)}</a>'


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
