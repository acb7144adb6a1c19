"""A run of breakdown detectors as text: the lines of the original program, confusion tables, a row per turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import nan
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from dialeval.analysis.slices import compare_slices
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.metrics.breakdown import LABELS, BreakdownDistance, Tables
from dialeval.reports.documents import format_csv
from dialeval.reports.formatting import plain
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


def average_over_datasets(run: Run) -> Run:
    """Average every value over the data sets of a run; SettingError where it has one.

    The averages have the names of the systems, and the values of a data set the name `system/dataset`.
    """
    if not all(result.table is not None and DATASET in result.table.fields for result in run.values()):
        raise SettingError("there is one data set; give several (-p NAME=PATH, repeated), or leave --macro out")
    by_dataset = compare_slices(run, DATASET, systems=list(run) if len(run) > 1 else None, compared=False)
    systems: dict[str, Result] = {}
    for name, result in run.items():
        parts = {f"{name}/{part.label}": part.run[name] for part in by_dataset.slices}
        values = {key: [part[key] for part in parts.values() if key in part] for key in result}
        averages = {key: _average(estimates) for key, estimates in values.items() if estimates}
        systems |= {name: replace(result, estimates=averages), **parts}
    return Run(systems, run.version, run.warnings)


def _average(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of estimates, with an interval if each has one."""
    values = np.array([[estimate.mean] for estimate in estimates])
    units, scored = (sum(counts) for counts in zip(*((e.units, e.scored) for e in estimates), strict=True))
    mean = float(values.mean())
    average = Estimate(mean, 0.0, units, scored, corpus=True, half_width=nan)
    ends = [estimate.interval for estimate in estimates if estimate.interval is not None]
    if len(ends) < len(estimates):
        return average
    # Zou and Donner (2008): distances to the ends of independent intervals add up as standard errors do.
    low, high = (float(np.linalg.norm(distances)) / len(ends) for distances in np.abs(np.array(ends) - values).T)
    return _with_interval(average, (mean - low, mean + high))


def _with_interval(estimate: Estimate, ends: tuple[float, float]) -> Estimate:
    return replace(estimate, interval=ends, half_width=(ends[1] - ends[0]) / 2)


def score_categories(data: object, labels: object, category_field: str = "error_category") -> Run:
    """Score the error categories that detectors give to turns: exact match of the set, and F1.

        f1 = 2 tp / (2 tp + fp + fn) over all turns

    Annotations and labels hold them in a field, a text or a list. The true set of a turn are the categories that more
    than half of its annotators gave; turns without any are not scored. Turns are matched by turn-index. The 95%
    intervals are over dialogues.
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
        estimates = {}
        for key, values in (("exact-match", exact / turns), ("f1", 2 * right / every)):
            estimate = Estimate(float(values[0]), 0.0, len(true), len(true), corpus=True)
            estimates[key] = _with_interval(estimate, percentiles(values[1:]))
        systems[system] = Result(estimates)
    return Run(systems, __version__)


class BreakdownDetails(Struct):
    """What a saved run of breakdown detectors holds in addition, by detector."""

    breakdown: dict[str, list[JsonObject]] = {}
    """Counts and confusion tables, by threshold."""
