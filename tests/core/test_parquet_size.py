"""Small Parquet files that hold gigabytes are refused before they are decoded; all others are not."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.core import parquet_size
from dialeval.core.gate import UnfitError
from dialeval.core.parquet_size import check_decoded_size

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
    with pytest.raises(UnfitError, match="more than 200 times the size of the file"):
        check(content)


def test_numbers_and_nested_values_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = written(pa.array([0]).take(pa.array([0] * 4_000_000, pa.int32())), row_group_size=1 << 30)
    check(numbers)
    with monkeypatch.context() as patch, pytest.raises(UnfitError):
        patch.setattr(parquet_size, "SURELY_DECODED", 1 << 24)
        check(numbers)
    offsets = pa.array([0, 3000], pa.int32())
    with pytest.raises(UnfitError):
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
