"""The section with a small drawing per metric: means with intervals, and how the items are spread, a line per system.

A drawing is a table with inline SVG: it prints, it is read aloud, it needs no script, and the mouse shows its figures.
All systems of a metric share one `Scale` and one set of bins (`Spread`), so that the eye may compare them. Colors and
strokes are the page's (classes, no style attributes), so that dark mode and print follow.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from dialeval.analysis.pairing import keys_meant
from dialeval.analysis.values import better_of
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.files import write_bytes
from dialeval.core.fold import Level
from dialeval.reports import markup
from dialeval.reports.figures import plain, shorten, show_rounded
from dialeval.reports.markup import Section
from dialeval.reports.tables import ARROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dialeval.core.arrays import Floats
    from dialeval.core.fold import Estimate
    from dialeval.core.result import Run


INTERVAL_WIDTH, ITEMS_WIDTH = 210, 150
HEIGHT = 24
MARGIN = 14
"""Space on both sides of a strip, for half of a tick's figure."""
BINS = 24
SMALLEST_WIDTH = 1e-300
"""Below this floats run out of digits to cut into bins."""
MIN_BAR = 1.0
"""A bin that holds anything is drawn at least this high: rare values are often the interesting ones."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a value stands on a strip of some width."""

    low: float
    high: float
    width: int
    margin: int = MARGIN

    @classmethod
    def over(cls, values: Iterable[float], width: int) -> Scale | None:
        """Return the scale that shows all finite values; None where there is nothing to show."""
        finite = [value for value in values if math.isfinite(value)]
        if not finite:
            return None
        low, high = min(finite), max(finite)
        if high - low <= max(1e-9 * max(abs(low), abs(high)), SMALLEST_WIDTH):  # all the same: a point in the middle
            half = abs(high) / 2 if abs(high) > SMALLEST_WIDTH else 1.0
            low, high = low - half, high + half
        return cls(low, high, width) if math.isfinite(high - low) else None

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


def estimates_of(run: Run, key: str) -> dict[str, Estimate]:
    """Return the estimates of one metric by system."""
    return {name: result[key] for name, result in run.items() if key in result}


def scale_of_means(estimates: Iterable[Estimate], width: int) -> Scale | None:
    """Return the scale that shows the means and intervals of all systems."""
    return Scale.over([value for est in estimates for value in (est.mean, *(est.interval or ()))], width)


@dataclass(frozen=True)
class Spread:
    """The finite items of each system that has some, and which fraction of them falls into each bin of one scale."""

    scale: Scale
    items: Mapping[str, Floats]
    shares: Mapping[str, list[float]]

    @classmethod
    def of(cls, estimates: Mapping[str, Estimate], width: int) -> Spread | None:
        """Return the spread of the items of some estimates by system; None where there is nothing to show."""
        known = {name: est.items[np.isfinite(est.items)] for name, est in estimates.items() if est.items is not None}
        items = {name: values for name, values in known.items() if len(values)}
        scale = Scale.over([float(end(values)) for values in items.values() for end in (np.min, np.max)], width)
        if scale is None:
            return None
        counts = {
            name: np.histogram(values, bins=BINS, range=(scale.low, scale.high))[0] for name, values in items.items()
        }
        return cls(scale, items, {name: (found / len(items[name])).tolist() for name, found in counts.items()})

    @cached_property
    def tallest(self) -> float:
        """The largest share of any bin."""
        return max(share for shares in self.shares.values() for share in shares)


def drawings(run: Run) -> Section | None:
    """Return the section."""
    colors = markup.colors(run)
    drawn = "".join(_metric(run, at, key, colors) for at, key in enumerate(run.keys_in_order))
    note = markup.note("All systems of a metric share one scale; the scale need not begin at zero.")
    content = f'{note}<div class="metrics">{drawn}</div>'
    return Section("metrics", "Metric by metric", content) if drawn else None


def _metric(run: Run, at: int, key: str, colors: Mapping[str, str]) -> str:
    estimates = estimates_of(run, key)
    spread = Spread.of(estimates, ITEMS_WIDTH)
    level = next((est.level for est in estimates.values()), Level.TURN)
    titles = ["Mean and interval" if any(est.interval for est in estimates.values()) else "Value of the corpus"]
    if spread is not None:
        titles.append(f"Spread over {level}s")
    drawing = _table(key, estimates, spread, titles, colors)
    head = f"<h3>{markup.name(key)}{markup.arrow(better_of(run, key))}</h3>"
    return f'<section class="metric" id="metric-{at}">{head}{drawing}</section>'


