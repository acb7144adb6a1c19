"""Rows of a run and their per-row scores (items), in memory and as Parquet files.

`RowTable` holds the rows of a system: the dialogue and turn of each, and its texts. Dialogues are the clusters of an
analysis, ids and turns match rows with those of other files, and texts are shown in reports. A run keeps the table of
each system and saves it next to its items (`rows.parquet`), together with further fields that were kept for slices. The
texts of very many rows are not saved, nor those of rows that were read in chunks and released; digests of their prompts
and references are, so that systems can be aligned without them. A run without the table does not know its dialogues,
and cannot be compared or resampled.

A file of scores (`scores.parquet`) has one line per row of each system and level and one column per key. A key that a
system lacks is null; NaN is a row that could not be scored.

A run over rows that are read in chunks has many such files (`RunPart`), each of consecutive rows that are numbered
from 0 on. A worker writes those of its chunk to a folder of the run and returns their names and digests
(`PartWriter`); the run takes the files as they are. Where the worker does not see that folder (a cluster without shared
storage) the content is returned in place of the name.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval.core import inputs
from dialeval.core.arrays import EqualByFields, Floats, Ints, offsets_of, row_numbers
from dialeval.core.arrow import empty_text, list_array, number_array, numbers_of, repeat_text, text_array, write_tables
from dialeval.core.columns import FieldColumn, RaggedColumn, SharedColumn, TextColumn
from dialeval.core.files import write_scratch
from dialeval.core.fold import Level
from dialeval.core.validation import InvalidError

if TYPE_CHECKING:
    import pyarrow as pa

RUN_FILE = "run.json"
"""The document of a saved run."""
NO_TURN = -1
"""The number in `RowTable.turns` of a row without a turn number."""

SAVED_TEXT_ROWS = 100_000
"""Texts of systems with more rows are not saved: a report shows fewer, and the files would be large."""

_NAME_BYTES = 70
"""Of a short string."""

_PLACES = ("system", "row", "dialogue", "dialog_id", "turn")
_DIGESTS = ("digest/prompt", "digest/reference", "digest/response", "digest/trials")
PROMPT, REFERENCE, RESPONSE, TRIALS = "prompt", "reference", "response", "trials"
"""The names of digests: of the user turns before a response, its references, itself, and the trials of a task."""
_PLACE_NAME = re.compile(r"(row|line) \d+")
_DIGEST = "digest/"
"""Before the name of a digest in a file."""
_FIELD = "field/"
"""Before the name of a field that was kept: a field may have the name of any other column."""
_OBJECTS = tuple(map(str, (inputs.TRIALS, inputs.CALLS, inputs.EXPECTED_CALLS)))
_CONTINUES = "_continues"
"""After the name of a column of lists: whether a row has the texts of the row before, and then its own."""

Texts: TypeAlias = TextColumn | RaggedColumn | SharedColumn
Digests: TypeAlias = npt.NDArray[np.uint64]
"""A number per row that is equal for equal texts; 0 for a row without texts."""


@dataclass(frozen=True, eq=False, slots=True)
class RowTable(EqualByFields):
    """The rows of one system; dialogue `k` is the rows `offsets[k]` to `offsets[k + 1]`."""

    offsets: Ints
    dialogues: Sequence[str | None] | None = None
    """The id of each dialogue, empty for one without an id; None where no dialogue has one."""
    turns: Ints | None = None
    """The turn of each row, `NO_TURN` where it has none."""
    texts: Mapping[str, Texts] = field(default_factory=dict)
    """Columns of texts by name: `response`, `context`, `reference`, whatever the rows have."""
    fields: Mapping[str, RaggedColumn] = field(default_factory=dict)
    """Further fields of the rows that were kept: the values of each row as texts, none, one or several."""
    digests: Mapping[str, Digests] = field(default_factory=dict)
    """Digests of the rows by name: `PROMPT`, `REFERENCE`, whatever the rows have; see `text.row_digests`."""
    objects: Mapping[str, FieldColumn] = field(default_factory=dict)
    """Columns of objects by name: calls and trials, a list of plain objects or None per row; JSON in files."""

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @property
    def nbytes(self) -> int:
        """About how much memory the rows take without their texts."""
        turns = 0 if self.turns is None else self.turns.nbytes
        digests = sum(column.nbytes for column in self.digests.values())
        return self.offsets.nbytes + turns + digests + _NAME_BYTES * len(self.dialogues or ())

    @property
    def clusters(self) -> Ints:
        """The number of the dialogue that each row belongs to."""
        return row_numbers(self.offsets)

    def read_ids(self) -> list[str | None]:
        """Return the id of each dialogue; a name that only says where a row is in its file is none."""
        names = self.dialogues or [None] * (len(self.offsets) - 1)
        return [None if not name or (name[0] in "rl" and _PLACE_NAME.fullmatch(name)) else name for name in names]

    def take(self, rows: Ints) -> RowTable:
        """Return some of the rows in the given order, in which rows of one dialogue are neighbors."""
        clusters = self.clusters[rows]
        firsts = np.flatnonzero(np.diff(clusters, prepend=-1))
        return RowTable(
            np.append(firsts, len(rows)).astype(np.int64),
            None if self.dialogues is None else [self.dialogues[number] for number in clusters[firsts].tolist()],
            None if self.turns is None else self.turns[rows],
            {name: column.take(rows) for name, column in self.texts.items()},
            {name: column.take(rows) for name, column in self.fields.items()},
            {name: column[rows] for name, column in self.digests.items()},
            {name: column.take(rows) for name, column in self.objects.items()},
        )

    @classmethod
    def join(cls, parts: Sequence[RowTable]) -> RowTable:
        """Join rows without texts; no dialogue continues from one part to the next."""
        if len(parts) == 1:
            return parts[0]
        names = [part.dialogues or [""] * (len(part.offsets) - 1) for part in parts]
        turns = [np.full(len(part), NO_TURN) if part.turns is None else part.turns for part in parts]
        return cls(
            offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
            [name for several in names for name in several]
            if any(part.dialogues is not None for part in parts)
            else None,
            np.concatenate(turns) if any(part.turns is not None for part in parts) else None,
            digests={
                name: np.concatenate([part.digests.get(name, np.zeros(len(part), np.uint64)) for part in parts])
                for name in dict.fromkeys(name for part in parts for name in part.digests)
            },
        )

    def texts_at(self, name: str, row: int) -> list[str]:
        """Return the texts of a row in a column; none where there is no such column."""
        texts = self.texts[name][row] if name in self.texts else ()
        return [texts] if isinstance(texts, str) else list(texts)

    def objects_at(self, name: str, row: int) -> list[Mapping[str, Any]] | None:
        """Return the objects of a row in a column; None where it has none."""
        return self.objects[name][row] if name in self.objects else None

    def to_arrow(self, system: str) -> pa.Table:
        """Return the table as it is saved, one line per row; `row` and `dialogue` count from 1."""
        import pyarrow as pa

        rows, clusters = len(self), self.clusters
        columns: dict[str, object] = {
            "system": repeat_text(system, rows),
            "row": number_array(np.arange(1, rows + 1)),
            "dialogue": number_array(clusters + 1),
        }
        if self.dialogues is not None:
            columns["dialog_id"] = text_array(self.dialogues).take(number_array(clusters))
        if self.turns is not None:
            columns["turn"] = number_array(self.turns, self.turns == NO_TURN)
        columns |= {_DIGEST + name: number_array(column.view(np.int64)) for name, column in self.digests.items()}
        if rows <= SAVED_TEXT_ROWS:
            for name, column in {**self.texts, **{n: each.to_texts() for n, each in self.objects.items()}}.items():
                columns |= _text_arrays(name, column)
        for name, values in self.fields.items():
            columns |= _text_arrays(_FIELD + name, values)
        return pa.table(columns)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> RowTable:
        """Make the rows of one system from saved lines; a column without a single value is another system's."""
        whole = {name: table[name].combine_chunks() for name in table.column_names}
        columns = {name: column for name, column in whole.items() if column.null_count < len(column)}
        clusters: Ints = numbers_of(whole["dialogue"])
        turns: Ints | None = numbers_of(columns["turn"], NO_TURN) if "turn" in columns else None
        if clusters.min(initial=1) < 1 or (turns is not None and turns.min() < NO_TURN):
            raise InvalidError("a dialogue has a number below 1, or a turn one below 0")
        if not np.array_equal(numbers_of(whole["row"]), np.arange(1, len(table) + 1)):
            raise InvalidError("the rows are not numbered from 1 on")
        firsts = np.flatnonzero(np.diff(clusters, prepend=-1))
        kept = [name for name in columns if name.startswith(_FIELD)]
        objects = [name for name in _OBJECTS if name in columns]
        expected = (*_PLACES, *_DIGESTS, *kept, *objects)
        names = [name for name in columns if name not in expected and not name.endswith(_CONTINUES)]
        texts = {name: _text_column(columns[name], columns.get(name + _CONTINUES)) for name in names}
        return cls(
            np.append(firsts, len(clusters)).astype(np.int64),
            columns["dialog_id"].fill_null(empty_text()).take(number_array(firsts)).to_pylist()
            if "dialog_id" in columns
            else None,
            turns,
            texts,
            {name.removeprefix(_FIELD): _field_column(columns[name]) for name in kept},
            {
                name.removeprefix(_DIGEST): numbers_of(columns[name], 0).astype(np.int64).view(np.uint64)
                for name in _DIGESTS
                if name in columns
            },
            {name: _object_column(columns[name]) for name in objects},
        )


