"""One system against a baseline, key by key: the difference, its interval, p, effect, and what could be detected.

    difference  system - baseline
    interval    of the difference, by a paired bootstrap (the same resamples for both), studentized; for values that
                count different things by the jackknife (`values`); for yes/no values and values of tasks (pass^k)
                Tango's, which does not shrink to a point where rows hardly differ (`stats.intervals`)
    p           of randomization; for yes/no values and values of tasks that of McNemar's
                score test, which is the test of Tango's interval
    effect      difference / (standard error * root of the number of clusters): for a mean over rows that are not part
                of dialogues this is paired Cohen's d; it weighs rows as the difference does and never has another sign
    detectable  minimum detectable difference at 80% power; `needed`: the clusters for a given difference
    settled     interval and p agree (`Tested`): where p does not reject at a level the interval of that level reaches
                to 0. Where the permutation test rejects, and the interval has 0, the end near 0 is that of the test:
                the difference less the size that permuted differences exceed with a probability of 1 - level.
                Elsewhere p is at least that of the interval, the least 1 - level at which it excludes 0: in other
                tests, and where the differences of clusters are skewed to the other side of 0. Such samples of few
                clusters often lack the long tail on that side, so that the permutation test rejects too often
    no error    where no cluster changes a difference, the interval is that of `clusters` rows of which none differs
                (Tango's), as if one that does could differ by the whole range of the metric, or by the size of the
                values where the range has no end
    rough       whether clusters are few, or few for how skewed or unequal their differences are: interval, p and
                detectable are then no more than a guide
    wins ...    dialogues, or rows that are not part of one, in which the system has the better value (higher where
                neither is better), the same, the worse

A mean is compared over the rows that both systems could be scored on, and its two means are those over these rows. A
corpus value uses all rows of each. Randomization and bootstrap compute it anew from the statistics of the exchanged or
resampled dialogues (`values`). `significance` has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace as with_fields
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from dialeval.analysis.values import Values, average_known, find_bounds, find_metric, sort_clusters, sum_known
from dialeval.core.arrays import Floats, Ints, row_numbers
from dialeval.core.errors import SettingError
from dialeval.core.fold import Better, Bounds, Estimate, Level
from dialeval.core.result import Result
from dialeval.core.run_schema import Record
from dialeval.stats import significance
from dialeval.stats.independent import is_rough
from dialeval.stats.intervals import DEFAULT_LEVEL, PairedCounts, tango, two_sided_t
from dialeval.stats.resampling import (
    DEFAULT_RESAMPLES,
    DEFAULT_SEED,
    Influence,
    check_resampling,
    draw_resamples,
    draw_swaps,
    leave_out_clusters,
    make_curve,
    studentize,
)

Curve = Callable[[float], tuple[float, float]]
"""The interval by level."""
DEFAULT_ALPHA = 0.05
LEAST_ALPHA = 1e-9
"""Below it neither trials nor Student's distribution say anything."""
LEAST_TRIALS = 2000
MOST_DRAWS = 1 << 25
"""Permuted differences of all tests that are kept, 256 MB; p-values of further tests are adjusted by Holm's method."""
_HALVINGS, _LEAST_P, _EQUAL = 40, 1e-12, 1e-9
"""Of the search for the p-value of an interval: its steps, the least p, and when two are equal but for rounding."""
_MOST_CELLS = 1 << 24
"""Differences of clusters that are held at a time where all pairs of systems are tested: 128 MB."""


class Settings(Struct, frozen=True):
    """The settings of a comparison."""

    alpha: float = DEFAULT_ALPHA
    confidence: float = DEFAULT_LEVEL
    resamples: int = DEFAULT_RESAMPLES
    trials: int = LEAST_TRIALS
    seed: int = DEFAULT_SEED
    detect: float | None = None

    def __post_init__(self) -> None:
        check_resampling(self.confidence, self.resamples)
        if not LEAST_ALPHA <= self.alpha < 1:
            raise SettingError(f"alpha must be between {LEAST_ALPHA:g} and 1, such as 0.05; it is not {self.alpha}")
        if self.trials < 1:
            raise SettingError(f"at least one trial is needed, not {self.trials}")
        if self.detect is not None and not (math.isfinite(self.detect) and self.detect > 0):
            raise SettingError(f"the difference to detect must be above 0, not {self.detect}")