def _table(
    key: str,
    estimates: Mapping[str, Estimate],
    spread: Spread | None,
    titles: Sequence[str],
    colors: Mapping[str, str],
) -> str:
    """Return the drawings of a metric, a line per system, with the axes below."""
    means = scale_of_means(estimates.values(), INTERVAL_WIDTH)
    axes = [axis(means) if means else ""]
    lines = []
    for name, est in estimates.items():
        shown = shorten(name)
        drawn = [interval(est, means, f"{shown}: {show_rounded(est.mean, est.interval)}") if means else ""]
        if spread is not None:
            about = f"{shown}: spread over {markup.count(est.scored, str(est.level))}"
            drawn.append(histogram(spread, name, about) if name in spread.items else "")
        cells = markup.cells(*drawn, kind="chart")
        lines.append(f'<tr class="{colors[name]}"><th scope="row">{markup.name(name)}</th>{cells}</tr>')
    if spread is not None:
        axes.append(axis(spread.scale))
    below = f"<tr><td></td>{markup.cells(*axes, kind='chart')}</tr>"
    head = markup.heads(markup.span("hidden", "System"), *titles)
    return markup.table("drawing", markup.span("hidden", f"{markup.text(key)} by system"), head, lines, below)


def interval(estimate: Estimate, scale: Scale, label: str) -> str:
    """Return a dot at the mean with a line over the interval."""
    middle = HEIGHT / 2
    drawn = grid(scale)
    if estimate.interval is not None and all(map(math.isfinite, estimate.interval)):
        low, high = map(scale, estimate.interval)
        drawn += f'<line class="range" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>'
        drawn += "".join(
            f'<line class="range" x1="{x}" x2="{x}" y1="{middle - 4}" y2="{middle + 4}"/>' for x in (low, high)
        )
    if math.isfinite(estimate.mean):
        drawn += f'<circle class="mean" cx="{scale(estimate.mean)}" cy="{middle}" r="4"/>'
    return svg(drawn, scale.width, label)


def histogram(spread: Spread, system: str, label: str) -> str:
    """Return the items of a system as bars; the tallest bar of any system has the full height."""
    scale, tallest = spread.scale, spread.tallest
    width = (scale.width - 2 * MARGIN) / BINS
    bars = [
        f'<rect class="bar" x="{MARGIN + at * width + 0.5:.1f}" y="{HEIGHT - height:.1f}"'
        f' width="{width - 1:.1f}" height="{height:.1f}"/>'
        for at, share in enumerate(spread.shares[system])
        if share and (height := max(MIN_BAR, (HEIGHT - 2) * share / tallest))
    ]
    base = f'<line class="base" x1="{MARGIN}" x2="{scale.width - MARGIN}" y1="{HEIGHT}" y2="{HEIGHT}"/>'
    return svg("".join(bars) + base, scale.width, label)


def axis(scale: Scale) -> str:
    """Return the figures below a column of strips; they are for the eye, the table has all of them as text."""
    figures = "".join(f'<text class="tick" x="{scale(tick)}" y="11">{tick:.6g}</text>' for tick in scale.ticks)
    return f'<svg aria-hidden="true" width="{scale.width}" height="14" viewBox="0 0 {scale.width} 14">{figures}</svg>'


def grid(scale: Scale) -> str:
    """Return lines through a strip at the ticks of its scale."""
    return "".join(f'<line class="grid" x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}"/>' for x in map(scale, scale.ticks))


def svg(drawn: str, width: int, label: str) -> str:
    """Return a strip of a drawing; its label is read aloud, and shown to the mouse."""
    size = f'width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}"'
    shown = escape(label)
    return f'<svg role="img" aria-label="{shown}" {size}><title>{shown}</title>{drawn}</svg>'


# Figures of a run as SVG, and as files for papers: SVG, PNG or PDF.
#
# A figure shows one metric: the mean of each system with its confidence interval, and a histogram of its values per
# row, all systems on one scale. PNG and PDF need the extra `report`.

