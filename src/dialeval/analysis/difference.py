"""One system against a baseline, key by key: the difference, its interval, p, effect, and what could be detected.

    difference  system - baseline
    interval    of the difference, by a paired bootstrap (the same resamples for both), studentised; for values that
                count different things by the jackknife (`intervals`)
    p           of randomisation, or of the paired bootstrap; `adjusted_p` by Holm over all keys and systems
    effect      for a mean, paired Cohen's d over clusters; for a corpus value, difference / (standard error * root of
                clusters): what d would be for a mean, so that it does not grow with the data either
    detectable  the least difference that so much data finds in 80% of cases; `needed`: the clusters for a given one
    rough       whether clusters are few, or few for how skewed or unequal their differences are: interval, p and
                detectable are then no more than a guide
    wins ...    rows in which the system has the better value (higher where neither is better), the same, the worse

A mean is compared over the rows that both systems could be scored on, and its two means are those over these rows. A
corpus value uses all rows of each. Randomisation and bootstrap compute it anew from the contributions of the exchanged
or resampled dialogues (`values`). `significance` has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from dialeval.analysis import significance
from dialeval.analysis.draws import DEFAULT_LEVEL, DEFAULT_RESAMPLES, DEFAULT_SEED, check_resampling, draws, swaps
from dialeval.analysis.influence import Influence, leaving_out, studentised
from dialeval.analysis.intervals import interval_of_changes, largest_of
from dialeval.analysis.values import Values, cluster_sums, metric_of
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.core.fold import Better
from dialeval.core.jsondata import null_for_nan
from dialeval.core.result import Result
from dialeval.core.student import two_sided_t

Test = Literal["randomisation", "bootstrap"]
DEFAULT_ALPHA = 0.05
LEAST_ALPHA = 1e-9
"""Below it neither trials nor Student's distribution say anything."""
LEAST_TRIALS = 2000
FEW, LEAST_WORTH = 20, 10
"""With fewer clusters, or with clusters that are worth fewer (`Influence.worth`), figures are rough."""


@dataclass(frozen=True)
class Settings:
    """How a comparison was made."""

    test: Test = "randomisation"
    alpha: float = DEFAULT_ALPHA
    level: float = DEFAULT_LEVEL
    resamples: int = DEFAULT_RESAMPLES
    trials: int = LEAST_TRIALS
    seed: int = DEFAULT_SEED
    detect: float | None = None

    def __post_init__(self) -> None:
        check_resampling(self.level, self.resamples)
        if self.test not in get_args(Test):
            raise SettingError(f"the tests are {' and '.join(get_args(Test))}, not {self.test!r}")
        if not LEAST_ALPHA <= self.alpha < 1:
            raise SettingError(f"alpha lies between {LEAST_ALPHA:g} and 1, such as 0.05; it is not {self.alpha}")
        if self.trials < 1:
            raise SettingError(f"at least one trial is needed, not {self.trials}")
        if self.detect is not None and not (math.isfinite(self.detect) and self.detect > 0):
            raise SettingError(f"a difference to be detected is above 0, not {self.detect}")


