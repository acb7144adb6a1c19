"""Text, ragged and token columns, and the batch that hands them out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import RaggedColumn, SharedColumn, TextColumn
from dialeval.core.errors import NeedError
from dialeval.text.vocabulary import Vocabulary

texts = st.lists(st.text(max_size=12), max_size=12)


@given(texts)
def test_strings_come_back(rows: list[str]) -> None:
    assert list(TextColumn.from_strings(rows)) == rows


@given(texts)
def test_arrow_buffers_hold_the_same_texts_and_digest(rows: list[str]) -> None:
    column = TextColumn.from_arrow(pa.chunked_array([pa.array(rows[:3], pa.string()), pa.array(rows[3:], pa.string())]))
    assert list(column) == rows
    assert column.digest == TextColumn.from_strings(rows).digest


@given(texts, texts)
def test_digests_tell_rows_apart(left: list[str], right: list[str]) -> None:
    same = TextColumn.from_strings(left).digest == TextColumn.from_strings(right).digest
    assert same == (left == right)


@given(st.lists(st.lists(st.text(max_size=5), max_size=3), max_size=8), st.data())
def test_ragged_rows_slice_and_take(rows: list[list[str]], data: st.DataObject) -> None:
    column = RaggedColumn.from_lists(rows)
    assert list(column) == rows
    start = data.draw(st.integers(0, len(rows)))
    assert list(column.slice(start, len(rows))) == rows[start:]
    if rows:
        chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5))
        assert list(column.take(np.array(chosen, np.int64))) == [rows[index] for index in chosen]


@st.composite
def shared_rows(draw: st.DrawFn) -> SharedColumn:
    """Rows of which some begin with the texts of the row before, as those of a chat do."""
    steps = RaggedColumn.from_lists(draw(st.lists(st.lists(st.text(max_size=9), max_size=3), max_size=8)))
    size = len(steps)
    continues = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
    column = SharedColumn.from_steps(steps, continues)
    rows: list[list[str]] = []
    for step, goes_on in zip(steps, continues.tolist(), strict=True):
        rows.append([*(rows[-1] if goes_on and rows else []), *step])
    assert list(column) == rows
    return column


@given(shared_rows(), st.data())
def test_shared_rows_are_those_of_a_ragged_column(column: SharedColumn, data: st.DataObject) -> None:
    rows = list(column)
    twin = RaggedColumn.from_lists(rows)
    assert column.fingerprint == twin.fingerprint
    assert column.digest == twin.digest
    start, stop = sorted(data.draw(st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows)))))
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5)) if rows else []
    count = data.draw(st.integers(1, 3))
    parts = {
        "slice": (column.slice(start, stop), rows[start:stop]),
        "take": (column.take(np.array(chosen, np.int64)), [rows[row] for row in chosen]),
        "last": (column.take_last(count), [row[-count:] for row in rows]),
        "steps": (SharedColumn.from_steps(*column.steps()), rows),
    }
    for name, (part, expected) in parts.items():
        assert list(part) == expected, name
        assert part.digest == RaggedColumn.from_lists(expected).digest, name
        used = {place for low, high in zip(part.starts, part.ends, strict=True) for place in range(low, high)}
        assert used == set(range(len(part.values))), f"{name}: texts that no row has"


def test_contexts_are_read_by_their_ends() -> None:
    column = SharedColumn.from_steps(RaggedColumn.from_lists([["a"], ["b"]]), np.array([False, True]))
    for given_ in (column, RaggedColumn.from_lists([["a"], ["a", "b"]])):
        batch = Batch(2, {inputs.CONTEXT: given_}, Vocabulary(), np.array([0, 2]))
        assert list(batch.contexts()) == [["a"], ["a", "b"]]
        assert list(batch.values(inputs.CONTEXT)) == list(given_.values)
        with pytest.raises(NeedError, match=r"rows may share texts of context; read it with Batch\.contexts"):
            batch.lists(inputs.CONTEXT)
    with pytest.raises(NeedError, match="any number of texts"):
        Batch(1, {inputs.CONTEXT: column.values}, Vocabulary(), np.array([0, 1])).contexts()


@given(st.lists(st.lists(st.sampled_from(["a", "bb", "c"]), max_size=3), max_size=5), st.data())
def test_words_of_token_rows(rows: list[list[str]], data: st.DataObject) -> None:
    tokens = Vocabulary().split(TextColumn.from_strings([" ".join(row) for row in rows]))
    assert tokens.words() == rows
    assert tokens.lengths.tolist() == [len(row) for row in rows]
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
    assert tokens.take(np.array(order, np.int64)).words() == [rows[row] for row in order]
