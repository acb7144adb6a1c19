"""Dialogues whose rows do not stand together are counted, however rows are cut into batches, workers and parts."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialeval
from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.fold import Reduction
from dialeval.core.validation import InvalidError
from dialeval.engine.checks import DialogueIds, SeenIds, warn_of_split_dialogues
from dialeval.io.rows import Rows
from dialeval.text.vocabulary import Vocabulary

FOLD = DialogueIds()


def gathered(names: list[str]) -> SeenIds:
    """The state of dialogues with these ids, each of one row."""
    column = TextColumn.from_strings(names)
    rows = Rows("s", {inputs.RESPONSE: column}, column)
    offsets = np.arange(len(names) + 1)
    return FOLD.gather(Batch(len(names), {}, Vocabulary(), offsets, ids=rows.ids(offsets)))


def whole(states: list[SeenIds]) -> SeenIds:
    sums = Reduction(FOLD.merge, FOLD.empty)
    for state in states:
        sums.add(state)
    return sums.result()


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=6), max_size=6), st.integers(1, 5), st.integers(0, 99))
def test_any_batches_parts_and_order(batches: list[list[str]], parts: int, seed: int) -> None:
    every = [name for batch in batches for name in batch]
    split = {name for name in every if every.count(name) > 1}
    cut = [FOLD.split_state(gathered(batch), parts) for batch in batches]
    random.Random(seed).shuffle(cut)
    closed = [FOLD.close_part(whole([pieces[part] for pieces in cut])) for part in range(parts)]
    for state in (whole([gathered(batch) for batch in batches]), whole(closed)):
        found = FOLD.finish(state)
        assert (0 if found is None else found.dialogues) == len(split)
        assert found is None or found.find_name([every]) in split
    assert not any(len(state.hashes) for state in closed)
    assert all(len(state.split) < 2 for state in closed)


def test_an_example_is_named_where_ids_are_known() -> None:
    found = FOLD.finish(whole([gathered(["b", "c"]), gathered(["b"])]))
    assert found is not None
    assert found.dialogues == 1
    assert found.find_name([["a", "c"], [], ["a", "b"]]) == "b"
    assert found.find_name([["a"]]) is None


def test_names_that_say_where_a_row_stands_are_no_ids() -> None:
    assert len(gathered(["row 1", "line 7", "", "row", "a", "row 1b"]).hashes) == 3
    assert FOLD.finish(gathered(["row 1", "row 1", "", ""])) is None
    assert len(FOLD.gather(Batch(1, {}, Vocabulary(), np.arange(2))).hashes) == 0


def test_parts_are_equal_ranges_of_hashes() -> None:
    state = gathered([f"name {number}" for number in range(1000)])
    pieces = FOLD.split_state(state, 4)
    assert np.concatenate([piece.hashes for piece in pieces]).tolist() == state.hashes.tolist()
    for number, piece in enumerate(pieces):
        assert set((piece.hashes >> np.uint64(62)).tolist()) == {number}
        assert piece.split.tolist() == []
    assert [piece.hashes.tolist() for piece in FOLD.split_state(state, 1)] == [state.hashes.tolist()]


def test_a_state_of_a_file() -> None:
    state = SeenIds.from_plain(np.array([1, 2], np.uint64), np.array([2], np.uint64), 0)
    assert (state.hashes.tolist(), state.split.tolist(), state.closed) == ([1, 2], [2], 0)
    both = FOLD.merge(state, SeenIds.from_plain(np.array([2, 3], np.uint64), np.array([3], np.uint64), 4))
    assert (both.hashes.tolist(), both.split.tolist(), both.closed) == ([1, 2, 3], [2, 3], 4)
    closed = FOLD.close_part(both)
    assert (closed.hashes.tolist(), closed.split.tolist(), closed.closed) == ([], [2], 5)
    assert FOLD.finish(both) == FOLD.finish(closed) == (6, 2)


def test_rows_that_are_not_consecutive_are_warned_of() -> None:
    rows = [{"response": "a b", "dialog_id": name} for name in "abcab"]
    (warning,) = dialeval.evaluate(rows, metrics="length").warnings
    named = re.fullmatch(
        r"rows of 2 dialogues of system are not consecutive, such as those of '([ab])': each part counts as a "
        r"dialogue, and intervals are too narrow; sort the rows by dialogue",
        warning,
    )
    assert named
    state = whole([gathered(["a", "b"]), gathered(["a", "b"])])
    unnamed = list(warn_of_split_dialogues({"s": [(FOLD, state)], "t": [(FOLD, gathered(["a"]))]}, lambda _: []))
    assert unnamed == [warning.replace(f", such as those of {named[1]!r}", "").replace("system", "s")]


def test_texts_without_spaces_are_warned_of() -> None:
    texts = ["สวัสดีครับ", "ขอบคุณมาก", "a b"]
    why = (
        "responses, whose script puts no spaces between words: each sentence counts as one word; choose --tokenizer "
        "unicode, tokenizer='unicode' in Python"
    )
    words, chosen = "length(tokenizer=words.1)", "length(tokenizer=unicode)"
    assert dialeval.evaluate(texts, metrics=words).warnings == (f"words.1 cannot split 2 of 3 {why}",)
    both = dialeval.evaluate({"x": texts, "y": texts[1:]}, metrics=words)
    assert both.warnings == (f"words.1 cannot split 3 of 5 {why}",)
    assert dialeval.evaluate(texts, metrics=chosen).warnings == ()
    assert dialeval.evaluate(["a"], texts[:1], metrics=words).warnings == (), "references are not what is measured"


@pytest.mark.parametrize(
    ("hashes", "split", "closed"),
    [([2, 1], [], 0), ([1, 1], [], 0), ([], [3, 2], 0), ([], [], -1), ([], [], "1"), ([], [], True)],
)
def test_what_is_no_state_is_refused(hashes: list[int], split: list[int], closed: int) -> None:
    with pytest.raises(InvalidError):
        SeenIds.from_plain(np.array(hashes, np.uint64), np.array(split, np.uint64), closed)
    with pytest.raises(InvalidError):
        SeenIds.from_plain(np.zeros(1), np.zeros(0, np.uint64), 0)  # type: ignore[arg-type]
