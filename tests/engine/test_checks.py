"""Dialogues whose rows do not stand together are counted, however rows are cut into batches, workers and parts."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.fold import Reduction
from dialeval.core.validation import InvalidError
from dialeval.engine.plan import DialogueIds, SeenIds
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


@pytest.mark.parametrize(
    ("hashes", "split", "closed"),
    [([2, 1], [], 0), ([1, 1], [], 0), ([], [3, 2], 0), ([], [], -1), ([], [], "1"), ([], [], True)],
)
def test_what_is_no_state_is_refused(hashes: list[int], split: list[int], closed: int) -> None:
    with pytest.raises(InvalidError):
        SeenIds.from_plain(np.array(hashes, np.uint64), np.array(split, np.uint64), closed)
    with pytest.raises(InvalidError):
        SeenIds.from_plain(np.zeros(1), np.zeros(0, np.uint64), 0)  # type: ignore[arg-type]
