from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dialeval.core import rowtable
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.rowtable import NO_TURN, RowTable
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


def test_the_texts_of_very_many_rows_are_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowtable, "SAVED_TEXT_ROWS", 2)
    assert RowTable.from_arrow(table().to_arrow("damd")) == table(texts={})


def test_rows_are_numbered_from_0_on() -> None:
    saved = table().to_arrow("damd")
    assert saved["row"].to_pylist() == list(range(1, len(saved) + 1))
    with pytest.raises(InvalidError, match="not numbered from 1 on"):
        RowTable.from_arrow(saved.take([1, 0, *range(2, len(saved))]))


def test_a_field_that_is_no_list_is_refused() -> None:
    saved = table().to_arrow("damd").append_column("field/domain", pa.array(["x", "y", "z"]))
    with pytest.raises(InvalidError, match="not a list of texts"):
        RowTable.from_arrow(saved)


@pytest.mark.parametrize("name", ["response", "field/domain"])
def test_truths_are_no_texts(name: str) -> None:
    saved = table(texts={}).to_arrow("damd").append_column(name, pa.array([True, False, True]))
    with pytest.raises(InvalidError, match="a column of texts holds no texts"):
        RowTable.from_arrow(saved)


def test_lists_with_gaps_are_refused() -> None:
    saved = table(texts={}).to_arrow("damd")
    with_none = saved.append_column("context", pa.array([["a"], None, []]))
    assert list(RowTable.from_arrow(with_none).texts["context"]) == [["a"], [], []]
    with pytest.raises(InvalidError, match="a list of texts has gaps"):
        RowTable.from_arrow(saved.append_column("context", pa.array([["a", None], [], []])))
