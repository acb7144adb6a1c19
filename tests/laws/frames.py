"""The world of frames: states that a system tracked, the true ones, and a schema of three services."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from dialeval.core.columns import ColumnData, ObjectColumn
from dialeval.core.inputs import Input
from dialeval.suites import sgd as feature
from dialeval.suites.sgd.data import Schema
from laws.worlds import World

SCHEMA = Schema(
    {"Inns_1": {"name": False, "garden": True}, "Ferries_1": {"landing": False}, "Weather_1": {}}, "dddddddddddd"
)
EMPTY: dict[str, Any] = {"active_intent": "NONE", "requested_slots": [], "slot_values": {}}
SPOKEN = [["name", "Willow Gate"], ["garden", "garden"]]
RICH: dict[str, Any] = {
    "active_intent": "FindInn",
    "requested_slots": ["phone"],
    "slot_values": {"name": ["Willow Gate", "the Willow Gate"], "garden": ["True"]},
}


@dataclass(frozen=True)
class Row:
    """One frame; a state of None is one that the system lacks."""

    state: Any
    true: Any
    service: str = "Inns_1"
    spans: Any = ()


def columns(rows: Sequence[Row]) -> dict[Input, ColumnData]:
    true = [{"service": row.service, "spans": SPOKEN, **row.true} for row in rows]
    return {
        feature.FRAMES: ObjectColumn([row.state for row in rows]),
        feature.TRUE_FRAMES: ObjectColumn(true),
        feature.SPANS: ObjectColumn(
            [None if row.spans is None else [list(span) for span in row.spans] for row in rows]
        ),
    }


def tracked(intent: str, requested: list[str], **values: list[str]) -> dict[str, Any]:
    return {"active_intent": intent, "requested_slots": requested, "slot_values": values}


STATES = [
    EMPTY,
    RICH,
    tracked("FindInn", ["phone", "phone"], name=["willow gates"], landing=["Gull Point"]),
    tracked("NONE", ["name", "phone"], name=["", "Willow Gate"], garden=["False"], other=["x"]),
    tracked("FindFerry", [], landing=["the long stairs", "Long Stairs"]),
    tracked("FindFerry", ["name"], landing=["long stair, 中"], garden=["True", "False"]),
]
SPANS = [None, (), (("name", "Willow Gate"),), (("garden", "garden"), ("name", "Willow"), ("name", "Willow Gate"))]
states = st.sampled_from(STATES)

WORLD = World(
    rows=st.builds(Row, st.none() | states, states, st.sampled_from(sorted(SCHEMA.services)), st.sampled_from(SPANS)),
    columns=columns,
    resources=lambda _vocabulary: {feature.SCHEMA: SCHEMA},
    lone={
        "missing": Row(None, RICH, spans=None),
        "nothing true": Row(RICH, EMPTY),
        "nothing given": Row(EMPTY, RICH),
        "both empty": Row(EMPTY, EMPTY),
        "no slots": Row(RICH, RICH, "Weather_1"),
        "empty values": Row({**EMPTY, "slot_values": {"name": [""]}}, RICH),
        "2,000 words": Row({**EMPTY, "slot_values": {"name": ["word " * 2000]}}, RICH),
    },
    rich=[Row(RICH, RICH), Row({**RICH, "requested_slots": []}, RICH, spans=(("name", "Willow"),))],
)