class Difference(Record, frozen=True):
    """The difference of one system to the baseline under one metric; NaN where it could not be computed.

    Attributes:
        key: The metric.
        baseline: The system that is compared with.
        system: The system.
        baseline_mean: The value of the baseline, over the rows that both systems have a value for.
        mean: The value of the system, over the same rows.
        difference: `mean - baseline_mean`.
        units: Rows, or dialogues, behind the two values.
        of: Rows, or dialogues, that there are.
        corpus: Whether the metric is a corpus value.
        better: Which values are better, `higher` or `lower`; None: neither.
        evidence: Whether the metric says which system is better; False where it only describes the responses.
        interval: The confidence interval of the difference.
        interval_by: How the interval was computed.
        adjusted_interval: The interval at the adjusted level: `significant` exactly if it excludes 0.
        error: The standard error of the difference.
        p: The p-value.
        adjusted_p: The p-value adjusted for the tests of its family.
        significant: Whether `adjusted_p` is below alpha.
        effect: The effect size: the difference over its standard deviation; for rows that are not part of dialogues,
            Cohen's d for paired samples.
        detectable: The minimum detectable difference at 80% power.
        needed: Dialogues needed to detect the difference `detect`.
        rough: Whether there are few dialogues, so that interval and p-value are only a guide.
        wins: Dialogues (or rows that are not part of one) in which the system has the better value.
        ties: Those in which both have the same value.
        losses: Those in which the system has the worse value.
        margin: The margin within which the two systems are equivalent, if one was given.
        scored: Rows, or dialogues, of the baseline and of the system that have a value.
        due: How many should have one.
        missing: How many should have a value and have none: their reply failed, or only the other system has a value.
        left_out: The side from whose value significantly more was left out than from the other, if there is one.
        values: The values of the baseline and of the system over all their rows, as tables of systems have them.
        by_dialogue: The difference of means over dialogues with equal weights, where means are over rows.
        by_dialogue_p: Its p-value (Student).
        unadjusted: The difference without the adjustment for the case mix, where there is one.
        unadjusted_interval: Its confidence interval.
        reason: Why the difference was not tested.
        note: A remark about the two values.

    Examples:
        >>> import dialeval
        >>> references = [f"a table for {n}" for n in range(12)]
        >>> run = dialeval.evaluate({"old": ["sorry ?"] * 12, "new": references}, references, metrics="rouge-l")
        >>> difference = dialeval.compare(run).differences[0]
        >>> difference.wins, difference.losses, difference.worse
        (12, 0, False)
    """

    key: str
    baseline: str
    system: str
    baseline_mean: float
    mean: float
    difference: float
    units: int
    of: int
    corpus: bool
    better: Better | None
    evidence: bool = True
    interval: tuple[float, float] | None = None
    interval_by: str | None = None
    adjusted_interval: tuple[float, float] | None = None
    error: float = math.nan
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
    margin: float | None = None
    scored: tuple[int, int] = (0, 0)
    due: tuple[int, int] = (0, 0)
    missing: tuple[int, int] = (0, 0)
    left_out: Literal["baseline", "system"] | None = None
    values: tuple[float, float] = (math.nan, math.nan)
    by_dialogue: float = math.nan
    by_dialogue_p: float = math.nan
    unadjusted: float = math.nan
    unadjusted_interval: tuple[float, float] | None = None
    reason: str | None = None
    note: str | None = None

    @property
    def worse(self) -> bool:
        """Whether the system's value is the worse one."""
        return (self.better == "higher" and self.difference < 0) or (self.better == "lower" and self.difference > 0)

    @property
    def size(self) -> float:
        """The size of the effect; beyond all others for a difference that is the same in every dialogue."""
        return abs(self.effect) if not math.isnan(self.effect) else math.inf if self.difference else 0.0

    @property
    def scale(self) -> float:
        """The size of the two values, which rounding errors are relative to."""
        return max(abs(self.mean), abs(self.baseline_mean))


