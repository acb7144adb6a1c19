"""The confidence intervals of a run: over dialogues, over rows as dialog-eval has them, or none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf, isfinite, nan
from typing import Literal, get_args

from dialeval.core.errors import SettingError
from dialeval.core.exact import ClusterError
from dialeval.core.fold import Analytic, Bounds, Estimate, Level
from dialeval.stats import intervals

DEFAULT_T = 1.97
"""Factor of the confidence t * std / sqrt(n); the value that dialog-eval made customary."""


IntervalKind = Literal["clustered", "rows", "none"]


@dataclass(frozen=True)
class IntervalChoice:
    """The choice of intervals; `t` is the factor of `rows` and implies that kind, `level` is 0.95 unless given."""

    kind: IntervalKind | None = None
    t: float | None = None
    level: float | None = None

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in get_args(IntervalKind):
            raise SettingError(f"intervals are {', '.join(get_args(IntervalKind))}, not {self.kind!r}")
        if self.t is not None and not self.t > 0:
            raise SettingError(f"t is the factor of a confidence and above 0, not {self.t}")
        if self.t is not None and self.level is not None:
            raise SettingError("give t or a confidence level, not both")
        if self.t is not None and self.kind not in (None, "rows"):
            raise SettingError(f"t is the factor of intervals over rows; intervals that are {self.kind} have none")
        if self.level is not None and not 0 < self.level < 1:
            raise SettingError(f"a confidence level must be between 0 and 1, such as 0.95; it is not {self.level}")

    def add_interval(self, estimate: Estimate, bounds: Bounds) -> Estimate:
        """Add the interval to an estimate; `bounds` are the smallest and the largest value of the metric."""
        plain = replace(estimate, error=None)
        if self.kind == "rows" or self.t is not None:
            t = self.t or (DEFAULT_T if self.level is None else intervals.two_sided_t(self.level, estimate.scored))
            return plain.with_confidence(t, self.level)
        level = self.level or intervals.DEFAULT_LEVEL
        interval = None if self.kind == "none" else compute_interval(estimate, bounds, level)
        if interval is None:
            return replace(plain, half_width=nan)
        (low, high), how = interval
        return replace(plain, interval=(low, high), half_width=(high - low) / 2, interval_by=how)


def compute_interval(estimate: Estimate, bounds: Bounds, level: float) -> tuple[tuple[float, float], Analytic] | None:
    """Compute the interval over dialogues, or over independent rows, and its method; None where there is none."""
    error, value = estimate.error, estimate.mean
    if error is None or error.clusters < 2 or not isfinite(value):
        return None
    over: Literal["dialogues", "rows"] = (
        "dialogues" if estimate.level is Level.DIALOGUE or error.over_dialogues else "rows"
    )
    analytic = partial(Analytic, level=level, over=over, clusters=error.clusters, error=error.error)
    if error.values:
        return intervals.gaffke(error.values, bounds, level), analytic("gaffke", t=None)
    if all(map(isfinite, bounds)) and (error.yes_no or estimate.corpus):
        size, freedom = _effective_size(value, error, bounds)
        t = intervals.t_factor(level, freedom)
        how = analytic("wilson", t=t, freedom=freedom if isfinite(freedom) else None)
        return intervals.wilson(value, size, bounds, t), how
    t = intervals.t_factor(level, error.freedom)
    return intervals.student(value, error.error, bounds, t), analytic("student", t=t, freedom=error.freedom)


def _effective_size(value: float, error: ClusterError, bounds: Bounds) -> tuple[float, float]:
    """Return the effective sample size of a value, and its degrees of freedom."""
    fraction = intervals.fraction_of_range(value, bounds)
    variance = fraction * (1 - fraction)
    if not variance or (error.yes_no and not error.over_dialogues):
        return error.clusters, inf  # nothing about the spread is estimated
    most = float(error.scored) if error.yes_no else inf
    squared = (error.error / (bounds[1] - bounds[0])) ** 2
    return min(variance / squared, most) if squared else most, error.freedom
