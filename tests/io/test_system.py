from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import ColumnData, RaggedColumn, TextColumn
from dialeval.core.inputs import Input
from dialeval.core.rowtable import RowTable
from dialeval.io import rows as module
from dialeval.io.rows import NO_TURN, Rows, split_systems


def make(dialogues: list[str] | None) -> Rows:
    columns: dict[Input, ColumnData] = {
        inputs.RESPONSE: TextColumn.from_strings(["a", "b", "c", "d"]),
        inputs.REFERENCE: RaggedColumn.from_lists([["r"], [], ["s", "t"], ["u"]]),
    }
    named = None if dialogues is None else TextColumn.from_strings(dialogues)
    return Rows("damd", columns, named, np.array([0, 1, 0, 1]), "damd.jsonl")


@pytest.mark.parametrize(
    ("dialogues", "offsets"),
    [
        (None, [0, 1, 2, 3, 4]),
        (["x", "x", "y", "y"], [0, 2, 4]),
        (["x", "y", "x", "x"], [0, 1, 2, 4]),
        (["x", "x", "x", "x"], [0, 4]),
        (["é", "éé", "éé", "e"], [0, 1, 3, 4]),
        (["ab", "ac", "ad", "ad"], [0, 1, 2, 4]),
        (["", "", "x", "y"], [0, 2, 3, 4]),
    ],
)
def test_dialogues_are_runs_of_equal_ids(dialogues: list[str] | None, offsets: list[int]) -> None:
    found = make(dialogues).dialogue_offsets()
    assert found.tolist() == offsets
    assert found.dtype == np.int64


def test_a_slice_cuts_every_column() -> None:
    part = make(["x", "x", "y", "y"]).slice(1, 3)
    assert len(part) == 2
    assert list(part.responses) == ["b", "c"]
    assert list(part.columns[inputs.REFERENCE]) == [[], ["s", "t"]]
    assert part.turns is not None
    assert part.turns.tolist() == [1, 0]
    assert part.dialogue_offsets().tolist() == [0, 1, 2]
    assert (part.system, part.where) == ("damd", "damd.jsonl")


def test_rows_of_a_system_stay_in_order_when_there_are_many() -> None:
    texts = [str(number) for number in range(500)]
    codes = np.array([0, 1, 2, *np.random.default_rng(0).integers(0, 3, len(texts) - 3)])
    whole = Rows("all", {inputs.RESPONSE: TextColumn.from_strings(texts)})
    for code, part in enumerate(split_systems(whole, [*"012", *map(str, codes[3:])], "")):
        assert list(part.responses) == [text for text, own in zip(texts, codes, strict=True) if own == code]


def test_systems_are_taken_apart_and_keep_their_order() -> None:
    first, second = split_systems(make(["x", "x", "y", "y"]), ["one", "two", "two", None], "one")
    assert (first.system, list(first.responses)) == ("one", ["a", "d"])
    assert (second.system, list(second.columns[inputs.REFERENCE])) == ("two", [[], ["s", "t"]])
    assert second.dialogues is not None
    assert list(second.dialogues) == ["x", "y"]


def test_offsets_that_are_known_are_cut_with_the_rows() -> None:
    rows = make(["x", "x", "y", "y"])
    known = replace(rows, offsets=rows.dialogue_offsets())
    for start in range(5):
        for stop in range(start, 5):
            part = known.slice(start, stop)
            assert part.offsets is not None
            assert part.offsets.tolist() == rows.slice(start, stop).dialogue_offsets().tolist()
    assert known.take(np.array([0, 2])).offsets is None


def test_further_fields_go_with_their_rows() -> None:
    rows = replace(
        make(["x", "x", "y", "y"]), fields={"topic": RaggedColumn.from_lists([["a"], [], ["b", "c"], ["d"]])}
    )
    assert list(rows.slice(1, 3).fields["topic"]) == [[], ["b", "c"]]
    assert list(rows.take(np.array([3, 0])).fields["topic"]) == [["d"], ["a"]]
    assert list(rows.table().fields["topic"]) == [["a"], [], ["b", "c"], ["d"]]
    one, other = split_systems(rows, ["s", "t", "s", "t"], "")
    assert (list(one.fields["topic"]), list(other.fields["topic"])) == ([["a"], ["b", "c"]], [[], ["d"]])


