from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import RaggedColumn
from dialeval.core.errors import DataError, Problem
from dialeval.core.inputs import Input
from dialeval.io import parquet
from dialeval.io.gathering import gather_rows, gather_texts
from dialeval.io.reading import read_responses, read_texts
from dialeval.io.rows import FieldNames, Records, Rows

Caught = Callable[[Callable[[], object]], list[Problem]]
AsPlain = Callable[[list[Rows]], list[dict[str, Any]]]
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
    return gather_rows(parquet.make_records(table, where, names), names, system)


def texts_of(table: pa.Table, where: str, names: FieldNames, need: Input) -> RaggedColumn:
    return gather_texts(parquet.make_records(table, where, names, need), names, need)


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


def test_contexts_references_and_turns() -> None:
    turns = [[{"role": "user", "content": "x"}], None, []]
    table = pa.table(
        {"response": ["a", "b", "c"], "context": turns, "reference": [["r"], [], None], "turn": [1, None, 3]}
    )
    [found] = rows_of(table, "t", NAMES, "file")
    assert list(found.columns[inputs.CONTEXT]) == [["x"], [], []]
    assert list(found.columns[inputs.REFERENCE]) == [["r"], [], []]
    assert found.turns is not None
    assert found.turns.tolist() == [1, -1, 3]


def test_chats() -> None:
    chats = [[{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]] * 2
    [found] = rows_of(pa.table({"messages": chats, "id": [1, 2]}), "t", NAMES, "file")
    assert list(found.responses) == ["y", "y"]
    assert found.dialogues is not None
    assert list(found.dialogues) == ["1", "2"]


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


def test_texts(problems_of: Caught) -> None:
    table = pa.table({"reference": [["a", "b"], None, ["c"]], "response_is_reference": [False, None, True]})
    assert list(texts_of(table, "t", NAMES, inputs.REFERENCE)) == [["a", "b"], [], []]
    assert list(texts_of(pa.table({"response": ["a", "b"], "x": [1, 2]}), "t", NAMES, inputs.CONTEXT)) == [["a"], ["b"]]
    [problem] = problems_of(lambda: texts_of(pa.table({"x": ["a"], "y": ["b"]}), "t", NAMES, inputs.CONTEXT))
    assert problem.what == "has no field 'context', only x, y"
    found = problems_of(lambda: texts_of(pa.table({"reference": [1, 2]}), "t", NAMES, inputs.REFERENCE))
    assert [problem.line for problem in found] == [1, 2]


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


def test_problems_of_further_fields(problems_of: Caught) -> None:
    table = pa.table({"response": ["a", "b"], "topic": [{"x": 1}, None], "other": [1, 2]})
    [problem] = problems_of(lambda: rows_of(table, "t", FieldNames.of({}, ["topic"]), "file"))
    assert (problem.where, problem.line, problem.what) == ("t", 1, "topic is an object")
    [rows] = rows_of(table, "t", FieldNames.of({}, ["other", "absent"]), "file")
    assert list(rows.fields) == ["other"]


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


def test_prompts_in_contexts_of_their_own() -> None:
    table = pa.table({"context": [[{"role": "system", "content": "be kind"}, {"role": "user", "content": "a"}]]})
    assert list(read_texts(table, inputs.CONTEXT)) == [["a"]]
    assert list(read_texts(table, inputs.CONTEXT, system_prompts=True)) == [["be kind", "a"]]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["", ""], None),
        ([None, None], None),
        (["", "d"], ["row 1", "d"]),
        (["d", "e"], ["d", "e"]),
        ([7, None], ["7", "row 2"]),
    ],
)
def test_dialogues_of_a_table(names: list[Any], expected: list[str] | None) -> None:
    [rows] = read_responses(pa.table({"response": ["a", "b"], "dialog_id": names}))
    assert (None if rows.dialogues is None else list(rows.dialogues)) == expected
