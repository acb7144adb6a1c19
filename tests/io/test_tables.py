from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dialeval.core import inputs
from dialeval.core.errors import Problem
from dialeval.io.reading import read_responses, read_texts

Caught = Callable[[Callable[[], object]], list[Problem]]

ROWS: list[dict[str, Any]] = [
    {"response": "a", "reference": ["r", "s"], "system": "one", "turn": 1, "scores": 2},
    {"response": "é", "reference": None, "system": "two", "turn": None, "scores": "bad"},
    {"response": "", "reference": [], "system": None, "turn": 3, "scores": 1.5},
]
PLAIN = [{name: row[name] for name in ("response", "reference", "system", "turn")} for row in ROWS]


class Dataset:
    """Stands in for a Hugging Face dataset that was filtered and set to give tensors.

    Its table holds rows that it no longer has, and its columns are not what they seem unless one asks for Arrow.
    """

    def __init__(self, table: pa.Table, kept: list[int], arrow: bool = False) -> None:
        self.table, self.kept, self.arrow = table, kept, arrow
        self.data = type("Data", (), {"table": table})()
        self.column_names = table.column_names

    def with_format(self, kind: str) -> Dataset:
        return Dataset(self.table, self.kept, kind == "arrow")

    def __getitem__(self, key: str | slice) -> Any:
        taken = self.table.take(self.kept)
        return taken if self.arrow and isinstance(key, slice) else [object()] * len(self.kept)


class OldDataset:
    """A dataset that can only give its columns."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.column_names = table.column_names

    def __getitem__(self, key: str) -> Any:
        return self.table[key].to_pylist()


TABLE = pa.Table.from_pylist(PLAIN)
ARRAYS = [np.array(["r", "s"], object), None, np.array([], object)]
SOURCES: dict[str, Any] = {
    "rows": ROWS,
    "tuple": tuple(ROWS),
    "objects": np.array(ROWS, object),
    "table": TABLE,
    "batch": TABLE.to_batches()[0],
    "structs": pa.array(PLAIN),
    "pandas": pd.DataFrame(ROWS),
    "pandas of arrays": pd.DataFrame({**TABLE.to_pydict(), "reference": ARRAYS}),
    "polars": pl.DataFrame(PLAIN),
    "dataset": Dataset(pa.concat_tables([TABLE, TABLE]), [0, 4, 2]),
    "old dataset": OldDataset(TABLE),
    "stream": type("Stream", (), {"__arrow_c_stream__": lambda self, schema=None: TABLE.__arrow_c_stream__(schema)})(),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_kind_of_table_gives_the_same_rows(name: str) -> None:
    one, two, unnamed = read_responses(SOURCES[name])
    assert [(rows.system, list(rows.responses)) for rows in (one, two, unnamed)] == [
        ("one", ["a"]),
        ("two", ["é"]),
        ("system", [""]),
    ]
    assert [list(rows.columns[inputs.REFERENCE]) for rows in (one, two, unnamed)] == [[["r", "s"]], [[]], [[]]]
    assert [rows.turns.tolist() for rows in (one, two, unnamed) if rows.turns is not None] == [[1], [-1], [3]]
    assert list(read_texts(SOURCES[name], inputs.REFERENCE)) == [["r", "s"], [], []]


def test_a_missing_value_of_pandas_is_a_null() -> None:
    [rows] = read_responses(pd.Series(["a", float("nan")], dtype=object))
    assert (list(rows.responses), rows.account.without_reply) == (["a", ""], 1)
    assert list(read_texts(pd.Series(["a", None]), inputs.REFERENCE)) == [["a"], []]


def test_columns_of_mixed_types_are_a_problem(problems_of: Caught) -> None:
    [problem] = problems_of(lambda: read_responses(pd.DataFrame({"response": ["a", 3]}), name="damd"))
    assert problem.where == "damd"
    assert problem.what.startswith("cannot be made an Arrow table")