PlotFormat = Literal["svg", "png", "pdf"]
PNG_SCALE = 3.0
_ROW = HEIGHT + 6
_NAME_WIDTH = 8
"""Of a character, in pixels: about what the fonts of notebooks take."""
_STYLE = (
    ".dialeval-plot text{font:12px sans-serif;fill:currentColor}.dialeval-plot .tick{font-size:11px;text-anchor:middle}"
    ".dialeval-plot .grid,.dialeval-plot .base{stroke:#8888;stroke-width:1}"
    ".dialeval-plot .range{stroke:#2a8a94;stroke-width:2}.dialeval-plot .mean{fill:#2a8a94}"
    ".dialeval-plot .bar{fill:#2a8a9488}"
)
"""Colors that are read on light and on dark paper alike; the names hold within the drawing only."""


@dataclass(frozen=True)
class Plot:
    """The figure of a metric: a notebook shows it, `save` writes it as an SVG, PNG or PDF file."""

    key: str
    svg: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the figure to a file of the format that its suffix names, and return its path."""
        form = Path(path).suffix.removeprefix(".")
        if form not in get_args(PlotFormat):
            raise SettingError(f"plots are written as {', '.join(get_args(PlotFormat))}, not as {form!r}")
        write_bytes(Path(path), _convert(self.svg, form))
        return Path(path)


def plot(run: Run, key: str) -> Plot:
    """Draw means with intervals and histograms of values per row, a line per system on one scale."""
    (key,) = keys_meant([key], run.keys_in_order, "the run has no", "it has")
    estimates = estimates_of(run, key)
    means, spread = scale_of_means(estimates.values(), INTERVAL_WIDTH), Spread.of(estimates, ITEMS_WIDTH)
    names = {name: shorten(name) for name in estimates}
    left = _NAME_WIDTH * max(map(len, names.values())) + 10
    parts = [f'<text x="0" y="14">{escape(shorten(key) + ARROWS[better_of(run, key)])}</text>']
    for at, (name, estimate) in enumerate(estimates.items(), 1):
        parts.append(f'<text x="0" y="{at * _ROW + 16}">{escape(names[name])}</text>')
        if means is not None:
            label = f"{names[name]}: {show_rounded(estimate.mean, estimate.interval)}"
            parts.append(_moved(interval(estimate, means, label), left, at * _ROW))
        if spread is not None and name in spread.items:
            drawn = histogram(spread, name, f"{names[name]}: spread over {estimate.scored:,} {estimate.level}s")
            parts.append(_moved(drawn, left + INTERVAL_WIDTH, at * _ROW))
    bottom = (len(estimates) + 1) * _ROW
    scales = ((means, left), (None if spread is None else spread.scale, left + INTERVAL_WIDTH))
    parts += [_moved(axis(scale), x, bottom) for scale, x in scales if scale is not None]
    width, height = left + INTERVAL_WIDTH + (0 if spread is None else ITEMS_WIDTH), bottom + 16
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" class="dialeval-plot" {size}><style>{_STYLE}</style>'
    return Plot(key, f"{opening}{''.join(parts)}</svg>")


def _moved(drawn: str, x: float, y: float) -> str:
    return f'<g transform="translate({x},{y})">{drawn}</g>'


def can_convert() -> bool:
    """Return whether the extra `report` is installed."""
    return find_spec("vl_convert") is not None


def _convert(svg: str, form: str) -> bytes:
    if form == "svg":
        return svg.encode()
    if not can_convert():
        raise NeedError("PNG and PDF files need vl-convert-python; install it: pip install 'dialeval[report]'")
    import vl_convert

    drawn: bytes = vl_convert.svg_to_pdf(svg) if form == "pdf" else vl_convert.svg_to_png(svg, scale=PNG_SCALE)
    return drawn


def write_plots(run: Run, folder: str | os.PathLike[str], form: PlotFormat = "svg") -> list[Path]:
    """Write a figure per metric into a folder, and return their paths."""
    paths: dict[str, Path] = {}
    for key in run.keys_in_order:
        estimates = estimates_of(run, key)
        if scale_of_means(estimates.values(), INTERVAL_WIDTH) or Spread.of(estimates, ITEMS_WIDTH):
            path = Path(folder) / f"{_file_name(key, paths)}.{form}"
            paths[path.stem] = plot(run, key).save(path)
    return list(paths.values())


def _file_name(key: str, taken: Collection[str]) -> str:
    """Return a file name for a metric, whatever the metric is called."""
    name = re.sub(r"[^\w.()=,-]+", "-", plain(key)).strip("-.")[:80] or "metric"
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in names if each not in taken)
