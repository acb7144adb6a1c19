"""Variance over two crossed ways of sampling: users and prompts, or dialogues and the replicates of a system.

    two fields   V = V(first) + V(second) - V(both), at least V(first) and V(second), each over whole clusters;
                 Student's distribution with the smaller number of clusters less 1 as degrees of freedom
    replicates   V = V(dialogue) + V(replicate) - V(cell). Replicates (generation seeds, training runs) are those of a
                 system: seed 1 of two systems has nothing in common. So V(replicate) is the sum over the systems, and
                 V(dialogue) that of differences within dialogues, with all replicates of a dialogue together. V(cell)
                 is what is in both: the variance of a dialogue in a replicate around the means of both. The degrees
                 of freedom are Satterthwaite's of V(dialogue) and V(replicate), at least the smaller of the two

A corpus value of more than `resampling.GROUPS` cells has V(cell) = 0, which is conservative.

Papers: Cameron, Gelbach and Miller 2011, "Robust Inference with Multiway Clustering", Journal of Business and Economic
Statistics; Satterthwaite 1946, "An Approximate Distribution of Estimates of Variance Components", Biometrics Bulletin.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as with_fields
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec.structs import replace

from dialeval.analysis.alignment import Alignment
from dialeval.analysis.difference import Difference, Settings, Tested
from dialeval.analysis.values import (
    Values,
    clip_to_range,
    compute_influences,
    recompute_intervals,
    regroup,
    require_table,
)
from dialeval.core.arrays import Ints, offsets_of
from dialeval.core.contributions import ClusteredRows
from dialeval.core.errors import SettingError
from dialeval.core.fold import Analytic
from dialeval.core.result import Result, Run
from dialeval.io.rows import split_fields
from dialeval.stats.independent import FEW
from dialeval.stats.intervals import DEFAULT_LEVEL, t_factor
from dialeval.stats.resampling import PLAIN, Influence, Jackknifed
from dialeval.stats.significance import minimum_detectable_difference

AnyRun = TypeVar("AnyRun", bound=Run)


class Replicates(NamedTuple):
    """The variance of a value over the replicates of a system, and over its cells of a dialogue and a replicate."""

    variance: float
    of_cells: float
    number: int

    @classmethod
    def of(cls, result: Result, field: str) -> dict[str, Replicates]:
        """Compute the variances of all values of a result; `field` has the replicate of each row."""
        table, (names, codes) = require_table(result), list_replicates(result, field)
        number, dialogues = len(names), len(table.offsets) - 1
        cells, places = np.unique(table.clusters * number + codes, return_inverse=True)
        ways = _find_influences(result, codes), _find_influences(result, places)
        found = {}
        for key, influence in ways[0].items():
            changes, of_cells = ways[1][key].changes / len(cells), 0.0
            if len(changes) == len(cells):
                for way in (cells // number, cells % number):
                    changes = changes - (np.bincount(way, changes) / np.bincount(way).clip(1))[way]
                freedom = max(len(cells) - dialogues - number + 1, 1)
                of_cells = len(cells) * float((changes**2).sum()) / freedom
            found[key] = cls(influence.error**2, of_cells, number)
        return found


def _find_influences(result: Result, codes: Ints) -> dict[str, Influence]:
    """Return the influence on every value of the rows with the same code."""
    values = Values.of(result)
    single = ClusteredRows(values.rows.contributions, np.arange(len(codes) + 1))
    values = with_fields(values, rows=single).take(np.argsort(codes, kind="stable"))
    values = with_fields(values, rows=ClusteredRows(values.rows.contributions, offsets_of(np.bincount(codes))))
    return compute_influences(values, {key: result[key].mean for key in values.keys})


def list_replicates(result: Result, field: str) -> tuple[list[str], Ints]:
    """Return the replicates of a result, and that of each row."""
    table = require_table(result)
    labels = [" / ".join(table.fields[field][row]) for row in range(len(table))]
    names, codes = np.unique(np.array(labels, np.str_), return_inverse=True)
    return names.tolist(), codes


def pool_replicates(results: Mapping[str, Result], field: str | None) -> Mapping[str, Result]:
    """Return results in which a dialogue is all that has its id, in every replicate; `field` names the replicates."""
    if field is None:
        return results
    pooled = {}
    for name, result in results.items():
        table = require_table(result)
        if field not in table.fields:
            raise SettingError(f"{name} kept no field {field!r}; score again with --replicate {field} or --by {field}")
        (names, _), ids = list_replicates(result, field), table.read_ids()
        if "" in names or len(names) < 2 or None in ids:
            needed = f"every row of {name} needs the id of its dialogue and its {field}"
            raise SettingError(f"{needed}, and there must be two or more of {field}")
        pooled[name], _ = regroup(result, field, [each or "" for each in ids])
    return pooled


def cross_replicates(over_dialogues: Jackknifed, sides: Iterable[Replicates]) -> Jackknifed:
    """Return a value over dialogues with the error of dialogues and replicates."""
    variances, of_cells, numbers = (list(each) for each in zip(*sides, strict=True))
    of_replicates = over_dialogues._replace(error=math.sqrt(sum(variances)), freedom=sum(numbers) - len(numbers))
    crossed = over_dialogues.cross(of_replicates, over_dialogues._replace(error=math.sqrt(sum(of_cells))))
    parts = sum(way.error**4 / way.freedom for way in (over_dialogues, of_replicates))
    return crossed._replace(freedom=max(crossed.freedom, crossed.error**4 / parts if parts else 0.0))


def cross_tests(
    found: Iterable[Sequence[Tested]],
    ways: Sequence[Mapping[str, Alignment]],
    replicate: str | None,
    settings: Settings,
) -> Iterator[Tested]:
    """Return differences with the error, the interval and the p-value over all ways.

    Args:
        found: Each difference over the clusters of a way; over dialogues only, where there are replicates.
        ways: By way the systems with these clusters; of replicates the last one has all rows.
        replicate: The field that numbers replicates.
        settings: Those of the comparison.
    """
    spreads: dict[str, list[dict[str, Replicates]]] = {}
    if replicate is not None:
        spreads = {
            name: [Replicates.of(side, replicate) for side in (each.left, each.right)]
            for name, each in ways[-1].items()
        }
    for tests in found:
        row = tests[0].row
        if math.isnan(row.p):
            yield tests[0]
            continue
        first, *others = (_jackknife(each.row, way[row.system]) for each, way in zip(tests, ways, strict=False))
        replicates = [side[row.key] for side in spreads.get(row.system, [])]
        crossed = cross_replicates(first, replicates) if replicates else first.cross(*others)
        yield _with_error(row, crossed, settings)


def _jackknife(row: Difference, alignment: Alignment) -> Jackknifed:
    """Return a difference with its standard error over clusters."""
    sides = alignment.left, alignment.right
    clusters = min(len(require_table(side).offsets) - 1 for side in sides)
    return Jackknifed(row.difference, row.error, float(max(clusters - 1, 1)), clusters, PLAIN)


def _with_error(row: Difference, crossed: Jackknifed, settings: Settings) -> Tested:
    error, value, freedom = crossed.error, crossed.value, crossed.freedom
    detectable = minimum_detectable_difference(error, round(freedom) + 1, t_factor(1 - settings.alpha, freedom))
    rough = row.rough or freedom < FEW - 1
    row = replace(row, by_dialogue_p=math.nan)  # it is over dialogues alone
    row = replace(row, error=error, p=crossed.p, interval_by="crossed", detectable=detectable, needed=None, rough=rough)
    return Tested(row, crossed.interval if error > 0 else lambda _: (value, value))


def with_clusters(run: AnyRun, field: str | None = None, *, replicate: str | None = None) -> AnyRun:
    """Return a run whose confidence intervals are over other clusters than dialogues, such as users.

    Args:
        run: The run, with the fields that it kept (`evaluate(keep=...)`).
        field: The field whose values are the clusters, or two fields, such as `"user,prompt"`.
        replicate: Instead of it, the field that numbers generation seeds or training runs: intervals are over dialogues
            and replicates.

    Returns:
        The run with other intervals.

    Raises:
        SettingError: The run did not keep the field, or a dialogue has several values of it.

    Examples:
        >>> import dialeval
        >>> rows = [{"response": "a b" if n % 4 else "a", "user": str(n // 3)} for n in range(12)]
        >>> run = dialeval.evaluate(rows, metrics="length", keep="user")
        >>> dialeval.with_clusters(run, "user")["system"]["length"].interval_by.clusters
        4
    """
    fields, results = list_ways(field, replicate), {}
    for name, result in run.items():
        pooled = pool_replicates({name: result}, replicate)[name]
        groups = [regroup(result, each)[0] for each in fields] or [pooled]
        made = recompute_intervals(result, groups[0])
        if replicate is not None or len(groups) > 1:
            made = _cross_intervals(made, groups, Replicates.of(pooled, replicate) if replicate is not None else None)
        results[name] = made
    over = field if replicate is None else f"dialogue and {replicate}"
    return with_fields(run, systems=results, details={**run.details, "cluster": over})


def list_ways(cluster: str | None, replicate: str | None) -> list[str]:
    """Return the fields of clusters; of two both alone, then both together."""
    fields = [] if cluster is None else split_fields(cluster)
    if len(fields) > 2 or (fields and replicate is not None):
        raise SettingError("clusters are the values of one field or two, or replicates of dialogues (--replicate)")
    return [*fields, ",".join(fields)] if len(fields) == 2 else fields


def _cross_intervals(result: Result, groups: Sequence[Result], spreads: Mapping[str, Replicates] | None) -> Result:
    """Return a result with the intervals over all ways: groups of its rows, and replicates."""
    ways, estimates = [], dict(result.estimates)
    for group in groups:
        values = Values.of(group)
        influences = compute_influences(values, {key: result[key].mean for key in values.keys})
        clusters, freedom = values.clusters, float(max(values.clusters - 1, 1))
        ways.append({key: Jackknifed(u.value, u.error, freedom, clusters, PLAIN) for key, u in influences.items()})
    for key in ways[0]:
        first, *others = (way[key] for way in ways)
        crossed = first.cross(*others) if spreads is None else cross_replicates(first, [spreads[key]])
        how = estimates[key].interval_by
        level = (None if how is None else how.level) or DEFAULT_LEVEL
        low, high = clip_to_range(crossed.interval(level), key, estimates[key])
        if math.isfinite(high - low):
            t, freedom, error = t_factor(level, crossed.freedom), crossed.freedom, crossed.error
            by = Analytic("student", level, "dialogues", crossed.clusters, t, freedom, error)
            half = (high - low) / 2
            estimates[key] = with_fields(estimates[key], interval=(low, high), half_width=half, interval_by=by)
    return with_fields(result, estimates=estimates)
