"""Arrow arrays are those that pyarrow makes; small Parquet files that hold gigabytes are refused."""

from __future__ import annotations

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
from dialeval.core.arrow import check_decoded_size, list_array, repeat_text, text_array
from dialeval.core.validation import InvalidError

TEXTS = [["a", "", "ü", "中文"], ["a", None, ""], [None, None], []]


@pytest.mark.parametrize("values", TEXTS)
def test_texts_are_what_arrow_makes_of_them(values: list[str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = pa.array(values, pa.string())
    assert text_array(values).equals(expected)
    monkeypatch.setattr(arrow, "_MOST_BYTES", 0)
    assert text_array(values).equals(expected)


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
