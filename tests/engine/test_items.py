"""Item stores: every value at its row, NaN where a chunk has none, and the files of every chunk."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import TextColumn
from dialeval.core.rowtable import RunPart
from dialeval.engine import stores as items
from dialeval.engine.stores import MemoryItems, PartItems
from dialeval.engine.worker import ChunkScores, SystemScores
from dialeval.io.chunks import split_sources
from dialeval.io.rows import Rows
from dialeval.io.sources import wrap_systems


def rows_of(sizes: list[int]) -> Rows:
    """Rows in dialogues of the given sizes."""
    names = [f"d{number}" for number, size in enumerate(sizes) for _ in range(size)]
    texts = TextColumn.from_strings(["x"] * len(names))
    return Rows("s", {inputs.RESPONSE: texts}, TextColumn.from_strings(names))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=9), st.integers(1, 6))
def test_items_stand_at_their_rows(sizes: list[int], batch_rows: int) -> None:
    chunks = split_sources(wrap_systems([rows_of(sizes)]), batch_rows)
    memory, row, dialogue = MemoryItems(chunks), 0, 0
    for number, chunk in enumerate(chunks):
        turns, dialogues = chunk.size, len(chunk.rows.dialogue_offsets()) - 1  # type: ignore[union-attr]
        values = {"turn": {"a": np.arange(row, row + turns, dtype=float)}}
        values["dialogue"] = {"b": np.arange(dialogue, dialogue + dialogues, dtype=float)}
        if number % 2:
            values["turn"]["odd"] = values["turn"]["a"]
        memory.put("metrics", number, {}, ChunkScores({(0, "s"): SystemScores(values)}))
        row, dialogue = row + turns, dialogue + dialogues
    columns = memory.read_columns((0, "s"))
    assert columns["a"].tolist() == list(range(sum(sizes)))
    assert columns["b"].tolist() == list(range(len(sizes)))
    if "odd" in columns:
        ends = np.cumsum([chunk.size for chunk in chunks])
        in_odd_chunk = np.searchsorted(ends, np.arange(sum(sizes)), side="right") % 2 == 1
        np.testing.assert_array_equal(columns["odd"], np.where(in_odd_chunk, columns["a"], np.nan))


def test_a_store_of_parts_knows_the_files_of_every_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[str] = []
    monkeypatch.setattr(items, "force", lambda file: forced.append(str(file)))
    parts = [RunPart("scores", "0" * 64, "a"), RunPart("rows", "1" * 64, b"b"), RunPart("scores", "2" * 64, "c")]
    with ThreadPoolExecutor(2) as threads:
        store = PartItems(tmp_path, threads)
        store.put("facts", 0, {}, ChunkScores())
        store.put("metrics", 1, {}, ChunkScores(parts=tuple(parts[2:])))
        store.put("metrics", 0, {}, ChunkScores(parts=tuple(parts[:2])))
    assert sorted(forced) == ["a", "c"]
    assert store.workplace == str(tmp_path)
    assert [*store.list_parts(0), *store.list_parts(1)] == parts
