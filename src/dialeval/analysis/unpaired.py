"""Differences between systems that are independent samples: logs of different users, weeks or channels.

- Means: clustered standard errors with Welch's degrees of freedom and a permutation test of whole dialogues
  (`independent`).
- Proportions (all values at one end of the range or the other): Newcombe's interval, from the clustered Wilson
  intervals of both systems; the same permutation test.
- Corpus values: both systems are resampled independently; interval and p-value are those of the studentized bootstrap.
- Corpus values that count distinct things (distinct-n) depend on the amount of text, so that the larger log is thinned
  to as many dialogues as the smaller one (the mean of `THINNINGS` random subsets; rarefaction, Sanders 1968, "Marine
  Benthic Diversity", American Naturalist); jackknife errors of both, and Student's distribution with Welch's degrees of
  freedom.

With `strata` means are post-stratified. A stratum is a combination of values of fields that the runs kept (`keep=`,
`--by`); strata that only one log has are left out, and p is Student's with Welch's degrees of freedom. Without them,
`compare_mixes` warns of fields that are distributed differently in the two logs: a warning needs a distance of at least
`LEAST_APART`, half the sum of the absolute differences of the fractions of rows, and a p-value of the permutation test
below `MIX_ALPHA`, since small differences of large logs do not matter.

Edge cases: a system with fewer than two clusters has no error, and nothing is tested. Clusters without a scored row do
not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as with_fields

import numpy as np
from msgspec.structs import replace

from dialeval.analysis.alignment import Alignment
from dialeval.analysis.difference import Difference, Settings, Tested, subtract_estimates
from dialeval.analysis.values import Values, compute_influences, find_bounds, require_table
from dialeval.core.arrays import Floats, row_numbers
from dialeval.core.errors import SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import Bounds, Estimate
from dialeval.core.result import Result
from dialeval.core.rowtable import RowTable
from dialeval.engine.intervals import compute_interval
from dialeval.io.rows import split_fields
from dialeval.stats import significance
from dialeval.stats.independent import (
    Resampled,
    Spread,
    join_changes,
    mix_p,
    newcombe,
    permute,
    rank_first,
    spread_stratified,
    sum_by_stratum,
    welch,
)
from dialeval.stats.intervals import t_factor, two_sided_p
from dialeval.stats.resampling import (
    Influence,
    absolute_quantile,
    draw_resamples,
    make_curve,
    studentize,
)

THINNINGS = 50
_MOST_MIXED = 20_000
"""Mixes of more clusters are not compared."""
LEAST_APART, MIX_ALPHA, MIX_TRIALS = 0.1, 0.01, 999
_MOST_LABELS = 100
"""A field with more values than that is not a slice but an id."""
NO_VALUE = "(no value)"
Strata = tuple[Sequence[str], Sequence[str]]
"""The stratum of each row of the baseline and of the system."""
_TOO_LITTLE = "too few rows have a score"


def compare_unpaired(
    baseline: str,
    system: str,
    left: Result,
    right: Result,
    keys: Sequence[str],
    settings: Settings,
    strata: Strata | None = None,
) -> Iterator[Tested]:
    """Compare two independent systems under some keys, at the same mix of `strata`, not yet adjusted for many tests."""
    values = Values.sort(left, keys, alone=True), Values.sort(right, keys, alone=True)
    for key in keys:
        plain = subtract_estimates(baseline, system, left[key], right[key], key)
        reason = values[0].reasons.get(key) or values[1].reasons.get(key)
        if reason is None and min(each.clusters for each in values) < 2:
            reason = "a comparison of independent systems needs at least two dialogues or rows of each"
        if reason is not None:
            yield Tested(replace(plain, reason=reason))
        elif key in values[0].items:
            found = _compare_means(plain, *values, settings, find_bounds(key, left[key]))
            if strata is not None and found.row.reason is None:
                here, there = (Values.of(side, [key], alone=True) for side in (left, right))  # sorted as the strata are
                adjusted = _post_stratify(plain, here, there, settings, strata)
                plainly = {"unadjusted": found.row.difference, "unadjusted_interval": found.row.interval}
                found = adjusted._replace(row=replace(adjusted.row, **plainly))
            yield found
        else:
            compare = _compare_thinned if values[0].metrics[key].counts_kinds else _compare_resampled
            found = compare(plain, *values, settings)
            notes = filter(None, (found.row.note, "not adjusted, since it is a corpus value" if strata else None))
            yield found._replace(row=replace(found.row, note="; ".join(notes) or None))


def _compare_means(plain: Difference, left: Values, right: Values, settings: Settings, bounds: Bounds) -> Tested:
    key = plain.key
    samples = left.sum_clusters(key), right.sum_clusters(key)
    spreads = samples[0].spread, samples[1].spread
    if any(math.isnan(spread.variance) for spread in spreads):
        return Tested(replace(plain, reason=_TOO_LITTLE))
    found = _with_student(plain, *spreads, settings)
    estimates = []
    for each in (left, right):
        offsets = each.rows.offsets if len(each.items[key]) == each.rows.offsets[-1] else None
        estimates.append(Estimate.of_moments(Moments.of(each.items[key], offsets), bounds))

    def combine(level: float) -> tuple[float, float]:
        ends = [found[0] for each in estimates if (found := compute_interval(each, bounds, level))]
        return newcombe(plain.baseline_mean, plain.mean, *ends)

    if all(math.isfinite(end) for end in bounds) and all(each.error and each.error.yes_no for each in estimates):
        row = replace(found.row, interval=combine(settings.confidence), interval_by="newcombe")
        found = Tested(row, combine)
    groups = samples[0].group(), samples[1].group()
    drawn = permute(*groups, settings.trials, settings.seed)
    scored = tuple((each.count_rows(key) > 0).tobytes() for each in (left, right))
    return Tested(replace(found.row, p=rank_first(drawn)), found.curve, ((plain.baseline, plain.system, scored), drawn))


def _with_student(plain: Difference, here: Spread, there: Spread, settings: Settings) -> Tested:
    """Add the interval and the p-value of Student's distribution with Welch's degrees of freedom."""
    error, freedom = math.sqrt(here.variance + there.variance), welch(here, there)

    def curve(level: float) -> tuple[float, float]:
        half = t_factor(level, freedom) * error
        return plain.difference - half, plain.difference + half

    same = abs(plain.difference) <= significance.ROUNDING * plain.scale
    p = 1.0 if same else two_sided_p(plain.difference / error, freedom) if error else 0.0
    clusters = here.clusters + there.clusters
    deviation = math.sqrt((here.clusters * here.variance + there.clusters * there.variance) / 2)
    critical = t_factor(1 - settings.alpha, freedom)
    row = replace(
        plain,
        interval=curve(settings.confidence),
        interval_by="welch",
        error=error,
        p=max(p, 2 / math.comb(clusters, here.clusters)),  # the least that an exact permutation test can give
        effect=plain.difference / deviation if deviation else 0.0 if same else math.nan,
        detectable=significance.minimum_detectable_difference(error, max(2, round(freedom) + 1), critical),
        needed=significance.count_needed_clusters(clusters, error, settings.alpha, settings.detect),
        rough=here.few or there.few,
    )
    return Tested(row, curve)


def _compare_resampled(plain: Difference, left: Values, right: Values, settings: Settings) -> Tested:
    """Compare corpus values by resampling both systems independently."""
    key, sides = plain.key, []
    for number, (side, value) in enumerate(((left, plain.baseline_mean), (right, plain.mean))):
        one = with_fields(side, items={}, metrics={key: side.metrics[key]})
        influence = compute_influences(one, {key: value})[key]
        if math.isnan(influence.error):
            return Tested(replace(plain, reason=_TOO_LITTLE))
        groups = one.group()
        drawn, again = (draw_resamples(groups.clusters, settings.resamples, settings.seed + number) for _ in range(2))
        values = groups.compute(drawn)
        sides.append(Resampled(influence, values[key], studentize({key: influence}, values, again)[key]))
    clusters = left.clusters, right.clusters
    spreads = [Spread.of_influence(side.influence, size) for side, size in zip(sides, clusters, strict=True)]
    found = _with_student(plain, spreads[0], spreads[1], settings)
    return _with_changes(found.row, sides[0], sides[1], clusters, settings)


def _with_changes(
    found: Difference, left: Resampled, right: Resampled, clusters: tuple[int, int], settings: Settings
) -> Tested:
    """Take interval and p-value from the studentized changes of the difference in independent resamples."""
    changes = join_changes(left, right, found.error)
    joint = Influence(found.difference, np.array([-1.0, 1.0]) * found.error, np.ones(2))
    curve, by = make_curve(joint, changes, settings.confidence, min(clusters))
    p = max(significance.tail_p(found.difference, changes, found.scale), 2 / math.comb(sum(clusters), clusters[0]))
    critical = absolute_quantile(changes, 1 - settings.alpha) / found.error if found.error else math.nan
    detectable = significance.minimum_detectable_difference(found.error, max(2, min(clusters)), critical)
    interval = curve(settings.confidence)
    return Tested(replace(found, interval=interval, interval_by=by, p=p, detectable=detectable), curve)


def _compare_thinned(plain: Difference, left: Values, right: Values, settings: Settings) -> Tested:
    """Compare values that count distinct things at equal numbers of clusters."""
    key, least = plain.key, min(left.clusters, right.clusters)
    means: list[float] = []
    spreads: list[Spread] = []
    for side, value in ((left, plain.baseline_mean), (right, plain.mean)):
        one = with_fields(side, items={}, metrics={key: side.metrics[key]})
        part = one
        if side.clusters > least:
            generator = np.random.default_rng(settings.seed)
            subsets = [np.sort(generator.choice(side.clusters, least, replace=False)) for _ in range(THINNINGS)]
            taken = np.zeros((THINNINGS, side.clusters), np.int64)
            np.put_along_axis(taken, np.array(subsets), 1, axis=1)
            value, part = float(one.compute([taken])[key].mean()), one.take(subsets[0])
        groups = part.group()
        own = float(groups.compute([np.ones((1, groups.clusters), np.int64)])[key][0])
        influence = compute_influences(groups, {key: own})[key]
        if math.isnan(influence.error) or math.isnan(value):
            return Tested(replace(plain, reason=_TOO_LITTLE))
        means.append(value)
        spreads.append(Spread.of_influence(influence, least))
    thinned = replace(plain, baseline_mean=means[0], mean=means[1], difference=means[1] - means[0])
    found = _with_student(thinned, spreads[0], spreads[1], settings)
    units = f"compared at {least:,} dialogues or rows of each system"
    note = None if left.clusters == right.clusters else f"{units}, since it depends on the amount of text"
    return found._replace(row=replace(found.row, interval_by="jackknife", note=note))


def _post_stratify(plain: Difference, left: Values, right: Values, settings: Settings, strata: Strata) -> Tested:
    """Compare means that are standardized to the mix of strata of both logs together."""
    sides = [_sum_by_stratum(side, plain.key, labels) for side, labels in zip((left, right), strata, strict=True)]
    names = [name for name in sides[0] if all(name in side and side[name][1].any() for side in sides)]
    if not names or not all(any(np.count_nonzero(side[name][1]) > 1 for name in names) for side in sides):
        reason = "no stratum of both logs has two dialogues of each system"
        return Tested(replace(plain, difference=math.nan, reason=reason))
    # Per side: sums and numbers of rows, clusters by strata.
    tables = [[np.column_stack([side[name][part] for name in names]) for part in (0, 1)] for side in sides]
    used = tables[0][1].sum(axis=0) + tables[1][1].sum(axis=0)
    weights = used / used.sum()
    means, spreads = [], []
    for sums, numbers in tables:
        by_stratum = sums.sum(axis=0) / numbers.sum(axis=0)
        means.append(float(weights @ by_stratum))
        spreads.append(spread_stratified(sums, numbers, by_stratum, weights))
    left_out = 1 - float(sum(numbers.sum(axis=0).sum() for _, numbers in tables)) / max(plain.units, 1)
    note = f"{100 * left_out:.0f}% of the rows are in strata that only one log has" if left_out > 0.005 else None
    adjusted = replace(plain, baseline_mean=means[0], mean=means[1], difference=means[1] - means[0], note=note)
    found = _with_student(adjusted, spreads[0], spreads[1], settings)
    return found._replace(row=replace(found.row, interval_by="post-stratified"))


def _sum_by_stratum(values: Values, key: str, labels: Sequence[str]) -> dict[str, tuple[Floats, Floats]]:
    items, offsets = values.items[key], values.rows.offsets
    clusters = row_numbers(offsets)
    if len(items) != len(labels):  # values of dialogues: a dialogue is in the stratum of its first row
        labels, clusters = [labels[at] for at in offsets[:-1].tolist()], np.arange(len(items))
    return sum_by_stratum(items, labels, clusters, values.clusters)


def check_adjusted(adjust: str | Iterable[str] | None, known: Mapping[str, Result], names: Sequence[str]) -> list[str]:
    """Return the fields to adjust for; SettingError where a system did not keep one of them."""
    fields = [] if adjust is None else split_fields(adjust)
    if adjust is not None and not fields:
        raise SettingError("no field is named to adjust for")
    for name in names:
        rows = known[name].table
        there = {} if rows is None else rows.fields
        for field in fields:
            if field not in there:
                kept = f"it kept {', '.join(there)}" if there else "it kept none"
                remedy = f"score it again with --by {field} (keep=[{field!r}])"
                raise SettingError(f"{name} has no field {field!r} to adjust for, {kept}; {remedy}")
    return fields


def list_strata(left: Result, right: Result, fields: Sequence[str]) -> Strata | None:
    """Return the stratum of each row of the baseline and of the system; None without fields."""
    return (_label_rows(require_table(left), fields), _label_rows(require_table(right), fields)) if fields else None


def _label_rows(table: RowTable, fields: Sequence[str]) -> list[str]:
    """Return the stratum of each row."""
    columns = [[", ".join(sorted(values)) or NO_VALUE for values in table.fields[field]] for field in fields]
    return [" / ".join(values) for values in zip(*columns, strict=True)]


def compare_mixes(
    baseline: str, system: str, alignment: Alignment, adjusted: Sequence[str], settings: Settings
) -> Iterator[str]:
    """Yield a warning for each field whose values are distributed differently in two independent logs."""
    left, right = alignment.left.table, alignment.right.table
    if alignment.design.name != "unpaired" or left is None or right is None:
        return
    sizes = len(left.offsets) - 1, len(right.offsets) - 1
    clusters = np.concatenate([row_numbers(left.offsets), sizes[0] + row_numbers(right.offsets)])
    for field in left.fields:
        if field in adjusted or field not in right.fields:
            continue
        labels = [*_label_rows(left, [field]), *_label_rows(right, [field])]
        names, codes = np.unique(np.array(labels, np.str_), return_inverse=True)
        if not 2 <= len(names) <= _MOST_LABELS or sum(sizes) > _MOST_MIXED or min(sizes) < 2:
            continue
        counts = np.bincount(clusters * len(names) + codes, minlength=sum(sizes) * len(names)).astype(np.float64)
        counts = counts.reshape(-1, len(names))
        first, second = (part.sum(axis=0) / part.sum() for part in (counts[: sizes[0]], counts[sizes[0] :]))
        apart = np.abs(second - first)
        if apart.sum() / 2 >= LEAST_APART and mix_p(counts, sizes[0], MIX_TRIALS, settings.seed) < MIX_ALPHA:
            most = int(apart.argmax())
            fractions = f"{str(names[most])!r} is {100 * first[most]:.0f}% and {100 * second[most]:.0f}% of the rows"
            remedy = f"compare with --adjust {field} (adjust={field!r})"
            yield f"{field} is distributed differently in {baseline} and {system} ({fractions}); {remedy}"