@dataclass(frozen=True)
class Difference:
    """One system against the baseline under one key; what could not be computed is NaN, and `reason` says why."""

    key: str
    baseline: str
    system: str
    baseline_mean: float
    mean: float
    difference: float
    rows: int
    """Rows (or dialogues) behind the two values."""
    of: int
    """Rows (or dialogues) there are."""
    corpus: bool
    better: Better | None
    interval: tuple[float, float] | None = None
    interval_by: str | None = None
    error: float = math.nan
    """The standard error of the difference."""
    p: float = math.nan
    adjusted_p: float = math.nan
    significant: bool = False
    effect: float = math.nan
    detectable: float = math.nan
    needed: int | None = None
    rough: bool = False
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None
    reason: str | None = None

    @property
    def worse(self) -> bool:
        """Whether the system's value is the worse one."""
        return (self.better == "higher" and self.difference < 0) or (self.better == "lower" and self.difference > 0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN is null."""
        plain: dict[str, Any] = null_for_nan(asdict(self))
        return plain


class Baseline:
    """The baseline, with what its comparisons share: its corpus values in every resample and without every cluster."""

    def __init__(self, name: str, result: Result, settings: Settings, keys: Sequence[str]) -> None:
        self.name, self.result, self.settings = name, result, settings
        self.values = Values.of(result, keys, alone=True)
        self.clusters = self.values.clusters
        self._corpus = self._found_anew(replace(self.values, items={}))

    def _draws(self) -> Iterator[Ints]:
        """The resamples, which are the same for all systems."""
        return draws(self.clusters, self.settings.resamples, self.settings.seed)

    def _found_anew(self, values: Values) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """The value of every key in every resample (but for kinds), and without every cluster."""
        return values.repeatable.by_key(self._draws()), values.by_key(leaving_out(self.clusters), jackknife=True)

    def against(self, name: str, result: Result, keys: Sequence[str]) -> Iterator[Difference]:
        """The differences of one system, not yet adjusted for the number of tests."""
        left, right = _paired(self.values, Values.of(result, keys, alone=True), keys)
        untested = {key: self._untested(key, name, result, left, right) for key in keys}
        exchanged = self._exchanged(left, right) if self.settings.test == "randomisation" else None
        influences, changes = self._resampled(left, right, untested) if self.clusters > 1 else ({}, {})
        for key, row in untested.items():
            if key not in influences or math.isnan(influences[key].error):
                reason = left.reasons.get(key) or right.reasons.get(key) or "too little could be scored"
                yield replace(row, reason=reason)
            elif exchanged is not None and key not in exchanged:
                yield replace(row, reason="two metrics made it, so that dialogues cannot be exchanged")
            else:
                by_cluster = _cluster_differences(left, right, key)
                trials = None if exchanged is None else exchanged[key]
                yield self._tested(row, influences[key], changes.get(key), trials, by_cluster)

    def _resampled(
        self, left: Values, right: Values, rows: Mapping[str, Difference]
    ) -> tuple[dict[str, Influence], dict[str, Floats]]:
        """The influence of the clusters on each difference, and its studentised changes in the resamples."""
        means, corpus = self._found_anew(replace(left, metrics={})), self._corpus
        drawn_left, without_left = ({**means[part], **corpus[part]} for part in (0, 1))
        drawn_right, without_right = self._found_anew(right)
        influences = {
            key: Influence.of(rows[key].difference, without - without_left[key], right.counted_rows(key))
            for key, without in without_right.items()
        }
        drawn = {key: values - drawn_left[key] for key, values in drawn_right.items()}
        return influences, studentised(influences, drawn, self._draws())

    def _exchanged(self, left: Values, right: Values) -> dict[str, Floats]:
        """The difference of every key after every exchange of clusters."""
        both = left.joined(right)
        once, again = (swaps(self.clusters, self.settings.trials, self.settings.seed) for _ in range(2))
        one = both.by_key(np.hstack([swap, 1 - swap]) for swap in once)
        other = both.by_key(np.hstack([1 - swap, swap]) for swap in again)
        return {key: values - other[key] for key, values in one.items()}

    def _untested(self, key: str, name: str, result: Result, left: Values, right: Values) -> Difference:
        """Two values, their difference, and in how many rows the system wins, without any test."""
        here, there = self.result[key], result[key]
        first, second = here.mean, there.mean
        rows = min(here.scored, there.scored)
        if key in left.items:
            known = ~np.isnan(left.items[key])
            rows = int(known.sum())
            first, second = (float(side.items[key][known].mean()) if rows else math.nan for side in (left, right))
        metric = metric_of(here)
        better = None if metric is None else metric.better
        untested = Difference(key, self.name, name, first, second, second - first, rows, here.rows, here.corpus, better)
        if here.items is None or there.items is None:
            return untested
        ahead = (here.items - there.items) if better == "lower" else (there.items - here.items)
        wins, ties, losses = (int(np.count_nonzero(which)) for which in (ahead > 0, ahead == 0, ahead < 0))
        return replace(untested, wins=wins, ties=ties, losses=losses)

    def _tested(
        self,
        untested: Difference,
        influence: Influence,
        changes: Floats | None,
        trials: Floats | None,
        by_cluster: Floats | None,
    ) -> Difference:
        """The difference with all that is said of it; `changes` are None for a value that counts kinds."""
        settings, difference, error = self.settings, untested.difference, influence.error
        scale = max(abs(untested.mean), abs(untested.baseline_mean))
        critical = two_sided_t(1 - settings.alpha, self.clusters)
        if trials is not None:
            p = significance.tail_p(difference, trials, scale)
        else:
            if changes is None:
                p = significance.student_p(difference, error, self.clusters, scale)
            else:
                p = significance.tail_p(difference, changes, scale)
                critical = largest_of(changes, 1 - settings.alpha) / error if error else critical
            p = max(p, significance.least_p(self.clusters))
        interval, by = interval_of_changes(influence, changes, settings.level, self.clusters)
        effect = significance.cohen_d(by_cluster) if by_cluster is not None else math.nan
        if by_cluster is None and error > 0:
            effect = difference / (error * math.sqrt(self.clusters))
        detect = settings.detect
        return replace(
            untested,
            interval=interval,
            interval_by=by,
            p=p,
            effect=effect,
            error=error,
            detectable=significance.least_difference(error, self.clusters, critical),
            needed=None
            if detect is None
            else significance.needed_clusters(self.clusters, error, settings.alpha, detect),
            rough=self.clusters < FEW or influence.worth < LEAST_WORTH or influence.few,
        )


def _paired(left: Values, right: Values, keys: Sequence[str]) -> tuple[Values, Values]:
    """The values of both sides under some keys; a row that one cannot be scored on is missing on both."""
    means = [key for key in keys if key in left.items and key in right.items]
    unknown = {key: np.isnan(left.items[key]) | np.isnan(right.items[key]) for key in means}
    shared = [key for key in keys if key in left.metrics and key in right.metrics]
    first, second = (
        replace(
            side,
            items={key: np.where(unknown[key], np.nan, side.items[key]) for key in means},
            metrics={key: side.metrics[key] for key in shared},
        )
        for side in (left, right)
    )
    return first, second


def _cluster_differences(left: Values, right: Values, key: str) -> Floats | None:
    """The mean difference of each cluster; None for a corpus value."""
    if key not in left.items:
        return None
    away = right.items[key] - left.items[key]
    if len(away) == left.clusters:
        return away
    sums = cluster_sums(away, left.rows.offsets)
    with np.errstate(invalid="ignore"):  # 0 / 0: a dialogue without a row that both were scored on
        means: Floats = sums[:, 0] / sums[:, 1]
    return means
