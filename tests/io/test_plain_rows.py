from __future__ import annotations

import random
from typing import Any

import pytest

from dialeval.core.errors import DataError
from dialeval.io import gathering
from dialeval.io.gathering import gather_rows
from dialeval.io.rows import FieldNames, Records, Rows

NAMES = FieldNames()
PLAIN: dict[str, list[Any]] = {
    "response": ["At nine.", "", "um neun ü"],
    "reference": ["r", "", ["a", "b"], [], None],
    "context": ["hello", ["a", "ß"], [], None],
    "dialog_id": ["d1", "", "ü", 7, 0, None],
    "system": ["x", "", 3, None],
    "turn": [0, 5, 2**63 - 1, None],
    "unasked": [{"a": 1}],
}
STRANGE: dict[str, list[Any]] = {
    "response": [None, 3, ["a"], "\ud800", float("nan"), {"role": "assistant", "content": "hi"}],
    "reference": [3, ["a", None], [["a"]], "\ud800", ["\udfff"], ("a",), float("nan")],
    "context": [[{"role": "user", "content": "hi"}], [3], {"a": 1}, "\ud800"],
    "dialog_id": [True, 1.0, 1.5, float("nan"), ["a"], "\ud800"],
    "system": [False, 2.0, {}],
    "turn": [-1, 2**63, True, "3", 1.0, "x"],
    "messages": [None, [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]],
    "response_is_reference": [True, False, "no"],
    "trial": [1],
    "reward": [1.0],
}


def rows_of(random_: random.Random, strange: float) -> list[Any]:
    rows: list[Any] = []
    for _ in range(random_.randrange(1, 12)):
        row = {name: random_.choice(values) for name, values in PLAIN.items() if random_.random() < 0.7}
        row.setdefault("response", "at ten")
        if random_.random() < strange:
            name = random_.choice(list(STRANGE))
            row[name] = random_.choice(STRANGE[name])
        rows.append("a text" if random_.random() < strange / 4 else row)
    return rows


def gathered(rows: list[Any]) -> object:
    try:
        return [comparable(each) for each in gather_rows(Records("rows.jsonl", enumerate(rows, 1)), NAMES, "file")]
    except DataError as error:
        return error.problems


def comparable(rows: Rows) -> object:
    turns = None if rows.turns is None else rows.turns.tolist()
    columns = {need: repr(list(column)) for need, column in rows.columns.items()}
    return rows.system, columns, None if rows.dialogues is None else list(rows.dialogues), turns


@pytest.mark.parametrize("strange", [0.0, 0.3])
def test_plain_rows_are_what_the_reader_of_single_rows_makes_of_them(
    strange: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    random_ = random.Random(3)
    many = [rows_of(random_, strange) for _ in range(400)]
    monkeypatch.setattr(gathering, "_ROWS_AT_ONCE", 4)
    at_once = [gathered(rows) for rows in many]
    plain = [gathering.read_plain_rows(rows, NAMES) is not None for rows in many]
    assert all(plain) if strange == 0 else 20 < sum(plain) < 380
    monkeypatch.setattr(gathering, "read_plain_rows", lambda *_: None)
    assert [gathered(rows) for rows in many] == at_once