def rows_schema() -> dict[str, pa.DataType]:
    """Return the columns of `rows.parquet` next to those of texts, for `arrow.read_table`."""
    import pyarrow as pa

    numbers = dict.fromkeys(("row", "dialogue", "turn?", *(f"{name}?" for name in _DIGESTS)), pa.int64())
    return {"system": pa.string(), "dialog_id?": pa.string(), **numbers}


def _text_arrays(name: str, column: Texts) -> dict[str, pa.Array]:
    if isinstance(column, TextColumn):
        return {name: text_array(column)}
    if isinstance(column, SharedColumn):
        steps, continues = column.steps()
        return {**_text_arrays(name, steps), name + _CONTINUES: number_array(continues)}
    return {name: list_array(column.offsets, text_array(column.values))}


def _text_column(array: pa.Array, continues: pa.Array | None) -> Texts:
    import pyarrow as pa

    if pa.types.is_string(array.type):
        return TextColumn.from_arrow(array.fill_null(empty_text()))
    if not pa.types.is_list(array.type):
        raise InvalidError("a column of texts holds no texts")
    lists = [texts or [] for texts in array.to_pylist()]
    if any(text is None for texts in lists for text in texts):
        raise InvalidError("a list of texts has gaps")
    column = RaggedColumn.from_lists(lists)
    if continues is None:
        return column
    return SharedColumn.from_steps(column, numbers_of(continues, False))


