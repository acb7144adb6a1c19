"""Item stores: where the values of rows are kept until the run is complete.

- `ItemStore` drops them: nobody asked for items.
- `MemoryItems`: for rows in memory. Columns of known length are filled in chunk by chunk; a large one lies in a
  temporary file. It also collects what rows add to corpus values.
- `PartItems`: for rows that are read and forgotten. Workers write the items of a chunk to files in a workplace, and the
  store knows the files. The journal is one that keeps them (`engine.journal`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.core.arrays import Floats, release, unscored
from dialeval.core.contributions import ContributionCollector, Contributions
from dialeval.core.files import force
from dialeval.core.fold import Level
from dialeval.core.rowtable import ItemPart
from dialeval.data.shards.chunks import Chunk, MemoryChunk
from dialeval.engine.job import ChunkItems, Stage, System, SystemStates

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class ItemStore:
    """Keeps nothing."""

    keeps_states = False
    keeps_items = False
    workplace: str | None = None
    """A folder in which workers write items; it goes when the store does."""

    def finished(self, stage: Stage) -> set[int]:
        """The numbers of the chunks that need not be folded again."""
        return set()

    def put(self, stage: Stage, number: int, states: SystemStates, items: ChunkItems) -> None:
        """Keep the result of a chunk."""

    def states(self, stage: Stage, number: int) -> SystemStates:
        """The states of a finished chunk."""
        raise KeyError(number)

    def parts(self, number: int) -> Sequence[ItemPart]:
        """The files with the items of a chunk, in order."""
        return ()

    def columns(self, system: System) -> Mapping[str, Floats]:
        """The items of all rows of a system by key, where they are in memory."""
        return {}

    def contributions(self, system: System) -> dict[str, Contributions]:
        """What the rows of a system add to corpus values, where that is kept."""
        return {}


class MemoryItems(ItemStore):
    """Keeps items in memory, a column per system and key."""

    keeps_items = True

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks: list[Chunk] = list(chunks)
        self._chunks = [chunk for chunk in chunks if isinstance(chunk, MemoryChunk)]
        self._sizes: dict[System, tuple[int, int]] = {}
        for chunk in self._chunks:
            dialogues = len(chunk.rows.dialogue_offsets()) - 1
            ends = (chunk.first_row + len(chunk.rows), chunk.first_dialogue + dialogues)
            self._sizes[chunk.source, chunk.rows.system] = ends
        self._columns: dict[System, dict[str, Floats]] = {}
        self._contributions = {system: ContributionCollector(rows) for system, (rows, _) in self._sizes.items()}

    def put(self, stage: Stage, number: int, states: SystemStates, items: ChunkItems) -> None:
        chunk = self._chunks[number]
        if stage == "metrics":
            for system, each in items.systems.items():
                for level, columns in each.values.items():
                    first = chunk.first_row if level == Level.TURN.value else chunk.first_dialogue
                    for key, values in columns.items():
                        self._fill(system, Level(level), key, first, values)
                self._contributions[system].put(each.contributions)

    def _fill(self, system: System, level: Level, key: str, first: int, values: Floats) -> None:
        """Put values into a column; where a chunk has none for a key, they stay NaN."""
        columns = self._columns.setdefault(system, {})
        if key not in columns:
            rows, dialogues = self._sizes[system]
            columns[key] = unscored(rows if level is Level.TURN else dialogues)
        part = columns[key][first : first + len(values)]
        part[:] = values
        release(part)

    def columns(self, system: System) -> Mapping[str, Floats]:
        return self._columns.get(system, {})

    def contributions(self, system: System) -> dict[str, Contributions]:
        return self._contributions[system].result()


class PartItems(ItemStore):
    """Knows the files that workers wrote; threads wait for the disk while further chunks are folded."""

    keeps_items = True

    def __init__(self, workplace: Path, threads: ThreadPoolExecutor) -> None:
        self.workplace, self._threads = str(workplace), threads
        self._parts: dict[int, tuple[ItemPart, ...]] = {}

    def put(self, stage: Stage, number: int, states: SystemStates, items: ChunkItems) -> None:
        if stage == "metrics":
            self._parts[number] = items.parts
            for part in items.parts:
                if isinstance(part.place, str):
                    self._threads.submit(force, Path(part.place))

    def parts(self, number: int) -> Sequence[ItemPart]:
        return self._parts[number]
