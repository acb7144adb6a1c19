"""Runs whose items never lie in memory together: they are written to `items.parquet` block by block.

The folder is the same as that of `Run.save`, and `load` reads it back. What is known of rows beside their values
(`rows.parquet`) is left where it is: in the shards.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.files import replacing, write_bytes
from dialeval.core.fold import Level
from dialeval.core.result import ITEMS_FILE, RUN_FILE, Run, run_document

if TYPE_CHECKING:
    import pyarrow as pa

Block = Mapping[str, Floats]
"""The items of consecutive rows by key."""

Blocks = tuple[str, Level, Iterable[Block]]
"""A system, a level, and all of its items in order."""

_GROUP_ROWS = 1 << 16
_HASHED_BYTES = 1 << 20


def save_streamed(run: Run, folder: str | os.PathLike[str], blocks: Iterable[Blocks] | None) -> Path:
    """Write a run and its items, which come by system and level, a block of rows at a time; None: without items."""
    folder = Path(folder)
    digest = _write_items(folder / ITEMS_FILE, [] if blocks is None else run.keys_in_order, blocks or ())
    write_bytes(folder / RUN_FILE, run_document(run, {"items": {"file": ITEMS_FILE, "sha256": digest}}))
    return folder


def _write_items(target: Path, keys: Sequence[str], blocks: Iterable[Blocks]) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    places = [("system", pa.string()), ("level", pa.string()), ("row", pa.int64())]
    schema = pa.schema([*places, *((key, pa.float64()) for key in keys)])
    with replacing(target) as beside:
        with pq.ParquetWriter(beside, schema, compression="zstd", use_dictionary=["system", "level"]) as writer:
            for system, level, parts in blocks:
                for table in _tables(system, level, parts, schema):
                    writer.write_table(table, row_group_size=_GROUP_ROWS)
        return _sha256(beside)


def _tables(system: str, level: Level, parts: Iterable[Block], schema: pa.Schema) -> Iterator[pa.Table]:
    import pyarrow as pa

    row = 0
    for part in _gathered(parts):
        size = len(next(iter(part.values())))
        columns: dict[str, Any] = {
            "system": pa.repeat(system, size),
            "level": pa.repeat(level.value, size),
            "row": np.arange(row, row + size),
            **{name: part.get(name, pa.nulls(size, pa.float64())) for name in schema.names[3:]},
        }
        yield pa.table(columns, schema=schema)
        row += size


def _gathered(parts: Iterable[Block]) -> Iterator[Block]:
    """Small blocks joined: a row group of a few rows is slow to read."""
    held: list[Block] = []
    rows = 0
    for part in parts:
        if not part:
            continue
        held.append(part)
        rows += len(next(iter(part.values())))
        if rows >= _GROUP_ROWS:
            yield _joined(held)
            held, rows = [], 0
    if held:
        yield _joined(held)


def _joined(held: list[Block]) -> Block:
    keys = dict.fromkeys(key for part in held for key in part)
    missing = [np.full(len(next(iter(part.values()))), np.nan) for part in held]
    return {
        key: np.concatenate([part.get(key, none) for part, none in zip(held, missing, strict=True)]) for key in keys
    }


def _sha256(path: Path) -> str:
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_HASHED_BYTES):
            sha.update(chunk)
    return sha.hexdigest()
