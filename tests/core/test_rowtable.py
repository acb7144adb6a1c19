from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dialeval.core import rowtable
from dialeval.core.columns import RaggedColumn, SharedColumn, TextColumn
from dialeval.core.rowtable import (
    NO_TURN,
    RowTable,
)
from dialeval.core.validation import InvalidError


def table(**changes: object) -> RowTable:
    given: dict[str, object] = {
        "offsets": np.array([0, 2, 3]),
        "dialogues": ["d1", "d2"],
        "turns": np.array([1, NO_TURN, 1]),
        "texts": {
            "context": RaggedColumn.from_lists([["hello", "hi"], [], ["wie geht's"]]),
            "response": TextColumn.from_strings(["yes", "", "naïve 🙂"]),
        },
    }
    return RowTable(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dialogues": None},
        {"turns": None},
        {"texts": {}},
        {"dialogues": None, "turns": None, "texts": {}, "offsets": np.arange(4)},
    ],
)
def test_what_was_saved_comes_back(changes: dict[str, object]) -> None:
    before = table(**changes)
    after = RowTable.from_arrow(before.to_arrow("damd"))
    assert after == before
    assert len(after) == 3


def test_a_system_without_a_column_of_another_does_not_get_it() -> None:
    both = pa.concat_tables(
        [table().to_arrow("a"), table(texts={}, turns=None).to_arrow("b")], promote_options="default"
    )
    assert RowTable.from_arrow(both.slice(3)) == table(texts={}, turns=None)


def test_shared_texts_come_back_shared() -> None:
    steps = RaggedColumn.from_lists([["hello"], [], ["yes", "and you ?"]])
    shared = SharedColumn.from_steps(steps, np.array([False, True, True]))
    before = table(texts={"context": shared})
    saved = before.to_arrow("damd")
    assert saved["context"].to_pylist() == [["hello"], [], ["yes", "and you ?"]]
    after = RowTable.from_arrow(saved)
    assert after == before
    assert list(after.texts["context"]) == [["hello"], ["hello"], ["hello", "yes", "and you ?"]]
    assert isinstance(after.texts["context"], SharedColumn)
    both = pa.concat_tables([saved, table().to_arrow("b")], promote_options="default")
    assert RowTable.from_arrow(both.slice(3)) == table(), "a column of another system"


@pytest.mark.parametrize(
    "changes",
    [
        {"offsets": np.array([0, 1, 3])},
        {"dialogues": ["d1", "d3"]},
        {"dialogues": None},
        {"turns": np.array([1, 2, 1])},
        {"texts": {"response": TextColumn.from_strings(["yes", "", "no"])}},
    ],
)
def test_other_rows_are_not_equal(changes: dict[str, object]) -> None:
    assert table(**changes) != table()


def test_rows_know_their_dialogue() -> None:
    assert table().clusters.tolist() == [0, 0, 1]


def test_the_texts_of_very_many_rows_are_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowtable, "SAVED_TEXT_ROWS", 2)
    assert RowTable.from_arrow(table().to_arrow("damd")) == table(texts={})


def test_parts_below_each_other() -> None:
    part = table(texts={})
    bare = RowTable(np.array([0, 3]))
    both = RowTable.join([part, bare, part])
    assert both.offsets.tolist() == [0, 2, 3, 6, 8, 9]
    assert both.dialogues == ["d1", "d2", "", "d1", "d2"]
    assert both.turns is not None
    assert both.turns.tolist() == [1, NO_TURN, 1, NO_TURN, NO_TURN, NO_TURN, 1, NO_TURN, 1]
    assert RowTable.join([bare, bare]) == RowTable(np.array([0, 3, 6]))
    assert RowTable.join([part]) is part


def test_rows_are_numbered_from_0_on() -> None:
    saved = table().to_arrow("damd")
    assert saved["row"].to_pylist() == list(range(1, len(saved) + 1))
    with pytest.raises(InvalidError, match="not numbered from 1 on"):
        RowTable.from_arrow(saved.take([1, 0, *range(2, len(saved))]))


def test_fields_are_saved_whatever_they_are_called() -> None:
    fields = {
        name: RaggedColumn.from_lists([["x"], [], ["y", "z"]])
        for name in ("domain", "turn", "system", "dialogue", "response", "x_continues", "field/x")
    }
    before = table(fields=fields)
    assert before != table()
    after = RowTable.from_arrow(before.to_arrow("damd"))
    assert after == before
    assert list(after.fields) == list(fields)
    assert list(after.texts) == list(before.texts)


def test_fields_are_saved_with_any_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowtable, "SAVED_TEXT_ROWS", 1)
    before = table(fields={"domain": RaggedColumn.from_lists([["x"], [], ["y"]])})
    after = RowTable.from_arrow(before.to_arrow("damd"))
    assert (dict(after.texts), list(after.fields["domain"])) == ({}, [["x"], [], ["y"]])


def test_a_field_that_is_no_list_is_refused() -> None:
    saved = table().to_arrow("damd").append_column("field/domain", pa.array(["x", "y", "z"]))
    with pytest.raises(InvalidError, match="not a list of texts"):
        RowTable.from_arrow(saved)


@pytest.mark.parametrize("name", ["response", "field/domain"])
def test_truths_are_no_texts(name: str) -> None:
    saved = table(texts={}).to_arrow("damd").append_column(name, pa.array([True, False, True]))
    with pytest.raises(InvalidError, match="a column of texts holds no texts"):
        RowTable.from_arrow(saved)


def test_some_rows_without_the_dialogues_that_have_none() -> None:
    fields = {"domain": RaggedColumn.from_lists([["x"], [], ["y"]])}
    whole = table(fields=fields)
    assert whole.take(np.arange(3)) == whole
    last = whole.take(np.array([2]))
    assert (last.offsets.tolist(), last.dialogues) == ([0, 1], ["d2"])
    assert last.turns is not None
    assert last.turns.tolist() == [1]
    assert {name: list(column) for name, column in last.texts.items()} == {
        "context": [["wie geht's"]],
        "response": ["naïve 🙂"],
    }
    assert list(last.fields["domain"]) == [["y"]]
    assert whole.take(np.array([1, 2])).offsets.tolist() == [0, 1, 2]
    assert len(RowTable(np.arange(4)).take(np.array([0, 2]))) == 2
