"""Text, ragged and token columns, and the batch that hands them out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.batch import Batch
from dialeval.core.columns import Column, RaggedColumn, TextColumn
from dialeval.core.errors import DataError, NeedError
from dialeval.core.needs import Need
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


def test_arrow_slices_and_dictionaries() -> None:
    assert list(TextColumn.from_arrow(pa.array(["a", "b", "c"]).slice(1))) == ["b", "c"]
    assert list(TextColumn.from_arrow(pa.array(["x", "y", "x"]).dictionary_encode())) == ["x", "y", "x"]


def test_arrow_nulls_are_listed_with_their_rows() -> None:
    with pytest.raises(DataError) as caught:
        TextColumn.from_arrow(pa.array(["a", None, "b", None]), "answers")
    assert [(fault.where, fault.line) for fault in caught.value.faults] == [("answers", 2), ("answers", 4)]


def test_half_a_surrogate_pair_is_named() -> None:
    with pytest.raises(DataError) as caught:
        TextColumn.from_strings(["fine", "broken \ud83d"], "list")
    assert [fault.line for fault in caught.value.faults] == [2]


@given(texts, texts)
def test_digests_tell_rows_apart(left: list[str], right: list[str]) -> None:
    same = TextColumn.from_strings(left).digest == TextColumn.from_strings(right).digest
    assert same == (left == right)


def test_a_line_feed_inside_a_text_is_not_a_new_row() -> None:
    one, two = TextColumn.from_strings(["a\nb", "c"]), TextColumn.from_strings(["a", "b\nc"])
    assert one.digest != two.digest


@given(st.lists(st.lists(st.text(max_size=5), max_size=3), max_size=8), st.data())
def test_ragged_rows_slice_and_take(rows: list[list[str]], data: st.DataObject) -> None:
    column = RaggedColumn.from_lists(rows)
    assert list(column) == rows
    start = data.draw(st.integers(0, len(rows)))
    assert list(column.slice(start, len(rows))) == rows[start:]
    if rows:
        chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5))
        assert list(column.take(np.array(chosen, np.int64))) == [rows[index] for index in chosen]


def test_a_batch_hands_out_what_was_declared_and_nothing_else() -> None:
    columns: dict[Need, Column] = {
        Need.RESPONSE: TextColumn.from_strings(["a"]),
        Need.CONTEXT: RaggedColumn.from_lists([["b"]]),
    }
    batch = Batch(1, columns, Vocabulary(), np.array([0, 1]))
    narrow = batch.only(frozenset({Need.RESPONSE, Need.REFERENCE}))
    assert list(narrow.texts(Need.RESPONSE)) == ["a"]
    with pytest.raises(NeedError, match=r"declares reference, response; add Need\.CONTEXT"):
        narrow.column(Need.CONTEXT)
    with pytest.raises(NeedError, match="pass references="):
        narrow.column(Need.REFERENCE)


def test_what_is_derived_is_made_once_and_shared() -> None:
    batch = Batch(1, {Need.RESPONSE: TextColumn.from_strings(["a"])}, Vocabulary(), np.array([0, 1]))
    made: list[int] = []
    for view in (batch, batch.only(frozenset())):
        view.derived("key", lambda: made.append(1))
    assert made == [1]


@given(st.lists(st.lists(st.sampled_from(["a", "bb", "c"]), max_size=3), max_size=5), st.data())
def test_words_of_token_rows(rows: list[list[str]], data: st.DataObject) -> None:
    tokens = Vocabulary().split(TextColumn.from_strings([" ".join(row) for row in rows]))
    assert tokens.words() == rows
    assert tokens.lengths.tolist() == [len(row) for row in rows]
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
    assert tokens.take(np.array(order, np.int64)).words() == [rows[row] for row in order]
