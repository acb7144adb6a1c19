"""The rows of a run for the explorer: context, reference, what each system said, and every score.

Systems whose rows are the same (dialogues, turns, contexts, references) stand side by side as one group. Texts are kept
once each and rows refer to them, since contexts repeat from turn to turn and replies from row to row. Of very many rows
a part is taken: half of it the rows in which systems differ most, half of it chance with a fixed seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.fold import Level
from dialeval.core.rowtable import NO_TURN, RowTable
from dialeval.reports import markup
from dialeval.reports.figures import plain
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dialeval.core.result import Result, Run

MOST_ROWS = 10_000
"""Rows of a group that are shown."""
MOST_CHARACTERS = 20_000_000
"""Of all texts of a group; of longer ones fewer rows are shown."""
MOST_OF_A_TEXT = 200_000
DIGITS = 5
SEED = 12345


def explorer(run: Run) -> tuple[Section, dict[str, Any]] | None:
    """The section and its data; None for a run that does not know its rows."""
    texts = _Texts()
    groups = [_group(systems, texts) for systems in row_groups(run)]
    if not groups:
        return None
    notes = [_note(group) for group in groups if group["shown"] < group["total"]]
    places = "".join(f'<p class="note">{note}</p>' for note in notes)
    no_script = '<noscript><p class="notice">Looking through the rows needs scripts to be allowed.</p></noscript>'
    content = f'{places}{no_script}<div id="explorer-place"></div>'
    return Section("explorer", "Row by row", content), {"groups": groups, "texts": texts.known}


def row_groups(run: Run) -> list[dict[str, Result]]:
    """The systems whose rows are the same, together."""
    groups: dict[Any, dict[str, Result]] = {}
    for system, result in run.items():
        if result.rows is not None and len(result.rows):
            groups.setdefault(_identity(result.rows), {})[system] = result
    return list(groups.values())


def _identity(rows: RowTable) -> tuple[Any, ...]:
    shared = [(name, rows.texts[name].digest) for name in ("context", "reference") if name in rows.texts]
    turns = None if rows.turns is None else rows.turns.tobytes()
    names = None if rows.dialogues is None else tuple(rows.dialogues)
    return rows.offsets.tobytes(), names, turns, tuple(shared)


@dataclass
class _Texts:
    """Every text once; a row holds its number."""

    known: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def __call__(self, text: str) -> int:
        if len(text) > MOST_OF_A_TEXT:
            text = f"{text[:MOST_OF_A_TEXT]} … ({len(text) - MOST_OF_A_TEXT:,} characters are left out)"
        if text not in self._numbers:
            self._numbers[text] = len(self.known)
            self.known.append(text)
        return self._numbers[text]


def _group(systems: Mapping[str, Result], texts: _Texts) -> dict[str, Any]:
    rows = next(result.rows for result in systems.values() if result.rows is not None)
    columns = dict(_columns(systems, rows))
    picked = _picked(len(rows), columns, _characters(systems) / len(rows))
    clusters = rows.clusters[picked]
    here, at = np.unique(clusters, return_inverse=True)
    ids = None if rows.dialogues is None else [_sound(rows.dialogues[number]) for number in here.tolist()]
    turns = None if rows.turns is None else rows.turns[picked].tolist()
    # Of a dialogue-level key one value per dialogue is enough: that of the dialogue's first row.
    keys = dict.fromkeys(key for key, _ in columns)
    levels = {key: _level(key, systems) for key in keys}
    shown = {key: picked if level is Level.TURN else rows.offsets[here] for key, level in levels.items()}
    return {
        "systems": [plain(name) for name in systems],
        "rows": (picked + 1).tolist(),
        "dialogues": ids,
        "dialogue": at.tolist(),
        "turns": None if turns is None else [None if turn == NO_TURN else turn for turn in turns],
        "context": _texts_of(rows, "context", picked, texts),
        "reference": _texts_of(rows, "reference", picked, texts),
        "responses": [_responses(result.rows, picked, texts) for result in systems.values()],
        "keys": [{"name": plain(key), "level": level.value} for key, level in levels.items()],
        "scores": [
            [_figures(columns[key, name][shown[key]]) if (key, name) in columns else None for name in systems]
            for key in keys
        ],
        "shown": len(picked),
        "total": len(rows),
    }


def _columns(systems: Mapping[str, Result], rows: RowTable) -> Iterator[tuple[tuple[str, str], Floats]]:
    """One value per row for each key and system that has items; what belongs to a dialogue belongs to all its rows."""
    clusters = rows.clusters
    for name, result in systems.items():
        for key, est in result.items():
            if est.items is None:
                continue
            values = est.items
            if est.level is Level.DIALOGUE and len(values) == len(rows.offsets) - 1:
                yield (key, name), values[clusters]
            elif est.level is Level.TURN and len(values) == len(rows):
                yield (key, name), values


def _level(key: str, systems: Mapping[str, Result]) -> Level:
    return next(result[key].level for result in systems.values() if key in result)


def _picked(total: int, columns: Mapping[tuple[str, str], Floats], characters: float) -> Ints:
    """Which rows are shown, in order."""
    room = max(1, min(MOST_ROWS, int(MOST_CHARACTERS / max(characters, 1))))
    if total <= room:
        return np.arange(total)
    far = np.argsort(-_differences(total, columns), kind="stable")[: room // 2]
    rest = np.setdiff1d(np.arange(total), far)
    chance = np.random.default_rng(SEED).choice(rest, room - len(far), replace=False)
    picked: Ints = np.sort(np.concatenate((far, chance)))
    return picked


def _differences(total: int, columns: Mapping[tuple[str, str], Floats]) -> Floats:
    """How far systems are apart in each row: the largest difference in any metric, in its standard deviations."""
    found: Floats = np.zeros(total)
    for key in dict.fromkeys(key for key, _ in columns):
        mine: Floats = np.array([values for (other, _), values in columns.items() if other == key])
        known = np.isfinite(mine)
        if len(mine) < 2 or not known.any():
            continue
        spread = float(mine[known].std())
        if spread > 0:
            low = np.where(known, mine, np.inf).min(axis=0)
            high = np.where(known, mine, -np.inf).max(axis=0)
            found = np.maximum(found, np.where(high > low, high - low, 0) / spread)
    return found


def _characters(systems: Mapping[str, Result]) -> float:
    """About how many bytes the texts of a group have."""
    size = 0
    for result in systems.values():
        for column in result.rows.texts.values() if result.rows is not None else ():
            values = column.values if isinstance(column, RaggedColumn) else column
            size += int((values.ends - values.starts).sum())
    return size


def _texts_of(rows: RowTable, name: str, picked: Ints, texts: _Texts) -> list[list[int]] | None:
    column = rows.texts.get(name)
    if column is None:
        return None
    return [[texts(each) for each in _listed(column, row)] for row in picked.tolist()]


def _responses(rows: RowTable | None, picked: Ints, texts: _Texts) -> list[list[int]] | None:
    said = next((name for name in ("response", "hypotheses") if rows is not None and name in rows.texts), None)
    return None if rows is None or said is None else _texts_of(rows, said, picked, texts)


def _listed(column: TextColumn | RaggedColumn, row: int) -> Sequence[str]:
    found = column[row]
    return [found] if isinstance(found, str) else found


def _figures(values: Floats) -> list[float | int | None]:
    """Values with the digits that people look at; None where there is none."""
    return [_figure(value) for value in values.tolist()]


def _figure(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.{DIGITS}g}")


def _sound(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _note(group: Mapping[str, Any]) -> str:
    who = ", ".join(map(markup.name, group["systems"]))
    return (
        f"Of the {group['total']:,} rows of {who}, {group['shown']:,} are here: half of them those in which "
        "the systems differ most, half of them drawn by chance. The saved run holds all."
    )
