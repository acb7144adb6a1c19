"""What the rows of a system are: the dialogue and turn of each, and its texts.

Items are values of rows, and this table says which rows. Dialogues are the clusters of an analysis, ids and turns match
rows with those of other files, and texts are what a report shows. A run keeps the table of each system and saves it
beside its items (`rows.parquet`), together with further fields that were kept for slices. The texts of very many rows
are not saved, nor those of rows that were read in chunks and let go; digests of their prompts and references are, so
that systems can be aligned without them. A run without the table does not know its dialogues, and is not compared or
resampled as if it had none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Ints
from dialeval.core.arrow_arrays import list_array, no_text, number_array, numbers_of, repeated_text, text_array
from dialeval.core.columns import RaggedColumn, SharedColumn, TextColumn
from dialeval.core.gate import UnfitError, check_array
from dialeval.core.ragged import offsets_of, row_numbers

if TYPE_CHECKING:
    import pyarrow as pa

NO_TURN = -1
"""Stands in `RowTable.turns` for a row that does not say which turn it is."""

SAVED_TEXT_ROWS = 100_000
"""Texts of systems with more rows than that are not saved: a report shows fewer, and the files would be large."""

_NAME_BYTES = 70
"""Of a short string."""

_PLACES = ("system", "row", "dialogue", "dialog_id", "turn")
_DIGESTS = ("digest/prompt", "digest/reference", "digest/trials")
PROMPT, REFERENCE, TRIALS = "prompt", "reference", "trials"
"""The names of digests: of the user turns before a response, of its references, and the number of trials of a task."""
_DIGEST = "digest/"
"""Before the name of a digest in a file."""
_FIELD = "field/"
"""Before the name of a field that was kept: a field may have the name of any other column."""
_CONTINUES = "_continues"
"""After the name of a column of lists: whether a row has the texts of the row before, and then its own."""

Texts: TypeAlias = TextColumn | RaggedColumn | SharedColumn
Digests: TypeAlias = npt.NDArray[np.uint64]
"""A number for each row that is the same where its texts are the same; 0 where it has none."""


@dataclass(frozen=True, eq=False, slots=True)
class RowTable:
    """The rows of one system; dialogue `k` is the rows `offsets[k]` to `offsets[k + 1]`."""

    offsets: Ints
    dialogues: Sequence[str | None] | None = None
    """The id of each dialogue, where dialogues have one; empty for one that has none among others that do."""
    turns: Ints | None = None
    """The turn of each row, `NO_TURN` where it does not say."""
    texts: Mapping[str, Texts] = field(default_factory=dict)
    """Columns of texts by name: `response`, `context`, `reference`, whatever the rows have."""
    fields: Mapping[str, RaggedColumn] = field(default_factory=dict)
    """Further fields of the rows that were kept: the values of each row as texts, none, one or several."""
    digests: Mapping[str, Digests] = field(default_factory=dict)
    """Digests of the rows by name: `PROMPT`, `REFERENCE`, whatever the rows have; see `text.row_digests`."""

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowTable):
            return NotImplemented
        return (
            np.array_equal(self.offsets, other.offsets)
            and _same(self.dialogues, other.dialogues)
            and _same(self.turns, other.turns)
            and _digests(self.texts) == _digests(other.texts)
            and _digests(self.fields) == _digests(other.fields)
            and self.digests.keys() == other.digests.keys()
            and all(np.array_equal(own, other.digests[name]) for name, own in self.digests.items())
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def nbytes(self) -> int:
        """About how much memory the rows take without their texts."""
        turns = 0 if self.turns is None else self.turns.nbytes
        digests = sum(each.nbytes for each in self.digests.values())
        return self.offsets.nbytes + turns + digests + _NAME_BYTES * len(self.dialogues or ())

    @property
    def clusters(self) -> Ints:
        """The number of the dialogue that each row belongs to."""
        return row_numbers(self.offsets)

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
        )

    @classmethod
    def joined(cls, parts: Sequence[RowTable]) -> RowTable:
        """Rows without texts one below the other; no dialogue goes on from one part to the next."""
        if len(parts) == 1:
            return parts[0]
        names = [part.dialogues or [""] * (len(part.offsets) - 1) for part in parts]
        turns = [np.full(len(part), NO_TURN) if part.turns is None else part.turns for part in parts]
        return cls(
            offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
            [name for each in names for name in each] if any(part.dialogues is not None for part in parts) else None,
            np.concatenate(turns) if any(part.turns is not None for part in parts) else None,
            digests={
                name: np.concatenate([part.digests.get(name, np.zeros(len(part), np.uint64)) for part in parts])
                for name in dict.fromkeys(name for part in parts for name in part.digests)
            },
        )

    @classmethod
    def from_plain(
        cls,
        offsets: Ints,
        dialogues: list[str | None] | None,
        turns: Ints | None,
        texts: object,
        fields: object,
        digests: dict[str, Digests],
    ) -> RowTable:
        """The rows of a part of a system out of a journal, without texts and fields; UnfitError for other things."""
        check_array(offsets, np.int64, (None,))
        if not len(offsets) or offsets[0] or (np.diff(offsets) < 0).any() or texts != {} or fields:
            raise UnfitError("dialogues do not follow each other")
        if dialogues is not None and (not isinstance(dialogues, list) or len(dialogues) != len(offsets) - 1):
            raise UnfitError("there are not as many ids as dialogues")
        if any(not isinstance(name, str) for name in dialogues or ()):
            raise UnfitError("the id of a dialogue is no text")
        if turns is not None:
            check_array(turns, np.int64, (int(offsets[-1]),))
            if turns.min(initial=0) < NO_TURN:
                raise UnfitError("a turn has a number below 0")
        if not isinstance(digests, dict) or not digests.keys() <= {PROMPT, REFERENCE, TRIALS}:
            raise UnfitError("rows have no such digests")
        for each in digests.values():
            check_array(each, np.uint64, (int(offsets[-1]),))
        return cls(offsets, dialogues, turns, digests=digests)

    def to_arrow(self, system: str, rows_before: int = 0, dialogues_before: int = 0) -> pa.Table:
        """The table as it is saved, one line per row; `row` is that of the items, and `dialogue` that of dialogues."""
        import pyarrow as pa

        rows, clusters = len(self), self.clusters
        columns: dict[str, Any] = {
            "system": repeated_text(system, rows),
            "row": number_array(np.arange(rows_before, rows_before + rows)),
            "dialogue": number_array(clusters + dialogues_before),
        }
        if self.dialogues is not None:
            columns["dialog_id"] = text_array(self.dialogues).take(number_array(clusters))
        if self.turns is not None:
            columns["turn"] = number_array(self.turns, self.turns == NO_TURN)
        columns |= {_DIGEST + name: number_array(each.view(np.int64)) for name, each in self.digests.items()}
        if rows <= SAVED_TEXT_ROWS:
            for name, column in self.texts.items():
                columns |= _text_arrays(name, column)
        for name, values in self.fields.items():
            columns |= _text_arrays(_FIELD + name, values)
        return pa.table(columns)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> RowTable:
        """The rows of one system out of what was saved: a column without a single value is another system's."""
        whole = {name: table[name].combine_chunks() for name in table.column_names}
        columns = {name: column for name, column in whole.items() if column.null_count < len(column)}
        clusters: Ints = numbers_of(whole["dialogue"])
        turns: Ints | None = numbers_of(columns["turn"], NO_TURN) if "turn" in columns else None
        if clusters.min(initial=0) < 0 or (turns is not None and turns.min() < NO_TURN):
            raise UnfitError("a dialogue or turn has a number below 0")
        if "row" in whole and not np.array_equal(numbers_of(whole["row"]), np.arange(len(table))):
            raise UnfitError("the rows are not numbered from 0 on")
        firsts = np.flatnonzero(np.diff(clusters, prepend=-1))
        kept = [name for name in columns if name.startswith(_FIELD)]
        known = (*_PLACES, *_DIGESTS, *kept)
        names = [name for name in columns if name not in known and not name.endswith(_CONTINUES)]
        texts = {name: _text_column(columns[name], columns.get(name + _CONTINUES)) for name in names}
        return cls(
            np.append(firsts, len(clusters)).astype(np.int64),
            columns["dialog_id"].fill_null(no_text()).take(number_array(firsts)).to_pylist()
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
        )


