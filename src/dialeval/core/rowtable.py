"""What the rows of a system are: the dialogue and turn of each, and its texts.

Items are values of rows, and this table says which rows. Dialogues are the clusters of an analysis, ids and turns match
rows with those of other files, and texts are what a report shows. A run keeps the table of each system and saves it
beside its items (`rows.parquet`); the texts of very many rows are not saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core.arrays import Ints
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.gate import UnfitError
from dialeval.core.ragged import row_numbers

if TYPE_CHECKING:
    import pyarrow as pa

NO_TURN = -1
"""Stands in `RowTable.turns` for a row that does not say which turn it is."""

SAVED_TEXT_ROWS = 100_000
"""Texts of systems with more rows than that are not saved: a report shows fewer, and the files would be large."""

_PLACES = ("system", "dialogue", "dialog_id", "turn")


@dataclass(frozen=True, eq=False, slots=True)
class RowTable:
    """The rows of one system; dialogue `k` is the rows `offsets[k]` to `offsets[k + 1]`."""

    offsets: Ints
    dialogues: Sequence[str] | None = None
    """The id of each dialogue, where dialogues have one."""
    turns: Ints | None = None
    """The turn of each row, `NO_TURN` where it does not say."""
    texts: Mapping[str, TextColumn | RaggedColumn] = field(default_factory=dict)
    """Columns of texts by name: `response`, `context`, `reference`, whatever the rows have."""

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowTable):
            return NotImplemented
        return (
            np.array_equal(self.offsets, other.offsets)
            and _same(self.dialogues, other.dialogues)
            and _same(self.turns, other.turns)
            and {name: column.digest for name, column in self.texts.items()}
            == {name: column.digest for name, column in other.texts.items()}
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def clusters(self) -> Ints:
        """The number of the dialogue that each row belongs to."""
        return row_numbers(self.offsets)

    def to_arrow(self, system: str) -> pa.Table:
        """The table as it is saved, one line per row."""
        import pyarrow as pa

        rows, clusters = len(self), self.clusters
        columns: dict[str, Any] = {"system": pa.repeat(system, rows), "dialogue": pa.array(clusters)}
        if self.dialogues is not None:
            columns["dialog_id"] = pa.array(self.dialogues, pa.string()).take(pa.array(clusters))
        if self.turns is not None:
            columns["turn"] = pa.array(self.turns, mask=self.turns == NO_TURN)
        if rows <= SAVED_TEXT_ROWS:
            columns |= {name: _text_array(column) for name, column in self.texts.items()}
        return pa.table(columns)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> RowTable:
        """The rows of one system out of what was saved: a column without a single value is another system's."""
        whole = {name: table[name].combine_chunks() for name in table.column_names}
        columns = {name: column for name, column in whole.items() if column.null_count < len(column)}
        clusters: Ints = whole["dialogue"].to_numpy()
        turns: Ints | None = columns["turn"].fill_null(NO_TURN).to_numpy() if "turn" in columns else None
        if "dialog_id" in columns and columns["dialog_id"].null_count:
            raise UnfitError("some dialogues of a system have an id and some have none")
        if clusters.min(initial=0) < 0 or (turns is not None and turns.min() < NO_TURN):
            raise UnfitError("a dialogue or turn has a number below 0")
        firsts = np.flatnonzero(np.diff(clusters, prepend=-1))
        texts = {name: _text_column(column) for name, column in columns.items() if name not in _PLACES}
        return cls(
            np.append(firsts, len(clusters)).astype(np.int64),
            columns["dialog_id"].take(firsts).to_pylist() if "dialog_id" in columns else None,
            turns,
            texts,
        )


def rows_schema() -> dict[str, pa.DataType]:
    """The columns of `rows.parquet` beside those of texts, as `gate.read_table` takes them."""
    import pyarrow as pa

    return {"system": pa.string(), "dialogue": pa.int64(), "dialog_id?": pa.string(), "turn?": pa.int64()}


def is_texts(kind: pa.DataType) -> bool:
    """Whether a column of `rows.parquet` holds a text, or texts, of each row."""
    import pyarrow as pa

    return bool(kind == pa.string() or kind == pa.list_(pa.string()))


def _text_array(column: TextColumn | RaggedColumn) -> pa.Array:
    import pyarrow as pa

    if isinstance(column, TextColumn):
        return pa.array(list(column), pa.string())
    return pa.ListArray.from_arrays(pa.array(column.offsets, pa.int32()), pa.array(list(column.values), pa.string()))


def _text_column(array: pa.Array) -> TextColumn | RaggedColumn:
    import pyarrow as pa

    if pa.types.is_string(array.type):
        return TextColumn.from_arrow(array.fill_null(""))
    lists = [texts or [] for texts in array.to_pylist()]
    if any(text is None for texts in lists for text in texts):
        raise UnfitError("a list of texts has gaps")
    return RaggedColumn.from_lists(lists)


def _same(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(left, right)