class Tested(NamedTuple):
    """A difference with its interval by level, and the differences that permutations gave."""

    row: Difference
    curve: Curve | None = None
    """The interval of a level; None for a difference that was not tested."""
    draws: tuple[Hashable, Floats] | None = None
    """The name of the permutations, and the differences after each, the observed one first."""
    p_of_draws: bool = True
    """Whether the p-value is that of these differences, if there are any."""
    overruled: bool = True
    """Whether p is that of the interval if that is larger, as it is without permutations."""

    def settle(self, bounds: Bounds, confidence: float, clusters: int) -> Tested:
        """Return the difference with an interval within the bounds that has a width and agrees with its p-value."""
        curve, reach, row = self.curve, bounds[1] - bounds[0], self.row
        if curve is None or math.isnan(row.p):
            return Tested(row)
        low, high = curve(confidence)
        if high - low <= significance.ROUNDING * row.scale and clusters > 1:
            curve, row = _widen(row, reach if math.isfinite(reach) else row.scale or 1.0, clusters)

        def clip(level: float) -> tuple[float, float]:
            low, high = curve(min(level, 1 - _LEAST_P))
            return max(low, -reach), min(high, reach)

        settled = self._replace(row=row, curve=clip)
        tested = row.interval_by == "tango"  # its p is that of the test
        if not tested and (self.overruled or self.draws is None) and (p := _find_p(clip)) > row.p * (1 + _EQUAL):
            settled = settled._replace(row=replace(row, p=p), p_of_draws=False)
        return settled._replace(row=replace(settled.row, interval=settled.find_interval(1 - confidence)))

    def find_interval(self, tail: float) -> tuple[float, float] | None:
        """Return the interval of the level 1 - `tail`, which has 0 exactly if p is not below `tail`."""
        if self.curve is None or math.isnan(self.row.p):
            return None
        low, high = self.curve(1 - tail)
        if self.row.p >= tail * (1 - _EQUAL):
            return min(low, 0.0), max(high, 0.0)
        if self.overruled or self.draws is None or not low <= 0 <= high:
            return low, high
        sizes = np.sort(np.abs(self.draws[1][~np.isnan(self.draws[1])]))[::-1]
        beyond = sizes[math.ceil(tail * (1 - _EQUAL) * len(sizes)) - 1] / abs(self.draws[1][0])
        end = self.row.difference * (1 - beyond)
        return (end, high) if end > 0 else (low, end)


def _find_p(curve: Curve) -> float:
    """Return the p-value of an interval: the least 1 - level at which it excludes 0."""
    excludes, has_0 = 1.0, _LEAST_P
    for _ in range(_HALVINGS):
        middle = math.sqrt(excludes * has_0)
        low, high = curve(1 - middle)
        excludes, has_0 = (excludes, middle) if low <= 0 <= high else (middle, has_0)
    return excludes


def _widen(row: Difference, reach: float, clusters: int) -> tuple[Curve, Difference]:
    """Return the interval, by level, of a difference that is the same in all clusters, and its method."""

    def curve(level: float) -> tuple[float, float]:
        half = tango(0.0, 0.0, clusters, two_sided_t(level, clusters))[1]
        return row.difference - half * (reach + row.difference), row.difference + half * (reach - row.difference)

    return curve, replace(row, interval_by="constant")


