"""Which rows have which value of a field: the slices that rows are cut into.

Fields are

    turn       the number of the turn or, where rows do not say it, the place of the row in its dialogue
    history    how many turns the context has
    length     words of the reference (the mean of several); of the response where there is no reference and one system
    any other  a field of the rows that the run kept (`evaluate(keep=...)`, `--by`); a row with several values is in
               several slices, and rows without one are a slice of their own

Numbers of more than `MOST_NUMBERS` different values are cut into thirds of the rows. Of more than `MOST_VALUES` texts
the most frequent are slices, and all others are one. All systems are cut at the same values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.errors import SettingError
from dialeval.core.rowtable import NO_TURN, RowTable, Texts

FOUND = ("turn", "length", "history")
"""What every run can be cut by, without a field that it kept."""
MOST_NUMBERS = 8
MOST_VALUES = 20
RANGES = 3
NO_VALUE, OTHER = "(no value)", "(other values)"

Parts: TypeAlias = Iterator[tuple[str, dict[str, Ints]]]
"""The slices of a field: its label, and by system the numbers of its rows."""


def fields_of(tables: Sequence[RowTable]) -> list[str]:
    """What rows can be cut by: fields that were kept in all tables, then what is found in every row."""
    kept = [name for name in tables[0].fields if all(name in table.fields for table in tables)]
    return [*(name for name in kept if name not in FOUND), *FOUND]


def check_fields(tables: Sequence[RowTable], fields: Sequence[str]) -> None:
    """SettingError where rows cannot be cut by a field."""
    there = ", ".join(fields_of(tables))
    if not fields:
        raise SettingError(f"no field is named; there are {there}")
    for field in fields:
        if field == "system":
            raise SettingError("systems stand side by side in every slice; name another field than system")
        if field not in fields_of(tables):
            remedy = f"score the rows again with --by {field} (keep=[{field!r}])"
            raise SettingError(f"the run did not keep a field {field!r}, only {there}; {remedy}")


def parts_of(tables: Mapping[str, RowTable], field: str) -> Parts:
    """The slices of one field; some may be without a row."""
    if field in FOUND:
        return _by_number({name: _numbers(table, field, len(tables) == 1) for name, table in tables.items()})
    values = {name: list(table.fields[field]) for name, table in tables.items()}
    numbers = _as_numbers(values)
    return _by_text(values) if numbers is None else _by_number(numbers)


def _numbers(table: RowTable, field: str, alone: bool) -> Floats:
    """A number of each row, NaN where it has none."""
    if field == "turn":
        if table.turns is not None:
            return np.where(table.turns == NO_TURN, np.nan, table.turns.astype(np.float64))
        return (np.arange(len(table)) - table.offsets[table.clusters]).astype(np.float64)
    if field == "history":
        contexts = table.texts.get("context")
        if contexts is None or isinstance(contexts, TextColumn):
            raise SettingError("the run has no contexts, so that it cannot be cut by history")
        return (contexts.ends - contexts.starts).astype(np.float64)
    texts = table.texts.get("reference") or (table.texts.get("response") if alone else None)
    if texts is None:
        raise SettingError("the run has no references, and responses are of other lengths in every system")
    return _lengths(texts)


def _lengths(texts: Texts) -> Floats:
    """The words of the texts of each row; of several the mean."""
    column = RaggedColumn.single(texts) if isinstance(texts, TextColumn) else texts
    words = np.concatenate(([0], np.cumsum([len(text.split()) for text in column.values])))
    with np.errstate(invalid="ignore"):  # 0 / 0: a row without a text
        lengths: Floats = (words[column.ends] - words[column.starts]) / (column.ends - column.starts)
    return lengths


def _as_numbers(values: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, Floats] | None:
    """The values of a field as numbers; None where a row has several, or something that is none."""
    if any(len(labels) > 1 for lists in values.values() for labels in lists):
        return None
    try:
        numbers = {
            name: [float(labels[0]) if labels else math.nan for labels in lists] for name, lists in values.items()
        }
    except ValueError:
        return None
    return {name: np.array(column, np.float64) for name, column in numbers.items()}


def _by_number(values: Mapping[str, Floats]) -> Parts:
    """A slice for each number, or for each third of the rows where there are too many."""
    known = np.sort(np.concatenate([column[np.isfinite(column)] for column in values.values()]))
    different: Floats = np.unique(known)
    edges = different[1:]
    if len(different) > MOST_NUMBERS:
        edges = np.setdiff1d(known[[len(known) * part // RANGES for part in range(1, RANGES)]], different[:1])
    groups = {name: np.searchsorted(edges, column, "right") for name, column in values.items()}
    for number in range(len(edges) + 1 if len(different) else 0):
        inside = different[np.searchsorted(edges, different, "right") == number]
        low, high = _shown(inside[0]), _shown(inside[-1])
        label = low if low == high else f"{low}–{high}"
        yield label, {name: np.flatnonzero((groups[name] == number) & np.isfinite(values[name])) for name in values}
    yield NO_VALUE, {name: np.flatnonzero(~np.isfinite(column)) for name, column in values.items()}


def _shown(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else f"{number:.4g}"


def _by_text(values: Mapping[str, Sequence[Sequence[str]]]) -> Parts:
    """A slice for each text, the most frequent first."""
    counts = Counter(label for lists in values.values() for labels in lists for label in set(labels))
    ordered = sorted(counts, key=lambda label: (-counts[label], label))
    named = ordered if len(ordered) <= MOST_VALUES else ordered[: MOST_VALUES - 1]
    places: dict[str, dict[str, list[int]]] = {label: {name: [] for name in values} for label in named}
    others: dict[str, list[int]] = {name: [] for name in values}
    without: dict[str, list[int]] = {name: [] for name in values}
    for name, lists in values.items():
        for row, labels in enumerate(lists):
            there = dict.fromkeys(labels)
            for label in there:
                if label in places:
                    places[label][name].append(row)
            if any(label not in places for label in there):
                others[name].append(row)
            if not there:
                without[name].append(row)
    for label, by_system in (*places.items(), (OTHER, others), (NO_VALUE, without)):
        yield label, {name: np.array(rows, np.int64) for name, rows in by_system.items()}
