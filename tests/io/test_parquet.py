from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from dialeval.core import arrow, inputs
from dialeval.core.errors import Problem
from dialeval.io.chunks import Span, read_row_groups
from dialeval.io.ratings import read_ratings
from dialeval.io.reading import read_responses, read_texts
from dialeval.io.rows import FieldNames

Caught = Callable[[Callable[[], object]], list[Problem]]
Write = Callable[[str, "bytes | str"], Path]

TABLE = pa.table({"response": ["a", "b"], "reference": ["r", None], "scores": [1.0, 2.0]})


def packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("content", [b"", b"plain text\n", packed(TABLE)[:-20]])
def test_what_is_no_such_file_is_a_problem(write: Write, problems_of: Caught, name: str, content: bytes) -> None:
    path = write(name, content)
    [problem] = problems_of(lambda: read_responses(path))
    assert problem.where == str(path)
    assert "not a readable" in problem.what


def test_text_that_is_not_utf8_is_a_problem(write: Write, problems_of: Caught) -> None:
    binary = pa.array([b"ok", b"\xe9", b"ok", b"\xff"])
    text = pa.StringArray.from_buffers(len(binary), binary.buffers()[1], binary.buffers()[2])
    found = problems_of(lambda: read_responses(write("a.parquet", packed(pa.table({"response": text})))))
    assert [(problem.line, problem.what) for problem in found] == [
        (2, "response is not UTF-8"),
        (4, "response is not UTF-8"),
    ]


def in_arrow(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def far_away(kind: pa.DataType, values: pa.Array | None = None) -> pa.Array:
    """Three cells of which one begins far behind the last byte; reading it ends the process."""
    offsets = pa.py_buffer(np.array([0, 5, 1_900_000_000, 10], np.int32))
    if values is not None:
        return pa.Array.from_buffers(kind, 3, [None, offsets], children=[values])
    return pa.Array.from_buffers(kind, 3, [None, offsets, pa.py_buffer(b"helloworld")])


@pytest.mark.parametrize("read", [read_responses, partial(read_texts, need=inputs.REFERENCE), read_ratings])
@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("response", far_away(pa.string())),
        ("response", far_away(pa.binary())),
        ("reference", far_away(pa.list_(pa.string()), pa.array(["x"] * 10))),
        ("scores", far_away(pa.string())),
        ("system", pa.DictionaryArray.from_arrays(pa.array([0, 7, 1]), ["a", "b"], safe=False)),
    ],
)
def test_offsets_that_point_nowhere_are_not_followed(
    write: Write, problems_of: Caught, read: Callable[[Path], object], name: str, column: pa.Array
) -> None:
    path = write("a.arrow", in_arrow(pa.table({"response": ["a", "b", "c"], name: column})))
    [problem] = problems_of(lambda: read(path))
    assert problem.where == str(path)
    assert "not a readable Arrow file" in problem.what


@pytest.mark.parametrize("written", [packed, in_arrow])
@pytest.mark.parametrize(
    ("read", "name"), [(read_responses, b"scoresXX"), (read_ratings, b"scoresXX"), (read_ratings, b"insideXX")]
)
def test_names_of_columns_that_are_not_utf8(
    write: Write, problems_of: Caught, written: Callable[[pa.Table], bytes], read: Callable[[Path], object], name: bytes
) -> None:
    content = written(pa.table({"response": ["a"], "scoresXX": [{"insideXX": 1.0}]}))
    path = write("a.parquet" if written is packed else "a.arrow", content.replace(name, name[:-2] + b"\xff\xfe"))
    [problem] = problems_of(lambda: read(path))
    assert problem.where == str(path)
    assert "can't decode" in problem.what


def test_rated_texts_that_are_not_utf8_are_problems(write: Write, problems_of: Caught) -> None:
    binary = pa.array([b"ok", b"\xe9"])
    text = pa.StringArray.from_buffers(2, binary.buffers()[1], binary.buffers()[2])
    table = pa.table({"response": text, "scores": [{"overall": 1.0}, {"overall": 2.0}]})
    for path in (write("a.parquet", packed(table)), write("a.arrow", in_arrow(table))):
        [problem] = problems_of(partial(read_ratings, path))
        assert (problem.where, problem.line, problem.what) == (str(path), 2, "response is not UTF-8")


TRAPS = {
    "compressed batch": pa.table({"response": ["x" * 1000] * 1000}),
    "compressed dictionary": pa.table({"response": pa.array(["x" * 1_000_000]).dictionary_encode()}),
    "repeated entry": pa.table(
        {"response": pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int8()), pa.array(["x" * 1000]))}
    ),
}


@pytest.mark.parametrize("form", [pa.ipc.new_file, pa.ipc.new_stream])
@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("trap", TRAPS)
def test_a_small_arrow_file_whose_values_take_very_much_is_refused(
    tmp_path: Path,
    problems_of: Caught,
    monkeypatch: pytest.MonkeyPatch,
    form: Callable[..., pa.ipc.RecordBatchStreamWriter],
    compression: str,
    trap: str,
) -> None:
    path, table = tmp_path / "a.arrow", TRAPS[trap]
    with form(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    assert len(read_responses(path)[0]) == len(table)
    monkeypatch.setattr(arrow, "SURELY_DECODED", 1 << 19)
    monkeypatch.setattr(arrow, "MOST_TIMES", 50)
    [problem] = problems_of(lambda: read_responses(path))
    assert problem.what == "its values take more than 50 times the size of the file"


def test_nothing_of_a_footer_is_believed(tmp_path: Path) -> None:
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), TABLE.schema) as writer:
        writer.write_table(TABLE)
    content = (tmp_path / "a.arrow").read_bytes()
    (tmp_path / "a.arrow").write_bytes(content[:-100] + bytes(100))
    assert list(read_responses(tmp_path / "a.arrow")[0].responses) == ["a", "b"]


def test_values_of_a_large_parquet_file_are_counted_while_it_is_read(
    tmp_path: Path, problems_of: Caught, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"response": ["x" * 1000] * 4000, "more": [1] * 4000})
    pa.parquet.write_table(table, path, compression="zstd", row_group_size=500)
    monkeypatch.setattr(arrow, "LARGEST_CHECKED", 0)
    assert len(read_responses(path)[0]) == 4000
    span = Span(str(path), 0, 8)
    assert sum(len(part) for _, part in read_row_groups(span, FieldNames(), 100)) == 4000
    monkeypatch.setattr(arrow, "SURELY_DECODED", 1 << 20)
    monkeypatch.setattr(arrow, "MOST_TIMES", 50)
    for read in (partial(read_responses, path), lambda: list(read_row_groups(span, FieldNames(), 100))):
        [problem] = problems_of(read)
        assert problem.what == "its values take more than 50 times the size of the file"
    pa.parquet.write_table(table.slice(0, 0), path)
    [problem] = problems_of(lambda: read_responses(path))
    assert problem.what == "holds no rows"


def test_every_damaged_column_is_a_problem(problems_of: Caught) -> None:
    lists = far_away(pa.list_(pa.string()), pa.array(["x"] * 10))
    table = pa.table({"response": far_away(pa.string()), "reference": lists, "context": ["a", "b", "c"]})
    found = problems_of(lambda: read_responses(table))
    assert [(problem.line, problem.what.partition(" (")[0]) for problem in found] == [
        (None, "column 'response' is damaged"),
        (None, "column 'reference' is damaged"),
    ]
