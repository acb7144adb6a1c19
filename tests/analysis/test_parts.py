"""Which rows have which value: slices of a field with one value per row are a partition of the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.analysis.slices import MOST_VALUES, OTHER, check_fields, list_fields, split_by_field
from dialeval.analysis.unpaired import NO_VALUE
from dialeval.core.columns import RaggedColumn, SharedColumn, TextColumn
from dialeval.core.errors import SettingError
from dialeval.core.rowtable import NO_TURN, RowTable, Texts


def kept(values: Sequence[Sequence[str]]) -> RowTable:
    return RowTable(np.arange(len(values) + 1), fields={"f": RaggedColumn.from_lists(values)})


def parts(table: RowTable, field: str = "f") -> dict[str, list[int]]:
    found = {label: places["a"].tolist() for label, places in split_by_field({"a": table}, field)}
    return {label: rows for label, rows in found.items() if rows}


labels = st.one_of(st.sampled_from(["taxi", "train", "hotel", "7"]), st.integers(0, 60).map(str), st.text(max_size=3))


@given(st.lists(st.lists(labels.filter(bool), max_size=1), min_size=1, max_size=60))
def test_slices_by_one_value_per_row_are_a_partition(values: list[list[str]]) -> None:
    rows = sorted(row for places in parts(kept(values)).values() for row in places)
    assert rows == list(range(len(values)))


@given(st.lists(st.lists(labels.filter(bool), max_size=3), min_size=1, max_size=60))
def test_a_row_is_in_the_slice_of_each_of_its_values(values: list[list[str]]) -> None:
    found = parts(kept([*values, ["x", "y"]]))
    named = {label: rows for label, rows in found.items() if label not in (OTHER, NO_VALUE)}
    for label, rows in named.items():
        assert rows == [row for row, own in enumerate([*values, ["x", "y"]]) if label in own]
    others = [row for row, own in enumerate([*values, ["x", "y"]]) if any(label not in named for label in own)]
    assert found.get(OTHER, []) == others
    assert found.get(NO_VALUE, []) == [row for row, own in enumerate(values) if not own]


def test_the_most_frequent_texts_come_first_and_rare_ones_together() -> None:
    values = [[f"v{n:02}"] for n in range(MOST_VALUES + 5)] + [["v03"]] * 4
    found = parts(kept(values))
    assert len(found) == MOST_VALUES
    assert next(iter(found)) == "v03"
    assert len(found[OTHER]) == 6


def texts(**columns: Texts) -> RowTable:
    return RowTable(np.array([0, 2, 3]), ["d1", "d2"], texts=columns)


def test_turns_are_those_of_the_rows_or_places_in_the_dialogue() -> None:
    assert parts(texts(), "turn") == {"0": [0, 2], "1": [1]}
    numbered = RowTable(np.array([0, 2, 3]), ["d1", "d2"], np.array([4, NO_TURN, 6]))
    assert parts(numbered, "turn") == {"4": [0], "6": [2], NO_VALUE: [1]}


def test_history_is_the_number_of_turns_before() -> None:
    contexts = RaggedColumn.from_lists([[], ["hi"], ["hi", "ho"]])
    assert parts(texts(context=contexts), "history") == {"0": [0], "1": [1], "2": [2]}
    steps = SharedColumn.from_steps(contexts, np.array([False, True, True]))
    assert parts(texts(context=steps), "history") == {"0": [0], "1": [1], "3": [2]}
    with pytest.raises(SettingError, match="no contexts"):
        list(split_by_field({"a": texts()}, "history"))


def test_length_is_that_of_the_reference_and_of_the_response_only_of_one_system() -> None:
    references = RaggedColumn.from_lists([["a b c", "a"], [], ["a"]])
    responses = TextColumn.from_strings(["a b c d", "", "a b"])
    assert parts(texts(reference=references, response=responses), "length") == {"1": [2], "2": [0], NO_VALUE: [1]}
    alone = texts(response=responses)
    assert parts(alone, "length") == {"0": [1], "2": [2], "4": [0]}
    with pytest.raises(SettingError, match="no references"):
        list(split_by_field({"a": alone, "b": alone}, "length"))


def test_what_cannot_be_cut_by_is_refused_with_what_can() -> None:
    table = kept([["x"]])
    assert list_fields([table]) == ["f", "turn", "length", "history"]
    assert list_fields([table, RowTable(np.arange(2))]) == ["turn", "length", "history"]
    check_fields([table], ["f", "turn"])
    for wrong, message in (
        (["domain"], r"did not keep a field 'domain', only f, turn, length, history; score .* --by domain"),
        (["system"], "already compares the systems"),
        ([], "no field is named"),
    ):
        with pytest.raises(SettingError, match=message):
            check_fields([table], wrong)
