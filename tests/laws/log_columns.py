"""The world of columns of logs: labels of replies, and the seconds that they took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import ColumnData, FieldColumn, RaggedColumn, TextColumn
from dialeval.core.inputs import Input
from dialeval.io.fields import read_labels
from laws.worlds import World


@dataclass(frozen=True)
class Row:
    """What annotators said of a reply, an object each, how long it took, and why it failed; None where unknown."""

    annotators: tuple[dict[str, Any], ...] = ()
    seconds: float | None = None
    failure: str | None = None
    scores: dict[str, float] | None = None


def columns(rows: Sequence[Row]) -> dict[Input, ColumnData]:
    return {
        inputs.TURN_LABELS: FieldColumn.of([read_labels(row.annotators) or None for row in rows]),
        inputs.RESPONSE: TextColumn.from_strings(["" if row.failure else "yes" for row in rows]),
        inputs.OUTCOME: RaggedColumn.from_lists([[row.failure] if row.failure else [] for row in rows]),
        inputs.LATENCY: FieldColumn.of([row.seconds for row in rows], is_number=True),
        inputs.SCORES: FieldColumn.of([row.scores for row in rows]),
    }


annotator = st.fixed_dictionaries(
    {},
    optional={
        "breakdown": st.sampled_from("OTX") | st.none(),
        "error": st.lists(st.sampled_from("abc"), max_size=3) | st.just("a"),
        "polite": st.booleans() | st.sampled_from([0.25, 1.0]) | st.lists(st.booleans(), max_size=3),
    },
)
seconds = st.none() | st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.25, 30.0]) | st.floats(0, 1e6)
FULL = {"breakdown": "X", "error": ["a"], "polite": True}

WORLD = World(
    rows=st.builds(
        Row,
        st.lists(annotator, max_size=3).map(tuple),
        seconds,
        st.sampled_from([None, "missing", "error"]),
        st.fixed_dictionaries({"stars": st.floats(-9, 9)}, optional={"cost": st.floats(-9, 9)}),
    ),
    columns=columns,
    resources=lambda _vocabulary: {},
    lone={
        "nothing": Row(),
        "no error": Row(({"error": []},), 0.0),
        "all": Row((FULL,), 1.5),
        "failed": Row(failure="empty"),
        "scored": Row(scores={"stars": 4.0}),
    },
    rich=[
        Row((FULL, FULL), 1.0, scores={"stars": 2.0, "cost": 1.0}),
        Row(({**FULL, "breakdown": "O"},), 2.0, scores={"stars": 5.0, "cost": 2.0}),
        Row(({**FULL, "polite": 0.5},), 3.0, scores={"stars": 1.0, "cost": 4.0}),
    ],
)
