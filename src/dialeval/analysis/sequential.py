"""Comparisons over time: interim looks at any time (`run_sequential_test`), and trends over versions (`fit_trend`).

`run_sequential_test` compares systems by confidence sequences (`stats.sequences`). Dialogues are taken in the order of
the run. The interval is for the difference of the means over rows, as in `comparison`, or with `weight="dialogues"` for
that of means in which every dialogue counts once. It assumes that

- dialogues are independent and identically distributed: drawn one after the other from the same source, in an order
  that has nothing to do with their values (a sorted file, or users who change over the weeks, violate that);
- the same systems and metrics are tested at every interim look, since alpha is divided by their number: by that of the
  differences in the panel (`comparison`), and by that of the other ones for these.

Corpus values have no value per dialogue and no sequence. A dialogue without a row that both systems were scored on is
passed over.

`fit_trend` tests for a linear trend. With T_i the value of system i of n, in the order given, and
c_i = (i - mean of i) / (sum of (i - mean of i)^2):

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
from msgspec.structs import asdict, replace

from dialeval.analysis.alignment import Alignment, Design, DesignName
from dialeval.analysis.difference import DEFAULT_ALPHA, pair_values
from dialeval.analysis.pairing import Runs, Selection, Weight, select
from dialeval.analysis.values import Values, compute_influences, find_bounds, find_metric
from dialeval.core.arrays import Floats
from dialeval.core.display import Displayable, Tabular, count_names, flatten_intervals
from dialeval.core.errors import SettingError, escape_controls
from dialeval.core.fold import Better, Estimate
from dialeval.core.result import Result
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.stats.independent import Spread, welch
from dialeval.stats.intervals import DEFAULT_LEVEL, t_factor, two_sided_p
from dialeval.stats.resampling import Influence, leave_out_clusters
from dialeval.stats.sequences import FIRST, Kind, confidence_sequence, unpaired_confidence_sequence
from dialeval.stats.significance import ROUNDING, holm


class SequentialDifference(Record, frozen=True):
    """A difference to the baseline as far as it has been observed.

    Attributes:
        system: The system.
        key: The metric.
        dialogues: The number of dialogues so far.
        difference: The difference of the means.
        interval: The confidence sequence at the last dialogue; None where there is none yet.
        by: How it was computed, `betting` or `asymptotic`.
        decided: After how many dialogues 0 was outside the interval for the first time; None: not yet.
        better: Whether the system is better, once that is decided.
        reason: Why there is no interval.

    Examples:
        >>> import dialeval
        >>> short, long = ["yes"] * 400, ["yes please"] * 400
        >>> run = dialeval.evaluate({"old": short, "new": long}, ["yes please"] * 400, metrics="rouge-l")
        >>> dialeval.run_sequential_test(run).differences[0].interval[0] > 0
        True
    """

    system: str
    key: str
    dialogues: int
    difference: float
    interval: tuple[float, float] | None = None
    by: Kind | None = None
    decided: int | None = None
    better: bool | None = None
    reason: str | None = None


class SequentialTest(Tabular, Displayable, Record, frozen=True, kw_only=True, rename={"version": "dialeval"}):
    """The result of `dialeval.run_sequential_test`.

    Attributes:
        version: The version of dialeval.
        baseline: The system that the others are compared with.
        systems: The other systems.
        alpha: The error probability of all intervals of the panel together, and of all others together.
        tests: The number of differences in the panel.
        unit: What is counted, `dialogues` or `rows`.
        panel: The metrics of the verdict.
        designs: By system, how its rows or dialogues relate to those of the baseline.
        differences: The differences, system by system and metric by metric.

    Examples:
        >>> import dialeval
        >>> short, long = ["yes"] * 400, ["yes please"] * 400
        >>> run = dialeval.evaluate({"old": short, "new": long}, ["yes please"] * 400, metrics="rouge-l")
        >>> dialeval.run_sequential_test(run).to_pandas()[["system", "key", "dialogues"]].values.tolist()
        [['new', 'rouge-l', 400]]
    """

    version: str = __version__
    baseline: str
    systems: list[str]
    alpha: float
    tests: int
    unit: str
    panel: tuple[str, ...]
    designs: dict[str, Design]
    differences: list[SequentialDifference]

    def __repr__(self) -> str:
        decided = sum(row.decided is not None for row in self.differences)
        with_baseline = f"{count_names(self.systems, 'system')} with {escape_controls(self.baseline)}"
        return f"<SequentialTest: {with_baseline}, {len(self.differences):,} differences, {decided:,} decided>"

    def lines(self) -> list[JsonObject]:
        """Return a line per system and metric: the fields of `SequentialDifference`, with `low` and `high` for the
        interval.

        Returns:
            The lines, as `to_pandas` has them.
        """
        return [flatten_intervals(asdict(row)) for row in self.differences]


def run_sequential_test(
    runs: Runs,
    *,
    baseline: str | None = None,
    systems: Iterable[str] | None = None,
    metrics: str | Iterable[str] | None = None,
    alpha: float = DEFAULT_ALPHA,
    design: DesignName | None = None,
    weight: Weight = "rows",
) -> SequentialTest:
    """Compare systems with a baseline by confidence sequences: intervals that hold however often one looks.

    Dialogues are taken in the order of the run, as independent draws from one source. In an unpaired design each system
    has a confidence sequence of its own with half of alpha.

    Args:
        runs: A run, a list of runs, or a mapping of names to runs.
        baseline: The system that the others are compared with; None: the first.
        systems: Only these systems; None: all but floor and ceiling systems.
        metrics: Only these metrics; None: all.
        alpha: The error probability of all intervals of the panel together.
        design: `"paired"` (the same rows or dialogues in both systems), `"common"` (paired on those that both have),
            `"openings"` (paired on the rows before user turns differ), `"ids"` (paired by id, whatever users said) or
            `"unpaired"` (independent samples); None: chosen by what the systems have in common.
        weight: `"rows"`: every row counts equally in a mean. `"dialogues"`: every dialogue does.

    Returns:
        The differences so far, and after how many dialogues each was decided.

    Raises:
        SettingError: There is nothing to compare, or alpha is not between 0 and 1.

    Examples:
        >>> import dialeval
        >>> short, long = ["yes"] * 400, ["yes please"] * 400
        >>> run = dialeval.evaluate({"old": short, "new": long}, ["yes please"] * 400, metrics="rouge-l")
        >>> found = dialeval.run_sequential_test(run)
        >>> found
        <SequentialTest: 1 system (new) with old, 1 differences, 1 decided>
        >>> found.differences[0].decided < 400, found.differences[0].better
        (True, True)
    """
    if not 0 < alpha < 1:
        raise SettingError(f"alpha must be between 0 and 1, such as 0.05; it is not {alpha}")
    selection = select(runs, baseline, systems, metrics, design, weight)
    reasons = {
        (name, key): selection.left_out.get((name, key))
        or _explain_untested(key, alignment, selection.known[selection.first][key])
        for name, alignment in selection.alignments.items()
        for key in selection.common[name]
    }
    sizes = {True: 0, False: 0}
    for (_, key), reason in reasons.items():
        sizes[key in selection.panel] += reason is None
    return SequentialTest(
        baseline=selection.first,
        systems=list(selection.others),
        alpha=alpha,
        tests=sizes[True],
        unit=next(iter(selection.designs.values())).unit,
        panel=selection.panel,
        designs=selection.designs,
        differences=[
            _test_key(name, key, selection.alignments[name], alpha / max(sizes[key in selection.panel], 1))
            if reason is None
            else SequentialDifference(name, key, 0, math.nan, reason=reason)
            for (name, key), reason in reasons.items()
        ],
    )


def _explain_untested(key: str, alignment: Alignment, here: Estimate) -> str | None:
    """Return why a metric has no confidence sequence; None where it has one."""
    metric = find_metric(here)
    if here.corpus:
        return "it is a corpus-level value, without values per dialogue"
    if metric is not None and metric.untestable is not None:
        return metric.untestable
    if any(side[key].scores is None for side in (alignment.left, alignment.right)):
        return "the run holds no per-row scores for it"
    return None


def _test_key(name: str, key: str, alignment: Alignment, alpha: float) -> SequentialDifference:
    metric = find_metric(alignment.left[key])
    left, right = (Values.of(side, [key], alone=True) for side in (alignment.left, alignment.right))
    unpaired = alignment.design.name == "unpaired"
    if not unpaired:
        left, right = pair_values(left, right, [key], alignment.by_row)
    first, second = left.sum_clusters(key), right.sum_clusters(key)
    compute = unpaired_confidence_sequence if unpaired else confidence_sequence
    low, high, by = compute(first, second, find_bounds(key, alignment.left[key]), alpha)
    found = SequentialDifference(name, key, len(low), second.mean - first.mean, by=by)
    if not len(low) or not math.isfinite(low[-1]):
        few = f"fewer than {FIRST} dialogues" if len(low) < FIRST else "too few dialogues for such skewed differences"
        return replace(found, reason=few)
    found = replace(found, interval=(float(low[-1]), float(high[-1])))
    outside = np.flatnonzero((low > 0) | (high < 0))
    if not len(outside):
        return found
    better = None
    if metric is not None and metric.better is not None:
        better = bool(low[outside[0]] > 0) == (metric.better == "higher")
    return replace(found, decided=int(outside[0]) + 1, better=better)


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
        units=[len(result.table.offsets) - 1 if result.table is not None else 0 for result in results],
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
