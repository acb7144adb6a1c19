"""The world of tool calls: the calls of a conversation, and those that were expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import ColumnData, FieldColumn
from dialeval.core.inputs import Input
from dialeval.metrics.checks import load_checks
from laws.worlds import World


@dataclass(frozen=True)
class Row:
    """The calls of one conversation; None where there is nothing to look at."""

    made: tuple[Mapping[str, Any], ...] | None
    expected: tuple[Mapping[str, Any], ...] | None


def columns(rows: Sequence[Row]) -> dict[Input, ColumnData]:
    def column(calls: Sequence[Sequence[Any] | None]) -> FieldColumn:
        return FieldColumn.of([None if some is None else list(some) for some in calls])

    return {
        inputs.CALLS: column([row.made for row in rows]),
        inputs.EXPECTED_CALLS: column([row.expected for row in rows]),
    }


scalars = st.sampled_from([None, True, False, 0, 1, 1.0, 2.5, -3, "", "1", "a", "A ", "é"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2)
)
arguments = st.dictionaries(st.sampled_from("ab"), values, max_size=2)
named = {"name": st.sampled_from(["f", "g", "h"])}
made = st.fixed_dictionaries(named | {"arguments": arguments | st.just("not json")}, optional={"error": st.booleans()})
expected = st.fixed_dictionaries(
    named | {"arguments": arguments | st.none()}, optional={"compare": st.lists(st.sampled_from("ab"), max_size=1)}
)
F, G = ({"name": name, "arguments": {"a": 1, "b": [True]}} for name in "fg")

WORLD = World(
    rows=st.builds(
        Row, st.none() | st.lists(made, max_size=4).map(tuple), st.none() | st.lists(expected, max_size=4).map(tuple)
    ),
    columns=columns,
    resources=lambda _vocabulary: {
        **load_checks(
            [
                {"rule": "must", "call": "f"},
                {"rule": "must-not", "call": "h"},
                {"rule": "before", "call": "f", "before": "g"},
            ]
        )
    },
    lone={"nothing": Row(None, None), "no calls": Row((), ()), "missing": Row((), (F,)), "extra": Row((F,), ())},
    rich=[
        Row((F | {"error": False}, G), (F,)),
        Row((F, F | {"error": True}), (F, G)),
        Row((G | {"error": False},), (G,)),
    ],
)
