from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from dialeval.core.errors import Fault
from dialeval.core.needs import Need
from dialeval.data.rows.reading import read_responses, read_texts

Caught = Callable[[Callable[[], object]], list[Fault]]
Write = Callable[[str, "bytes | str"], Path]

TABLE = pa.table({"response": ["a", "b"], "reference": ["r", None], "scores": [1.0, 2.0]})


def packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def test_a_file_and_its_texts(write: Write) -> None:
    path = write("damd.parquet", packed(TABLE))
    [rows] = read_responses(path)
    assert (rows.system, rows.where, list(rows.responses)) == ("damd", str(path), ["a", "b"])
    assert list(read_texts(path, Need.REFERENCE)) == [["r"], []]


def test_a_file_with_one_column_of_another_name_holds_texts(write: Write) -> None:
    path = write("gold.parquet", packed(pa.table({"gold": ["x", "y"]})))
    assert list(read_texts(path, Need.REFERENCE)) == [["x"], ["y"]]


def test_a_packed_file(write: Write) -> None:
    [rows] = read_responses(write("damd.parquet.gz", packed(TABLE)))
    assert list(rows.responses) == ["a", "b"]


def test_both_kinds_of_arrow_file(tmp_path: Path) -> None:
    pa.feather.write_feather(TABLE, str(tmp_path / "a.feather"))
    with pa.ipc.new_stream(str(tmp_path / "b.arrow"), TABLE.schema) as stream:
        stream.write_table(TABLE)
    for name in ("a.feather", "b.arrow"):
        [rows] = read_responses(tmp_path / name)
        assert list(rows.columns[Need.REFERENCE]) == [["r"], []]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("content", [b"", b"plain text\n", packed(TABLE)[:-20]])
def test_what_is_no_such_file_is_a_fault(write: Write, faults_of: Caught, name: str, content: bytes) -> None:
    path = write(name, content)
    [fault] = faults_of(lambda: read_responses(path))
    assert fault.where == str(path)
    assert "not a readable" in fault.what


def test_a_missing_column_is_one_fault(write: Write, faults_of: Caught) -> None:
    path = write("a.parquet", packed(pa.table({"answer": ["a", "b"], "id": [1, 2]})))
    [fault] = faults_of(lambda: read_responses(path))
    assert fault.what == "has no column 'response', only answer, id"
    assert "--field response=NAME" in fault.remedy


def test_text_that_is_not_utf8_is_a_fault(write: Write, faults_of: Caught) -> None:
    binary = pa.array([b"ok", b"\xe9", b"ok", b"\xff"])
    text = pa.StringArray.from_buffers(len(binary), binary.buffers()[1], binary.buffers()[2])
    found = faults_of(lambda: read_responses(write("a.parquet", packed(pa.table({"response": text})))))
    assert [(fault.line, fault.what) for fault in found] == [(2, "response is not UTF-8"), (4, "response is not UTF-8")]
