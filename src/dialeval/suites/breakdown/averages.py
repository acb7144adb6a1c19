"""Averages of breakdown detection over data sets, and scores of the error categories of later challenges.

macro_averages(run)              every data set counts equally, whatever its number of turns
error_categories(data, labels)   exact match and F1 of the categories that detectors give to turns
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import nan
from typing import Any

import numpy as np
from msgspec import Struct

from dialeval.analysis.slices import slices
from dialeval.core.display import Tabular
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Run
from dialeval.core.run_schema import Record
from dialeval.reports.documents import Document, Printer, Table
from dialeval.reports.figures import show, show_rounded
from dialeval.stats.resampling import draws, percentiles
from dialeval.suites.breakdown.documents import Findings
from dialeval.suites.breakdown.reading import DATASET, categories, data_stores, detectors


class Macro(Struct, frozen=True):
    """The mean of a value over data sets, each counting equally."""

    mean: float
    interval: tuple[float, float] | None
    """From those of the data sets, whose dialogues are independent; None where one has none."""
    by_dataset: dict[str, float]


class MacroAverages(Tabular, Record, frozen=True):
    """Macro averages over data sets, by system and metric."""

    systems: dict[str, dict[str, Macro]]

    def lines(self) -> list[dict[str, Any]]:
        return [
            {"system": system, "metric": key, "dataset": name, "value": value}
            for system, by_key in self.systems.items()
            for key, macro in by_key.items()
            for name, value in (("macro average", macro.mean), *macro.by_dataset.items())
        ]


def macro_averages(run: Run) -> MacroAverages:
    """Average every value over the data sets of a run; SettingError where it has one."""
    if not all(result.rows is not None and DATASET in result.rows.fields for result in run.values()):
        raise SettingError("there is one data set; give several (-p NAME=PATH, repeated), or leave --macro out")
    found = slices(run, DATASET, systems=list(run) if len(run) > 1 else None, compared=False)
    parts = {each.label: each.run for each in found.slices}
    systems = {
        system: {
            key: _macro({name: part[system][key] for name, part in parts.items() if key in part[system]})
            for key in run[system]
            if any(key in part[system] for part in parts.values())
        }
        for system in run
    }
    return MacroAverages(systems)


def _macro(estimates: Mapping[str, Estimate]) -> Macro:
    values = {name: float(estimate.mean) for name, estimate in estimates.items()}
    mean = float(np.mean(list(values.values())))
    ends = [estimate.interval for estimate in estimates.values() if estimate.interval is not None]
    if len(ends) < len(values):
        return Macro(mean, None, values)
    # Zou and Donner (2008): distances to the ends of independent intervals add up as standard errors do.
    below, above = np.abs(np.array(ends) - np.array([[value] for value in values.values()])).T
    low, high = (float(np.linalg.norm(distances)) / len(ends) for distances in (below, above))
    return Macro(mean, (mean - low, mean + high), values)


class CategoryScores(Struct, frozen=True):
    """How well a detector finds the error categories of turns, with 95% intervals over dialogues."""

    turns: int
    exact_match: float
    exact_match_interval: tuple[float, float]
    f1: float
    """2 tp / (2 tp + fp + fn) over all turns."""
    f1_interval: tuple[float, float]


class ErrorCategories(Tabular, Record, frozen=True):
    """Scores of error categories by detector."""

    field: str
    systems: dict[str, CategoryScores]

    def lines(self) -> list[dict[str, Any]]:
        return [
            {"detector": name, "turns": s.turns, "exact_match": s.exact_match, "f1": s.f1}
            for name, s in self.systems.items()
        ]


def error_categories(data: Any, labels: Any, category_field: str = "error_category") -> ErrorCategories:
    """Score the error categories that detectors give to turns: exact match of the set, and F1.

    Annotations and labels hold them in a field, a text or a list. The true set of a turn are the categories that more
    than half of its annotators gave; turns without any are not scored. Turns are matched by turn-index.
    """
    findings, systems = Findings(), {}
    stores = detectors(labels, findings)
    findings.warnings()  # raises all problems
    true: dict[tuple[str, Any], set[str]] = {}
    for store in data_stores(data).values():
        for place, given in categories(store, "annotations", category_field, findings):
            votes = Counter(name for each in given for name in each)
            if chosen := {name for name, count in votes.items() if 2 * count > len(given)}:
                true[place] = chosen
    if not true:
        raise SettingError(f"no annotated turn has a category in {category_field!r} that more than half gave")
    numbers = {name: number for number, name in enumerate(dict.fromkeys(dialogue for dialogue, _ in true))}
    for system, store in stores.items():
        labeled = categories(store, "labels", category_field, findings)
        predicted = {place: set(each[0]) for place, each in labeled if each}
        counts = np.zeros((len(numbers), 4))  # turns, exact matches, true positives, all categories of both sides
        for place, wanted in true.items():
            found = predicted.get(place, set())
            counts[numbers[place[0]]] += [1, found == wanted, len(found & wanted), len(found) + len(wanted)]
        drawn = np.concatenate([chunk @ counts for chunk in draws(len(counts))])
        turns, exact, right, every = np.concatenate([counts.sum(axis=0, keepdims=True), drawn]).T
        (em, *em_drawn), (f1, *f1_drawn) = (exact / turns).tolist(), (2 * right / every).tolist()
        ends = [percentiles(np.array(values)) for values in (em_drawn, f1_drawn)]
        systems[system] = CategoryScores(len(true), em, ends[0], f1, ends[1])
    return ErrorCategories(category_field, systems)


def _macro_document(found: MacroAverages) -> Document:
    tables = []
    for by_key in found.systems.values():
        names = list(dict.fromkeys(name for macro in by_key.values() for name in macro.by_dataset))
        rows = [
            [key, show_rounded(macro.mean, macro.interval), *(show(macro.by_dataset.get(name, nan)) for name in names)]
            for key, macro in by_key.items()
        ]
        tables.append(Table(["metric", "macro average", *names], rows))
    return Document([], tables, ["Each data set counts equally. 95% intervals."], titles=list(found.systems))


def _categories_document(found: ErrorCategories) -> Document:
    rows = [
        [name, str(s.turns), show_rounded(s.exact_match, s.exact_match_interval), show_rounded(s.f1, s.f1_interval)]
        for name, s in found.systems.items()
    ]
    return Document([], [Table(["detector", "turns", "exact match", "F1"], rows)], ["95% intervals over dialogues."])


CATEGORIES: Printer[ErrorCategories] = Printer(_categories_document)
MACRO: Printer[MacroAverages] = Printer(_macro_document)
