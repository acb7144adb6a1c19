"""The world of breakdown detectors: labels with probabilities, and how often annotators said O, T and X."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import ColumnData, NumberColumn
from dialeval.core.inputs import Input
from laws.worlds import World

NAN = float("nan")


@dataclass(frozen=True)
class Row:
    """One annotated turn; the label is a code (0 to 3), or NaN where there is none."""

    label: float
    probabilities: tuple[float, float, float] = (0.2, 0.3, 0.5)
    counts: tuple[int, int, int] = (10, 12, 8)


def columns(rows: Sequence[Row]) -> dict[Input, ColumnData]:
    labels = np.array([(row.label, *row.probabilities) for row in rows], np.float64).reshape(-1, 4)
    counts = np.array([row.counts for row in rows], np.float64).reshape(-1, 3)
    return {inputs.LABELS: NumberColumn(labels), inputs.ANNOTATIONS: NumberColumn(counts)}


labels = st.sampled_from([0.0, 1.0, 2.0, 3.0, NAN])
chances = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, -0.5, NAN, float("inf"), 1e300]))
counts = st.integers(0, 30)

WORLD = World(
    rows=st.builds(Row, labels, st.tuples(chances, chances, chances), st.tuples(counts, counts, counts)),
    columns=columns,
    resources=lambda _vocabulary: {},
    lone={
        "no labels": Row(NAN, (NAN, NAN, NAN)),
        "no annotations": Row(0.0, counts=(0, 0, 0)),
        "unknown label": Row(3.0),
        "negative probability": Row(1.0, (-0.1, 0.6, 0.5)),
        "huge probability": Row(1.0, (1e300, 0.0, 0.0)),
        "sum of zero": Row(2.0, (0.0, 0.0, 0.0)),
        "tie": Row(0.0, counts=(10, 10, 10)),
        "one annotator": Row(2.0, (0.0, 0.0, 1.0), (0, 0, 1)),
    },
    rich=[Row(2.0), Row(0.0, (0.9, 0.1, 0.0), (0, 5, 25)), Row(1.0, (0.0, 0.0, 1.0), (30, 0, 0))],
)
