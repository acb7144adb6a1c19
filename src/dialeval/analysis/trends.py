"""Trend over several versions or weeks: the values of systems in order, and a test for a linear trend.

With T_i the value of system i of n, in the order given, and c_i = (i - mean of i) / (sum of (i - mean of i)^2):

    slope = sum of c_i T_i                      the change per step

- Systems with the same units (`alignment`): the error is the jackknife's over the units, each left out of all systems
  at once; Student's distribution with K - 1 degrees of freedom.
- Other systems are independent samples: variance = sum of c_i^2 v_i with the clustered variances v_i (`unpaired`), and
  Welch's degrees of freedom.

The test asks for one slope over all systems and does not look for change points. P-values are adjusted over the panel
of metrics (Holm), as in `comparison`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dialeval.analysis.alignment import Alignment, DesignName, align
from dialeval.analysis.comparison import choose_panel
from dialeval.analysis.difference import DEFAULT_ALPHA
from dialeval.analysis.draws import DEFAULT_LEVEL
from dialeval.analysis.influence import Influence, leaving_out
from dialeval.analysis.pairing import Runs, chosen, describe_inputs, keys_meant, systems_of
from dialeval.analysis.significance import ROUNDING, holm
from dialeval.analysis.unpaired import ClusterSums, Spread, spread_of, welch
from dialeval.analysis.values import Values, metric_of
from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.core.fold import Better
from dialeval.core.jsondata import null_for_nan
from dialeval.core.result import Result
from dialeval.core.student import t_factor, two_sided_p
from dialeval.core.version import __version__


@dataclass(frozen=True)
class MetricTrend:
    """The values of one metric in order, and their slope."""

    key: str
    better: Better | None
    values: Sequence[float]
    intervals: Sequence[tuple[float, float] | None]
    slope: float = math.nan
    """The change per step."""
    interval: tuple[float, float] | None = None
    p: float = math.nan
    adjusted_p: float = math.nan
    significant: bool = False
    reason: str | None = None
    """Why there is no test."""


@dataclass(frozen=True)
class Trend:
    """What `dialeval.trend` returns."""

    systems: Sequence[str]
    design: DesignName
    unit: str
    units: Sequence[int]
    """Dialogues or rows of each system."""
    rows: Sequence[MetricTrend]
    panel: Sequence[str]
    alpha: float
    level: float
    version: str = __version__

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; NaN is null."""
        plain: dict[str, Any] = null_for_nan(asdict(self))
        plain["dialeval"] = plain.pop("version")
        plain["metrics"] = plain.pop("rows")
        return plain


@checked
def trend(
    runs: Runs,
    *,
    systems: Iterable[str] | None = None,
    metrics: Iterable[str] | None = None,
    alpha: float = DEFAULT_ALPHA,
    level: float = DEFAULT_LEVEL,
    design: DesignName | None = None,
) -> Trend:
    """Test whether a metric rises or falls over systems in the given order.

    `runs`, `systems`, `metrics`, `alpha`, `level`: as in `dialeval.compare`. `design`: `paired` for the same units in
    all systems, `unpaired` for independent samples; chosen by what the systems have in common unless given.
    """
    if not 0 < alpha < 1 or not 0 < level < 1:
        raise SettingError(f"alpha and the level lie between 0 and 1, not {alpha} and {level}")
    if design == "common":
        raise SettingError("a trend is over all units of each system; the designs are paired and unpaired")
    known = systems_of(runs)
    first, others = chosen(known, None, None if systems is None else list(systems))
    names = [first, *others]
    if len(names) < 3:
        raise SettingError(f"a trend needs at least three systems in order; there are {', '.join(names)}")
    alignments = [align(known[first], known[name], design) for name in others]
    paired = all(each.design.name == "paired" for each in alignments)
    if not paired:
        alignments = [align(known[first], known[name], "unpaired") for name in others]
    results = [known[first], *(each.right for each in alignments)]
    keys = [key for key in known[first] if all(key in result for result in results)]
    if metrics is not None:
        keys = keys_meant(metrics, keys, "not every system has", "they share")
    rows = [_find_trend(key, results, alignments, known, names, paired, level) for key in keys]
    inside = choose_panel({name: known[name] for name in names}, keys, metrics is not None)
    units = [len(result.rows.offsets) - 1 if result.rows is not None else 0 for result in results]
    return Trend(
        names,
        "paired" if paired else "unpaired",
        alignments[0].design.unit,
        units,
        _adjust(rows, inside, alpha),
        inside,
        alpha,
        level,
    )


