"""The same rows through every format and every kind of table come back as the same columns."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.io.reading import read_responses
from dialeval.io.rows import Rows

AsPlain = Callable[[list[Rows]], list[dict[str, Any]]]
FIELDS = ("dialog_id", "turn", "system", "context", "response", "reference", "response_is_reference")

text = st.text(st.one_of(st.sampled_from('\r\n",\t\u2028\u0085\ufeff😀'), st.characters(codec="utf-8")), max_size=6)
# An empty cell of a CSV file is no text at all, so that the rows which go through all formats have none but responses.
filled = text.filter(bool)
flat_rows = st.fixed_dictionaries(
    {
        "response": text,
        "context": st.none() | filled,
        "reference": st.none() | filled,
        "system": st.none() | st.sampled_from(["one", "two"]),
        "dialog_id": st.none() | st.sampled_from(["d1", "d2"]),
        "turn": st.none() | st.integers(0, 5),
        "response_is_reference": st.none() | st.booleans(),
    }
)
deep_rows = st.fixed_dictionaries(
    {
        "response": text,
        "context": st.none() | st.lists(st.fixed_dictionaries({"speaker": text, "text": text}), max_size=3),
        "reference": st.none() | st.lists(text, max_size=3),
        "system": st.sampled_from(["one", "two"]),
        "dialog_id": text,
        "turn": st.integers(0, 5),
    }
)


class Dataset:
    """Stands in for a Hugging Face dataset."""

    def __init__(self, table: pa.Table) -> None:
        self.data = type("Data", (), {"table": table})()
        self.column_names = table.column_names

    def __getitem__(self, name: str) -> Any:
        return self.data.table[name].to_pylist()


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def delimited(rows: list[dict[str, Any]], delimiter: str) -> bytes:
    # Quoted by hand: the writer of the standard library refuses a NUL before Python 3.11.
    table = [list(FIELDS), *([row[name] for name in FIELDS] for row in rows)]
    cells = [["" if value is None else str(value).replace('"', '""') for value in row] for row in table]
    return "".join(delimiter.join(f'"{cell}"' for cell in row) + "\r\n" for row in cells).encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.Table.from_pylist(rows), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


FILES: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "file.json": lambda rows: json.dumps(rows, ensure_ascii=False).encode(),
    "file.jsonl.gz": lambda rows: gzip.compress(jsonl(rows)),
    "file.jsonl.zst": lambda rows: zstd(jsonl(rows)),
    "file.parquet": parquet,
    "file.parquet.zst": lambda rows: zstd(parquet(rows)),
}
FLAT_FILES: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "file.csv": lambda rows: delimited(rows, ","),
    "file.tsv.gz": lambda rows: gzip.compress(delimited(rows, "\t")),
}
OBJECTS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "rows": list,
    "arrow": pa.Table.from_pylist,
    "pandas": pd.DataFrame,
    "polars": lambda rows: pl.DataFrame(rows, infer_schema_length=None),
    "dataset": lambda rows: Dataset(pa.Table.from_pylist(rows)),
}


def expected(rows: list[dict[str, Any]], folder: Path, as_plain: AsPlain) -> list[dict[str, Any]]:
    (folder / "file.jsonl").write_bytes(jsonl(rows))
    return as_plain(read_responses(folder / "file.jsonl"))


def from_file(name: str, data: bytes, folder: Path, as_plain: AsPlain) -> list[dict[str, Any]]:
    (folder / name).write_bytes(data)
    return as_plain(read_responses(folder / name))


per_example = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


@pytest.mark.parametrize("name", FILES | FLAT_FILES)
@per_example
@given(rows=st.lists(flat_rows, min_size=1, max_size=6))
def test_flat_rows_through_files(name: str, rows: list[dict[str, Any]], tmp_path: Path, as_plain: AsPlain) -> None:
    data = (FILES | FLAT_FILES)[name](rows)
    assert from_file(name, data, tmp_path, as_plain) == expected(rows, tmp_path, as_plain)


@pytest.mark.parametrize("name", FILES)
@per_example
@given(rows=st.lists(deep_rows, min_size=1, max_size=6))
def test_deep_rows_through_files(name: str, rows: list[dict[str, Any]], tmp_path: Path, as_plain: AsPlain) -> None:
    assert from_file(name, FILES[name](rows), tmp_path, as_plain) == expected(rows, tmp_path, as_plain)


@pytest.mark.parametrize("name", OBJECTS)
@per_example
@given(rows=st.lists(flat_rows, min_size=1, max_size=6) | st.lists(deep_rows, min_size=1, max_size=6))
def test_rows_through_objects(name: str, rows: list[dict[str, Any]], tmp_path: Path, as_plain: AsPlain) -> None:
    found = as_plain(read_responses(OBJECTS[name](rows)))
    # Rows without a system are called after the file there, and "system" here.
    renamed = [{**each, "system": "file"} if each["system"] == "system" else each for each in found]
    assert renamed == expected(rows, tmp_path, as_plain)
