"""How long conversations go well: turns until the first failed reply.

    estimate_survival(run, "judge", below=0.4)

A reply fails if its value is on the wrong side of a limit, the middle of the metric's range unless it is named; of
`failure-rate`, if there was no reply. Conversations that end without a failure are censored: they say that the first
failure comes after their last turn, and not that it never comes. Replies without a value neither fail nor pass.

Two systems are compared by the log-rank test. Where they answered the same dialogues, the pairs are its clusters; a
`cluster` field, such as the user, makes larger ones. The p-values of several systems are corrected by Holm's method.

    S(t) = product over times s <= t of 1 - d(s) / n(s)     d: failures at s, n: conversations still at risk
    error of log S(t): sums of influences over clusters; one conversation per cluster gives Greenwood's formula
    interval: S(t) ** exp(+-z * error / log S(t)), which stays between 0 and 1 (exponential Greenwood)
    log-rank: observed less expected failures of the second group over the hypergeometric error; with clusters over the
              error of the sums of their influences (as of Lin and Wei)

Papers: Kaplan and Meier 1958, "Nonparametric Estimation from Incomplete Observations", JASA; Kalbfleisch and Prentice
1980, "The Statistical Analysis of Failure Time Data"; Lin and Wei 1989, "The Robust Inference for the Cox Proportional
Hazards Model", JASA.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import NormalDist

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from dialeval.analysis.alignment import align
from dialeval.analysis.pairing import Runs, collect_compared, find_keys, warn_of_users
from dialeval.analysis.values import find_bounds, find_metric, regroup, require_table
from dialeval.core.account import FAILURES
from dialeval.core.arrays import Floats, Ints, Mask
from dialeval.core.display import Displayable, Tabular
from dialeval.core.errors import SettingError
from dialeval.core.fold import Level
from dialeval.core.result import Result
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.stats.intervals import DEFAULT_LEVEL
from dialeval.stats.significance import holm


class SurvivalCurve(Struct, frozen=True):
    """The fraction of conversations without a failure, turn by turn.

    Attributes:
        turns: The turns at which a conversation failed or ended, in order.
        at_risk: Conversations that reached each of them without a failure.
        failures: Those that failed there.
        survival: The fraction without a failure up to and with each turn.
        low: The lower end of its confidence interval.
        high: The upper end.
        median: The first turn by which half have failed; None where fewer fail.
        median_low: The lower end of its interval.
        median_high: The upper end; None where it is beyond the last turn.
    """

    turns: tuple[int, ...]
    at_risk: tuple[int, ...]
    failures: tuple[int, ...]
    survival: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    median: int | None
    median_low: int | None
    median_high: int | None


class SystemSurvival(Record, frozen=True, kw_only=True):
    """The survival of the conversations of one system.

    Attributes:
        system: The system.
        conversations: Its conversations.
        failed: Those with a failed reply.
        curve: The fraction without a failure, turn by turn.
        p: The p-value of the log-rank test against the baseline; NaN for the baseline itself.
        adjusted_p: The same, adjusted for several systems.
        earlier: Whether failures come earlier than with the baseline.
        paired: Whether both systems answered the same dialogues.

    Examples:
        >>> import dialeval
        >>> rows = [{"dialog_id": str(n), "response": "no" if n > 2 else "yes of course"} for n in range(4)]
        >>> run = dialeval.evaluate({"bot": rows}, metrics="length")
        >>> survival = dialeval.estimate_survival(run, "length", below=2)
        >>> survival.systems[0].failed
        1
    """

    system: str
    conversations: int
    failed: int
    curve: SurvivalCurve
    p: float = math.nan
    adjusted_p: float = math.nan
    earlier: bool | None = None
    paired: bool = False


class Survival(Tabular, Displayable, Record, frozen=True, kw_only=True, rename={"version": "dialeval"}):
    """The result of `dialeval.estimate_survival`.

    Attributes:
        version: The version of dialeval.
        key: The metric.
        limit: The limit.
        fails: `below` or `above` the limit.
        systems: The systems, the baseline first.
        confidence: The confidence level of the intervals.
        cluster: The field whose values are the clusters, if one was named.
        notes: What the reader should know.

    Examples:
        >>> import dialeval
        >>> rows = [{"dialog_id": str(n), "response": "no" if n > 2 else "yes of course"} for n in range(4)]
        >>> run = dialeval.evaluate({"bot": rows}, metrics="length")
        >>> survival = dialeval.estimate_survival(run, "length", below=2)
        >>> survival
        <Survival: length, median turn of the first failure: bot none>
    """

    version: str = __version__
    key: str
    limit: float
    fails: str
    systems: Sequence[SystemSurvival]
    confidence: float
    cluster: str | None
    notes: Sequence[str]

    def __repr__(self) -> str:
        medians = ", ".join(f"{row.system} {row.curve.median or 'none'}" for row in self.systems)
        return f"<Survival: {self.key}, median turn of the first failure: {medians}>"

    def lines(self) -> list[JsonObject]:
        """Return a line per system and turn.

        Returns:
            The lines, as `to_pandas` has them.
        """
        names = ("turns", "at_risk", "failures", "survival", "low", "high")
        return [
            {"system": row.system, **dict(zip(("turn", *names[1:]), line, strict=True))}
            for row in self.systems
            for line in zip(*(getattr(row.curve, name) for name in names), strict=True)
        ]


def estimate_survival(
    runs: Runs,
    metric: str = FAILURES,
    *,
    below: float | None = None,
    above: float | None = None,
    baseline: str | None = None,
    systems: Iterable[str] | None = None,
    cluster: str | None = None,
    confidence: float = DEFAULT_LEVEL,
) -> Survival:
    """Estimate how many turns conversations go without a failed reply, with the log-rank test between systems.

    Args:
        runs: A run, a list of runs, or a mapping of names to runs.
        metric: A metric with a value per reply: `failure-rate`, a judge, an assertion, a score of the log.
        below: Replies with a value below this fail; None: below the middle of the metric's range.
        above: Replies with a value above this fail; for metrics of which lower is better.
        baseline: The system that the others are compared with; None: the first.
        systems: Only these systems; None: all but floor and ceiling systems.
        cluster: A field that the runs kept, such as the user, whose conversations are not independent.
        confidence: The confidence level of the intervals.

    Returns:
        The curves.

    Raises:
        SettingError: The metric has no value per reply, or no limit is known.

    Examples:
        >>> import dialeval
        >>> rows = [
        ...     {"dialog_id": str(n), "turn": turn, "response": "no" if turn == n else "yes of course"}
        ...     for n in range(1, 5) for turn in range(3)
        ... ]
        >>> run = dialeval.evaluate({"bot": rows}, metrics="length")
        >>> survival = dialeval.estimate_survival(run, "length", below=2)
        >>> survival.systems[0].failed, survival.systems[0].curve.survival
        (2, (0.75, 0.5))
    """
    compared = collect_compared(runs, baseline, systems)
    first, *others = compared
    (key,) = find_keys([metric], list(compared[first]), "no system has", "there are")[:1]
    limit, upper = _find_limit(compared[first], key, below, above)
    find = partial(_find_times, key=key, limit=limit, upper=upper)
    times = {name: find(result) for name, result in compared.items()}
    rows = [
        SystemSurvival(
            system=name,
            conversations=len(turns),
            failed=int(failed.sum()),
            curve=estimate_curve(turns, failed, _number(cluster, compared[name]), confidence),
        )
        for name, (turns, failed, _) in times.items()
    ]
    tests = [_compare(compared[first], compared[name], cluster, find) for name in others]
    adjusted = holm([p for _, p, _ in tests])
    rows[1:] = [
        replace(row, p=p, adjusted_p=corrected, earlier=z > 0, paired=paired)
        for row, (z, p, paired), corrected in zip(rows[1:], tests, adjusted, strict=True)
    ]
    missing = sum(count for *_, count in times.values())
    notes = [f"{missing:,} replies have no value, and neither fail nor pass."] if missing else []
    if cluster is None:
        notes += dict.fromkeys(filter(None, (warn_of_users(require_table(result)) for result in compared.values())))
    return Survival(
        key=key,
        limit=limit,
        fails="above" if upper else "below",
        systems=rows,
        confidence=confidence,
        cluster=cluster,
        notes=notes,
    )


def _find_limit(result: Result, key: str, below: float | None, above: float | None) -> tuple[float, bool]:
    """Return the limit, and whether values above it fail."""
    if below is not None and above is not None:
        raise SettingError("a reply fails below a limit or above one; give one of the two")
    if below is not None or above is not None:
        return (below, False) if below is not None else (above or 0.0, True)
    metric, limit = find_metric(result[key]), sum(find_bounds(key, result[key])) / 2
    if not math.isfinite(limit):
        raise SettingError(f"{key} has no range, so that no limit is known; give one: --below 2")
    return limit, metric is not None and metric.better == "lower"


def _find_times(result: Result, key: str, limit: float, upper: bool) -> tuple[Ints, Mask, int]:
    """Return the turn of the first failure, or of the end, of each conversation; whether it failed; missing values."""
    if key not in result or result[key].level is not Level.TURN or (items := result[key].scores) is None:
        raise SettingError(f"{key} has no value per reply in every system; name a metric that has one")
    offsets = require_table(result).offsets
    bad = np.asarray(items > limit if upper else items < limit)  # NaN is neither
    places = np.append(np.flatnonzero(bad), len(bad))
    firsts = places[np.searchsorted(places, offsets[:-1])]
    failed = firsts < offsets[1:]
    return np.where(failed, firsts + 1, offsets[1:]) - offsets[:-1], failed, int(np.isnan(items).sum())


def _number(field: str | None, *results: Result) -> Ints | None:
    """Return the number of the cluster of each conversation of some systems; None where no field is named."""
    if field is None:
        return None
    labels = np.array([label for result in results for label in regroup(result, field)[1]], np.str_)
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _compare(
    left: Result, right: Result, field: str | None, find: Callable[[Result], tuple[Ints, Mask, int]]
) -> tuple[float, float, bool]:
    """Return the log-rank test and whether dialogues are paired; pairs are clusters, unless a field was named."""
    aligned = align(left, right)
    paired = aligned.design.name != "unpaired"
    sides = (aligned.left, aligned.right) if field is None and paired else (left, right)
    (turns, failed, _), (more_turns, more_failed, _) = map(find, sides)
    second = np.repeat([False, True], [len(turns), len(more_turns)])
    clusters = np.tile(np.arange(len(turns)), 2) if field is None and paired else _number(field, *sides)
    z, p = log_rank(np.append(turns, more_turns), np.append(failed, more_failed), second, clusters)
    return z, p, paired


def estimate_curve(times: Ints, failed: Mask, clusters: Ints | None = None, level: float = 0.95) -> SurvivalCurve:
    """Estimate the curve of Kaplan and Meier; `failed` is false where a conversation ended without a failure."""
    turns, at_risk, failures = _count(times, failed)
    survival = np.cumprod(1 - failures / at_risk).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(at_risk > failures, 1 / (at_risk - failures), 0.0)
        if clusters is None:
            errors = np.sqrt(np.cumsum(failures * steps / at_risk))
        else:  # by conversation and turn, what it adds to log S: only those at risk do
            reached, here = times[:, None] >= turns, (times[:, None] == turns) & failed[:, None]
            influences = np.cumsum(np.where(reached, failures / at_risk - here, 0.0) * steps, axis=1)
            errors = np.sqrt((_sum_by(influences, clusters) ** 2).sum(axis=0))
        reach = NormalDist().inv_cdf((1 + level) / 2) * errors / np.log(survival)
        inside = (survival > 0) & (survival < 1)
        low, high = (np.where(inside, survival ** np.exp(sign * reach), survival) for sign in (-1, 1))
    return SurvivalCurve(
        turns=tuple(turns.tolist()),
        at_risk=tuple(at_risk.tolist()),
        failures=tuple(failures.tolist()),
        survival=tuple(survival.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        median=_cross(turns, survival),
        median_low=_cross(turns, low),
        median_high=_cross(turns, high),
    )


def _cross(turns: Ints, curve: Floats) -> int | None:
    """Return the first turn at which a curve is at a half or below."""
    below = np.flatnonzero(curve <= 0.5)
    return int(turns[below[0]]) if len(below) else None


def log_rank(times: Ints, failed: Mask, second: Mask, clusters: Ints | None = None) -> tuple[float, float]:
    """Return the standardized difference of two groups and its p-value; above 0 the second group fails earlier."""
    turns, at_risk, failures = _count(times, failed)
    places = np.searchsorted(turns, times)
    at_risk_second = second.sum() - np.append(0, np.bincount(places, second, len(turns)).cumsum()[:-1])
    share = at_risk_second / at_risk
    observed = float((second & failed).sum() - (share * failures).sum())
    if clusters is None:
        more = at_risk > 1
        parts = (failures * share * (1 - share) * (at_risk - failures))[more] / (at_risk - 1)[more]
        variance = float(parts.sum())
    else:
        hazards = failures / at_risk
        expected = second * np.cumsum(hazards)[places] - np.cumsum(hazards * share)[places]
        terms = (second - share[places]) * failed - expected
        variance = float((_sum_by(terms[:, None], clusters) ** 2).sum())
    if not variance:
        return 0.0, 1.0
    z = observed / math.sqrt(variance)
    return z, math.erfc(abs(z) / math.sqrt(2))


def _count(times: Ints, failed: Mask) -> tuple[Ints, Floats, Floats]:
    """Return the turns at which something happened, how many reached them, and how many failed there."""
    turns, places = np.unique(times, return_inverse=True)
    ended = np.bincount(places)
    return turns, len(times) - np.append(0, ended.cumsum()[:-1]), np.bincount(places, failed).astype(np.int64)


def _sum_by(values: Floats, clusters: Ints) -> Floats:
    """Sum the rows of each cluster."""
    names, places = np.unique(clusters, return_inverse=True)
    sums = np.zeros((len(names), values.shape[1]))
    np.add.at(sums, places, values)
    return sums