def _object_column(array: pa.Array) -> FieldColumn:
    import msgspec  # slow to import, and few runs have such columns

    texts, decoder = _field_column(array), msgspec.json.Decoder(list[dict[str, Any]])
    try:
        return FieldColumn.of([decoder.decode(text[0]) if text else None for text in texts])
    except (msgspec.DecodeError, RecursionError):
        raise InvalidError("a column of objects holds something else") from None


def _field_column(array: pa.Array) -> RaggedColumn:
    column = _text_column(array, None)
    if not isinstance(column, RaggedColumn):
        raise InvalidError("a field is not a list of texts")
    return column


# Items: per-row scores.

Block: TypeAlias = Mapping[str, Floats]
"""The items of consecutive rows by key."""

LARGEST = 1e100
"""No metric has larger values, and the sum of squares of very many such values is finite."""

_ITEM_PLACES = ("system", "level", "row")


def list_place_columns() -> dict[str, pa.DataType]:
    """Return the columns of `scores.parquet` before those of the keys."""
    import pyarrow as pa

    return dict(zip(_ITEM_PLACES, (pa.string(), pa.string(), pa.int64()), strict=True))


def make_score_table(system: str, level: Level, items: Block) -> pa.Table:
    """Return the items of a system and level as they are saved, one line per row."""
    import pyarrow as pa

    size = len(next(iter(items.values())))
    places = repeat_text(system, size), repeat_text(level.value, size), number_array(np.arange(1, size + 1))
    columns = {key: number_array(values) for key, values in items.items()}
    return pa.table({**dict(zip(_ITEM_PLACES, places, strict=True)), **columns})


