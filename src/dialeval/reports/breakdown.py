"""A run of breakdown detectors as text: the lines of the original program, the confusion tables, a row per turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dialeval.metrics.breakdown.detection import LABELS, BreakdownDistance
from dialeval.reports.figures import plain
from dialeval.reports.formats import csv_text

if TYPE_CHECKING:
    from dialeval.engine.breakdown import BreakdownRun
    from dialeval.metrics.breakdown.detection import Tables

_DISTANCES = {
    "jsd-o-t-x": "JS divergence (O,T,X)",
    "jsd-o-tx": "JS divergence (O,T+X)",
    "jsd-ot-x": "JS divergence (O+T,X)",
    "mse-o-t-x": "Mean squared error (O,T,X)",
    "mse-o-tx": "Mean squared error (O,T+X)",
    "mse-ot-x": "Mean squared error (O+T,X)",
}
_LENIENT = ("O", "T+X")


def original(run: BreakdownRun, system: str | None = None, threshold: float | None = None) -> str:
    """What the challenge's eval.py prints, byte for byte; of the first detector and threshold unless given."""
    system = run.detectors[0] if system is None else system
    table = run.tables[system][next(iter(run.tables[system])) if threshold is None else threshold]
    references = table.references
    accuracy = table.correct / table.scored if table.scored else float("nan")
    lines = [
        "######### Data Stats #########",
        f"File Num : \t\t{table.dialogues}",
        f"System Utterance Num : \t{table.turns}",
        *(f"{label} Label Num : \t\t{references[label]}" for label in LABELS),
        "",
        "######### Results #########",
        f"Accuracy : \t\t{accuracy:f} ({table.correct}/{table.scored})",
    ]
    for name, counts in (("X", table.x), ("T+X", table.tx)):
        lines += [
            "",
            f"Precision ({name}) : \t{counts.precision:f} ({counts.found}/{counts.labelled})",
            f"Recall    ({name}) : \t{counts.recall:f} ({counts.found}/{counts.real})",
            f"F-measure ({name}) : \t{counts.f1:f}",
        ]
    for key in BreakdownDistance.presets:
        lines += [""] if key.endswith("o-t-x") else []
        lines.append(f"{_DISTANCES[key]} : \t{run[system][key].mean:f}")
    return "\n".join([*lines, "###########################", ""])


def tables_text(run: BreakdownRun) -> str:
    """Both confusion tables of every detector and threshold, labels downwards and references across."""
    blocks = [_tables(system, table) for system, by in run.tables.items() for table in by.values()]
    return "\n".join(blocks)


def turns_csv(run: BreakdownRun, threshold: float | None = None) -> str:
    """One line per detector and annotated turn, all digits; a field without a value is empty."""
    rows = list(run.turns(threshold))
    return csv_text(rows[0], (row.values() for row in rows)) if rows else ""


def _tables(system: str, table: Tables) -> str:
    scored = f", {table.turns - table.scored} of them not scored" if table.scored < table.turns else ""
    head = f"{plain(system)}, threshold {table.threshold:g}: {table.dialogues} dialogues, {table.turns} turns{scored}"
    lines = [head, "label   " + _cells(LABELS) + "   |" + _cells(_LENIENT) + "   <- reference"]
    for label in LABELS:
        hard, lenient = table.confusion[label].values(), table.confusion_lenient[label].values()
        lines.append(f"{label:<8}{_cells(hard)}   |{_cells(lenient)}")
    return "\n".join([*lines, ""])


def _cells(values: Iterable[object]) -> str:
    return "".join(f"{value!s:>8}" for value in values)
