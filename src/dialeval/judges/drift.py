"""Judge drift: the grades of two judges of the same replies: other models, rubrics or dates.

For each system and for all together: rows with both grades, the mean of each judge, and the mean shift (second less
first) with its interval over dialogues. Also: the fraction of rows whose grades differ by less than half a grade, the
correlation of the grades, which grades became which, pairs of systems whose order changes, and the rows that moved
most: people should rate those first, without seeing either grade.

A shift that is the same for all systems changes no comparison of systems that one judge graded, but grades of different
judges must not be compared with each other. Rows that one judge did not grade are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import orjson
from msgspec import Struct

from dialeval.analysis.alignment import align, count_different
from dialeval.analysis.labels import RateEstimate, estimate_rate
from dialeval.core.arrays import Floats, Ints
from dialeval.core.display import Displayable, Tabular
from dialeval.core.errors import SettingError
from dialeval.core.fold import ANY_NUMBER
from dialeval.core.result import Result, Run, load
from dialeval.core.rowtable import RowTable
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.reports.analyses import show_rate
from dialeval.reports.documents import Document, Table
from dialeval.reports.formatting import plain, shorten, show_fixed
from dialeval.stats.intervals import DEFAULT_LEVEL

_SAME = 0.5
_CHANGING = ("version", "dialeval", "responses")
"""Fields of a signature that say nothing about the judge."""


class SystemDrift(Record, frozen=True, kw_only=True):
    """The grades of one system by both judges."""

    system: str
    rows: int
    ungraded: int
    """Rows without a grade of one of the judges."""
    before: float
    after: float
    shift: RateEstimate


class MovedRow(Struct, frozen=True):
    """A reply whose grade moved."""

    system: str
    dialogue: str | None
    context: Sequence[str]
    response: str
    before: float
    after: float


class JudgeDrift(Displayable, Tabular, SystemDrift, frozen=True, kw_only=True):
    """The result of `measure_judge_drift`, and its JSON: the grades of all systems together, and of each."""

    metrics: tuple[str, str]
    differences: Mapping[str, tuple[str | None, str | None]]
    """What differs between the signatures of both judges."""
    agreement: RateEstimate
    """Fraction of rows whose grades differ by less than half a grade."""
    correlation: float
    systems: Sequence[SystemDrift]
    moves: Sequence[tuple[float, float, int]]
    """Grades before and after, rounded, and how many rows have them."""
    reordered: Sequence[tuple[str, str]]
    """Pairs of systems of which the second judge puts the other one first."""
    adjudicate: Sequence[MovedRow]
    """Rows to rate by people, the largest moves first."""
    level: float

    def lines(self) -> list[JsonObject]:
        """Return one line per system."""
        return [
            {name: getattr(system, name) for name in ("system", "rows", "ungraded", "before", "after")}
            | {"shift": system.shift.value, "low": system.shift.interval[0], "high": system.shift.interval[1]}
            for system in self.systems
        ]

    def to_jsonl(self) -> bytes:
        """Return the rows to rate as JSON lines, without grades, so that raters do not see them."""
        rows = (
            {"id": str(number), "system": row.system, "dialog_id": row.dialogue, "context": list(row.context)}
            | {"response": row.response}
            for number, row in enumerate(self.adjudicate, 1)
        )
        return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def measure_judge_drift(
    first: object, second: object = None, *, metrics: Sequence[str] = (), most: int = 50, level: float = DEFAULT_LEVEL
) -> JudgeDrift:
    """Compare the grades of two judges of the same replies.

    Args:
        first: A run with grades, or the folder of a saved one.
        second: The run with the grades of the other judge; None: both are in the first one.
        metrics: The key of the grades in both runs, or those in each; empty: `llm`, else the only common metric.
        most: How many rows to rate are listed.
        level: The level of the intervals.

    Returns:
        Shift, agreement, moves and the rows to rate.

    Raises:
        SettingError: The runs have no common system with the same replies, or no such grades.
    """
    one = _load(first)
    other = one if second is None else _load(second)
    keys = _choose_metrics(one, other, metrics)
    names = [name for name in one if name in other and one[name].role == "system"]
    names = [name for name in names if keys[0] in one[name] and keys[1] in other[name]]
    if not names:
        have = f"{', '.join(one)} and {', '.join(other)}"
        raise SettingError(f"no system of both runs has the grades {' and '.join(dict.fromkeys(keys))}: {have}")
    graded = {name: _match_grades(name, one[name], other[name], keys) for name in names}
    before, after = (np.concatenate([pair[side] for pair in graded.values()]) for side in (0, 1))
    dialogues = [dialogue for pair in graded.values() for dialogue in pair[2]]
    shift = after - before
    both = ~np.isnan(shift)
    if both.sum() < 2:
        raise SettingError("fewer than two rows have a grade of both judges")
    systems = [SystemDrift(**_summarize(name, *pair[:3], level)) for name, pair in graded.items()]
    moves = Counter(zip(np.rint(before[both]).tolist(), np.rint(after[both]).tolist(), strict=True))
    spread = before[both].std() * after[both].std()
    same = np.where(both, np.abs(shift) < _SAME, np.nan)
    return JudgeDrift(
        **_summarize("all", before, after, dialogues, level),
        metrics=keys,
        differences=_compare_signatures(one[names[0]], other[names[0]], keys),
        agreement=estimate_rate(same, _number(dialogues), level),
        correlation=float(np.corrcoef(before[both], after[both])[0, 1]) if spread else float("nan"),
        systems=systems,
        moves=[(start, end, count) for (start, end), count in sorted(moves.items())],
        reordered=[
            (left.system, right.system)
            for left, right in combinations(systems, 2)
            if (left.before - right.before) * (left.after - right.after) < 0
        ],
        adjudicate=_list_moved(graded, most),
        level=level,
    )


def _number(dialogues: Sequence[str]) -> Ints:
    return np.unique(np.array(dialogues, np.str_), return_inverse=True)[1]


def _summarize(system: str, before: Floats, after: Floats, dialogues: Sequence[str], level: float) -> dict[str, Any]:
    """Return the fields of a `SystemDrift`."""
    shift = after - before
    both = ~np.isnan(shift)
    old, new = (float(side[both].mean()) if both.any() else float("nan") for side in (before, after))
    rate = estimate_rate(shift, _number(dialogues), level, ANY_NUMBER)
    counts = {"rows": int(both.sum()), "ungraded": int((~both).sum())}
    return {"system": system, **counts, "before": old, "after": new, "shift": rate}


def _load(run: Any) -> Run:
    return run if isinstance(run, Run) else load(run)


def _choose_metrics(one: Run, other: Run, metrics: Sequence[str]) -> tuple[str, str]:
    if metrics:
        if len(metrics) > 2:
            raise SettingError("name the grades of both judges, or one key for both")
        return metrics[0], metrics[-1]
    common = [key for key in one.keys_in_order if key in other.keys_in_order]
    chosen = "llm" if "llm" in common else common[0] if len(common) == 1 else None
    if chosen is None or one is other:
        raise SettingError(f"name the grades to compare, such as --metric llm; both runs have {', '.join(common)}")
    return chosen, chosen


Graded = tuple[Floats, Floats, Sequence[str], RowTable]


def _match_grades(name: str, one: Result, other: Result, keys: tuple[str, str]) -> Graded:
    """Return the grades of both judges by row, the dialogue of each, and the rows."""
    alignment = align(one, other)
    tables = alignment.left.table, alignment.right.table
    if not alignment.by_row or tables[0] is None or tables[1] is None:
        raise SettingError(f"the runs do not hold the same rows. {alignment.design.describe(name, name)}")
    changed = count_different(tables[0], tables[1], "response")
    if changed:
        what = f"{changed:,} replies of {name} differ between the runs"
        raise SettingError(f"{what}; judges are compared on the same replies: grade one file by both")
    grades = [side[key].scores for side, key in zip((alignment.left, alignment.right), keys, strict=True)]
    table = tables[0]
    if grades[0] is None or grades[1] is None or {len(each) for each in grades if each is not None} != {len(table)}:
        raise SettingError(f"{' and '.join(dict.fromkeys(keys))} of {name}: the runs have no grade for each reply")
    ids = table.dialogues if table.dialogues is not None else [None] * (len(table.offsets) - 1)
    names = [ids[cluster] or f"dialogue {cluster}" for cluster in table.clusters.tolist()]
    return grades[0], grades[1], names, table


def _compare_signatures(one: Result, other: Result, keys: tuple[str, str]) -> dict[str, tuple[str | None, str | None]]:
    pair = [dict(side[key].signature or {}) for side, key in zip((one, other), keys, strict=True)]
    names = [name for name in dict.fromkeys((*pair[0], *pair[1])) if name not in _CHANGING]
    both = {name: (pair[0].get(name), pair[1].get(name)) for name in names}
    return {name: values for name, values in both.items() if values[0] != values[1]}


def _list_moved(graded: Mapping[str, Graded], most: int) -> list[MovedRow]:
    """Return the rows whose grades differ most; equal ones in the order of the rows."""
    moved = []
    for name, (before, after, dialogues, table) in graded.items():
        size = np.nan_to_num(np.abs(after - before))
        for row in np.argsort(-size, kind="stable")[:most].tolist():
            if size[row] >= _SAME and "response" in table.texts:
                pair, response = (float(before[row]), float(after[row])), str(table.texts["response"][row])
                moved.append(MovedRow(name, dialogues[row], table.texts_at("context", row), response, *pair))
    return sorted(moved, key=lambda row: -abs(row.after - row.before))[:most]


def describe_drift(drift: JudgeDrift) -> Document:
    """Return the drift of a judge as tables and sentences."""
    rows = [
        [plain(one.system), f"{one.rows:,}", show_fixed(one.before, 2), show_fixed(one.after, 2), show_rate(one.shift)]
        for one in (*drift.systems, drift)
    ]
    tables = [Table(["system", "rows", "first judge", "second judge", "shift"], rows)]
    grades = sorted({grade for start, end, _ in drift.moves for grade in (start, end)})
    counts = {(start, end): count for start, end, count in drift.moves}
    if len(grades) <= 11:
        lines = [[f"{start:g}", *(f"{counts.get((start, end), 0):,}" for end in grades)] for start in grades]
        tables.append(Table(["first judge", *(f"{grade:g}" for grade in grades)], lines))
    changes = [f"{name}: {one or 'none'} and {two or 'none'}" for name, (one, two) in drift.differences.items()]
    low, high = drift.shift.interval
    moved = low > 0 or high < 0 or (np.isnan(low) and drift.shift.value != 0)  # no interval where all moved alike
    verdict = "The second judge grades differently" if moved else "No shift is certain"
    notes = [
        f"{verdict}: mean shift {show_rate(drift.shift)}, {100 * drift.level:g}% interval over dialogues.",
        f"Grades that differ by less than {_SAME:g}: {show_rate(drift.agreement)}.",
        f"Correlation of the grades: {show_fixed(drift.correlation, 2)}.",
        *(f"{plain(one)} and {plain(two)} change their order." for one, two in drift.reordered),
        f"Differences of the signatures: {plain('; '.join(changes)) if changes else 'none'}.",
    ]
    if drift.ungraded:
        notes.append(f"{drift.ungraded:,} rows without a grade of one of the judges are left out.")
    titles = [f"Drift from {shorten(drift.metrics[0])} to {shorten(drift.metrics[1])}", "Grades before and after, rows"]
    return Document([], tables, notes, titles=titles[: len(tables)])
