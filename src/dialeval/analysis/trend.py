"""Trends over versions or weeks: a test for a linear trend.

With T_i the value of system i of n, in the order given, and c_i = (i - mean of i) / (sum of (i - mean of i)^2):

    slope = sum of c_i T_i                      the change per step

- Systems with the same units (`alignment`): the error is the jackknife's over the units, each left out of all systems
  at once; Student's distribution with K - 1 degrees of freedom.
- Other systems are independent samples: variance = sum of c_i^2 v_i with the clustered variances v_i (`independent`),
  and Welch's degrees of freedom.

The test asks for one slope over all systems and does not look for change points. P-values are adjusted over the panel
of metrics (Holm), as in `comparison`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from dialeval.analysis.alignment import DesignName
from dialeval.analysis.difference import DEFAULT_ALPHA
from dialeval.analysis.pairing import Runs, Selection, select
from dialeval.analysis.values import Values, compute_influences, find_metric
from dialeval.core.arrays import Floats
from dialeval.core.display import Displayable, Tabular, count_names, flatten_intervals
from dialeval.core.errors import SettingError
from dialeval.core.fold import Better
from dialeval.core.result import Result
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.stats.independent import Spread, welch
from dialeval.stats.intervals import DEFAULT_LEVEL, t_factor, two_sided_p
from dialeval.stats.resampling import Influence, leave_out_clusters
from dialeval.stats.significance import ROUNDING, holm


class MetricTrend(Record, frozen=True):
    """The values of one metric over systems in order, and their slope.

    Attributes:
        key: The metric.
        better: Which values are better, `higher` or `lower`; None: neither.
        values: The value of each system.
        intervals: The confidence interval of each value; None where there is none.
        slope: The change per step.
        interval: The confidence interval of the slope.
        p: The p-value of the slope.
        adjusted_p: The p-value adjusted by Holm's method.
        significant: Whether `adjusted_p` is below alpha.
        reason: Why there is no test.

    Examples:
        >>> import dialeval
        >>> weeks = {f"week {n}": ["word " * (n + m % 3) for m in range(30)] for n in range(1, 5)}
        >>> run = dialeval.evaluate(weeks, metrics="length")
        >>> [round(value, 6) for value in dialeval.fit_trend(run).metrics[0].values]
        [2.0, 3.0, 4.0, 5.0]
    """

    key: str
    better: Better | None
    values: list[float]
    intervals: list[tuple[float, float] | None]
    slope: float = math.nan
    interval: tuple[float, float] | None = None
    p: float = math.nan
    adjusted_p: float = math.nan
    significant: bool = False
    reason: str | None = None


class Trend(Tabular, Displayable, Record, frozen=True, kw_only=True, rename={"version": "dialeval"}):
    """The result of `dialeval.fit_trend`.

    Attributes:
        systems: The systems, in order.
        design: `paired` or `unpaired`.
        unit: What is counted, `dialogues` or `rows`.
        units: The number of dialogues or rows of each system.
        panel: The metrics whose p-values are adjusted as one family.
        alpha: The significance level.
        confidence: The confidence level of the intervals.
        version: The version of dialeval.
        metrics: The trends, metric by metric.

    Examples:
        >>> import dialeval
        >>> weeks = {f"week {n}": ["word " * (n + m % 3) for m in range(30)] for n in range(1, 5)}
        >>> run = dialeval.evaluate(weeks, metrics="length")
        >>> dialeval.fit_trend(run)
        <Trend: 4 systems (week 1, week 2, week 3 and 1 more), 1 metrics, 1 significant>
    """

    systems: list[str]
    design: DesignName
    unit: str
    units: list[int]
    panel: tuple[str, ...]
    alpha: float
    confidence: float
    version: str = __version__
    metrics: list[MetricTrend]

    def __repr__(self) -> str:
        found = sum(row.significant for row in self.metrics)
        return f"<Trend: {count_names(self.systems, 'system')}, {len(self.metrics):,} metrics, {found:,} significant>"

    def lines(self) -> list[JsonObject]:
        """Return a line per metric and system, with the slope of the metric in each.

        Returns:
            The lines, as `to_pandas` has them.
        """
        return [
            flatten_intervals({"metric": row.key, "system": name, "value": value, "interval": interval})
            | flatten_intervals({"slope": row.slope, "slope_interval": row.interval})
            | {"p": row.p, "adjusted_p": row.adjusted_p, "reason": row.reason}
            for row in self.metrics
            for name, value, interval in zip(self.systems, row.values, row.intervals, strict=True)
        ]


def fit_trend(
    runs: Runs,
    *,
    systems: Iterable[str] | None = None,
    metrics: str | Iterable[str] | None = None,
    alpha: float = DEFAULT_ALPHA,
    confidence: float = DEFAULT_LEVEL,
    design: DesignName | None = None,
) -> Trend:
    """Test whether a metric rises or falls linearly over systems in the given order, such as versions or weeks.

    Args:
        runs: A run, a list of runs, or a mapping of names to runs; at least three systems, in order.
        systems: Only these systems, in this order; None: all but floor and ceiling systems.
        metrics: Only these metrics; None: all.
        alpha: The significance level.
        confidence: The confidence level of the intervals.
        design: `"paired"` for the same rows or dialogues in all systems, `"unpaired"` for independent samples; None:
            chosen by what the systems have in common.

    Returns:
        The values of every metric in order, and their slopes.

    Raises:
        SettingError: There are fewer than three systems, or a name does not exist.

    Examples:
        >>> import dialeval
        >>> weeks = {f"week {n}": ["word " * (n + m % 3) for m in range(30)] for n in range(1, 5)}
        >>> run = dialeval.evaluate(weeks, metrics="length")
        >>> found = dialeval.fit_trend(run)
        >>> round(found.metrics[0].slope, 6), found.metrics[0].significant
        (1.0, True)
    """
    if not 0 < alpha < 1 or not 0 < confidence < 1:
        raise SettingError(f"alpha and the confidence level must be between 0 and 1, not {alpha} and {confidence}")
    if design in ("common", "openings"):
        raise SettingError("a trend is over all units of each system; the designs are paired and unpaired")
    systems, metrics = (None if names is None else list(names) for names in (systems, metrics))
    selection = select(runs, None, systems, metrics, design)
    names = [selection.first, *selection.others]
    if len(names) < 3:
        raise SettingError(f"a trend needs at least three systems in order; there are {', '.join(names)}")
    paired = all(each.name == "paired" for each in selection.designs.values())
    if not paired:
        selection = select(runs, None, systems, metrics, "unpaired")
    results = [selection.known[selection.first], *(each.right for each in selection.alignments.values())]
    common = selection.common.values()
    keys = [key for key in next(iter(common)) if all(key in each for each in (*common, *results))]
    rows = [_find_trend(key, results, selection, paired, confidence) for key in keys]
    families = [[row for row in rows if (row.key in selection.panel) == inside] for inside in (True, False)]
    adjusted = {row.key: p for part in families for row, p in zip(part, holm([row.p for row in part]), strict=True)}
    return Trend(
        systems=names,
        design="paired" if paired else "unpaired",
        unit=next(iter(selection.designs.values())).unit,
        units=[len(result.rows.offsets) - 1 if result.rows is not None else 0 for result in results],
        panel=selection.panel,
        alpha=alpha,
        confidence=confidence,
        metrics=[replace(row, adjusted_p=adjusted[row.key], significant=adjusted[row.key] < alpha) for row in rows],
    )


def _find_trend(
    key: str, results: Sequence[Result], selection: Selection, paired: bool, confidence: float
) -> MetricTrend:
    estimates, metric = [result[key] for result in results], find_metric(results[0][key])
    means, intervals = [each.mean for each in estimates], [each.interval for each in estimates]
    row = MetricTrend(key, None if metric is None else metric.better, means, intervals)
    values = [Values.of(result, [key], alone=True) for result in results]
    reasons = [selection.left_out.get((name, key)) for name in selection.others]
    reason = next(filter(None, (*reasons, *(each.reasons.get(key) for each in values))), None)
    sizes = {each.clusters for each in values}
    if reason is None and min(sizes) < 2:
        reason = "a trend needs at least two dialogues or rows of each system"
    if reason is None and metric is not None and metric.counts_kinds and estimates[0].corpus and len(sizes) > 1:
        reason = "it depends on the amount of text, and the systems have different numbers of dialogues"
    if reason is not None:
        return replace(row, reason=reason)
    steps = np.arange(len(results)) - (len(results) - 1) / 2
    weights = steps / (steps**2).sum()
    slope = float(weights @ np.array(means))
    error, freedom = (_paired_error if paired else _unpaired_error)(key, values, weights, means)
    if math.isnan(error):
        return replace(row, reason="too few rows have a score")
    half = t_factor(confidence, freedom) * error
    scale = max(map(abs, means)) * float(np.abs(weights).sum())
    p = 1.0 if abs(slope) <= ROUNDING * scale else two_sided_p(slope / error, freedom) if error else 0.0
    return replace(row, slope=slope, interval=(slope - half, slope + half), p=p)


def _paired_error(key: str, values: Sequence[Values], weights: Floats, means: Sequence[float]) -> tuple[float, float]:
    """Compute the jackknife error of a slope over the units that all systems have."""
    without = np.array([each.compute(leave_out_clusters(each.clusters), jackknife=True)[key] for each in values])
    rows = np.sum([each.count_rows(key) for each in values], axis=0)
    slope = float(weights @ np.array(means))
    return Influence.of(slope, weights @ without, rows).error, values[0].clusters - 1


def _unpaired_error(key: str, values: Sequence[Values], weights: Floats, means: Sequence[float]) -> tuple[float, float]:
    """Compute the error of a slope over independent systems."""
    spreads = []
    for each, weight, mean in zip(values, weights.tolist(), means, strict=True):
        if key in each.items:
            spread = each.sum_clusters(key).spread
        else:
            spread = Spread.of_influence(compute_influences(each, {key: mean})[key], each.clusters)
        spreads.append(Spread(spread.variance * weight**2, spread.freedom, spread.clusters))
    return math.sqrt(sum(spread.variance for spread in spreads)), welch(*spreads)
