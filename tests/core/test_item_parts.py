"""Per-row scores are written in parts and files of blocks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core import arrow, rowtable
from dialeval.core.arrays import Floats
from dialeval.core.arrow import write_tables
from dialeval.core.errors import SettingError
from dialeval.core.files import make_workplace
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run, load
from dialeval.core.rowtable import (
    PROMPT,
    PartWriter,
    RowTable,
    RunPart,
    join_score_parts,
    make_score_table,
    read_scores,
)

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
            assert loaded[name].rows == RowTable.join(tables)
        else:
            assert (loaded[name]["x"].scores, loaded[name].rows) == (None, None)


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


def test_digests_that_come_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without a context are followed by rows that have one."""
    monkeypatch.setattr(rowtable, "HELD_BYTES", 1)
    writer = PartWriter(str(tmp_path))
    tables = [
        RowTable(np.arange(3), digests={}),
        RowTable(np.arange(2), digests={PROMPT: np.array([7], np.uint64)}),
        RowTable(np.arange(3)),
    ]
    for table in tables:
        writer.add("bot", {"turn": {"length": np.ones(len(table))}}, table)
    files = [part.place for part in writer.finish() if part.kind == "rows"]
    read = RowTable.join([RowTable.from_arrow(pq.read_table(file)) for file in files])
    assert read.digests[PROMPT].tolist() == [0, 0, 7, 0, 0]


@pytest.mark.parametrize("group_rows", [1, 3, 100])
def test_blocks_below_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_rows: int) -> None:
    monkeypatch.setattr(arrow, "_GROUP_ROWS", group_rows)
    x = np.array([1.0, np.nan, 3.0, 4.0])
    turns = join_score_parts([{"x": x[:1], "y": x[:1]}, {}, {"x": x[1:3]}, {"x": x[3:]}])
    tables = [make_score_table("a", Level.TURN, turns), make_score_table("a", Level.DIALOGUE, {"z": x[:2]})]
    write_tables(tables, tmp_path / "scores.parquet")
    table = pq.ParquetFile(tmp_path / "scores.parquet").read()
    assert table.column_names == ["system", "level", "row", "x", "y", "z"]
    assert table["row"].to_pylist() == [1, 2, 3, 4, 1, 2]
    assert table["level"].to_pylist() == ["turn"] * 4 + ["dialogue"] * 2
    np.testing.assert_array_equal(read_scores(table, "a", Level.TURN)["x"], x)
    np.testing.assert_array_equal(read_scores(table, "a", Level.TURN)["y"], [1, np.nan, np.nan, np.nan])
    dialogues = read_scores(table, "a", Level.DIALOGUE)
    assert list(dialogues) == ["z"]
    np.testing.assert_array_equal(dialogues["z"], x[:2])
