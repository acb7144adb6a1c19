"""Text, ragged and token columns, and the batch that hands them out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import ColumnData, NumberColumn, ObjectColumn, RaggedColumn, SharedColumn, TextColumn
from dialeval.core.errors import DataError, NeedError, Problem
from dialeval.core.fingerprint import short_digest
from dialeval.core.inputs import Input
from dialeval.text.vocabulary import Vocabulary

texts = st.lists(st.text(max_size=12), max_size=12)


@given(texts)
def test_strings_come_back(rows: list[str]) -> None:
    assert list(TextColumn.from_strings(rows)) == rows


@pytest.mark.parametrize("size", range(4))
def test_characters_of_every_number_of_bytes(size: int) -> None:
    for rows in product(["", "a", "é", "日", "😀"], repeat=size):
        column = TextColumn.from_strings(rows)
        assert (list(column), len(column)) == (list(rows), size)


@given(texts)
def test_arrow_buffers_hold_the_same_texts_and_digest(rows: list[str]) -> None:
    column = TextColumn.from_arrow(pa.chunked_array([pa.array(rows[:3], pa.string()), pa.array(rows[3:], pa.string())]))
    assert list(column) == rows
    assert column.digest == TextColumn.from_strings(rows).digest


def test_arrow_slices_and_dictionaries() -> None:
    assert list(TextColumn.from_arrow(pa.array(["a", "b", "c"]).slice(1))) == ["b", "c"]
    assert list(TextColumn.from_arrow(pa.array(["x", "y", "x"]).dictionary_encode())) == ["x", "y", "x"]
    assert list(TextColumn.from_arrow(pa.array(["a", "bc", "", "d"]).slice(1, 2))) == ["bc", ""]
    several: list[list[list[str]]] = [[], [[]], [["a"]], [["a", "b"], [], ["c"]], [["", ""]]]
    for parts in several:
        column = TextColumn.from_arrow(pa.chunked_array(parts, pa.string()))
        assert list(column) == [text for part in parts for text in part]


def test_half_a_surrogate_pair_is_named() -> None:
    with pytest.raises(DataError) as caught:
        TextColumn.from_strings(["fine", "broken \ud83d", "fine", "\udc00\ud83d"], "list")
    half = "is half of a surrogate pair, not a character"
    remedy = "decode the text with the right encoding first"
    assert caught.value.problems == (
        Problem("list", 2, f"'\\ud83d' {half}", remedy),
        Problem("list", 4, f"'\\udc00' {half}", remedy),
    )
    for made in (lambda: TextColumn.from_strings(["\ud83d"]), lambda: RaggedColumn.from_lists([["\ud83d"]])):
        with pytest.raises(DataError) as unnamed:
            made()
        assert [(problem.where, problem.line) for problem in unnamed.value.problems] == [("texts", 1)]


def test_only_the_bytes_of_the_rows_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[bytes] = []
    monkeypatch.setattr("dialeval.core.columns.release", lambda data: released.append(data.tobytes()))
    column = TextColumn.from_strings(["one", "two", "three", "four"])
    column.slice(1, 3).release()
    column.slice(2, 2).release()
    RaggedColumn.from_lists([["a"], ["b", "c"]]).slice(1, 2).release()
    assert released == [b"two\nthree", b"b\nc"]
    released.clear()
    assert column.digest == TextColumn.from_strings(list(column)).digest
    assert released[0] == b"one\ntwo\nthree\nfour", "what is read for a digest is released"


def test_columns_of_objects_and_numbers() -> None:
    column = ObjectColumn([{"b": 1, "a": 2}, None, "x"])
    assert (len(column), column[1], list(column.slice(1, 3))) == (3, None, [None, "x"])
    assert list(column.take(np.array([2, 0, 2]))) == ["x", {"b": 1, "a": 2}, "x"]
    assert column.digest == short_digest('{"a":2,"b":1}\nnull\n"x"\n')
    numbers = NumberColumn(np.arange(6.0).reshape(3, 2))
    assert numbers.matrix is numbers.values
    taken = numbers.take(np.array([2, 0]))
    assert (type(taken), taken.values.tolist()) == (NumberColumn, [[4.0, 5.0], [0.0, 1.0]])
    assert type(numbers.slice(1, 2)) is NumberColumn
    assert numbers.digest == short_digest("(2,)", np.arange(6.0).tobytes())
    assert numbers.digest != NumberColumn(np.arange(6.0).reshape(2, 3)).digest
    assert NumberColumn(np.asfortranarray(numbers.values)).digest == numbers.digest


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


def test_a_batch_hands_out_what_was_declared_and_nothing_else() -> None:
    columns: dict[Input, ColumnData] = {
        inputs.RESPONSE: TextColumn.from_strings(["a"]),
        inputs.CONTEXT: RaggedColumn.from_lists([["b"]]),
    }
    batch = Batch(1, columns, Vocabulary(), np.array([0, 1]))
    narrow = batch.restrict_to(frozenset({inputs.RESPONSE, inputs.REFERENCE}))
    assert list(narrow.texts(inputs.RESPONSE)) == ["a"]
    with pytest.raises(NeedError, match=r"declares reference, response; add context to its needs"):
        narrow.column(inputs.CONTEXT)
    with pytest.raises(NeedError, match="needs references: "):
        narrow.column(inputs.REFERENCE)


def test_what_is_derived_is_made_once_and_shared() -> None:
    batch = Batch(1, {inputs.RESPONSE: TextColumn.from_strings(["a"])}, Vocabulary(), np.array([0, 1]))
    made: list[int] = []
    for view in (batch, batch.restrict_to(frozenset())):
        view.derive("key", lambda: made.append(1))
    assert made == [1]


@given(st.lists(st.lists(st.sampled_from(["a", "bb", "c"]), max_size=3), max_size=5), st.data())
def test_words_of_token_rows(rows: list[list[str]], data: st.DataObject) -> None:
    tokens = Vocabulary().split(TextColumn.from_strings([" ".join(row) for row in rows]))
    assert tokens.words() == rows
    assert tokens.lengths.tolist() == [len(row) for row in rows]
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
    assert tokens.take(np.array(order, np.int64)).words() == [rows[row] for row in order]
