"""Row groups of a Parquet file as tables of whole dialogues, some thousand rows at a time.

A dialogue that a row group leaves open belongs to the chunk with its first row: that chunk reads on into the next
groups, and the next chunk skips those rows. Only the column of dialogues is read to find that out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from dialeval.core.errors import DataError
from dialeval.core.needs import Need
from dialeval.data.formats.parquet import damage_explained, several_columns
from dialeval.data.formats.streams import stored
from dialeval.data.rows.fields import FieldNames
from dialeval.data.shards.chunks import Span

if TYPE_CHECKING:
    import pyarrow as pa

Table: TypeAlias = "pa.Table"

_UNNAMED = (None, "")


def tables(span: Span, names: FieldNames, rows: int) -> Iterator[tuple[int, pa.Table]]:
    """The tables of some row groups, each with the number of rows of the file that come before it."""
    import pyarrow.parquet as pq

    with stored(span.path) as stream, damage_explained(span.path):
        file = pq.ParquetFile(stream)
        before = sum(file.metadata.row_group(number).num_rows for number in range(span.start))
        named = file.schema_arrow.names.count(names.dialog_id)
        if named > 1:
            raise DataError(several_columns(names.dialog_id, span.path))
        if named:
            yield from _Dialogues(file, span, names, rows).tables(before)
            return
        for table in _batches(file, range(span.start, span.stop), names, rows):
            yield before, table
            before += len(table)


def _batches(file: Any, groups: Sequence[int], names: FieldNames, rows: int) -> Iterator[pa.Table]:
    import pyarrow as pa

    columns = names.chosen(file.schema_arrow.names, Need.RESPONSE)
    for batch in file.iter_batches(rows, row_groups=list(groups), columns=columns):
        yield pa.Table.from_batches([batch])


class _Dialogues:
    """The row groups of a file whose rows name their dialogues."""

    def __init__(self, file: Any, span: Span, names: FieldNames, rows: int) -> None:
        self._file, self._span, self._names, self._rows = file, span, names, rows

    def tables(self, before: int) -> Iterator[tuple[int, pa.Table]]:
        """Tables of whole dialogues; the last dialogue of each is held back until its end is read."""
        import pyarrow as pa

        held: list[pa.Table] = []
        dialogue: Any = None
        for skipped, table in self._own_rows():
            before += skipped
            ids = self._ids(table)
            edge = _last_start(ids)
            if edge or (held and ids and ids[0] != dialogue):
                whole = pa.concat_tables([*held, table.slice(0, edge)])
                yield before, whole
                before += len(whole)
                held = []
            if edge < len(ids):
                held.append(table.slice(edge))
                dialogue = ids[-1]
        if held:
            yield before, pa.concat_tables([*held, *self._rows_after(dialogue)])

    def _own_rows(self) -> Iterator[tuple[int, pa.Table]]:
        """Tables of the groups, each with the number of rows skipped before it, whose dialogue began earlier."""
        open_dialogue = self._last_before()
        for table in _batches(self._file, range(self._span.start, self._span.stop), self._names, self._rows):
            skipped = _run_length(self._ids(table), open_dialogue)
            if skipped < len(table):
                open_dialogue = None
            yield skipped, table.slice(skipped)

    def _rows_after(self, dialogue: Any) -> Iterator[pa.Table]:
        """The rows of the next groups that go on with a dialogue."""
        groups = range(self._span.stop, self._file.metadata.num_row_groups)
        if dialogue in _UNNAMED:
            return
        for group in groups:
            ids = self._group_ids(group)
            if ids and ids[0] != dialogue:
                return
            for table in _batches(self._file, [group], self._names, self._rows):
                length = _run_length(self._ids(table), dialogue)
                yield table.slice(0, length)
                if length < len(table):
                    return

    def _last_before(self) -> Any:
        """The dialogue of the last row before the groups."""
        for group in range(self._span.start - 1, -1, -1):
            if ids := self._group_ids(group):
                return ids[-1]
        return None

    def _group_ids(self, group: int) -> list[Any]:
        return self._ids(self._file.read_row_group(group, columns=[self._names.dialog_id]))

    def _ids(self, table: pa.Table) -> list[Any]:
        ids: list[Any] = table.column(self._names.dialog_id).to_pylist()
        return ids


def _last_start(ids: Sequence[Any]) -> int:
    """Where the last dialogue of some rows starts; their end where the last row is of none."""
    if not ids or ids[-1] in _UNNAMED:
        return len(ids)
    start = len(ids) - 1
    while start and ids[start - 1] == ids[-1]:
        start -= 1
    return start


def _run_length(ids: Sequence[Any], dialogue: Any) -> int:
    """How many rows at the start belong to a dialogue."""
    if dialogue in _UNNAMED:
        return 0
    return next((row for row, name in enumerate(ids) if name != dialogue), len(ids))
