"""The strips of a forest plot: each a difference to the baseline, better to the right, worse to the left.

Metrics have different units, so differences are drawn in standard deviations: the effect size of `compare`, with the
interval stretched alike. For a metric where lower is better the strip is turned around. A difference beyond the scale
is drawn at its edge.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dialeval.reports.figures import BETTER, DIFFERENT, WORSE, plain, shorten, show_rounded
from dialeval.reports.metric_drawings import HEIGHT, MARGIN, Scale, grid, svg
from dialeval.reports.verdict import mark_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dialeval.analysis.comparison import Difference

WIDTH = 150
WIDEST = 4.0
"""The scale goes no further than so many standard deviations."""
NARROWEST, BEYOND = 0.3, 1.3
"""It goes at least so far, and so much further than the largest difference: a wide interval would hide all others."""
SLIM = 6
"""The margin of a strip without figures below it."""
_KINDS = {BETTER: "up", WORSE: "down", DIFFERENT: "other", "": "unsure"}
_IN_WORDS = {BETTER: ", better", WORSE: ", worse", DIFFERENT: ", different", "": ", cannot tell"}


def scale_of(rows: Iterable[Difference], width: int = WIDTH) -> Scale:
    """The scale in standard deviations that shows all differences, and most of their intervals."""
    furthest = max((abs(found[1]) for row in rows if (found := stretched(row))), default=1.0)
    limit = min(WIDEST, max(NARROWEST, BEYOND * furthest))
    return Scale(-limit, limit, width, MARGIN if width >= WIDTH else SLIM)


def kind_of(row: Difference) -> str:
    """The class of a difference: up, down, other (neither is better) or unsure."""
    return _KINDS[mark_of(row)]


def strip(row: Difference, scale: Scale) -> str:
    """A difference as a dot with its interval; read aloud, and shown to the mouse, with its figures."""
    figure = show_rounded(row.difference, row.interval, signed=True)
    label = f"{shorten(plain(row.system))}, {shorten(plain(row.key))}: {figure}{_IN_WORDS[mark_of(row)]}"
    middle, drawn = HEIGHT / 2, grid(scale)
    drawn += f'<line class="zero" x1="{scale(0)}" x2="{scale(0)}" y1="0" y2="{HEIGHT}"/>'
    if ends := stretched(row):
        low, at, high = (scale(min(scale.high, max(scale.low, value))) for value in ends)
        drawn += f'<line class="range" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>'
        drawn += f'<circle class="mean" cx="{at}" cy="{middle}" r="4"/>'
    return svg(drawn, scale.width, label)


def stretched(row: Difference) -> tuple[float, float, float] | None:
    """The lower end, the difference and the upper end in standard deviations, better above zero; None if unknown."""
    if row.interval is None or not row.difference or not math.isfinite(row.effect):
        return None
    factor = abs(row.effect / row.difference) * (-1 if row.better == "lower" else 1)
    low, high = sorted(factor * end for end in row.interval)
    return low, factor * row.difference, high
