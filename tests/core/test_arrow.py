"""Arrow arrays are those that pyarrow makes; small Parquet files that hold gigabytes are refused."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.core import arrow
from dialeval.core.arrow import (
    check_decoded_size,
    empty_text,
    list_array,
    number_array,
    numbers_of,
    repeat_text,
    text_array,
)
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError
from dialeval.core.validation import InvalidError

TEXTS = [["a", "", "ü", "中文"], ["a", None, ""], [None, None], []]


@pytest.mark.parametrize("values", TEXTS)
def test_texts_are_what_arrow_makes_of_them(values: list[str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = pa.array(values, pa.string())
    assert text_array(values).equals(expected)
    monkeypatch.setattr(arrow, "_MOST_BYTES", 0)
    assert text_array(values).equals(expected)


def test_texts_of_a_column() -> None:
    column = TextColumn.from_strings(["a", "ü", "", "bcd"]).take(np.array([3, 1, 0]))
    made = text_array(column)
    made.validate(full=True)
    assert made.to_pylist() == ["bcd", "ü", "a"]


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.5, np.nan, -0.0]),
        np.arange(20)[::2],
        np.array([3, 1], np.int32),
        np.arange(17) % 3 == 0,
        np.empty(0),
    ],
)
def test_numbers_are_what_arrow_makes_of_them(values: np.ndarray) -> None:
    missing = np.arange(len(values)) % 2 == 1
    assert number_array(values).equals(pa.array(values)) or np.isnan(values).any()
    assert number_array(values, missing).to_pylist() == pa.array(values, mask=missing).to_pylist()
    number_array(values, missing).validate(full=True)


def test_the_same_text_in_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for rows in (0, 1, 3):
        assert repeat_text("bot ü", rows).equals(pa.array(["bot ü"] * rows, pa.string()))
    monkeypatch.setattr(arrow, "_MOST_BYTES", 1)
    assert repeat_text("ab", 2).to_pylist() == ["ab", "ab"]


def test_lists() -> None:
    made = list_array(np.array([1, 3, 3, 4]), text_array(["z", "a", "b", "c"]))
    made.validate(full=True)
    assert made.equals(pa.array([["a", "b"], [], ["c"]], pa.list_(pa.string())))
    assert len(arrow._offset_buffer(np.array([0, (1 << 31) - 1]))) == 8
    with pytest.raises(OverflowError, match=r"^2147483648 values are more than an array of lists holds$"):
        list_array(np.array([0, 1 << 31]), pa.nulls(0))


def test_saving_and_loading_a_run_does_not_import_pandas(tmp_path: Path) -> None:
    program = (
        "import sys, dialeval;"
        "rows = [{'response': 'a b', 'reference': 'a', 'dialog_id': 'd', 'turn': 1}, {'response': 'c'}];"
        f"dialeval.evaluate(rows, metrics='bleu-1,distinct').save({str(tmp_path / 'run')!r});"
        f"dialeval.load({str(tmp_path / 'run')!r});"
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_numbers_come_back() -> None:
    floats = pa.chunked_array([pa.array([1.5, None]), pa.array([2.5])])
    assert np.array_equal(numbers_of(floats), [1.5, np.nan, 2.5], equal_nan=True)
    ints = numbers_of(pa.array([7, None, 3, 4]).slice(1), -1)
    assert ints.dtype == np.int64
    assert ints.tolist() == [-1, 3, 4]
    truths = numbers_of(pa.array([True, None, False] * 5).slice(2), False)
    assert truths.dtype == np.bool_
    assert truths.tolist() == [False, *[True, False, False] * 4]
    for kind in (pa.float64(), pa.int64(), pa.bool_()):
        assert numbers_of(pa.chunked_array([], kind)).dtype == kind.to_pandas_dtype()
        assert len(numbers_of(pa.chunked_array([], kind))) == 0
    assert pa.array(["a", None]).fill_null(empty_text()).to_pylist() == ["a", ""]


LONG = "x" * (1 << 20)


def written(values: Any, kind: pa.DataType | None = None, **options: Any) -> bytes:
    sink = io.BytesIO()
    column = values if isinstance(values, pa.Array) else pa.array(values, kind)
    pq.write_table(pa.table({"response": column}), sink, compression="zstd", **options)
    return sink.getvalue()


def check(content: bytes) -> None:
    check_decoded_size(pa.BufferReader(content), len(content))


def repeated(value: str, times: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array([value]))


def test_a_value_that_is_repeated_beyond_measure_is_refused() -> None:
    content = written(repeated(LONG, 3000))
    assert len(content) < 2000
    with pytest.raises(InvalidError, match="more than 200 times the size of the file"):
        check(content)


def test_row_groups_add_up() -> None:
    each = written(repeated(LONG, 300), row_group_size=100)
    check(each)
    with pytest.raises(InvalidError):
        check(written(repeated(LONG, 600), row_group_size=100))


def test_numbers_and_nested_values_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = written(pa.array([0]).take(pa.array([0] * 4_000_000, pa.int32())), row_group_size=1 << 30)
    check(numbers)
    with monkeypatch.context() as patch, pytest.raises(InvalidError):
        patch.setattr(arrow, "SURELY_DECODED", 1 << 24)
        check(numbers)
    offsets = pa.array([0, 3000], pa.int32())
    with pytest.raises(InvalidError):
        check(written(pa.ListArray.from_arrays(offsets, repeated(LONG, 3000))))


@pytest.mark.parametrize(
    "values",
    [
        repeated(LONG, 200),
        repeated("always the same", 1_000_000),
        [LONG, *["short"] * 100_000],
        [LONG, LONG, None, ""],
        [[LONG], ["a", None], None, []] * 50,
        [{"role": "user", "content": "hello"}] * 1000,
        [1.5, None] * 1000,
        [],
    ],
    ids=["few", "constant", "one long", "gaps", "lists", "structs", "numbers", "none"],
)
def test_what_is_no_trap_is_taken(values: Any) -> None:
    check(written(values if len(values) else pa.array([], pa.string())))


def test_values_may_take_200_times_the_file_and_512_mib_in_any_case() -> None:
    assert arrow.decoded_limit(0) == 512 << 20
    assert arrow.decoded_limit((512 << 20) // 200) == 512 << 20
    assert arrow.decoded_limit((512 << 20) // 200 + 1) == 200 * ((512 << 20) // 200 + 1)
    assert str(arrow.size_error()) == "its values take more than 200 times the size of the file"


@pytest.mark.parametrize(
    ("values", "rows", "size"),
    [
        # Numbers: eight bytes each.
        (pa.array(range(10)), 4, lambda: 80),
        # Values of a fixed length: so many more.
        (pa.array([b"abcd"] * 10, pa.binary(4)), 4, lambda: 120),
        # Texts: eight bytes, and eight and the longest text for each, as long as that is little enough.
        (pa.array(["aaaa"] * 10), 10, lambda: 80 + 10 * 12),
        (pa.array(["aaaa"] * 5 + ["aa"] * 5), 5, lambda: 80 + 5 * 12 + 5 * 10),
        # One text is long: what they really take.
        (pa.array(["x" * 1000, *["a", None] * 50]), 200, lambda: 101 * 8 + 101 * 8 + 1050),
        (pa.array([["x" * 1000, "a"], None, [], ["bc"]] * 30), 200, lambda: 120 * 8 + (90 + 60) * 8 + 30 * 1003),
    ],
    ids=["numbers", "fixed", "texts", "groups", "long", "lists"],
)
def test_what_the_values_of_a_file_take(
    values: pa.Array, rows: int, size: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = written(values, row_group_size=rows)
    metadata = pq.ParquetFile(io.BytesIO(content)).metadata
    needed = size() + sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    monkeypatch.setattr(arrow, "decoded_limit", lambda _: needed)
    check(content)
    monkeypatch.setattr(arrow, "decoded_limit", lambda _: needed - 1)
    with pytest.raises(InvalidError):
        check(content)


def test_batches_are_counted_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    file = pq.ParquetFile(io.BytesIO(written(list(range(10)))))
    size = sum(batch.nbytes for batch in file.iter_batches(4))
    assert size >= 80
    monkeypatch.setattr(arrow, "decoded_limit", lambda _: size)
    assert [len(batch) for batch in arrow.read_batches(file, 1, 4)] == [4, 4, 2]
    monkeypatch.setattr(arrow, "decoded_limit", lambda _: size - 1)
    batches, seen = arrow.read_batches(file, 1, 4), []
    with pytest.raises(InvalidError):
        for batch in batches:
            seen.append(len(batch))  # noqa: PERF401
    assert seen == [4, 4]


@pytest.mark.parametrize("largest", [0, 1 << 26])
def test_a_file_is_read_at_once_or_in_batches(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "LARGEST_CHECKED", largest)
    monkeypatch.setattr(arrow, "_COUNTED_ROWS", 3)
    table = pa.table({"a": list(range(10)), "b": ["x", "y"] * 5})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    read = arrow.read_parquet(pa.BufferReader(sink.getvalue()))
    assert read.equals(table)
    assert len(read["a"].chunks) == (4 if largest == 0 else 1)
    assert arrow.read_parquet(pa.BufferReader(sink.getvalue()), lambda names: names[1:]).column_names == ["b"]
    empty = pa.table({"a": pa.array([], pa.int64())})
    sink = io.BytesIO()
    pq.write_table(empty, sink)
    assert arrow.read_parquet(pa.BufferReader(sink.getvalue())).equals(empty)


def test_texts_are_found_however_deep_they_are() -> None:
    def encoded(values: list[str]) -> pa.Array:
        return pa.array(values).dictionary_encode()

    offsets = pa.array([0, 2, 3], pa.int32())
    keys, items = encoded(["a", "bb", "a"]), encoded(["ccc", "ccc", "d"])
    deep = pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([encoded(["eeee"] * 3)], ["x"]))
    for array, expected in (
        (encoded(["a", "bb", "bb"]), 5),
        (pa.array(["a", None, "bb"]).dictionary_encode(), 3),
        (pa.array([1, 1]).dictionary_encode(), 0),
        (pa.array([1, 2]), 0),
        (pa.MapArray.from_arrays(offsets, keys, items), 4 + 7),
        (deep, 12),
        (pa.LargeListArray.from_arrays(pa.array([0, 3]), keys), 4),
        (pa.array([b"abc"] * 2, pa.large_binary()).dictionary_encode(), 6),
    ):
        batch = pa.RecordBatch.from_arrays([array, array], ["one", "two"])
        assert arrow.count_expanded_bytes([batch, batch]) == 4 * expected


TWICE = "has two columns of one name"
COLUMNS = {"name": pa.string(), "row": pa.int64(), "turn?": pa.int64()}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"name": ["a"], "row": [1]}), None),
        (pa.table({"name": ["a", "b"], "row": [1, 2], "turn": [None, 3], "more": [None, 1.5]}), None),
        (pa.table({"name": ["a"]}), "has no column row"),
        (pa.table({"name": ["a"], "row": [1.5]}), "column row holds double, not int64"),
        (pa.table({"name": ["a"], "row": [1], "turn": ["x"]}), "column turn holds string, not int64"),
        (pa.table({"name": ["a", None], "row": [1, 2]}), "column name has gaps"),
        (pa.table({"name": ["a"], "row": [1], "more": ["x"]}), "column 'more' holds string"),
        (pa.Table.from_arrays([pa.array(["a"]), pa.array([1]), pa.array([1])], ["name", "row", "row"]), TWICE),
    ],
)
def test_tables_that_are_read(tmp_path: Path, table: pa.Table, message: str | None) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(table, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()

    def read() -> pa.Table:
        return arrow.read_table(path, COLUMNS, [pa.float64()], "write it again", digest, "run.json")

    if message is None:
        assert read().equals(table)
        return
    with pytest.raises(DataError) as caught:
        read()
    assert str(caught.value) == f"{path}: {message}; write it again"


def test_tables_are_written_one_below_the_other(tmp_path: Path) -> None:
    tables = [
        pa.table({"row": [1, 2], "dialogue": [1, 1], "x": [0.5, 1.5], "words": [["a"], ["a", "b"]]}),
        pa.table({"row": [3], "name": ["s"]}),
    ]
    arrow.write_tables(tables, tmp_path / "a.parquet")
    file = pq.ParquetFile(tmp_path / "a.parquet")
    assert file.read().to_pylist() == [
        {"row": 1, "dialogue": 1, "x": 0.5, "words": ["a"], "name": None},
        {"row": 2, "dialogue": 1, "x": 1.5, "words": ["a", "b"], "name": None},
        {"row": 3, "dialogue": None, "x": None, "words": None, "name": "s"},
    ]
    group = file.metadata.row_group(0)
    columns = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    with_dictionary = {name for name, column in columns.items() if "RLE_DICTIONARY" in column.encodings}
    assert with_dictionary == {"words.list.element", "name"}
    assert {name for name, column in columns.items() if "DELTA_BINARY_PACKED" in column.encodings} == {
        "row",
        "dialogue",
    }


def test_every_column_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = io.BytesIO()
    columns = {"a": [1, 2, 3], "b": [0.5, None, 1.5], "c": pa.array([b"abcd"] * 3, pa.binary(4))}
    pq.write_table(pa.table(columns), sink)
    group = pq.ParquetFile(sink).metadata.row_group(0)
    needed = group.total_byte_size + 3 * (3 * 8 + 4)
    monkeypatch.setattr(arrow, "decoded_limit", lambda _: needed)
    check(sink.getvalue())
    monkeypatch.setattr(arrow, "decoded_limit", lambda _: needed - 1)
    with pytest.raises(InvalidError):
        check(sink.getvalue())


def test_a_small_file_is_read_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends at once may abort while pyarrow still starts them."""
    used: list[bool] = []
    read = pq.ParquetFile.read

    def noted(file: Any, **given: Any) -> pa.Table:
        used.append(given["use_threads"])
        return read(file, **given)

    monkeypatch.setattr(pq.ParquetFile, "read", noted)
    content = written([1, 2, 3])
    for size in (len(content), len(content) - 1):
        monkeypatch.setattr(arrow, "_THREADED_BYTES", size)
        assert arrow.read_parquet(pa.BufferReader(content))["response"].to_pylist() == [1, 2, 3]
    assert used == [False, True]
