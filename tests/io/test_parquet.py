from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from dialeval.core import arrow
from dialeval.core.errors import Problem
from dialeval.io.chunks import Span, read_row_groups
from dialeval.io.ratings import read_ratings
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames

Caught = Callable[[Callable[[], object]], list[Problem]]
Write = Callable[[str, "bytes | str"], Path]

TABLE = pa.table({"response": ["a", "b"], "reference": ["r", None], "scores": [1.0, 2.0]})


def packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


@pytest.mark.parametrize("content", [b"", b"plain text\n", packed(TABLE)[:-20]])
def test_what_is_no_such_file_is_a_problem(write: Write, problems_of: Caught, content: bytes) -> None:
    path = write("a.parquet", content)
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


def far_away(kind: pa.DataType, values: pa.Array | None = None) -> pa.Array:
    """Three cells of which one begins far behind the last byte; reading it ends the process."""
    offsets = pa.py_buffer(np.array([0, 5, 1_900_000_000, 10], np.int32))
    if values is not None:
        return pa.Array.from_buffers(kind, 3, [None, offsets], children=[values])
    return pa.Array.from_buffers(kind, 3, [None, offsets, pa.py_buffer(b"helloworld")])


@pytest.mark.parametrize(
    ("read", "name"), [(read_responses, b"scoresXX"), (read_ratings, b"scoresXX"), (read_ratings, b"insideXX")]
)
def test_names_of_columns_that_are_not_utf8(
    write: Write, problems_of: Caught, read: Callable[[Path], object], name: bytes
) -> None:
    content = packed(pa.table({"response": ["a"], "scoresXX": [{"insideXX": 1.0}]}))
    path = write("a.parquet", content.replace(name, name[:-2] + b"\xff\xfe"))
    [problem] = problems_of(lambda: read(path))
    assert problem.where == str(path)
    assert "can't decode" in problem.what


def test_rated_texts_that_are_not_utf8_are_problems(write: Write, problems_of: Caught) -> None:
    binary = pa.array([b"ok", b"\xe9"])
    text = pa.StringArray.from_buffers(2, binary.buffers()[1], binary.buffers()[2])
    table = pa.table({"response": text, "scores": [{"overall": 1.0}, {"overall": 2.0}]})
    path = write("a.parquet", packed(table))
    [problem] = problems_of(partial(read_ratings, path))
    assert (problem.where, problem.line, problem.what) == (str(path), 2, "response is not UTF-8")


def test_an_arrow_file_is_refused(write: Write, problems_of: Caught) -> None:
    [problem] = problems_of(lambda: read_responses(write("a.feather", b"ARROW1")))
    assert (problem.what, problem.remedy[:19]) == ("is an Arrow file", "write it as Parquet")


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
