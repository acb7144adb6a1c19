from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.errors import DataError, Problem
from dialeval.io import tables
from dialeval.io.gathering import gather_rows
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames, Records, Rows

Caught = Callable[[Callable[[], object]], list[Problem]]
NAMES = FieldNames()

text = st.text(st.characters(codec="utf-8"), max_size=4)
turn = st.fixed_dictionaries({"speaker": text, "text": text})
rows = st.fixed_dictionaries(
    {
        "response": text,
        "reference": st.none() | st.lists(text, max_size=3),
        "context": st.none() | st.lists(turn, max_size=3),
        "system": st.sampled_from(["a", "b", "", None]),
        "dialog_id": st.sampled_from(["d", "e", "", None]),
        "turn": st.none() | st.integers(0, 9),
        "response_is_reference": st.none() | st.booleans(),
    }
)
plain_rows = st.fixed_dictionaries(
    {
        "response": text,
        "reference": st.none() | text,
        "context": st.none() | st.lists(text, max_size=3),
        "system": st.sampled_from(["a", "b", "", None]),
        "dialog_id": st.none() | st.integers(0, 3),
        "turn": st.none() | st.integers(0, 9),
    }
)


def rows_of(table: pa.Table, where: str, names: FieldNames, system: str) -> list[Rows]:
    return gather_rows(tables.make_records(table, where, names), names, system)


def result(call: Callable[[], list[Rows]]) -> object:
    try:
        return [
            (
                found.system,
                {need: list(column) for need, column in found.columns.items()},
                None if found.dialogues is None else list(found.dialogues),
                None if found.turns is None else found.turns.tolist(),
            )
            for found in call()
        ]
    except DataError as error:
        return error.problems


@given(
    st.lists(rows, min_size=1, max_size=6) | st.lists(plain_rows, min_size=1, max_size=6),
    st.integers(0, 3),
    st.integers(1, 3),
)
def test_columns_and_rows_agree(values: list[dict[str, Any]], start: int, pieces: int) -> None:
    whole = pa.Table.from_pylist(values)
    table = pa.concat_tables([whole] * pieces).slice(start)
    listed = table.to_pylist()
    by_column = result(lambda: rows_of(table, "t", NAMES, "file"))
    by_row = result(lambda: gather_rows(Records("t", enumerate(listed, 1)), NAMES, "file"))
    assert by_column == by_row


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_kinds_of_string(kind: pa.DataType) -> None:
    table = pa.table(
        {name: pa.array(["a", "é"]).cast(kind) for name in ("response", "reference", "system", "dialog_id")}
    )
    found = rows_of(table, "t", NAMES, "file")
    assert [(each.system, list(each.responses)) for each in found] == [("a", ["a"]), ("é", ["é"])]
    assert list(found[1].columns[inputs.REFERENCE]) == [["é"]]


@pytest.mark.parametrize(
    ("columns", "problems"),
    [
        ({"response": [1, 2]}, [(1, "response is a number"), (2, "response is a number")]),
        ({"response": ["a", "b"], "turn": [0, -1]}, [(2, "turn is -1")]),
        ({"response": ["a", "b"], "turn": [0.5, 1.0]}, [(1, "turn is 0.5")]),
        ({"response": ["a", "b"], "reference": [["x", None], ["y"]]}, [(1, "reference[1] is null")]),
        (
            {"response": ["a", "b"], "context": [[{"speaker": "A"}], []]},
            [(1, "context[0] has neither text nor content, only speaker")],
        ),
        (
            {"response": ["a", "b"], "response_is_reference": [1, None], "reference": ["x", "y"]},
            [(1, "response_is_reference is a number")],
        ),
        ({"response": pa.array([], pa.string())}, [(None, "holds no rows")]),
    ],
)
def test_problems(columns: dict[str, Any], problems: list[tuple[int | None, str]], problems_of: Caught) -> None:
    found = problems_of(lambda: rows_of(pa.table(columns), "t", NAMES, "file"))
    assert [(problem.where, problem.line, problem.what) for problem in found] == [
        ("t", *problem) for problem in problems
    ]


def test_two_columns_of_one_name_are_a_problem(problems_of: Caught) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["response", "response"])
    [problem] = problems_of(lambda: rows_of(table, "t", NAMES, "file"))
    assert problem.what == "has several columns 'response'"


labels = st.none() | st.lists(text, max_size=3)
NUMBERS = st.none() | st.floats(allow_infinity=False)


@given(st.lists(st.fixed_dictionaries({"response": text, "tags": labels, "score": NUMBERS}), min_size=1, max_size=6))
def test_further_fields_are_the_same_by_column_and_by_row(values: list[dict[str, Any]]) -> None:
    names = FieldNames.of({}, ["tags", "score"])
    table = pa.Table.from_pylist(values)
    [by_column] = rows_of(table, "t", names, "file")
    [by_row] = gather_rows(Records("t", enumerate(table.to_pylist(), 1)), names, "file")
    assert {name: list(column) for name, column in by_column.fields.items()} == {
        name: list(column) for name, column in by_row.fields.items()
    }


def test_roles_of_a_column_are_those_of_rows() -> None:
    turns = [{"role": "human", "content": "a"}, {"role": "narrator", "content": "b"}, {"role": "model", "content": "c"}]
    prompted = [{"role": "system", "content": "be kind"}, *turns]
    for context, roles in (
        ([turns, turns[:1]], [["user", "", "assistant"], ["user"]]),
        ([prompted], [["user", "", "assistant"]]),
    ):
        rows = [{"response": "x", "context": each} for each in context]
        [columnwise] = read_responses(pa.Table.from_pylist(rows))
        [row_by_row] = read_responses(rows)
        for found in (columnwise, row_by_row):
            assert list(found.columns[inputs.ROLES]) == roles
            assert [len(each) for each in found.columns[inputs.CONTEXT]] == [len(each) for each in roles]
