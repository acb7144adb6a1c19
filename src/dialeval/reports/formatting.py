"""Formatting of values and names in all reports.

Four decimals, so that the values of a column are aligned; a value too small or too large for that is
written with an exponent. What was not computed or cannot be scored is a dash, never a zero.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dialeval.core import errors
from dialeval.core.display import list_some
from dialeval.core.fold import Analytic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dialeval.core.fold import Estimate, Resampling

DECIMALS = 4
MISSING = "–"
BETTER, WORSE, DIFFERENT, UNTESTED = "▲", "▼", "◆", "·"
"""Marks of values that differ significantly from the baseline's, and of those that were not tested."""
MARK_OF = {"better": BETTER, "worse": WORSE, "different": DIFFERENT, "untested": UNTESTED}
MARKS = f"{BETTER} better, {WORSE} worse, {DIFFERENT} different, neither is better, {UNTESTED} not tested"

SMALLEST, LARGEST = 5e-4, 1e7
"""Values outside of these are written with an exponent."""

_METHODS = {"student": "Student", "wilson": "Wilson", "gaffke": "Gaffke"}
"""Methods that have another name in words."""

NAME_WIDTH = 36
"""A longer name is shortened in its middle, because the names of one experiment differ at their ends."""


plain = errors.escape_controls
"""A name from outside, with what is not text in it written out."""


def show(number: float, decimals: int = DECIMALS) -> str:
    """Return a number with some decimals, or with an exponent if it is very small or large."""
    if not math.isfinite(number):
        return MISSING if math.isnan(number) else ("∞" if number > 0 else "-∞")
    if number and not SMALLEST <= abs(number) < LARGEST:
        return f"{number:.2e}"
    return f"{number:.{decimals}f}"


def show_spread(estimate: Estimate, decimals: int = DECIMALS) -> str:
    """Return the interval of an estimate, `[0.1100, 0.1500]`; empty if there is none."""
    if estimate.interval is None or not math.isfinite(estimate.mean):
        return ""
    return show_interval(estimate.interval, decimals)


def describe_intervals(estimates: Iterable[Estimate]) -> str:
    """Return which intervals some estimates have: `95% over dialogues (Student, Wilson)`; empty if they have none."""
    kinds: dict[str, dict[str, None]] = {}
    for estimate in estimates:
        if estimate.interval is not None and estimate.interval_by is not None:
            what, how = _describe_method(estimate.interval_by)
            kinds.setdefault(what, {})[how] = None
    return "; ".join(f"{what} ({', '.join(how)})" for what, how in kinds.items())


def _describe_method(how: Analytic | Resampling) -> tuple[str, str]:
    """Return what an interval is over, and by which method."""
    level = "" if how.level is None else f"{100 * how.level:g}% "
    method = _METHODS.get(how.method, how.method)
    if not isinstance(how, Analytic):
        return f"{level}by {how.resamples:,} bootstrap resamples of dialogues, or of independent rows", method
    if how.method == "rows":
        factor = f"{how.t:g}" if how.level is None and how.t is not None else "t"
        return f"{level}over rows", f"mean ± {factor} · std / √n"
    return f"{level}over {how.over}", method


def show_interval(interval: tuple[float, float], decimals: int = DECIMALS) -> str:
    """Return `[0.1100, 0.1500]`; both ends with the same decimals where these show how wide it is."""
    low, high = interval
    if not (math.isfinite(high - low) and SMALLEST <= (high - low) / 2 < LARGEST):
        return f"[{show(low, decimals)}, {show(high, decimals)}]"
    return "[{}, {}]".format(*(f"{round(end, decimals) + 0.0:.{decimals}f}" for end in interval))


def count_supported_decimals(interval: tuple[float, float] | None) -> int | None:
    """Return the decimals of two digits of an interval's half-width, at most four; None if it has no width."""
    half = 0.0 if interval is None else (interval[1] - interval[0]) / 2
    if not (math.isfinite(half) and half > 0):
        return None
    return min(DECIMALS, max(0, 1 - math.floor(math.log10(half))))


def show_rounded(number: float, interval: tuple[float, float] | None, signed: bool = False) -> str:
    """Return a value with its interval, `0.242 [0.205, 0.283]`, to the decimals that the interval supports."""
    supported = count_supported_decimals(interval)
    decimals = DECIMALS if supported is None else supported
    if interval is not None and abs(number) < 1e-12 * (interval[1] - interval[0]):
        number = 0.0  # a rounding error
    sign = "+" if signed and number > 0 else ""
    return f"{sign}{show(number, decimals)}" + (f" {show_interval(interval, decimals)}" if interval else "")


def show_signed(number: float) -> str:
    """Return a difference, with a plus where it is above zero."""
    return f"+{show(number)}" if number > 0 else show(number)


def show_fixed(number: float, decimals: int) -> str:
    """Return a probability or a correlation: always the same decimals."""
    return MISSING if math.isnan(number) else f"{number:.{decimals}f}"


LEAST_P = 1e-4
"""A smaller p is shown as below it: four decimals would make it 0, which no p is."""


def show_p(p: float) -> str:
    """Return a p-value with four decimals, `< 0.0001` for a smaller one."""
    return f"< {LEAST_P:.4f}" if p < LEAST_P else show_fixed(p, DECIMALS)


def show_scored(estimate: Estimate) -> str:
    """Return `490/501` where some rows could not be scored; empty where all were."""
    return "" if estimate.scored == estimate.units else f"{estimate.scored}/{estimate.units}"


def list_names(names: Sequence[str], most: int = 4) -> str:
    """Return names of systems or metrics in a sentence: `a, b and c`, or `a, b and 3 more`."""
    shown = list(map(shorten, names[:most])) + ([f"{len(names) - most} more"] if len(names) > most else [])
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def list_some_names(names: Iterable[str], most: int) -> str:
    """Return the first names of systems or metrics, and how many more there are: `a, b and 9 more`."""
    return list_some([shorten(name) for name in names], most)


def shorten(name: str, width: int = NAME_WIDTH) -> str:
    """Return a name from outside as plain text, shortened in its middle if it is long."""
    name, half = plain(name), width // 2
    return name if len(name) <= width else f"{name[: width - half - 1]}…{name[len(name) - half :]}"
