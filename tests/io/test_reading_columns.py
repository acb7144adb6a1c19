"""Rows as a mapping of columns, such as a slice of a Hugging Face dataset, and as tables of other libraries."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dialeval
from dialeval.core.errors import DataError

COLUMNS: dict[str, list[Any]] = {
    "response": ["at nine .", "no idea", "yes"],
    "reference": ["at nine sharp .", "at ten .", "yes of course"],
    "context": [["when ?"], ["and the bus ?"], ["may i bring a dog ?"]],
    "dialog_id": ["a", "a", "b"],
}


@pytest.mark.parametrize(
    "make", [dict, pa.table, pd.DataFrame, pl.DataFrame], ids=["dict", "arrow", "pandas", "polars"]
)
def test_columns_are_the_same_run_whatever_holds_them(make: Any) -> None:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    expected = dialeval.evaluate(rows, metrics="rouge-l,length,distinct-1")
    run = dialeval.evaluate(make(COLUMNS), metrics="rouge-l,length,distinct-1")
    assert list(run) == list(expected) == ["system"]
    assert run["system"].table is not None
    for key, estimate in expected["system"].items():
        assert run["system"][key].mean == estimate.mean
        assert run["system"][key].interval == estimate.interval
        assert run["system"][key].signature == estimate.signature


def test_systems_stay_systems_and_ragged_columns_are_refused() -> None:
    run = dialeval.evaluate({"response": ["a b"], "other": ["c"]}, metrics="length")
    assert list(run) == ["response", "other"]
    with pytest.raises(DataError, match=r"columns differ in length \(response: 3, context: 1\)"):
        dialeval.evaluate({"response": COLUMNS["response"], "context": [["when ?"]]}, metrics="length")
