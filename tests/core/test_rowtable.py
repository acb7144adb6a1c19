from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dialeval.core import rowtable
from dialeval.core.columns import RaggedColumn, SharedColumn, TextColumn
from dialeval.core.fold import Level
from dialeval.core.rowtable import (
    NO_TURN,
    PROMPT,
    REFERENCE,
    PartWriter,
    RowTable,
    items_of,
    items_table,
    join_items,
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


def test_the_texts_of_a_hundred_thousand_rows_are_saved() -> None:
    text = TextColumn.from_strings(["a"])
    for rows, is_saved in ((100_000, True), (100_001, False)):
        column = text.take(np.zeros(rows, np.int64))
        saved = RowTable(np.array([0, rows]), texts={"response": column}).to_arrow("s")
        assert ("response" in saved.column_names) == is_saved
        assert len(saved) == rows


def test_the_memory_of_rows_is_that_of_their_arrays_and_names() -> None:
    digests = {PROMPT: np.zeros(3, np.uint64), REFERENCE: np.zeros(3, np.uint64)}
    assert table(digests=digests).nbytes == 3 * 8 + 3 * 8 + 6 * 8 + 2 * 70
    assert RowTable(np.array([0, 3])).nbytes == 2 * 8


def test_how_rows_are_saved() -> None:
    digests = {PROMPT: np.array([0, 1, 2**64 - 1], np.uint64)}
    saved = table(digests=digests, texts={}).to_arrow("damd")
    assert saved.to_pylist() == [
        {"system": "damd", "row": 1, "dialogue": 1, "dialog_id": "d1", "turn": 1, "digest/prompt": 0},
        {"system": "damd", "row": 2, "dialogue": 1, "dialog_id": "d1", "turn": None, "digest/prompt": 1},
        {"system": "damd", "row": 3, "dialogue": 2, "dialog_id": "d2", "turn": 1, "digest/prompt": -1},
    ]
    back = RowTable.from_arrow(saved)
    assert back.digests[PROMPT].tolist() == [0, 1, 2**64 - 1]
    assert table().texts_at("context", 0) == ["hello", "hi"]
    assert table().texts_at("response", 2) == ["naïve 🙂"]
    assert table().texts_at("missing", 2) == []
    joined = RowTable.join([back, RowTable(np.array([0, 1]), digests={REFERENCE: np.array([7], np.uint64)})])
    assert {name: each.tolist() for name, each in joined.digests.items()} == {
        PROMPT: [0, 1, 2**64 - 1, 0],
        REFERENCE: [0, 0, 0, 7],
    }
    assert joined.turns is not None
    assert joined.turns.tolist() == [1, NO_TURN, 1, NO_TURN]
    assert joined.dialogues == ["d1", "d2", ""]


@pytest.mark.parametrize(
    ("name", "values", "is_valid"),
    [
        ("dialogue", [1, 1, 2], True),
        ("dialogue", [0, 1, 2], False),
        ("dialogue", [2, 1, 1], True),
        ("turn", [0, None, 7], True),
        ("turn", [-1, 0, 7], True),
        ("turn", [-2, 0, 7], False),
    ],
)
def test_numbers_of_dialogues_and_turns(name: str, values: list[int | None], is_valid: bool) -> None:
    saved = table(texts={}).to_arrow("damd")
    saved = saved.set_column(saved.column_names.index(name), name, pa.array(values, pa.int64()))
    if is_valid:
        found = RowTable.from_arrow(saved)
        if name == "turn":
            assert found.turns is not None
            assert found.turns.tolist() == [NO_TURN if each is None else each for each in values]
    else:
        with pytest.raises(InvalidError, match=r"^a dialogue has a number below 1, or a turn one below 0$"):
            RowTable.from_arrow(saved)


def test_lists_with_gaps_are_refused() -> None:
    saved = table(texts={}).to_arrow("damd")
    with_none = saved.append_column("context", pa.array([["a"], None, []]))
    assert list(RowTable.from_arrow(with_none).texts["context"]) == [["a"], [], []]
    with pytest.raises(InvalidError, match="a list of texts has gaps"):
        RowTable.from_arrow(saved.append_column("context", pa.array([["a", None], [], []])))


def test_items_that_are_too_large_to_compute_with() -> None:
    for largest in (1e100, -1e100, np.nan):
        saved = items_table("s", Level.TURN, {"x": np.array([largest, 1.0])})
        np.testing.assert_array_equal(items_of(saved, "s", Level.TURN)["x"], [largest, 1.0])
    for beyond in (1.01e100, -1.01e100, np.inf):
        saved = items_table("s", Level.TURN, {"x": np.array([np.nan, beyond])})
        with pytest.raises(InvalidError, match=r"^x of s has values beyond 1e\+100, too large to compute with$"):
            items_of(saved, "s", Level.TURN)
    saved = items_table("s", Level.TURN, {"x": np.zeros(3)})
    with pytest.raises(InvalidError, match=r"^the rows of s are not numbered from 1 on$"):
        items_of(saved.slice(1), "s", Level.TURN)
    assert items_of(saved, "s", Level.DIALOGUE)["x"].tolist() == []


def test_items_of_several_blocks() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0])
    joined = join_items([{}, {"x": x}, {"y": y, "x": y}, {}])
    np.testing.assert_array_equal(joined["x"], [1, 2, 3])
    np.testing.assert_array_equal(joined["y"], [np.nan, np.nan, 3])
    assert list(joined) == ["x", "y"]
    assert join_items([{}, {"x": x}]) == {"x": x}
    assert join_items([]) == {}


def test_ids_of_a_file_of_rows(tmp_path: Path) -> None:
    writer = PartWriter(str(tmp_path))
    for system in ("a", "b"):
        names = [f"{system}1", None]
        writer.add(system, {}, table(dialogues=names, texts={}))
    (part,) = writer.finish()
    content = part._replace(place=Path(str(part.place)).read_bytes())
    for each in (part, content):
        assert [each.dialogue_ids(system) for system in ("a", "b", "c")] == [["a1", "a1"], ["b1", "b1"], []]
    bare = PartWriter(str(tmp_path))
    bare.add("a", {}, table(dialogues=None, texts={}))
    assert bare.finish()[0].dialogue_ids("a") == []


@pytest.mark.parametrize(("held", "parts"), [(8 * 3 + 16, 4), (8 * 3 + 17, 2), (2 * (8 * 3 + 16), 2)])
def test_items_are_written_from_a_size_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int, parts: int
) -> None:
    """Three items of eight bytes, and rows with two offsets."""
    monkeypatch.setattr(rowtable, "HELD_BYTES", held)
    writer = PartWriter(str(tmp_path))
    for _ in range(2):
        writer.add("s", {"turn": {"x": np.zeros(2)}, "dialogue": {"z": np.zeros(1)}}, RowTable(np.array([0, 2])))
    assert len(list(tmp_path.iterdir())) == parts
    assert [part.kind for part in writer.finish()] == ["items", "rows"] * (parts // 2)


def test_what_is_written_is_held_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowtable, "HELD_BYTES", 2 * 8 + 1)
    writer = PartWriter(str(tmp_path))
    for count, files in ((1, 0), (2, 0), (3, 1), (4, 1), (5, 1), (6, 2)):
        writer.add("s", {"turn": {"x": np.zeros(1)}}, None)
        assert len(list(tmp_path.iterdir())) == files, count
    assert len(writer.finish()) == 2
