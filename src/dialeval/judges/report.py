"""What the judge shows next to scores: reasons for low ones, in words, in the dialogues of the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dialeval.core.arrays import Floats, Ints
from dialeval.core.fold import Level
from dialeval.judges.judge import list_reasons

if TYPE_CHECKING:
    from dialeval.core.result import Result


def get_parts(result: Result) -> dict[str, Floats]:
    """Return the parts of the judgment of every row of a system, by their names."""
    turns = ((key, estimate.scores) for key, estimate in result.items() if estimate.level is Level.TURN)
    judged = ((key, items) for key, items in turns if key.startswith("judge/") and items is not None)
    return {key.removeprefix("judge/"): items for key, items in judged}


def explain_rows(systems: Mapping[str, Result], rows: Ints, **_: object) -> dict[str, object]:
    """Return the reasons against some responses of each system, for the page; None for a system not judged."""
    return {"reasons": [_list_row_reasons(result, rows) for result in systems.values()]}


def _list_row_reasons(result: Result, rows: Ints) -> list[str] | None:
    parts = {part: values for part, values in get_parts(result).items() if len(values) > rows.max(initial=0)}
    if not parts:
        return None
    judged = ({part: float(scores[row]) for part, scores in parts.items()} for row in rows.tolist())
    return ["; ".join(list_reasons(scores)) for scores in judged]
