"""What the judge shows next to scores: the turns at which dialogues most probably break, and reasons for low scores.

A turn is listed if its `judge/continuity` is below a third, that of an average turn in the systems of the breakdown
challenge, worst first. The value orders turns and is no probability. Next to it are the judge's reasons, in words,
where it has any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.fold import Level
from dialeval.core.rowtable import NO_TURN, RowTable
from dialeval.judges.judge import CONTINUITY, list_reasons
from dialeval.reports import markup
from dialeval.reports.formatting import plain
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from dialeval.core.result import Result, Run

HIGHEST = 1 / 3
LISTED, PRINTED = 50, 3
"""Turns of a system in the report, and in the terminal."""
MOST_CHARACTERS = 300
"""Of a text that is shown."""


class WeakTurn(NamedTuple):
    """A turn and its continuity."""

    system: str
    place: str
    continuity: float
    before: str
    """What it answers."""
    said: str
    reasons: list[str]


def find_weak_turns(run: Run, most: int) -> list[WeakTurn]:
    """Return the turns with the most probable breakdowns, worst first."""
    systems = [(name, result) for name, result in run.items() if result.role == "system"]
    found = [turn for name, result in systems for turn in _find_in_system(name, result, most)]
    return sorted(found, key=lambda turn: turn.continuity)[:most]


def _find_in_system(name: str, result: Result, most: int) -> list[WeakTurn]:
    rows = result.rows
    parts = get_parts(result)
    values = parts.get(CONTINUITY)
    if rows is None or values is None or len(values) != len(rows) or "response" not in rows.texts:
        return []
    turns: dict[tuple[str, str, str], WeakTurn] = {}
    for row in np.argsort(np.where(np.isnan(values), np.inf, values), kind="stable").tolist():
        if len(turns) == most or not values[row] < HIGHEST:
            break
        texts = (_name_place(rows, row), _get_last_text(rows, "context", row), _get_last_text(rows, "response", row))
        why = list_reasons({part: float(column[row]) for part, column in parts.items()})
        turns.setdefault(texts, WeakTurn(name, texts[0], float(values[row]), *texts[1:], why))  # trials repeat turns
    return list(turns.values())


def get_parts(result: Result) -> dict[str, Floats]:
    """Return the parts of the judgment of every row of a system, by their names."""
    return {
        key.removeprefix("judge/"): estimate.items
        for key, estimate in result.items()
        if key.startswith("judge/") and estimate.level is Level.TURN and estimate.items is not None
    }


def explain_rows(systems: Mapping[str, Result], rows: Ints, **_: Any) -> dict[str, Any]:
    """Return the reasons against some responses of each system, for the explorer; None for a system not judged."""
    return {"reasons": [_list_row_reasons(result, rows) for result in systems.values()]}


def _list_row_reasons(result: Result, rows: Ints) -> list[str] | None:
    parts = {part: values for part, values in get_parts(result).items() if len(values) > rows.max(initial=0)}
    if not parts:
        return None
    return ["; ".join(list_reasons({part: float(each[row]) for part, each in parts.items()})) for row in rows.tolist()]


def _name_place(rows: RowTable, row: int) -> str:
    dialogue = rows.dialogues[int(rows.clusters[row])] if rows.dialogues is not None else None
    turn = NO_TURN if rows.turns is None else int(rows.turns[row])
    return ", ".join(filter(None, (dialogue or f"row {row + 1}", f"turn {turn}" if turn != NO_TURN else "")))


def _get_last_text(rows: RowTable, name: str, row: int) -> str:
    """Return the last text of a row, shortened where it is very long."""
    text = "".join(rows.texts_at(name, row)[-1:])
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} …"


def make_weak_turns_table(run: Run) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield a title with a header and a row per turn, for the terminal; nothing where there is nothing to list."""
    lines = [
        [turn.system, turn.place, f"{turn.continuity:.2f}", turn.said, "; ".join(turn.reasons)]
        for turn in find_weak_turns(run, PRINTED)
    ]
    if lines:
        header = ["system", "turn", "continuity", "said", "why"]
        yield "Most probable breakdowns, worst first", [header, *lines]


def make_weak_turns_section(run: Run) -> Section | None:
    """Return the section of the report; None for a run without such turns."""
    turns = find_weak_turns(run, LISTED)
    if not turns:
        return None
    note = markup.note(
        "Turns where annotators would most probably mark a breakdown, worst first, by the judge's continuity score. "
        "The score ranks turns and is not a probability."
    )
    lines = [
        markup.row(
            f"{markup.name(turn.system)}, {markup.text(plain(turn.place))}",
            markup.cells(
                f"{turn.continuity:.2f}",
                *(markup.text(plain(text)) for text in (turn.before, turn.said)),
                markup.text("; ".join(turn.reasons) or "–"),
            ),
        )
        for turn in turns
    ]
    heads = markup.heads("Turn", "Continuity", "Before it", "Said", "Why")
    content = note + markup.table("weak", "Turns, worst first.", heads, lines[:PRINTED])
    if more := lines[PRINTED:]:
        folded = markup.table("weak", "Turns, worst first, continued.", heads, more)
        content += markup.details(markup.count(len(more), "more turn"), folded)
    return Section("weak-turns", "Probable breakdowns", content)
