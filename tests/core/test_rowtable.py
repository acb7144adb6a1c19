""""""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core import arrow, rowtable
from dialeval.core.arrays import Floats
from dialeval.core.arrow import check_decoded_size
from dialeval.core.columns import FieldColumn, RaggedColumn, TextColumn
from dialeval.core.errors import SettingError
from dialeval.core.files import make_workplace
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run, load
from dialeval.core.rowtable import (
    NO_TURN,
    PartWriter,
    RowTable,
    RunPart,
)
from dialeval.core.validation import InvalidError


def table(**changes: object) -> RowTable:
    given: dict[str, object] = {
        "offsets": np.array([0, 2, 3]),
        "dialogues": ["d1", "d2"],
        "turns": np.array([1, NO_TURN, 1]),
        "texts": {
            "context": RaggedColumn.from_lists([["hello", "hi"], [], ["wie geht's"]]),
            "response": TextColumn.from_strings(["yes", "", "naïve 🙂"]),
        },
    }
    return RowTable(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dialogues": None},
        {"turns": None},
        {"texts": {}},
        {"objects": {"calls": FieldColumn.of([[{"name": "f", "arguments": {"a": [1.5, None]}}], None, []])}},
        {"dialogues": None, "turns": None, "texts": {}, "offsets": np.arange(4)},
    ],
)
def test_what_was_saved_comes_back(changes: dict[str, object]) -> None:
    before = table(**changes)
    after = RowTable.from_arrow(before.to_arrow("damd"))
    assert after == before
    assert len(after) == 3


def test_the_texts_of_very_many_rows_are_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowtable, "SAVED_TEXT_ROWS", 2)
    assert RowTable.from_arrow(table().to_arrow("damd")) == table(texts={})


def test_rows_are_numbered_from_0_on() -> None:
    saved = table().to_arrow("damd")
    assert saved["row"].to_pylist() == list(range(1, len(saved) + 1))
    with pytest.raises(InvalidError, match="not numbered from 1 on"):
        RowTable.from_arrow(saved.take([1, 0, *range(2, len(saved))]))


def test_a_field_that_is_no_list_is_refused() -> None:
    saved = table().to_arrow("damd").append_column("field/domain", pa.array(["x", "y", "z"]))
    with pytest.raises(InvalidError, match="not a list of texts"):
        RowTable.from_arrow(saved)


@pytest.mark.parametrize("name", ["response", "field/domain"])
def test_truths_are_no_texts(name: str) -> None:
    saved = table(texts={}).to_arrow("damd").append_column(name, pa.array([True, False, True]))
    with pytest.raises(InvalidError, match="a column of texts holds no texts"):
        RowTable.from_arrow(saved)


@pytest.mark.parametrize("text", ["", "[", "{}", "[1]", "[" * 5000])
def test_objects_of_another_form_are_refused(text: str) -> None:
    saved = table(texts={}).to_arrow("damd").append_column("trials", pa.array([[], [text], []]))
    with pytest.raises(InvalidError, match="a column of objects holds something else"):
        RowTable.from_arrow(saved)


def test_lists_with_gaps_are_refused() -> None:
    saved = table(texts={}).to_arrow("damd")
    with_none = saved.append_column("context", pa.array([["a"], None, []]))
    assert list(RowTable.from_arrow(with_none).texts["context"]) == [["a"], [], []]
    with pytest.raises(InvalidError, match="a list of texts has gaps"):
        RowTable.from_arrow(saved.append_column("context", pa.array([["a", None], [], []])))


# Per-row scores are written in parts and files of blocks.


sizes = st.lists(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), max_size=3), max_size=4)


def block(first: int, dialogues: list[int]) -> tuple[dict[str, dict[str, Floats]], RowTable]:
    """The items of rows in dialogues of these sizes, whose values go on from a number."""
    rows = sum(dialogues)
    offsets = np.concatenate(([0], np.cumsum(dialogues))).astype(np.int64)
    values = np.arange(first, first + rows, dtype=float)
    places = RowTable(offsets, [f"d{first}-{number}" for number in range(len(dialogues))], np.arange(rows))
    return {"turn": {"x": values}, "dialogue": {"z": np.full(len(dialogues), float(first))}}, places


@settings(max_examples=30)
@given(sizes, st.sampled_from([1, 100, 1 << 22]), st.booleans())
def test_any_parts_and_blocks(parts: list[list[list[int]]], held: int, away: bool) -> None:
    """Two systems, of which the second is called otherwise in the run."""
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        make_workplace(folder) as place,
    ):
        patch.setattr(rowtable, "HELD_BYTES", held)
        first, tables, firsts, written = 0, [], [], []
        for part in parts:
            writer = PartWriter(str(place / "missing") if away else str(place))
            for dialogues in part:
                values, places = block(first, dialogues)
                for system in ("a", "b"):
                    writer.add(system, values, places)
                tables.append(places)
                firsts.append(values["dialogue"]["z"])
                first += sum(dialogues)
            written += [(each, {"a": "a", "b": "other"}) for each in writer.finish()]
        assert all(isinstance(each.place, bytes) == away for each, _ in written)
        ends = sum(len(each.offsets) - 1 for each in tables)
        turns = Estimate((first - 1) / 2, 0.0, first, first)
        mean = float(np.concatenate(firsts).mean()) if firsts else 0.0
        whole = Estimate(mean, 0.0, ends, ends, level=Level.DIALOGUE)
        run = Run({name: Result({"x": turns, "z": whole}) for name in ("a", "other")}, "0")
        run.save(folder, written)
        names = {path.name for path in Path(folder).iterdir() if not path.name.startswith(".")}
        assert names == {"run.json", *(f"{kind}-{at:05}.parquet" for kind, at in numbered(written))}
        loaded = load(folder)
    for name in ("a", "other"):
        if first:
            np.testing.assert_array_equal(loaded[name]["x"].scores, np.arange(first))
            np.testing.assert_array_equal(loaded[name]["z"].scores, np.concatenate(firsts))
            assert loaded[name].table == RowTable.join(tables)
        else:
            assert (loaded[name]["x"].scores, loaded[name].table) == (None, None)


def numbered(written: list[tuple[RunPart, dict[str, str]]]) -> list[tuple[str, int]]:
    kinds = [part.kind for part, _ in written]
    return [(kind, at) for kind in ("scores", "rows") for at in range(kinds.count(kind))]


def test_a_place_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    writer = PartWriter(str(tmp_path))
    writer.add("s", {"turn": {"x": np.array([1.0])}}, None)
    with pytest.raises(SettingError, match=r"scores cannot be written to .*No space left on device"):
        writer.finish()


# Small Parquet files that hold gigabytes are refused.


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
