"""Item stores: every value at its row, NaN where a chunk has none, and the same from memory and from disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.columns import TextColumn
from dialeval.core.needs import Need
from dialeval.core.states import to_bytes
from dialeval.data.rows.system import Rows
from dialeval.data.shards.chunks import cut_sources
from dialeval.data.shards.sources import memory_sources
from dialeval.engine.items import DiskItems, ItemStore, MemoryItems
from dialeval.engine.job import ChunkItems, SystemItems


def rows_of(sizes: list[int]) -> Rows:
    """Rows in dialogues of the given sizes."""
    names = [f"d{number}" for number, size in enumerate(sizes) for _ in range(size)]
    texts = TextColumn.from_strings(["x"] * len(names))
    return Rows("s", {Need.RESPONSE: texts}, TextColumn.from_strings(names))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=9), st.integers(1, 6))
def test_items_stand_at_their_rows(sizes: list[int], batch_rows: int) -> None:
    chunks = cut_sources(memory_sources([rows_of(sizes)]), batch_rows)
    memory, row, dialogue = MemoryItems(chunks), 0, 0
    with DiskItems.temporary() as disk:
        for number, chunk in enumerate(chunks):
            turns, dialogues = chunk.size, len(chunk.rows.dialogue_offsets()) - 1  # type: ignore[union-attr]
            values = {"turn": {"a": np.arange(row, row + turns, dtype=float)}}
            values["dialogue"] = {"b": np.arange(dialogue, dialogue + dialogues, dtype=float)}
            if number % 2:
                values["turn"]["odd"] = values["turn"]["a"]
            for store in (memory, disk, ItemStore()):
                store.put("metrics", number, {}, ChunkItems({(0, "s"): SystemItems(values)}))
            row, dialogue = row + turns, dialogue + dialogues
            [items] = disk.items(number)
            assert items[0, "s"].values["turn"]["a"].tolist() == values["turn"]["a"].tolist()
    columns = memory.columns((0, "s"))
    assert columns["a"].tolist() == list(range(sum(sizes)))
    assert columns["b"].tolist() == list(range(len(sizes)))
    if "odd" in columns:
        ends = np.cumsum([chunk.size for chunk in chunks])
        in_odd_chunk = np.searchsorted(ends, np.arange(sum(sizes)), side="right") % 2 == 1
        np.testing.assert_array_equal(columns["odd"], np.where(in_odd_chunk, columns["a"], np.nan))


def test_a_store_that_drops_items_has_none() -> None:
    store = ItemStore()
    store.put("metrics", 0, {}, ChunkItems({(0, "s"): SystemItems({"turn": {"a": np.zeros(1)}})}))
    assert not store.keeps_items
    assert (list(store.items(0)), store.columns((0, "s")), store.contributions((0, "s")), store.finished("facts")) == (
        [],
        {},
        {},
        set(),
    )


def test_items_that_a_worker_left_in_files_come_first() -> None:
    def items(value: float) -> dict[tuple[int, str], SystemItems]:
        return {(0, "s"): SystemItems({"turn": {"a": np.array([value])}})}

    with DiskItems.temporary() as store:
        assert store.spool is not None
        part = Path(store.spool) / "part-x"
        part.write_bytes(to_bytes(items(1.0)))
        store.put("metrics", 0, {}, ChunkItems(items(2.0), (str(part),)))
        assert [each[0, "s"].values["turn"]["a"].tolist() for each in store.items(0)] == [[1.0], [2.0]]
    assert not part.exists()
