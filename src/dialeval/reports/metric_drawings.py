"""The section with a small drawing per metric: means with intervals, and how the items are spread, a line per system.

A drawing is a table with inline SVG: it prints, it is read aloud, it needs no script, and the mouse shows its figures.
All systems of a metric share one `Scale` and one set of bins (`Spread`), so that the eye may compare them. Colours and
strokes are the page's (classes, no style attributes), so that dark mode and print follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from dialeval.analysis.values import better_of
from dialeval.core.fold import Level
from dialeval.reports import markup
from dialeval.reports.figures import plain, shorten, show_rounded
from dialeval.reports.markup import Section

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
        """The scale that shows all finite values; None where there is nothing to show."""
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
    """The estimates of one metric by system."""
    return {name: result[key] for name, result in run.items() if key in result}


def scale_of_means(estimates: Iterable[Estimate], width: int) -> Scale | None:
    """The scale that shows the means and intervals of all systems."""
    return Scale.over([value for est in estimates for value in (est.mean, *(est.interval or ()))], width)


@dataclass(frozen=True)
class Spread:
    """The finite items of each system that has some, and which share of them falls into each bin of one scale."""

    scale: Scale
    items: Mapping[str, Floats]
    shares: Mapping[str, list[float]]

    @classmethod
    def of(cls, estimates: Mapping[str, Estimate], width: int) -> Spread | None:
        """The spread of the items of some estimates by system; None where there is nothing to show."""
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
    """The section."""
    colours = markup.colours(run)
    drawn = "".join(_metric(run, at, key, colours) for at, key in enumerate(run.keys_in_order))
    note = markup.note("All systems of a metric share one scale; the scale need not begin at zero.")
    content = f'{note}<div class="metrics">{drawn}</div>'
    return Section("metrics", "Metric by metric", content) if drawn else None


def _metric(run: Run, at: int, key: str, colours: Mapping[str, str]) -> str:
    estimates = estimates_of(run, key)
    spread = Spread.of(estimates, ITEMS_WIDTH)
    level = next((est.level for est in estimates.values()), Level.TURN)
    titles = ["Mean and interval" if any(est.interval for est in estimates.values()) else "Value of the corpus"]
    if spread is not None:
        titles.append(f"Spread over {level}s")
    drawing = _table(key, estimates, spread, titles, colours)
    head = f"<h3>{markup.name(key)}{markup.arrow(better_of(run, key))}</h3>"
    return f'<section class="metric" id="metric-{at}">{head}{drawing}</section>'


def _table(
    key: str,
    estimates: Mapping[str, Estimate],
    spread: Spread | None,
    titles: Sequence[str],
    colours: Mapping[str, str],
) -> str:
    """The drawings of a metric, a line per system, with the axes below."""
    means = scale_of_means(estimates.values(), INTERVAL_WIDTH)
    axes = [axis(means) if means else ""]
    lines = []
    for name, est in estimates.items():
        shown = shorten(plain(name))
        drawn = [interval(est, means, f"{shown}: {show_rounded(est.mean, est.interval)}") if means else ""]
        if spread is not None:
            about = f"{shown}: spread over {markup.count(est.scored, str(est.level))}"
            drawn.append(histogram(spread, name, about) if name in spread.items else "")
        cells = markup.cells(*drawn, kind="chart")
        lines.append(f'<tr class="{colours[name]}"><th scope="row">{markup.name(name)}</th>{cells}</tr>')
    if spread is not None:
        axes.append(axis(spread.scale))
    below = f"<tr><td></td>{markup.cells(*axes, kind='chart')}</tr>"
    head = markup.heads(markup.span("hidden", "System"), *titles)
    return markup.table("drawing", markup.span("hidden", f"{markup.text(key)} by system"), head, lines, below)


def interval(estimate: Estimate, scale: Scale, label: str) -> str:
    """A dot at the mean with a line over the interval."""
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
    """The items of a system as bars; the tallest bar of any system has the full height."""
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
    """The figures below a column of strips; they are for the eye, the table has all of them as text."""
    figures = "".join(f'<text class="tick" x="{scale(tick)}" y="11">{tick:.6g}</text>' for tick in scale.ticks)
    return f'<svg aria-hidden="true" width="{scale.width}" height="14" viewBox="0 0 {scale.width} 14">{figures}</svg>'


def grid(scale: Scale) -> str:
    """Lines through a strip at the ticks of its scale."""
    return "".join(f'<line class="grid" x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}"/>' for x in map(scale, scale.ticks))


def svg(drawn: str, width: int, label: str) -> str:
    """A strip of a drawing; its label is read aloud, and shown to the mouse."""
    size = f'width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}"'
    shown = escape(label)
    return f'<svg role="img" aria-label="{shown}" {size}><title>{shown}</title>{drawn}</svg>'
