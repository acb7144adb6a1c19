"""One system against a baseline, key by key: the difference, its interval, p, effect, and what could be detected.

    difference  system - baseline
    interval    percentile interval of the difference, by a paired bootstrap (the same resamples for both)
    p           of approximate randomisation, or of the paired bootstrap; `adjusted_p` by Holm over all keys and systems
    effect      for a mean, paired Cohen's d over clusters; for a value of all rows together, difference / (standard
                error * root of clusters): what d would be for a mean, so that it does not grow with the data either
    detectable  the least difference that so much data finds in 80% of cases; `needed`: the clusters for a given one
    wins ...    rows in which the system has the better value (higher where neither is better), the same, the worse

A mean is compared over the rows that both systems could be scored on, and its two means are those over these rows. A
value of all rows together uses all rows of each. Randomisation and bootstrap make such a value anew from the words and
counts of the exchanged or resampled dialogues; see `values`. `significance` has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from dialeval.analysis import significance
from dialeval.analysis.draws import DEFAULT_LEVEL, DEFAULT_RESAMPLES, DEFAULT_SEED, draws, percentiles, swaps
from dialeval.analysis.intervals import check_resampling, leaving_out, recentred
from dialeval.analysis.values import Values, metric_of
from dialeval.core.arrays import Floats
from dialeval.core.contributions import by_cluster
from dialeval.core.errors import SettingError
from dialeval.core.fold import Better
from dialeval.core.result import Result

Test = Literal["randomisation", "bootstrap"]
DEFAULT_ALPHA = 0.05
LEAST_TRIALS = 2000


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
        check_resampling("percentile", self.level, self.resamples)
        if self.test not in get_args(Test):
            raise SettingError(f"the tests are {' and '.join(get_args(Test))}, not {self.test!r}")
        if not 0 < self.alpha < 1:
            raise SettingError(f"alpha lies between 0 and 1, such as 0.05; it is not {self.alpha}")
        if self.trials < 1:
            raise SettingError(f"at least one trial is needed, not {self.trials}")
        if self.detect is not None and not (math.isfinite(self.detect) and self.detect > 0):
            raise SettingError(f"a difference to be detected is above 0, not {self.detect}")


@dataclass(frozen=True)
class Difference:
    """One system against the baseline under one key; NaN where something could not be found, with the `reason`."""

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
    p: float = math.nan
    adjusted_p: float = math.nan
    significant: bool = False
    effect: float = math.nan
    detectable: float = math.nan
    needed: int | None = None
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
        return {name: _plain(value) for name, value in asdict(self).items()}


class Baseline:
    """The baseline, with what its comparisons share: the values of all rows together in every resample."""

    def __init__(self, name: str, result: Result, settings: Settings, keys: Sequence[str]) -> None:
        self.name, self.result, self.settings = name, result, settings
        self.values = Values.of(result, keys)
        self.clusters = self.values.clusters
        self._drawn = self._resampled(replace(self.values, items={}))
        self._without = self._left_out(self.values)

    def _resampled(self, values: Values) -> dict[str, Floats]:
        """The value of every key in every resample; the resamples are the same for all systems."""
        return values.by_key(draws(self.clusters, self.settings.resamples, self.settings.seed))

    def _left_out(self, values: Values) -> dict[str, Floats]:
        return values.of_kinds.by_key(leaving_out(self.clusters))

    def against(self, name: str, result: Result, keys: Sequence[str]) -> Iterator[Difference]:
        """The differences of one system, not yet adjusted for the number of tests."""
        mine, theirs = _paired(self.values, Values.of(result, keys), keys)
        here = {**self._resampled(replace(mine, metrics={})), **self._drawn}
        there, without = self._resampled(theirs), self._left_out(theirs)
        exchanged = self._exchanged(mine, theirs) if self.settings.test == "randomisation" else None
        for key in keys:
            plain = self._plain(key, name, result, mine, theirs)
            why = mine.reasons.get(key) or theirs.reasons.get(key)
            if key not in there or math.isnan(plain.difference) or self.clusters < 2:
                yield replace(plain, reason=why or "too little could be scored")
                continue
            if exchanged is not None and key not in exchanged:
                yield replace(plain, reason="two metrics made it, so that dialogues cannot be exchanged")
                continue
            drawn = there[key] - here[key]
            if key in without:
                drawn = recentred(drawn, plain.difference, without[key] - self._without[key])
            trials = None if exchanged is None else exchanged[key]
            yield self._tested(plain, drawn, trials, _cluster_differences(mine, theirs, key))

    def _exchanged(self, mine: Values, theirs: Values) -> dict[str, Floats]:
        """The difference of every key after every exchange of clusters."""
        both = mine.joined(theirs)
        every = [swaps(self.clusters, self.settings.trials, self.settings.seed) for _ in range(2)]
        one = both.by_key(np.hstack([swap, 1 - swap]) for swap in every[0])
        other = both.by_key(np.hstack([1 - swap, swap]) for swap in every[1])
        return {key: values - other[key] for key, values in one.items()}

    def _plain(self, key: str, name: str, result: Result, mine: Values, theirs: Values) -> Difference:
        """Two values and their difference, without any test."""
        left, right = self.result[key], result[key]
        means = [left.mean, right.mean]
        rows = min(left.scored, right.scored)
        if key in mine.items:
            known = ~np.isnan(mine.items[key])
            rows = int(known.sum())
            means = [float(side.items[key][known].mean()) if rows else math.nan for side in (mine, theirs)]
        metric = metric_of(left)
        better = None if metric is None else metric.better
        difference = means[1] - means[0]
        plain = Difference(key, self.name, name, means[0], means[1], difference, rows, left.rows, left.corpus, better)
        return _counted(plain, left.items, right.items)

    def _tested(
        self, plain: Difference, drawn: Floats, exchanged: Floats | None, by_cluster: Floats | None
    ) -> Difference:
        settings, difference = self.settings, plain.difference
        scale = max(abs(plain.mean), abs(plain.baseline_mean))
        known = drawn[~np.isnan(drawn)]
        error = float(known.std(ddof=1)) if len(known) > 1 else math.nan
        p = (
            significance.bootstrap_p(difference, drawn, scale)
            if exchanged is None
            else significance.randomisation_p(difference, exchanged, scale)
        )
        least = significance.least_difference(error, settings.alpha)
        effect = significance.cohen_d(by_cluster) if by_cluster is not None else math.nan
        if by_cluster is None and error > 0:
            effect = difference / (error * math.sqrt(self.clusters))
        needed = (
            None if settings.detect is None else significance.needed_clusters(self.clusters, least, settings.detect)
        )
        return replace(
            plain,
            interval=percentiles(drawn, settings.level),
            p=p,
            effect=effect,
            detectable=least,
            needed=needed,
        )


def _paired(left: Values, right: Values, keys: Sequence[str]) -> tuple[Values, Values]:
    """The values of both sides under some keys; a row that one cannot be scored on is missing on both."""
    mine, theirs = {}, {}
    for key in keys:
        if key in left.items and key in right.items:
            unknown = np.isnan(left.items[key]) | np.isnan(right.items[key])
            mine[key], theirs[key] = (np.where(unknown, np.nan, side.items[key]) for side in (left, right))
    both = [key for key in keys if key in left.metrics and key in right.metrics]
    metrics = [{key: side.metrics[key] for key in both} for side in (left, right)]
    return replace(left, items=mine, metrics=metrics[0]), replace(right, items=theirs, metrics=metrics[1])


def _cluster_differences(left: Values, right: Values, key: str) -> Floats | None:
    """The mean difference of each cluster; None for a value of all rows together."""
    if key not in left.items:
        return None
    away = right.items[key] - left.items[key]
    if len(away) == left.clusters:
        return away
    known = ~np.isnan(away)
    sums = by_cluster(np.column_stack([np.where(known, away, 0.0), known]), left.rows.offsets)
    with np.errstate(invalid="ignore"):  # 0 / 0: a dialogue without a row that both were scored on
        means: Floats = sums[:, 0] / sums[:, 1]
    return means


def _counted(plain: Difference, left: Floats | None, right: Floats | None) -> Difference:
    """The difference with the rows in which the system wins, where there are values of rows."""
    if left is None or right is None:
        return plain
    away = (left - right) if plain.better == "lower" else (right - left)
    wins, ties, losses = (int(np.count_nonzero(which)) for which in (away > 0, away == 0, away < 0))
    return replace(plain, wins=wins, ties=ties, losses=losses)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
