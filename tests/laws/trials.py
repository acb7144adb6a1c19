"""The world of repeated trials: how often a task was tried, and how often it was passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from dialeval.core.batch import Need
from dialeval.core.columns import Column, NumberColumn
from laws.worlds import World

NAN = float("nan")


@dataclass(frozen=True)
class Row:
    """One task of one row; NaN where nobody counted its trials."""

    trials: float
    passes: float


def columns(rows: Sequence[Row]) -> dict[Need, Column]:
    counts = np.array([(row.trials, row.passes) for row in rows], np.float64).reshape(-1, 2)
    return {Need.TRIALS: NumberColumn(counts)}


counted = st.integers(1, 9).flatmap(lambda trials: st.builds(Row, st.just(trials), st.integers(0, trials)))

WORLD = World(
    rows=counted | st.just(Row(NAN, NAN)),
    columns=columns,
    resources=lambda _vocabulary: {},
    lone={"never": Row(1, 0), "once": Row(1, 1), "always": Row(8, 8), "not counted": Row(NAN, NAN)},
    rich=[Row(4, 2), Row(5, 5), Row(8, 0)],
)
