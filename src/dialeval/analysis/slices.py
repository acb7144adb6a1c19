"""Slices: where does a system fail? The figures of parts of the rows, and how systems differ in each part.

    slices(run, by=["domain", "turn"])

A slice is the rows that have a value in a field (`parts`), and it is a `Run` (`cutting`). Each slice is compared with
the baseline like any run, and the p of all slices, keys and systems are one family (Holm): of many slices some look bad
by chance. A slice of fewer than `LEAST_DIALOGUES` dialogues is shown and not tested. Unless metrics are named, one key
of each family that has a direction is tested (`main_keys`): every further test makes all others less likely to find
something.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dialeval.analysis.alignment import Alignment, DesignName, align
from dialeval.analysis.comparison import Comparison, adjusted_together, compare, enough_trials
from dialeval.analysis.cutting import cut, table_of
from dialeval.analysis.difference import DEFAULT_ALPHA, Difference
from dialeval.analysis.pairing import Runs, chosen, keys_meant, main_keys, systems_of
from dialeval.analysis.parts import FOUND, check_fields, fields_of, parts_of
from dialeval.analysis.values import metric_of
from dialeval.core.arguments import checked
from dialeval.core.arrays import Ints
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.version import __version__
from dialeval.data.formats.records import split_fields

LEAST_DIALOGUES = 10
"""A slice of fewer is not tested: few can be significant, and each makes all other tests harder to pass."""

_SHARE = 0.5
"""An adjusted p below this share of alpha must be possible: slices have one mark, and many tests take long."""


@dataclass(frozen=True)
class Slice:
    """The rows that have a value in a field, as a run, and how its systems differ."""

    field: str
    label: str
    run: Run
    places: Mapping[str, Ints]
    """By system the numbers of its rows that are in the slice."""
    cuts_dialogues: bool = False
    """Whether it has only a part of some dialogue."""
    comparison: Comparison | None = None
    reason: str | None = None
    """Why the systems are not compared here, where they are elsewhere."""

    @property
    def rows(self) -> int:
        """The rows of the slice; of the first system, where systems have others."""
        return len(table_of(next(iter(self.run.values()))))

    @property
    def dialogues(self) -> int:
        """Dialogues with a row in the slice."""
        return len(table_of(next(iter(self.run.values()))).offsets) - 1

    @property
    def unit(self) -> str:
        """What is counted as a dialogue: `dialogues`, or `rows` that stand alone."""
        return "rows" if table_of(next(iter(self.run.values()))).dialogues is None else "dialogues"

    def estimate(self, system: str, key: str) -> Estimate | None:
        """The figure of a system under a key; None if there is none."""
        return self.run[system].get(key) if system in self.run else None

    def difference(self, system: str, key: str) -> Difference | None:
        """The difference of a system under a key; None if there is none."""
        rows = () if self.comparison is None else self.comparison.rows
        return next((row for row in rows if (row.system, row.key) == (system, key)), None)


class Loss(NamedTuple):
    """A slice in which a system is worse than the baseline, and by how much."""

    where: Slice
    by: Difference


@dataclass(frozen=True)
class Slices:
    """All slices of a run, field by field."""

    whole: Run
    by: Sequence[str]
    slices: Sequence[Slice]
    keys: Sequence[str]
    """Those that are tested and shown."""

    @property
    def comparisons(self) -> list[Comparison]:
        """Those of all slices that were tested; the p of all are adjusted together."""
        return [each.comparison for each in self.slices if each.comparison is not None]

    @property
    def differences(self) -> list[Difference]:
        """Those of all slices."""
        return [row for each in self.comparisons for row in each.rows]

    def of(self, field: str) -> list[Slice]:
        """The slices of one field, in the order of their values."""
        return [each for each in self.slices if each.field == field]

    def worst_first(self, field: str, key: str) -> list[Slice]:
        """The slices of one field, those first in which some system loses most under a key, or has the worst value."""
        return sorted(self.of(field), key=lambda each: self._standing(each, key))

    def _standing(self, each: Slice, key: str) -> float:
        if self.comparisons:
            rows = () if each.comparison is None else each.comparison.rows
            return min((_gain(row) for row in rows if row.key == key), default=math.inf)
        values = [_upwards(result[key]) for result in each.run.values() if key in result]
        return min((value for value in values if not math.isnan(value)), default=math.inf)

    def worst(self, system: str) -> Loss | None:
        """Where a system loses most to the baseline, of what is significant; None if nothing is."""
        losses = [
            Loss(each, row)
            for each in self.slices
            for row in (() if each.comparison is None else each.comparison.of(system))
            if row.significant and row.worse
        ]
        return min(losses, key=lambda loss: _gain(loss.by), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN is null."""
        tested = self.comparisons
        return {
            "by": list(self.by),
            "baseline": tested[0].baseline if tested else None,
            "settings": asdict(tested[0].settings) if tested else None,
            "tests": sum(not math.isnan(row.p) for row in self.differences),
            "slices": [_to_dict(each) for each in self.slices],
        }


def _to_dict(each: Slice) -> dict[str, Any]:
    return {
        "field": each.field,
        "slice": each.label,
        "rows": each.rows,
        "dialogues": each.dialogues,
        "systems": {name: system["metrics"] for name, system in each.run.to_dict()["systems"].items()},
        "differences": [] if each.comparison is None else [row.to_dict() for row in each.comparison.rows],
        "not_tested": each.reason,
    }