class Baseline:
    """The baseline, with what its comparisons share: its corpus values in every resample and without every cluster."""

    def __init__(
        self,
        name: str,
        result: Result,
        settings: Settings,
        keys: Sequence[str],
        order: Ints | None = None,
        permutations: Hashable = None,
    ) -> None:
        self.name, self.result, self.settings = name, result, settings
        self._order = sort_clusters(result) if order is None else order
        """The order of clusters in which they are drawn (`values.sort_clusters`)."""
        self.values = Values.of(result, keys, alone=True).take(self._order)
        self.clusters = self.values.clusters
        self.permutations = permutations or object()
        """The name of the permutations, which are the same for all systems and keys."""
        self._corpus = self._resample(with_fields(self.values.group(), items={}))

    def _resample(self, values: Values) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Compute every key in every resample (but for counts of distinct things), and without every cluster."""
        without = values.compute(leave_out_clusters(values.clusters), jackknife=True)
        return values.repeatable.compute(self._draw(values.clusters)), without

    def _draw(self, groups: int) -> Iterator[Ints]:
        """Draw the resamples, which are the same for all systems."""
        return draw_resamples(groups, self.settings.resamples, self.settings.seed)

    def compare(self, name: str, result: Result, keys: Sequence[str], by_row: bool = True) -> Iterator[Tested]:
        """Compare one system with the baseline, not yet adjusted for the number of tests.

        `by_row`: row i of both is the same unit; otherwise only dialogue k of both is.
        """
        own = Values.of(result, keys, alone=True).take(self._order)
        left, right = pair_values(self.values, own, keys, by_row)
        rows = {key: self._subtract(key, name, result, left, right, by_row) for key in keys}
        groups = left.group(), right.group()
        swaps = draw_swaps(groups[0].clusters, self.settings.trials, self.settings.seed)
        exchanged = groups[0].exchange(groups[1], swaps)
        influences, changes = self._find_changes(*groups, rows) if self.clusters > 1 else ({}, {})
        for key, row in rows.items():
            if key not in influences or math.isnan(influences[key].error):
                reason = left.reasons.get(key) or right.reasons.get(key) or "too few rows have a score"
                yield Tested(replace(row, reason=reason))
            elif key not in exchanged:
                reason = "the systems were scored by different metrics, so dialogues cannot be swapped"
                yield Tested(replace(row, reason=reason))
            else:
                scored = int(np.count_nonzero(right.count_rows(key)))
                tested = self._test(row, influences[key], changes.get(key), exchanged[key], scored)
                paired = key in left.items and (by_row or self.result[key].level is Level.DIALOGUE)
                yield self._count(tested, left, right, scored) if paired else tested

    def _count(self, tested: Tested, left: Values, right: Values, clusters: int) -> Tested:
        """Give a difference of yes/no values, or of values of tasks, Tango's interval; return any other as it is."""
        row, sides = tested.row, (left.items[tested.row.key], right.items[tested.row.key])
        metric, (least, largest) = find_metric(self.result[row.key]), find_bounds(row.key, self.result[row.key])
        reach, known = largest - least, ~np.isnan(sides[0])
        if metric is None or not math.isfinite(reach):
            return tested
        ends = all(np.isin(items[known], (least, largest)).all() for items in sides)
        plain = metric.estimate_scores(row.key, sides[0][known], None).error
        if not ends and not (plain is not None and plain.values):
            return tested
        counts = PairedCounts.of((sides[1] - sides[0])[known] / reach, row.error / reach, clusters)

        def curve(level: float) -> tuple[float, float]:
            low, high = counts.interval(level)
            return low * reach, high * reach

        row = replace(row, interval=curve(self.settings.confidence), interval_by="tango", p=counts.p)
        return Tested(row, curve, tested.draws, p_of_draws=False)

    def _find_changes(
        self, left: Values, right: Values, rows: Mapping[str, Difference]
    ) -> tuple[dict[str, Influence], dict[str, Floats]]:
        """Return the influence of the clusters on each difference, and its studentized changes in the resamples."""
        means = self._resample(with_fields(left, metrics={}))
        drawn_left, without_left = ({**means[part], **self._corpus[part]} for part in (0, 1))
        drawn_right, without_right = self._resample(right)
        influences = {
            key: Influence.of(
                rows[key].difference, without - without_left[key], left.count_rows(key) + right.count_rows(key)
            )
            for key, without in without_right.items()
        }
        drawn = {key: values - drawn_left[key] for key, values in drawn_right.items()}
        return influences, studentize(influences, drawn, self._draw(left.clusters))

    def _subtract(self, key: str, name: str, result: Result, left: Values, right: Values, by_row: bool) -> Difference:
        """Return two values, their difference, and in how many rows or dialogues the system wins, without any test."""
        here, there = self.result[key], result[key]
        first, second, rows = here.mean, there.mean, min(here.scored, there.scored)
        if key in left.items:
            known = [side.items[key][~np.isnan(side.items[key])] for side in (left, right)]
            rows = min(map(len, known))
            first, second = (float(values.mean()) if rows else math.nan for values in known)
        plain = subtract_estimates(self.name, name, here, there, key)
        plain = replace(plain, baseline_mean=first, mean=second, difference=second - first, units=rows, of=here.units)
        if key in left.items:
            items = [average_known(side.items[key], side.rows.offsets) for side in (left, right)]
        elif here.scores is not None and there.scores is not None and by_row:
            both = ((here.scores, here.level, self.result.table), (there.scores, there.level, result.table))
            items = [  # in the order of the rows, and not in that of the clusters that are drawn
                each if level is Level.DIALOGUE or table is None else average_known(each, table.offsets)
                for each, level, table in both
            ]
        else:
            return plain
        ahead = (items[0] - items[1]) if plain.better == "lower" else (items[1] - items[0])
        wins, ties, losses = (int(np.count_nonzero(which)) for which in (ahead > 0, ahead == 0, ahead < 0))
        counted = replace(plain, wins=wins, ties=ties, losses=losses)
        away = (items[1] - items[0])[~np.isnan(items[1] - items[0])]
        if key not in left.items or not by_row or len(left.items[key]) == self.clusters or len(away) < 2:
            return counted
        mean, error = float(away.mean()), float(away.std(ddof=1)) / math.sqrt(len(away))
        p = significance.student_p(mean, error, len(away), plain.scale)
        return replace(counted, by_dialogue=mean, by_dialogue_p=p)

    def _test(
        self, plain: Difference, influence: Influence, changes: Floats | None, trials: Floats, scored: int
    ) -> Tested:
        """Add interval, p, effect and power; `changes` are None for a value that counts distinct things.

        `scored`: clusters with a scored row. The effect size is the difference over the standard deviation of clusters
        that its error implies, so that it weighs rows as the difference does and has its sign.
        """
        settings, difference, error = self.settings, plain.difference, influence.error
        critical = two_sided_t(1 - settings.alpha, self.clusters)
        curve, by = make_curve(influence, changes, settings.confidence, self.clusters)
        row = replace(
            plain,
            interval=curve(settings.confidence),
            interval_by=by,
            p=significance.tail_p(difference, trials, plain.scale),
            effect=difference / (error * math.sqrt(scored)) if error > 0 else 0.0 if not difference else math.nan,
            error=error,
            detectable=significance.minimum_detectable_difference(error, self.clusters, critical),
            needed=significance.count_needed_clusters(self.clusters, error, settings.alpha, settings.detect),
            rough=is_rough(influence, self.clusters),
        )
        draws = self.permutations, _join_draws(difference, trials, plain.scale)
        return Tested(row, curve, draws, overruled=influence.few and influence.skewness * difference < 0)


