"""The file of a run's items (`items.parquet`): one line per row of each system and level, one column per key.

Items come in blocks of consecutive rows, so that those of a streamed run never lie in memory together. A key that a
system lacks is null; NaN is a row that could not be scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dialeval.core.arrays import Floats
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
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([*items_schema().items(), *((key, pa.float64()) for key in keys)])
    with pq.ParquetWriter(target, schema, compression="zstd", use_dictionary=["system", "level"]) as writer:
        for system, level, parts in blocks:
            for table in _tables(system, level, parts, schema):
                writer.write_table(table, row_group_size=_GROUP_ROWS)


def _tables(system: str, level: Level, parts: Iterable[Block], schema: pa.Schema) -> Iterator[pa.Table]:
    import pyarrow as pa

    row = 0
    for part in _row_groups(parts):
        size = _rows(part)
        columns: dict[str, Any] = {
            "system": pa.repeat(system, size),
            "level": pa.repeat(level.value, size),
            "row": np.arange(row, row + size),
            **{name: part.get(name, pa.nulls(size, pa.float64())) for name in schema.names[len(_PLACES) :]},
        }
        yield pa.table(columns, schema=schema)
        row += size


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
    """The items of one system and level by key, out of the table that was written."""
    import pyarrow.compute as pc

    own = table.filter(pc.and_(pc.equal(table["system"], system), pc.equal(table["level"], level.value)))
    if not np.array_equal(own["row"].to_numpy(), np.arange(len(own))):
        raise UnfitError(f"the rows of {system} are not numbered from 0 on")
    keys = [name for name in own.column_names if name not in _PLACES]
    items = {key: own[key].to_numpy() for key in keys if not len(own) or own[key].null_count < len(own)}
    for key, values in items.items():
        if np.abs(values).max(initial=0.0, where=~np.isnan(values)) > LARGEST:
            raise UnfitError(f"{key} of {system} has values beyond {LARGEST:g}, too large to compute with")
    return items
