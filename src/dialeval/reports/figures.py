"""How a figure and a name are written wherever people read them.

Four decimals, so that the figures of a column stand below each other; a figure too small or too large for that is
written with an exponent. What was not computed or cannot be scored is a dash, never a zero.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialeval.core.fold import Estimate

DECIMALS = 4
MISSING = "–"

SMALLEST, LARGEST = 5e-4, 1e7
"""Outside of these, four decimals would hide the figure or drown it."""

NAME_WIDTH = 36
"""A longer name is shortened in its middle, because the names of one experiment differ at their ends."""


def show(number: float, decimals: int = DECIMALS) -> str:
    """A number as people read it."""
    if not math.isfinite(number):
        return MISSING if math.isnan(number) else ("∞" if number > 0 else "-∞")
    if number and not SMALLEST <= abs(number) < LARGEST:
        return f"{number:.2e}"
    return f"{number:.{decimals}f}"


def show_spread(estimate: Estimate, decimals: int = DECIMALS) -> str:
    """The interval of an estimate: `±0.0102`, or `[0.11, 0.15]` where it is not centred; empty if there is none."""
    if estimate.interval is None or not math.isfinite(estimate.mean):
        return ""
    low, high = estimate.interval
    half = (high - low) / 2
    if not math.isclose(low + half, estimate.mean, abs_tol=1e-9 * (1 + abs(estimate.mean))):
        return show_interval(estimate.interval, decimals)
    # Beside an ordinary mean a tiny half-width is rounding noise: an exponent would only draw the eye to it.
    tiny = half < SMALLEST <= abs(estimate.mean)
    return f"±{half:.{decimals}f}" if tiny else f"±{show(half, decimals)}"


def show_interval(interval: tuple[float, float], decimals: int = DECIMALS) -> str:
    """`[0.1100, 0.1500]`."""
    low, high = interval
    return f"[{show(low, decimals)}, {show(high, decimals)}]"


def show_signed(number: float) -> str:
    """A difference, with a plus where it is above zero."""
    return f"+{show(number)}" if number > 0 else show(number)


def show_fixed(number: float, decimals: int) -> str:
    """A probability or a correlation: always the same decimals."""
    return MISSING if math.isnan(number) else f"{number:.{decimals}f}"


def show_scored(estimate: Estimate) -> str:
    """`490/501` where some rows could not be scored; empty where all were."""
    return "" if estimate.scored == estimate.rows else f"{estimate.scored}/{estimate.rows}"


def shorten(name: str) -> str:
    """A name that leaves room for figures."""
    half = NAME_WIDTH // 2
    return name if len(name) <= NAME_WIDTH else f"{name[: half - 1]}…{name[-half:]}"
