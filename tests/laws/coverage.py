"""The world of coverage: several hypotheses and grouped references per query; known words and a few vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import ColumnData, RaggedColumn, TextColumn
from dialeval.core.inputs import Input
from dialeval.suites.lsdscc.data import GroupedColumn
from laws.responses import resources, texts
from laws.worlds import World


@dataclass(frozen=True)
class Row:
    """One query with everything in it."""

    hypotheses: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...] = (("the cat sat",), ("on a mat", "mat"))


def columns(rows: Sequence[Row]) -> dict[Input, ColumnData]:
    grouped = [group for row in rows for group in row.groups]
    values = TextColumn.from_strings([text for group in grouped for text in group])
    return {
        inputs.HYPOTHESES: RaggedColumn.from_lists([row.hypotheses for row in rows]),
        inputs.REFERENCE_GROUPS: GroupedColumn.of(values, [len(g) for g in grouped], [len(row.groups) for row in rows]),
    }


groups = st.lists(st.lists(texts, max_size=3).map(tuple), max_size=3).map(tuple)

WORLD = World(
    rows=st.builds(Row, st.lists(texts, max_size=4).map(tuple), groups),
    columns=columns,
    resources=resources,
    lone={
        "no hypotheses": Row(()),
        "empty hypothesis": Row(("",)),
        "one word": Row(("cat",)),
        "2,000 words": Row(("word " * 2000, "cat")),
        "no groups": Row(("the cat",), ()),
        "empty group": Row(("the cat",), (("the cat",), ())),
        "empty reference": Row(("the cat",), (("",),)),
    },
    rich=[
        Row(("the cat sat on the mat", "a mat", "the"), (("the cat sat on a mat", "cat"), ("the mat",))),
        Row(("cat sat",), (("the cat sat",),)),
    ],
)