def read_scores(table: pa.Table, system: str, level: Level) -> dict[str, Floats]:
    """Return the items of a level by key, out of the saved lines of one system."""
    import pyarrow.compute as pc

    table_part = table.filter(pc.equal(table["level"], repeat_text(level.value, 1)[0]))
    if not np.array_equal(numbers_of(table_part["row"]), np.arange(1, len(table_part) + 1)):
        raise InvalidError(f"the rows of {system} are not numbered from 1 on")
    keys = [name for name in table_part.column_names if name not in _ITEM_PLACES]
    items = {
        key: numbers_of(table_part[key])
        for key in keys
        if not len(table_part) or table_part[key].null_count < len(table_part)
    }
    for key, values in items.items():
        if np.abs(values).max(initial=0.0, where=~np.isnan(values)) > LARGEST:
            raise InvalidError(f"{key} of {system} has values beyond {LARGEST:g}, too large to compute with")
    return items


def join_score_parts(blocks: Iterable[Block]) -> dict[str, Floats]:
    """Join blocks of consecutive rows; NaN where one of them lacks a key."""
    held = [block for block in blocks if block]
    if len(held) == 1:
        return dict(held[0])
    missing = [np.full(len(next(iter(block.values()))), np.nan) for block in held]
    return {
        key: np.concatenate([block.get(key, none) for block, none in zip(held, missing, strict=True)])
        for key in dict.fromkeys(key for block in held for key in block)
    }


# Parts: files of the rows of a chunk.

PartKind: TypeAlias = Literal["scores", "rows"]

HELD_BYTES = 1 << 24
"""Items from this size on are written: a packed file of any length is one chunk."""


class RunPart(NamedTuple):
    """A file of items, or of rows."""

    kind: PartKind
    sha256: str
    place: str | bytes
    """Its path, or its content."""

    def dialogue_ids(self, system: str) -> list[str]:
        """Return the dialogue id of each row of a system that has one, out of a file of rows."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        file = pq.ParquetFile(pa.BufferReader(self.place) if isinstance(self.place, bytes) else self.place)
        if "dialog_id" not in file.schema_arrow.names:
            return []
        table = file.read(["system", "dialog_id"])
        of_system = table.filter(pc.equal(table["system"], repeat_text(system, 1)[0]))
        return list(of_system["dialog_id"].drop_null().to_pylist())


class PartWriter:
    """A writer of the items of consecutive rows, of any number of systems, as they come."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._held: dict[str, list[tuple[Mapping[str, Block], RowTable | None]]] = {}
        self._bytes = 0
        self._parts: list[RunPart] = []

    def add(self, system: str, values: Mapping[str, Block], rows: RowTable | None) -> None:
        """Add the next rows of a system: values by level and key, and the table of the rows."""
        self._held.setdefault(system, []).append((values, rows))
        self._bytes += sum(column.nbytes for columns in values.values() for column in columns.values())
        self._bytes += 0 if rows is None else rows.nbytes
        if self._bytes >= HELD_BYTES:
            self._write()

    def finish(self) -> tuple[RunPart, ...]:
        """Write what is left, and return all parts in order."""
        self._write()
        return tuple(self._parts)

    def _write(self) -> None:
        tables: dict[PartKind, list[pa.Table]] = {"scores": [], "rows": []}
        for system, several in self._held.items():
            for level in Level:
                if items := join_score_parts(values.get(level.value, {}) for values, _ in several):
                    tables["scores"].append(make_score_table(system, level, items))
            if rows := [each for _, each in several if each is not None]:
                tables["rows"].append(RowTable.join(rows).to_arrow(system))
        self._parts += [
            self._write_part(kind, tables_of_kind) for kind, tables_of_kind in tables.items() if tables_of_kind
        ]
        self._held, self._bytes = {}, 0

    def _write_part(self, kind: PartKind, tables: Sequence[pa.Table]) -> RunPart:
        content = io.BytesIO()
        write_tables(tables, content)
        digest = sha256(content.getbuffer()).hexdigest()
        if not self._folder.is_dir():
            return RunPart(kind, digest, content.getvalue())
        # A name of its own: after a death another worker may be writing the items of the same chunk.
        file = self._folder / f"{kind}-{os.urandom(16).hex()}.parquet"
        write_scratch(file, content.getbuffer(), "scores")
        return RunPart(kind, digest, str(file))
