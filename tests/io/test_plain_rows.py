from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dialeval.core.errors import DataError
from dialeval.io import gathering
from dialeval.io.gathering import PlainRows, Texts, gather_rows
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


def plain_rows(rows: list[Any], names: FieldNames) -> PlainRows | None:
    return gathering.read_plain_rows(gathering._collect_columns(rows, names)[0], names)


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
    plain = [plain_rows(rows, NAMES) is not None for rows in many]
    assert all(plain) if strange == 0 else 20 < sum(plain) < 380
    monkeypatch.setattr(gathering, "read_plain_rows", lambda *_: None)
    assert [gathered(rows) for rows in many] == at_once


def test_columns() -> None:
    rows = [{"response": "a", "reference": ["b", "c"], "turn": 1}, {"response": "d", "dialog_id": 4, "context": "e"}]
    assert plain_rows(rows, NAMES) == (
        ["a", "d"],
        Texts(["b", "c"], [2, 0]),
        Texts(["e"], [0, 1]),
        [None, None],
        [None, "4"],
        [1, -1],
    )
    assert plain_rows([{"answer": "a", "gold": "b"}], FieldNames.of({"response": "answer", "reference": "gold"})) == (
        ["a"],
        Texts(["b"], [1]),
        Texts([], [0]),
        [None],
        [None],
        [-1],
    )


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in STRANGE.items() for value in values])
def test_what_is_not_plain_is_left_to_the_reader_of_single_rows(name: str, value: object) -> None:
    if name != "reward":  # without a trial it is nobody's
        assert plain_rows([{"response": "a"}, {"response": "b", name: value}], NAMES) is None
    assert plain_rows(["a", {"response": "a"}], NAMES) is None
    assert plain_rows([{"response": "a", "topic": "x"}], FieldNames.of({}, ["topic"])) is None
    assert plain_rows([{"response": np.str_("a")}], NAMES) is None


def test_problems_stand_in_the_order_of_the_lines(problems_of: Callable[[Callable[[], object]], list[Any]]) -> None:
    from dialeval.io.delimited import split
    from dialeval.io.json import parse_lines

    lines = split(np.frombuffer(b'{"response": 3}\n{"response"\n{"response": 4}\n{"response": "a"}\n[', np.uint8))
    problems = problems_of(lambda: gather_rows(parse_lines(lines, "rows.jsonl"), NAMES, "file"))
    assert [problem.line for problem in problems] == [1, 2, 3, 5]
