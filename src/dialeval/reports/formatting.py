"""Formatting of values and names in all reports: terminal, Markdown, LaTeX, HTML and notebooks.

A value has the decimals of two significant digits of its interval's half-width, without an interval three significant
digits. The minus is U+2212, a difference has its sign, thousands have a comma, an interval is `0.11 to 0.15`, and a
p-value `p = 0.006` or `p < 0.001`. What was not computed or cannot be scored is a dash, never a zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dialeval.core import errors
from dialeval.core.display import list_some
from dialeval.core.fold import Analytic, Estimate, Resampling

MISSING = "–"
BETTER, WORSE, DIFFERENT, UNTESTED = "▲", "▼", "◆", "·"
"""Marks of values that differ significantly from the baseline's, and of those that were not tested."""
MARK_OF = {"better": BETTER, "worse": WORSE, "different": DIFFERENT, "untested": UNTESTED}
MARKS = f"{BETTER} better, {WORSE} worse, {DIFFERENT} different, neither is better, {UNTESTED} not tested"

MINUS = "−"
MOST_DECIMALS, TINY = 6, 1e-6
"""A value below that needs more decimals is written with a power of ten."""
LEAST_P = 1e-3
"""A smaller p is shown as below it."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_METHODS = {"student": "Student", "wilson": "Wilson", "gaffke": "Gaffke"}
"""Methods that have another name in words."""

NAME_WIDTH = 36
"""A longer name is shortened in its middle, because the names of one experiment differ at their ends."""


plain = errors.escape_controls
"""A name from outside, with what is not text in it written out."""


def show(number: float, decimals: int | None = None) -> str:
    """Return a number with some decimals, by default three significant digits; with a power of ten if it is tiny."""
    if not math.isfinite(number):
        return MISSING if math.isnan(number) else ("∞" if number > 0 else f"{MINUS}∞")
    if number and abs(number) < TINY and (decimals is None or decimals >= MOST_DECIMALS):
        digits, exponent = f"{number:.1e}".split("e")
        return f"{digits}×10{str(int(exponent)).translate(_SUPERSCRIPTS)}".replace("-", MINUS)
    decimals = count_digits(abs(number), 3) if decimals is None else decimals
    return f"{round(number, decimals) + 0.0:,.{decimals}f}".replace("-", MINUS)


def count_digits(size: float, digits: int) -> int:
    """Return the decimals that give a size so many significant digits, at most six."""
    if not (math.isfinite(size) and size > 0):
        return digits - 1
    exponent = int(f"{size:.{digits - 1}e}".partition("e")[2])
    return min(MOST_DECIMALS, max(0, digits - 1 - exponent))


def show_spread(estimate: Estimate, decimals: int | None = None) -> str:
    """Return the interval of an estimate, `0.11 to 0.15`; empty if there is none."""
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
        by, of = ("", "over") if how.method == "jackknife" else (f"by {how.resamples:,} bootstrap resamples ", "of")
        return f"{level}{by}{of} dialogues, or {of} independent rows", method
    if how.method == "rows":
        factor = f"{how.t:g}" if how.level is None and how.t is not None else "t"
        return f"{level}over rows", f"mean ± {factor} · std / √n"
    return f"{level}over {how.over}", method


def show_interval(interval: tuple[float, float], decimals: int | None = None) -> str:
    """Return `0.11 to 0.15`, by default to the decimals that the interval supports."""
    decimals = count_supported_decimals(interval) if decimals is None else decimals
    low, high = (show(end, decimals) for end in interval)
    return f"{low} to {high}"


def count_supported_decimals(interval: tuple[float, float] | None) -> int | None:
    """Return the decimals of two digits of an interval's half-width, at most six; None if it has no width."""
    half = 0.0 if interval is None else (interval[1] - interval[0]) / 2
    return count_digits(half, 2) if math.isfinite(half) and half > 0 else None


def align_decimals(values: Iterable[float], intervals: Iterable[tuple[float, float] | None]) -> int:
    """Return the decimals of values next to each other: those of their median interval, else three digits."""
    supported = sorted(count for interval in intervals if (count := count_supported_decimals(interval)) is not None)
    if supported:
        return supported[(len(supported) - 1) // 2]
    return count_digits(max((abs(value) for value in values if math.isfinite(value)), default=0.0), 3)


def show_value(number: float, interval: tuple[float, float] | None = None, signed: bool = False) -> str:
    """Return a value to the decimals that its interval supports; a difference (`signed`) has its sign."""
    if interval is not None and abs(number) < 1e-12 * (interval[1] - interval[0]):
        number = 0.0  # a rounding error
    shown = show(number, count_supported_decimals(interval))
    return f"+{shown}" if signed and number > 0 and shown.strip("0.,") else shown


def show_rounded(number: float, interval: tuple[float, float] | None, signed: bool = False) -> str:
    """Return a value with its interval, `0.242 (0.205 to 0.283)`, to the decimals that the interval supports."""
    return show_value(number, interval, signed) + (f" ({show_interval(interval)})" if interval else "")


def show_fixed(number: float, decimals: int) -> str:
    """Return a probability or a correlation: always the same decimals."""
    return MISSING if math.isnan(number) else show(number, decimals)


def show_p(p: float) -> str:
    """Return a p-value: `0.44`, `0.006`, or `< 0.001` for a smaller one."""
    return "< 0.001" if p < LEAST_P else show_fixed(p, 2 if p >= 0.1 else 3)


def state_p(p: float) -> str:
    """Return a p-value as in a sentence: `p = 0.006`, `p < 0.001`."""
    return f"p {show_p(p)}" if p < LEAST_P else f"p = {show_p(p)}"


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