def _gain(row: Difference) -> float:
    """The effect size, above zero where the system is better; beyond all others if no dialogue differs otherwise."""
    size = abs(row.effect)
    if math.isnan(size):
        size = math.inf if row.difference else 0.0
    return -size if row.worse else size


def _upwards(estimate: Estimate) -> float:
    metric = metric_of(estimate)
    return -estimate.mean if metric is not None and metric.better == "lower" else estimate.mean


@checked
def slices(
    runs: Runs,
    by: str | Iterable[str],
    *,
    baseline: str | None = None,
    systems: Iterable[str] | None = None,
    metrics: Iterable[str] | None = None,
    compared: bool = True,
    alpha: float = DEFAULT_ALPHA,
    trials: int | None = None,
    design: DesignName | None = None,
    most_tests: int | None = None,
    **settings: Any,
) -> Slices:
    """Cut a run, or several, into slices by some fields, and compare the systems of each slice with the baseline.

    `by`: `turn`, `length`, `history`, or fields that the run kept; a text with commas between them, or a list.
    `compared` False: only figures. The others are those of `compare`; without `metrics` the `main_keys` are tested.
    """
    known = systems_of(runs)
    first, others = _chosen(known, baseline, systems)
    whole = Run({name: known[name] for name in (first, *others)}, __version__)
    keys = main_keys(whole)
    if metrics is not None:
        keys = keys_meant(metrics, whole.keys_in_order, "no system has", "there are")
    fields = split_fields(by)
    tables = {name: table_of(result) for name, result in whole.items()}
    check_fields(list(tables.values()), fields)
    found = [
        _slice(whole, field, label, here)
        for field in fields
        for label, places in parts_of(tables, field)
        if (here := {name: rows for name, rows in places.items() if len(rows)})
    ]
    if not compared or not others:
        return Slices(whole, fields, found, keys)
    alignments = {name: align(whole[first], whole[name], design) for name in others}
    found = [replace(each, reason=_why_not(each, first, alignments)) for each in found]
    testable = max(1, sum(each.reason is None for each in found))
    pairs = sum(key in whole[first] and key in whole[name] for name in others for key in keys)
    if trials is None:
        most = math.inf if most_tests is None else max(most_tests, testable * len(keys))
        trials = enough_trials(int(min(testable * pairs, most)), alpha, _SHARE)
    # A slice has the design of the whole; of units in common some may be in the slice of one system only.
    designs = {alignment.design.name for alignment in alignments.values()}
    design = "unpaired" if designs == {"unpaired"} else "common" if "unpaired" not in designs else None
    settings |= {"alpha": alpha, "trials": trials, "design": design}
    settings["most_tests"] = None if most_tests is None else most_tests // testable
    done = [each if each.reason is not None else _tested(each, keys, settings) for each in found]
    adjusted = iter(adjusted_together([each.comparison for each in done if each.comparison is not None]))
    done = [each if each.comparison is None else replace(each, comparison=next(adjusted)) for each in done]
    return Slices(whole, fields, done, keys)


def _slice(whole: Run, field: str, label: str, places: Mapping[str, Ints]) -> Slice:
    systems = {name: cut(whole[name], rows, f"{field}={label}") for name, rows in places.items()}
    tables = ((table_of(whole[name]), rows) for name, rows in places.items())
    cuts = any(len(rows) < np.diff(table.offsets)[np.unique(table.clusters[rows])].sum() for table, rows in tables)
    return Slice(field, label, Run(systems, whole.version), places, cuts)


def _chosen(
    known: Mapping[str, Result], baseline: str | None, systems: Iterable[str] | None
) -> tuple[str, Sequence[str]]:
    """The baseline and the systems beside it; floors and ceilings only if they are named."""
    real = [name for name, result in known.items() if result.role == "system"] or list(known)
    if len(real) == 1 and systems is None and baseline is None:
        return real[0], ()
    return chosen(known, baseline, None if systems is None else list(systems))


def _why_not(each: Slice, first: str, alignments: Mapping[str, Alignment]) -> str | None:
    """Why a slice is not tested."""
    if min(len(table_of(result).offsets) - 1 for result in each.run.values()) < LEAST_DIALOGUES:
        return f"fewer than {LEAST_DIALOGUES} {each.unit}"
    if len(each.places) <= len(alignments):
        return "some system has no rows here"
    for name, alignment in alignments.items():
        # Rows that are matched by position cannot be matched again within a slice of other positions.
        if alignment.design.by == "position" and not np.array_equal(each.places[first], each.places[name]):
            return "the systems do not have the same rows here"
    return None


def _tested(each: Slice, keys: Sequence[str], settings: Mapping[str, Any]) -> Slice:
    there = [key for key in keys if all(key in result for result in each.run.values())]
    try:
        return replace(each, comparison=compare(each.run, metrics=there, **settings))
    except SettingError as error:
        return replace(each, reason=str(error))


def kept_fields(run: Run) -> list[str]:
    """The fields that a run kept to be cut by."""
    tables = [result.rows for result in run.values() if result.role == "system"]
    known = [table for table in tables if table is not None]
    return [name for name in fields_of(known) if name not in FOUND] if known and len(known) == len(tables) else []
