"""Parts of a run's items: Parquet files of consecutive rows, written where the rows were scored.

A worker writes the items of its chunk, and what its rows are, to files in a folder that belongs to the run, and gives
back their names and digests. The run takes the files as they are; nobody reads and writes items again. Where that
folder is not to be seen (a cluster without shared storage) the content comes back in place of the name.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from dialeval.core.arrays import Floats
from dialeval.core.arrow_arrays import repeated_text
from dialeval.core.errors import SettingError
from dialeval.core.files import sha256_of
from dialeval.core.fold import Level
from dialeval.core.itemfile import ItemWriter, joined
from dialeval.core.rowtable import PlacesWriter, RowTable

PartKind: TypeAlias = Literal["items", "rows"]

HELD_BYTES = 1 << 22
"""Items from this size on are written: a packed file of any length is one chunk."""


class ItemPart(NamedTuple):
    """A file of items, or of what rows are."""

    kind: PartKind
    sha256: str
    place: str | bytes
    """Its path, or what it holds."""

    def dialogue_ids(self, system: str) -> list[str]:
        """The ids of a system's dialogues, out of a file of what rows are; one for each row."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        source = pa.BufferReader(self.place) if isinstance(self.place, bytes) else self.place
        table = pq.ParquetFile(source).read(["system", "dialog_id"])
        ids: list[str] = (
            table.filter(pc.equal(table["system"], repeated_text(system, 1)[0]))["dialog_id"].drop_null().to_pylist()
        )
        return ids


class PartWriter:
    """Writes the items of consecutive rows, of any number of systems, as they come."""

    def __init__(self, folder: str) -> None:
        self._stack = ExitStack()
        self._away = not Path(folder).is_dir()
        self._folder = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="dialeval-")) if self._away else folder
        )
        self._held: dict[str, list[tuple[Mapping[str, Mapping[str, Floats]], RowTable | None]]] = {}
        self._bytes = 0
        self._items: ItemWriter | None = None
        self._places: PlacesWriter | None = None
        self._written: list[tuple[PartKind, Path]] = []

    def add(self, system: str, values: Mapping[str, Mapping[str, Floats]], places: RowTable | None) -> None:
        """Take in the next rows of a system: values by level and key, and what the rows are."""
        self._held.setdefault(system, []).append((values, places))
        self._bytes += sum(column.nbytes for columns in values.values() for column in columns.values())
        self._bytes += 0 if places is None else places.nbytes
        if self._bytes >= HELD_BYTES:
            self._write()

    def parts(self) -> tuple[ItemPart, ...]:
        """All that was written."""
        with self._stack:
            self._write()
            self._close()
            return tuple(
                ItemPart(kind, sha256_of(file), file.read_bytes() if self._away else str(file))
                for kind, file in self._written
            )

    def _write(self) -> None:
        places = {
            system: RowTable.joined(tables)
            for system, several in self._held.items()
            if (tables := [table for _, table in several if table is not None])
        }
        writer = self._places
        try:
            if writer is not None and not all(map(writer.has_columns_for, places.values())):
                self._close()  # a file has its columns from the start
            self._write_items()
            for system, table in places.items():
                digests = {name for each in places.values() for name in each.digests}
                self._places = self._places or PlacesWriter(self._new("rows"), digests)
                self._places.add(system, table)
        except OSError as error:
            what = f"items cannot be written to {self._folder} ({error.strerror})"
            raise SettingError(f"{what}; make room there") from error
        self._held, self._bytes = {}, 0

    def _write_items(self) -> None:
        blocks = {
            (system, level): joined([values[level.value] for values, _ in several if level.value in values])
            for system, several in self._held.items()
            for level in Level
        }
        keys = list(dict.fromkeys(key for block in blocks.values() for key in block))
        if self._items is not None and not set(keys) <= set(self._items.keys):
            self._close()  # a file has its columns from the start
        if keys:
            self._items = self._items or ItemWriter(self._new("items"), keys)
            for (system, level), block in blocks.items():
                if block:
                    self._items.add(system, level, block)

    def _close(self) -> None:
        """Close the files at hand, both, so that those of one number are of the same rows."""
        for writer in (self._items, self._places):
            if writer is not None:
                writer.__exit__()
        self._items = self._places = None

    def _new(self, kind: PartKind) -> Path:
        # A name of its own: after a death another worker may be writing the items of the same chunk.
        file = self._folder / f"{kind}-{os.urandom(16).hex()}.parquet"
        self._written.append((kind, file))
        return file