def exchange_means(
    values: Mapping[str, Values], estimates: Mapping[str, Estimate], key: str, settings: Settings, order: Ints
) -> list[Tested]:
    """Test the means of every two systems with the same rows by randomization, all pairs with the same exchanges.

    The p-values are those of `Baseline.compare`: where the same rows count on both sides, a difference after an
    exchange is the sum of the differences of clusters, each with its sign. `order`: that in which clusters are drawn.
    """
    values = {name: each.take(order) for name, each in values.items()}
    offsets = next(iter(values.values())).rows.offsets
    clusters, pairs, permutations = len(offsets) - 1, list(combinations(values, 2)), order.tobytes()
    kept = len(pairs) * settings.trials <= MOST_DRAWS
    found: list[Tested] = []
    step = max(1, _MOST_CELLS // max(1, clusters))
    for start in range(0, len(pairs), step):
        rows, differences = [], []
        for one, other in pairs[start : start + step]:
            left, right = values[one].items[key], values[other].items[key]
            sums, counts = sum_known(right - left, offsets).T
            number = max(float(counts.sum()), 1.0)
            differences.append(sums / number)
            first, second = (float(np.where(np.isnan(right - left), 0.0, each).sum()) for each in (left, right))
            plain = subtract_estimates(one, other, estimates[one], estimates[other], key)
            means = {"baseline_mean": first / number, "mean": second / number}
            reason = None if np.count_nonzero(counts) > 1 else "too little could be scored"
            rows.append(replace(plain, **means, difference=(second - first) / number, reason=reason))
        each = np.column_stack(differences)
        swaps = draw_swaps(clusters, settings.trials, settings.seed)
        trials = np.concatenate([(1 - 2 * swap) @ each for swap in swaps])
        for row, own in zip(rows, trials.T, strict=True):
            p = math.nan if row.reason else significance.tail_p(row.difference, own, row.scale)
            known = kept and not row.reason
            draws = (permutations, _join_draws(row.difference, own, row.scale)) if known else None
            found.append(Tested(replace(row, p=p), draws=draws))
    return found


def _join_draws(difference: float, trials: Floats, scale: float) -> Floats:
    """Return a difference and those after permutations; what is only rounding is 0, as in systems that are equal."""
    drawn = np.append(difference, trials)
    return np.where(np.abs(drawn) <= significance.ROUNDING * scale, 0.0, drawn)


def subtract_estimates(baseline: str, system: str, here: Estimate, there: Estimate, key: str) -> Difference:
    """Return the difference of two values without a test."""
    metric = find_metric(here)
    better = None if metric is None else metric.better
    evidence = better is not None and not (metric is not None and metric.descriptive)
    rows, of = here.scored + there.scored, here.units + there.units
    means = here.mean, there.mean, there.mean - here.mean
    plain = Difference(key, baseline, system, *means, rows, of, here.corpus, better, evidence)
    both = (here.scored, there.scored), (here.units, there.units)
    missing = here.missing, there.missing
    return replace(plain, scored=both[0], due=both[1], missing=missing, values=(here.mean, there.mean))


def pair_values(left: Values, right: Values, keys: Sequence[str], by_row: bool) -> tuple[Values, Values]:
    """Return the values of both sides under some keys; what one cannot be scored on is missing on both.

    That is a row or, where rows are not paired, a dialogue.
    """
    items: tuple[dict[str, Floats], dict[str, Floats]] = {}, {}
    for key in (key for key in keys if key in left.items and key in right.items):
        if by_row:
            known = ~np.isnan(left.items[key]) & ~np.isnan(right.items[key])
        else:
            known = (left.count_rows(key) > 0) & (right.count_rows(key) > 0)
        for side, own in zip((left, right), items, strict=True):
            values = side.items[key]
            rows = known if len(known) == len(values) else known[row_numbers(side.rows.offsets)]
            own[key] = np.where(rows, values, np.nan)
    shared = [key for key in keys if key in left.metrics and key in right.metrics]
    first, second = (
        with_fields(side, items=own, metrics={key: side.metrics[key] for key in shared})
        for side, own in zip((left, right), items, strict=True)
    )
    return first, second
