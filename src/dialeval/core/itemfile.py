"""A file of a run's items (`items.parquet`): one line per row of each system and level, one column per key.

A key that a system lacks is null; NaN is a row that could not be scored. The items of a streamed run are many such
files (`item_parts`), each of consecutive rows that are numbered from 0 on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.arrow_arrays import number_array, numbers_of, repeated_text
from dialeval.core.fold import Level
from dialeval.core.gate import UnfitError

if TYPE_CHECKING:
    import pyarrow as pa

Block: TypeAlias = Mapping[str, Floats]
"""The items of consecutive rows by key."""

Blocks: TypeAlias = tuple[str, Level, Iterable[Block]]
"""A system, a level, and all of its items in order."""

LARGEST = 1e100
"""No metric has larger values, and the squares of very many such values are numbers still."""

_PLACES = ("system", "level", "row")
_GROUP_ROWS = 1 << 16
"""Rows of a row group; smaller blocks are joined, since a row group of a few rows is slow to read."""


def write_items(target: Path, keys: Iterable[str], blocks: Iterable[Blocks]) -> None:
    """Write the items of all systems, with a column for each of the keys."""
    with ItemWriter(target, keys) as writer:
        for system, level, parts in blocks:
            for part in _row_groups(parts):
                writer.add(system, level, part)


class ItemWriter:
    """Writes items to a file as they come; rows are numbered for each system and level. Used in a `with` block."""

    def __init__(self, target: Path, keys: Iterable[str]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.keys = list(keys)
        self._schema = pa.schema([*items_schema().items(), *((key, pa.float64()) for key in self.keys)])
        self._rows: dict[tuple[str, Level], int] = defaultdict(int)
        self._writer: Any = pq.ParquetWriter(
            target, self._schema, compression="zstd", use_dictionary=["system", "level"]
        )

    def __enter__(self) -> ItemWriter:
        return self

    def __exit__(self, *_error: object) -> None:
        self._writer.close()

    def add(self, system: str, level: Level, block: Block) -> None:
        """Write the next rows of a system."""
        import pyarrow as pa

        size, row = _rows(block), self._rows[system, level]
        columns: dict[str, Any] = {
            "system": repeated_text(system, size),
            "level": repeated_text(level.value, size),
            "row": number_array(np.arange(row, row + size)),
            **{key: number_array(block[key]) if key in block else pa.nulls(size, pa.float64()) for key in self.keys},
        }
        self._writer.write_table(pa.table(columns, schema=self._schema), row_group_size=_GROUP_ROWS)
        self._rows[system, level] = row + size


def _row_groups(parts: Iterable[Block]) -> Iterator[Block]:
    held: list[Block] = []
    for part in filter(None, parts):
        held.append(part)
        if sum(map(_rows, held)) >= _GROUP_ROWS:
            yield joined(held)
            held = []
    if held:
        yield joined(held)


def joined(blocks: Iterable[Block]) -> dict[str, Floats]:
    """Blocks of consecutive rows as one; NaN where one of them lacks a key."""
    held = [block for block in blocks if block]
    if len(held) == 1:
        return dict(held[0])
    keys = dict.fromkeys(key for part in held for key in part)
    missing = [np.full(_rows(part), np.nan) for part in held]
    return {
        key: np.concatenate([part.get(key, none) for part, none in zip(held, missing, strict=True)]) for key in keys
    }


def _rows(block: Block) -> int:
    return len(next(iter(block.values())))


def items_schema() -> dict[str, pa.DataType]:
    """The columns that the table has beside those of the keys."""
    import pyarrow as pa

    return dict(zip(_PLACES, (pa.string(), pa.string(), pa.int64()), strict=True))


def items_of(table: pa.Table, system: str, level: Level) -> dict[str, Floats]:
    """The items of a level by key, out of the lines of one system in the table that was written."""
    import pyarrow.compute as pc

    own = table.filter(pc.equal(table["level"], repeated_text(level.value, 1)[0]))
    if not np.array_equal(numbers_of(own["row"]), np.arange(len(own))):
        raise UnfitError(f"the rows of {system} are not numbered from 0 on")
    keys = [name for name in own.column_names if name not in _PLACES]
    items = {key: numbers_of(own[key]) for key in keys if not len(own) or own[key].null_count < len(own)}
    for key, values in items.items():
        if np.abs(values).max(initial=0.0, where=~np.isnan(values)) > LARGEST:
            raise UnfitError(f"{key} of {system} has values beyond {LARGEST:g}, too large to compute with")
    return items
