"""The world of repeated trials: how often a task was tried, and how often it was passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import ColumnData, FieldColumn
from dialeval.core.inputs import Input
from laws.worlds import World


@dataclass(frozen=True)
class Row:
    """One task of one row; equal rows that are different objects are different tasks."""

    trials: int
    passes: int
    unjudged: int = 0


def trials_of(row: Row) -> list[dict[str, object]]:
    rewards = [1.0] * row.passes + [0.5] * (row.trials - row.passes) + [None] * row.unjudged
    given: dict[str, object] = {"task": f"task {id(row)}", "parts": {}, "end": None}
    return [
        given | {"trial": str(n), "reward": reward, "cost": None if reward is None else n / 8}
        for n, reward in enumerate(rewards)
    ]


def columns(rows: Sequence[Row]) -> dict[Input, ColumnData]:
    return {inputs.TRIALS: FieldColumn.of([trials_of(row) or None for row in rows])}


counted = st.integers(0, 9).flatmap(
    lambda trials: st.builds(Row, st.just(trials), st.integers(0, trials), st.integers(0, 2))
)

WORLD = World(
    rows=counted,
    columns=columns,
    resources=lambda _vocabulary: {},
    lone={"never": Row(1, 0), "once": Row(1, 1), "always": Row(8, 8), "not judged": Row(0, 0, 2), "no": Row(0, 0)},
    rich=[Row(4, 2), Row(5, 5), Row(8, 0)],
    in_order=lambda rows: [replace(row) for row in rows],
)
