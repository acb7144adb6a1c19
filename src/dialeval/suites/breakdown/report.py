"""A run of breakdown detectors as text: the lines of the original program, confusion tables, a row per turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import nan
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from dialeval.analysis.slices import compare_slices
from dialeval.core.display import Tabular
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Run
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.metrics.breakdown import LABELS, BreakdownDistance, Tables
from dialeval.reports.documents import Document, Printer, Table, format_csv
from dialeval.reports.formatting import plain, show, show_rounded
from dialeval.stats.resampling import draw_resamples, percentiles
from dialeval.suites.breakdown.documents import Findings
from dialeval.suites.breakdown.plain import Detected, format_lines
from dialeval.suites.breakdown.reading import DATASET, open_data, open_detectors, read_categories

if TYPE_CHECKING:
    from dialeval.suites.breakdown.evaluation import BreakdownRun


_LENIENT = ("O", "T+X")


def format_original(run: BreakdownRun, system: str | None = None, threshold: float | None = None) -> str:
    """Return what `eval.py` of the challenge prints, byte for byte.

    Args:
        run: The run.
        system: The detector; None: the first.
        threshold: The threshold; None: the first.

    Returns:
        The text.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.breakdown import evaluate_breakdown, format_original
        >>> talks = sample_data.folder() / "breakdown"
        >>> run = evaluate_breakdown(talks / "data", talks / "keywords", threshold=0.5)
        >>> format_original(run).splitlines()[8].split()
        ['Accuracy', ':', '0.625000', '(10/16)']
    """
    system = run.detectors[0] if system is None else system
    table = run.tables[system][next(iter(run.tables[system])) if threshold is None else threshold]
    detected = {
        name: Detected(counts.precision, counts.recall, counts.f1, *counts)
        for name, counts in (("X", table.x), ("T+X", table.tx))
    }
    distances = [run[system][key].mean for key in BreakdownDistance.presets]
    counts = table.dialogues, table.turns, table.references, table.correct, table.scored
    return format_lines(*counts, detected, distances)


def format_tables(run: BreakdownRun) -> str:
    """Return both confusion tables of every detector and threshold, labels in rows and references in columns.

    Args:
        run: The run.

    Returns:
        The text.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.breakdown import evaluate_breakdown, format_tables
        >>> talks = sample_data.folder() / "breakdown"
        >>> run = evaluate_breakdown(talks / "data", talks / "keywords", threshold=0.5)
        >>> print(format_tables(run).splitlines()[0])
        keywords, threshold 0.5: 4 dialogues, 16 turns
    """
    blocks = [_write_tables(system, table) for system, by in run.tables.items() for table in by.values()]
    return "\n".join(blocks)


def format_turns(run: BreakdownRun, threshold: float | None = None) -> str:
    """Return a line per detector and annotated turn as CSV, all digits.

    Args:
        run: The run.
        threshold: The threshold of the reference labels; None: the first.

    Returns:
        The text; empty where there are no turns.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.breakdown import evaluate_breakdown, format_turns
        >>> talks = sample_data.folder() / "breakdown"
        >>> run = evaluate_breakdown(talks / "data", talks / "keywords", threshold=0.5)
        >>> format_turns(run).splitlines()[1].split(",")[:5]
        ['keywords', 'library-hours', '2', '0.5', 'O']
    """
    rows = list(run.turns(threshold))
    return format_csv(rows[0], (row.values() for row in rows)) if rows else ""


def _write_tables(system: str, table: Tables) -> str:
    scored = f", {table.turns - table.scored} of them not scored" if table.scored < table.turns else ""
    head = f"{plain(system)}, threshold {table.threshold:g}: {table.dialogues} dialogues, {table.turns} turns{scored}"
    lines = [head, "label   " + _pad_cells(LABELS) + "   |" + _pad_cells(_LENIENT) + "   <- reference"]
    for label in LABELS:
        hard, lenient = table.confusion[label].values(), table.confusion_lenient[label].values()
        lines.append(f"{label:<8}{_pad_cells(hard)}   |{_pad_cells(lenient)}")
    return "\n".join([*lines, ""])


def _pad_cells(values: Iterable[object]) -> str:
    return "".join(f"{value!s:>8}" for value in values)


# Averages of breakdown detection over data sets, and scores of the error categories of later challenges.
#
# average_over_datasets(run)       every data set counts equally, whatever its number of turns
# score_categories(data, labels)   exact match and F1 of the categories that detectors give to turns


class Macro(Struct, frozen=True):
    """The mean of a value over data sets, each counting equally."""

    mean: float
    interval: tuple[float, float] | None
    """From those of the data sets, whose dialogues are independent; None where one has none."""
    by_dataset: dict[str, float]


class MacroAverages(Tabular, Record, frozen=True):
    """Macro averages over data sets, by system and metric."""

    systems: dict[str, dict[str, Macro]]

    def lines(self) -> list[dict[str, object]]:
        return [
            {"system": system, "metric": key, "dataset": name, "value": value}
            for system, by_key in self.systems.items()
            for key, macro in by_key.items()
            for name, value in (("macro average", macro.mean), *macro.by_dataset.items())
        ]


def average_over_datasets(run: Run) -> MacroAverages:
    """Average every value over the data sets of a run; SettingError where it has one."""
    if not all(result.table is not None and DATASET in result.table.fields for result in run.values()):
        raise SettingError("there is one data set; give several (-p NAME=PATH, repeated), or leave --macro out")
    by_dataset = compare_slices(run, DATASET, systems=list(run) if len(run) > 1 else None, compared=False)
    parts = {part.label: part.run for part in by_dataset.slices}
    systems: dict[str, dict[str, Macro]] = {system: {} for system in run}
    for system, averages in systems.items():
        for key in run[system]:
            if estimates := {name: part[system][key] for name, part in parts.items() if key in part[system]}:
                averages[key] = _average(estimates)
    return MacroAverages(systems)


def _average(estimates: Mapping[str, Estimate]) -> Macro:
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

    def lines(self) -> list[dict[str, object]]:
        return [
            {"detector": name, "turns": s.turns, "exact_match": s.exact_match, "f1": s.f1}
            for name, s in self.systems.items()
        ]


def score_categories(data: object, labels: object, category_field: str = "error_category") -> ErrorCategories:
    """Score the error categories that detectors give to turns: exact match of the set, and F1.

    Annotations and labels hold them in a field, a text or a list. The true set of a turn are the categories that more
    than half of its annotators gave; turns without any are not scored. Turns are matched by turn-index.
    """
    findings, systems = Findings(), {}
    stores = open_detectors(labels, findings)
    findings.raise_or_count()
    true: dict[tuple[str, object], set[str]] = {}
    for store in open_data(data).values():
        for place, named in read_categories(store, "annotations", category_field, findings):
            votes = Counter(name for names in named for name in names)
            if chosen := {name for name, count in votes.items() if 2 * count > len(named)}:
                true[place] = chosen
    if not true:
        raise SettingError(f"no annotated turn has a category in {category_field!r} that more than half gave")
    numbers = {name: number for number, name in enumerate(dict.fromkeys(dialogue for dialogue, _ in true))}
    for system, store in stores.items():
        labeled = read_categories(store, "labels", category_field, findings)
        predicted = {place: set(names[0]) for place, names in labeled if names}
        counts = np.zeros((len(numbers), 4))  # turns, exact matches, true positives, all categories of both sides
        for place, wanted in true.items():
            got = predicted.get(place, set())
            counts[numbers[place[0]]] += [1, got == wanted, len(got & wanted), len(got) + len(wanted)]
        drawn = np.concatenate([chunk @ counts for chunk in draw_resamples(len(counts))])
        turns, exact, right, every = np.concatenate([counts.sum(axis=0, keepdims=True), drawn]).T
        (em, *em_drawn), (f1, *f1_drawn) = (exact / turns).tolist(), (2 * right / every).tolist()
        ends = [percentiles(np.array(values)) for values in (em_drawn, f1_drawn)]
        systems[system] = CategoryScores(len(true), em, ends[0], f1, ends[1])
    return ErrorCategories(category_field, systems)


def _to_macro_document(averages: MacroAverages) -> Document:
    tables = []
    for by_key in averages.systems.values():
        names = list(dict.fromkeys(name for macro in by_key.values() for name in macro.by_dataset))
        rows = [
            [key, show_rounded(macro.mean, macro.interval), *(show(macro.by_dataset.get(name, nan)) for name in names)]
            for key, macro in by_key.items()
        ]
        tables.append(Table(["metric", "macro average", *names], rows))
    return Document([], tables, ["Each data set counts equally. 95% intervals."], titles=list(averages.systems))


def _to_categories_document(scores: ErrorCategories) -> Document:
    rows = [
        [name, str(s.turns), show_rounded(s.exact_match, s.exact_match_interval), show_rounded(s.f1, s.f1_interval)]
        for name, s in scores.systems.items()
    ]
    return Document([], [Table(["detector", "turns", "exact match", "F1"], rows)], ["95% intervals over dialogues."])


CATEGORIES: Printer[ErrorCategories] = Printer(_to_categories_document)
MACRO: Printer[MacroAverages] = Printer(_to_macro_document)


class BreakdownDetails(Struct):
    """What a saved run of breakdown detectors holds in addition, by detector."""

    breakdown: dict[str, list[JsonObject]] = {}
    """Counts and confusion tables, by threshold."""
