"""Figures of a run as SVG, and as files for papers: SVG, PNG or PDF.

A figure shows one metric: the mean of each system with its confidence interval, and a histogram of its values per row,
all systems on one scale. PNG and PDF need the extra `report`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from dialeval.analysis.pairing import keys_meant
from dialeval.analysis.values import better_of
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.files import write_bytes
from dialeval.reports.figures import plain, shorten, show_rounded
from dialeval.reports.metric_drawings import (
    HEIGHT,
    INTERVAL_WIDTH,
    ITEMS_WIDTH,
    Spread,
    axis,
    estimates_of,
    histogram,
    interval,
    scale_of_means,
)
from dialeval.reports.tables import ARROWS

if TYPE_CHECKING:
    from dialeval.core.result import Run

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
"""Colours that are read on light and on dark paper alike; the names hold within the drawing only."""


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
    names = {name: shorten(plain(name)) for name in estimates}
    left = _NAME_WIDTH * max(map(len, names.values())) + 10
    parts = [f'<text x="0" y="14">{escape(shorten(plain(key)) + ARROWS[better_of(run, key)])}</text>']
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