def test_parts_are_joined_one_below_the_other() -> None:
    whole = make(["x", "x", "y", "y"])
    parts = [whole.slice(0, 2), whole.slice(2, 4)]
    joined = Rows.join(parts)
    assert joined.table() == whole.table()
    assert joined.columns[inputs.REFERENCE].digest == whole.columns[inputs.REFERENCE].digest
    assert Rows.join(parts[:1]) is parts[0]
    assert Rows("s", {}).where == "responses"


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


def test_names_that_are_places_move_with_the_rows() -> None:
    rows = make(["row 1", "x", "row 7", "row 4"])
    assert rows.move_behind(0) is rows
    moved = rows.move_behind(10).dialogues
    assert moved is not None
    assert list(moved) == ["row 11", "x", "row 7", "row 14"]
    later = rows.slice(3, 4).move_behind(10, 3).dialogues
    assert later is not None
    assert list(later) == ["row 14"]
    unnamed = make(None)
    assert unnamed.move_behind(10) is unnamed
    assert next(iter(unnamed.names())) == "row 1"
    assert list(unnamed.names(10)) == ["row 11", "row 12", "row 13", "row 14"]


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


def test_rows_of_one_system_are_not_copied() -> None:
    rows = make(["x", "x", "y", "y"])
    [one] = split_systems(rows, [None, "s", "s", ""], "s")
    assert one.system == "s"
    assert one.columns is rows.columns


def test_texts_that_are_shown_go_with_their_rows() -> None:
    def shown(**texts: list[str]) -> Rows:
        return replace(make(None), shown={name: TextColumn.from_strings(each) for name, each in texts.items()})

    one, other = (
        shown(b=list("1234"), a=list("5678"), c=list("9999")),
        shown(a=list("abcd"), b=list("efgh"), d=list("zzzz")),
    )
    joined = Rows.join([one, other])
    assert {name: list(texts) for name, texts in joined.shown.items()} == {"b": list("1234efgh"), "a": list("5678abcd")}
    assert list(joined.shown) == ["b", "a"]
    assert list(one.slice(1, 3).shown["b"]) == ["2", "3"]
    assert list(one.take(np.array([3, 0])).shown["a"]) == ["8", "5"]
    table = one.table()
    assert list(table.texts) == ["response", "reference", "b", "a", "c"]


def test_parts_without_names_and_turns_have_none() -> None:
    bare = replace(make(None), turns=None)
    joined = Rows.join([bare, bare])
    assert (joined.dialogues, joined.turns) == (None, None)
    assert joined.dialogue_offsets().tolist() == list(range(9))
    assert (len(joined), joined.fields, joined.shown) == (8, {}, {})


def test_names_that_are_places_are_no_ids() -> None:
    names = ["row 1", "rows 2", "line 3", "", "lines", "row 5b", "late", "row 12"]
    responses = TextColumn.from_strings([""] * len(names))
    rows = Rows("s", {inputs.RESPONSE: responses}, TextColumn.from_strings(names), np.arange(8))
    offsets = rows.dialogue_offsets()
    given = [None, "rows 2", None, "", "lines", "row 5b", "late", None]
    assert rows.places(offsets) == RowTable(offsets, given, rows.turns)
    ids = rows.ids(offsets)
    assert ids is not None
    assert list(ids) == ["rows 2", "lines", "row 5b", "late"]
    placed = rows.take(np.array([0, 2, 3]))
    offsets = placed.dialogue_offsets()
    assert placed.places(offsets) == RowTable(offsets, None, placed.turns)
    assert list(placed.ids(offsets) or []) == []
    unnamed = make(None)
    assert unnamed.ids(unnamed.dialogue_offsets()) is None
    assert unnamed.places(np.array([0, 1])) == RowTable(np.array([0, 1]), None, unnamed.turns)


def test_the_table_of_a_result() -> None:
    rows = replace(make(["x", "x", "row 3", "y"]), where="elsewhere")
    table = rows.table()
    assert table.dialogues == ["x", "row 3", "y"]
    assert table.offsets.tolist() == [0, 2, 3, 4]
    assert table.turns is rows.turns
    assert {name: list(column) for name, column in table.texts.items()} == {
        "response": ["a", "b", "c", "d"],
        "reference": [["r"], [], ["s", "t"], ["u"]],
    }
    assert make(None).table().dialogues is None