def rows_schema() -> dict[str, pa.DataType]:
    """The columns of `rows.parquet` beside those of texts, as `gate.read_table` takes them."""
    import pyarrow as pa

    numbers = {"row?": pa.int64(), "dialogue": pa.int64()}  # a run that was saved before has no `row`
    digests = {f"{name}?": pa.int64() for name in _DIGESTS}
    return {"system": pa.string(), **numbers, "dialog_id?": pa.string(), "turn?": pa.int64(), **digests}


def is_texts(kind: pa.DataType) -> bool:
    """Whether a column of `rows.parquet` holds a text, or texts, of each row, or whether these go on from the last."""
    import pyarrow as pa

    return kind in (pa.string(), pa.list_(pa.string()), pa.bool_())


class PlacesWriter:
    """Writes rows without their texts to a file as they come; rows and dialogues are numbered for each system."""

    def __init__(self, target: Path, digests: Iterable[str] = ()) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._digests = frozenset(digests)
        names = (*_PLACES, *(_DIGEST + name for name in sorted(self._digests)))
        types = (pa.string(), pa.int64(), pa.int64(), pa.string(), *[pa.int64()] * (1 + len(self._digests)))
        self._schema = pa.schema(zip(names, types, strict=True))
        self._before: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        self._writer: Any = pq.ParquetWriter(
            target,
            self._schema,
            compression="zstd",
            use_dictionary=["system", "dialog_id", "turn"],
            # They count upwards, and would fill a dictionary.
            column_encoding=dict.fromkeys(("row", "dialogue"), "DELTA_BINARY_PACKED"),
        )

    def __enter__(self) -> PlacesWriter:
        return self

    def __exit__(self, *_error: object) -> None:
        self._writer.close()

    def has_columns_for(self, rows: RowTable) -> bool:
        """Tell whether the file has a column for each digest of some rows."""
        return rows.digests.keys() <= self._digests

    def add(self, system: str, rows: RowTable) -> None:
        """Write the next rows of a system; no dialogue goes on from those before."""
        import pyarrow as pa

        before = self._before[system]
        table = rows.to_arrow(system, *before)
        columns = {
            name: table[name] if name in table.column_names else pa.nulls(len(table), self._schema.field(name).type)
            for name in self._schema.names
        }
        self._writer.write_table(pa.table(columns, schema=self._schema))
        self._before[system] = before[0] + len(rows), before[1] + len(rows.offsets) - 1


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
        return TextColumn.from_arrow(array.fill_null(no_text()))
    if not pa.types.is_list(array.type):
        raise UnfitError("a column of texts holds no texts")
    lists = [texts or [] for texts in array.to_pylist()]
    if any(text is None for texts in lists for text in texts):
        raise UnfitError("a list of texts has gaps")
    column = RaggedColumn.from_lists(lists)
    if continues is None:
        return column
    return SharedColumn.from_steps(column, numbers_of(continues, False))


def _field_column(array: pa.Array) -> RaggedColumn:
    column = _text_column(array, None)
    if not isinstance(column, RaggedColumn):
        raise UnfitError("a field is no list of texts")
    return column


def _digests(columns: Mapping[str, Texts]) -> dict[str, str]:
    return {name: column.digest for name, column in columns.items()}


def _same(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(left, right)