def _adjust(rows: Sequence[MetricTrend], panel: Sequence[str], alpha: float) -> list[MetricTrend]:
    adjusted: dict[str, float] = {}
    for inside in (True, False):
        family = [row for row in rows if (row.key in panel) == inside]
        adjusted |= dict(zip((row.key for row in family), holm([row.p for row in family]), strict=True))
    return [replace(row, adjusted_p=adjusted[row.key], significant=adjusted[row.key] < alpha) for row in rows]


def _find_trend(
    key: str,
    results: Sequence[Result],
    alignments: Sequence[Alignment],
    known: Mapping[str, Result],
    names: Sequence[str],
    paired: bool,
    level: float,
) -> MetricTrend:
    metric = metric_of(results[0][key])
    estimates = [result[key] for result in results]
    row = MetricTrend(
        key,
        None if metric is None else metric.better,
        [estimate.mean for estimate in estimates],
        [estimate.interval for estimate in estimates],
    )
    first = known[names[0]][key]
    reasons = (describe_inputs(first, known[name][key], each) for name, each in zip(names[1:], alignments, strict=True))
    reason = next((each for each in reasons if each is not None), None)
    values = [Values.of(result, [key], alone=True) for result in results]
    reason = reason or next((each.reasons[key] for each in values if key in each.reasons), None)
    sizes = {each.clusters for each in values}
    if reason is None and min(sizes) < 2:
        reason = "a trend needs at least two dialogues or rows of each system"
    if reason is None and metric is not None and metric.counts_kinds and first.corpus and len(sizes) > 1:
        reason = "it depends on the amount of text, and the systems have different numbers of dialogues"
    if reason is not None:
        return replace(row, reason=reason)
    weights = _weigh(len(results))
    slope = float(weights @ np.array(row.values))
    if paired:
        error, freedom = _paired_error(key, values, weights, slope)
    else:
        error, freedom = _unpaired_error(key, values, weights, row.values)
    if math.isnan(error):
        return replace(row, reason="too little could be scored")
    half = t_factor(level, freedom) * error
    scale = max(map(abs, row.values)) * float(np.abs(weights).sum())
    p = 1.0 if abs(slope) <= ROUNDING * scale else two_sided_p(slope / error, freedom) if error else 0.0
    return replace(row, slope=slope, interval=(slope - half, slope + half), p=p)


def _weigh(systems: int) -> Floats:
    steps = np.arange(systems) - (systems - 1) / 2
    weights: Floats = steps / (steps**2).sum()
    return weights


def _paired_error(key: str, values: Sequence[Values], weights: Floats, slope: float) -> tuple[float, float]:
    """Compute the jackknife error of a slope over the units that all systems have."""
    without = np.array([each.by_key(leaving_out(each.clusters), jackknife=True)[key] for each in values])
    rows = np.sum([each.counted_rows(key) for each in values], axis=0)
    return Influence.of(slope, weights @ without, rows).error, values[0].clusters - 1


def _unpaired_error(key: str, values: Sequence[Values], weights: Floats, means: Sequence[float]) -> tuple[float, float]:
    """Compute the error of a slope over independent systems."""
    spreads = []
    for each, weight, mean in zip(values, weights.tolist(), means, strict=True):
        if key in each.items:
            spread = ClusterSums.of(each, key).spread
        else:
            without = each.by_key(leaving_out(each.clusters), jackknife=True)[key]
            influence = Influence.of(mean, without, each.counted_rows(key))
            spread = spread_of(influence, each.clusters)
        spreads.append(Spread(spread.variance * weight**2, spread.freedom, spread.clusters))
    return math.sqrt(sum(spread.variance for spread in spreads)), welch(*spreads)
