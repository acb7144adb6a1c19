from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import ColumnData, RaggedColumn, TextColumn
from dialeval.core.inputs import Input
from dialeval.io import rows as module
from dialeval.io.rows import NO_TURN, Rows


def make(dialogues: list[str] | None) -> Rows:
    columns: dict[Input, ColumnData] = {
        inputs.RESPONSE: TextColumn.from_strings(["a", "b", "c", "d"]),
        inputs.REFERENCE: RaggedColumn.from_lists([["r"], [], ["s", "t"], ["u"]]),
    }
    named = None if dialogues is None else TextColumn.from_strings(dialogues)
    return Rows("damd", columns, named, np.array([0, 1, 0, 1]), "damd.jsonl")


def test_a_part_that_lacks_something_has_none_of_it() -> None:
    labels = {"topic": RaggedColumn.from_lists([["tea"], [], [], []])}
    whole = replace(make(["x", "x", "y", "y"]), fields=labels)
    bare = Rows("damd", {inputs.RESPONSE: TextColumn.from_strings(["e"])})
    joined = Rows.join([whole, bare])
    assert list(joined.columns[inputs.REFERENCE]) == [["r"], [], ["s", "t"], ["u"], []]
    assert list(joined.fields["topic"]) == [["tea"], [], [], [], []]
    assert joined.turns is not None
    assert joined.turns.tolist() == [0, 1, 0, 1, NO_TURN]
    assert joined.dialogues is not None
    assert list(joined.dialogues) == ["x", "x", "y", "y", "row 5"]
    assert joined.dialogue_offsets().tolist() == [0, 2, 4, 5]


NAMES = ["", "a", "b", "ab", "ac", "bc"]


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=12), st.integers(1, 4))
def test_runs_of_names_over_any_bytes(names: list[str], compared: int) -> None:
    """The names of a column may be over the same bytes, or over others."""
    whole = TextColumn.from_strings(NAMES * 2)
    order = [NAMES.index(name) + 6 * (row % 3 > 0) for row, name in enumerate(names)]
    responses = TextColumn.from_strings([""] * len(names))
    rows = Rows("s", {inputs.RESPONSE: responses}, whole.take(np.array(order)))
    starts = [row for row, name in enumerate(names) if not row or name != names[row - 1]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_COMPARED_ROWS", compared)
        assert rows.dialogue_offsets().tolist() == [*starts, len(names)]
