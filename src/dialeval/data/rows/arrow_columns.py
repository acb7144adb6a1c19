"""From an Arrow table to columns, over the table's own buffers wherever its types allow.

The table has the fields of a row for columns: strings, lists of strings, and for a context lists of `speaker`/`text`
or `role`/`content` structs. What is not as plain as that (chats, rows of other shapes, system prompts, nulls in the
wrong place, other types) goes row by row instead, like the rows of any other format, and gets the same values or the
same faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Ints
from dialeval.core.columns import Column, RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Fault
from dialeval.core.needs import Need
from dialeval.core.ragged import offsets_of
from dialeval.data.formats import parquet
from dialeval.data.formats.records import FieldNames, Records
from dialeval.data.formats.row_shapes import unlike_fields
from dialeval.data.rows.fields import FieldReader
from dialeval.data.rows.gathering import gather_rows, gather_texts, named_dialogues, text_field
from dialeval.data.rows.messages import CALLER, ROLES, SYSTEM
from dialeval.data.rows.plain_rows import NotPlainError
from dialeval.data.rows.system import NO_TURN, Rows, by_system

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa


_MORE_THAN_TEXT = frozenset({"from", "tool_calls", "function_call", "refusal", "value", "parts"})
"""Fields of a turn that say something beside its text, or instead of it."""


def rows_of(table: pa.Table, where: str, names: FieldNames, system: str, part: bool = False) -> list[Rows]:
    """The rows of each system in a table; `system` is the name of those that give none.

    A part of an input may be without a row; a whole input may not.
    """
    table = _checked(table, where, names.chosen(table.column_names, Need.RESPONSE))
    try:
        columns = {name: _whole(table.column(name)) for name in table.column_names}
        return _columnwise(columns, where, names, system)
    except NotPlainError:
        return gather_rows(_records(table, where), names, system, part)


def texts_of(table: pa.Table, where: str, names: FieldNames, need: Need) -> RaggedColumn:
    """The references or contexts in a table of their own."""
    field = text_field(table.column_names, names, need)
    wanted = {field, names.response_is_reference} if field == names.name(need) else {field}
    table = _checked(table, where, wanted)
    try:
        if field is None or not len(table):
            raise NotPlainError
        columns = {name: _whole(table.column(name)) for name in table.column_names}
        own = columns.get(names.response_is_reference) if need is Need.REFERENCE else None
        _roles(columns[field])
        return _ragged(columns[field], _truths(own))
    except NotPlainError:
        return gather_texts(_records(table, where), names, need)


def several_columns(name: str, where: str) -> Fault:
    """The fault of a table in which a name does not say which column is meant."""
    return Fault(where, None, f"has several columns {name!r}", "keep one of them")


def _checked(table: pa.Table, where: str, wanted: Collection[str | None]) -> pa.Table:
    """The columns that matter, each there once and all of them sound; all columns if none matters."""
    chosen = [index for index, name in enumerate(table.column_names) if name in wanted]
    table = table.select(chosen) if chosen else table
    twice = {name for name in table.column_names if table.column_names.count(name) > 1}
    faults = [several_columns(name, where) for name in sorted(twice)]
    for name, column in zip(table.column_names, table.columns, strict=True):
        faults += parquet.column_faults(column, name, where)
    if faults:
        raise DataError(faults)
    return table


def _columnwise(columns: dict[str, pa.Array], where: str, names: FieldNames, system: str) -> list[Rows]:
    import pyarrow as pa

    response = columns.get(names.response)
    messages = columns.get(names.messages)
    if (names.trial in columns and names.reward in columns) or not columns.keys() >= set(names.paths):
        raise NotPlainError
    if unlike_fields(columns, names):
        raise NotPlainError
    if response is None or response.null_count or not len(response) or (messages and not _is_null(messages)):
        raise NotPlainError
    nulls = pa.nulls(len(response))
    needed: dict[Need, Column] = {Need.RESPONSE: TextColumn.from_arrow(_strings(response), where)}
    for need in (Need.REFERENCE, Need.CONTEXT):
        own = columns.get(names.response_is_reference) if need is Need.REFERENCE else None
        texts = _ragged(columns.get(names.name(need), nulls), _truths(own))
        if len(texts.values):
            needed[need] = texts
    if (roles := _roles(columns.get(names.context, nulls))) is not None:
        needed[Need.ROLES] = RaggedColumn(roles, cast("RaggedColumn", needed[Need.CONTEXT]).offsets)
    dialogues = _dialogues(columns.get(names.dialog_id, nulls))
    turns, fields = _turns(columns.get(names.turn, nulls)), _kept(columns, where, names)
    rows = Rows(system, needed, dialogues, turns, where, fields=fields)
    return by_system(rows, *_systems(columns.get(names.system, nulls), system))


def _kept(columns: dict[str, pa.Array], where: str, names: FieldNames) -> dict[str, RaggedColumn]:
    """The further fields that are asked for, value by value as in every other format."""
    reader = FieldReader(where, names, [])
    found: dict[str, RaggedColumn] = {}
    for name in filter(columns.__contains__, names.kept):
        labels = []
        for reader.line, value in enumerate(columns[name].to_pylist(), 1):
            labels.append(reader.labels(value, name))
        if any(labels):
            found[name] = RaggedColumn.from_lists(labels)
    if reader.faults:
        raise DataError(reader.faults)
    return found


def _records(table: pa.Table, where: str) -> Records:
    return Records(where, enumerate(parquet.plain_rows(table, where), 1), header=tuple(table.column_names))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece and without a dictionary."""
    import pyarrow as pa

    if pa.types.is_string(column.type):  # pieces of 2 GiB and more fit together only with large offsets
        column = column.cast(pa.large_string())
    try:
        array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    except pa.ArrowInvalid:
        raise NotPlainError from None
    if isinstance(array, pa.ChunkedArray):
        raise NotPlainError
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _is_null(array: pa.Array) -> bool:
    return bool(array.null_count == len(array))


def _strings(array: pa.Array) -> pa.Array:
    import pyarrow as pa

    kind = array.type
    if pa.types.is_large_string(kind):
        return array
    if not (pa.types.is_string(kind) or pa.types.is_string_view(kind)):
        raise NotPlainError
    return array.cast(pa.large_string())


def _ragged(array: pa.Array, dropped: npt.NDArray[np.bool_] | None) -> RaggedColumn:
    """Any number of texts per row: none for a null or a row that is to be dropped."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if _is_null(array):
        return RaggedColumn(TextColumn.from_strings([]), np.zeros(len(array) + 1, np.int64))
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        counts = _ints(pc.fill_null(pc.list_value_length(array), 0))
        values = _items(array.flatten())
    else:
        counts = _ints(array.is_valid().cast(pa.int64()))
        values = _strings(array.drop_null())
    if values.null_count:
        raise NotPlainError
    texts = TextColumn.from_arrow(values)
    if dropped is not None and dropped.any():
        texts = texts.take(np.flatnonzero(~np.repeat(dropped, counts)))
        counts = np.where(dropped, 0, counts)
    return RaggedColumn(texts, offsets_of(counts))


def _items(values: pa.Array) -> pa.Array:
    """The texts of list items: strings, or structs with `text` or `content`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_null(values.type):
        return values.cast(pa.large_string())
    if not pa.types.is_struct(values.type):
        return _strings(values)
    there = [name for name in ("text", "content") if values.type.get_field_index(name) >= 0]
    more = [index for index, kind in enumerate(values.type) if kind.name in _MORE_THAN_TEXT]
    if not all(_is_null(values.field(index)) for index in more):
        raise NotPlainError
    texts = [_strings(child) for child in map(values.field, there) if not pa.types.is_null(child.type)]
    if not texts or values.null_count:
        raise NotPlainError
    return pc.coalesce(*texts)


def _roles(array: pa.Array) -> TextColumn | None:
    """Who said each turn of contexts; None where nobody is named. System prompts have to be read row by row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        return None
    turns = array.flatten()
    if not pa.types.is_struct(turns.type) or turns.type.get_field_index("role") < 0:
        return None
    named = pc.fill_null(_strings(turns.field("role")), "").dictionary_encode()
    roles = [ROLES.get(name, "") for name in named.dictionary.to_pylist()]
    if SYSTEM in roles or CALLER in named.dictionary.to_pylist():
        raise NotPlainError
    return TextColumn.from_strings(roles).take(_ints(named.indices)) if any(roles) else None


def _truths(array: pa.Array | None) -> npt.NDArray[np.bool_] | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if array is None or _is_null(array):
        return None
    if not pa.types.is_boolean(array.type):
        raise NotPlainError
    return cast("npt.NDArray[np.bool_]", pc.fill_null(array, False).to_numpy(zero_copy_only=False))


def _names(array: pa.Array) -> pa.Array:
    """Strings of something that may be named or numbered; null where it is neither."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(array.type) or pa.types.is_null(array.type):
        return array.cast(pa.large_string())
    strings = _strings(array)
    return pc.if_else(pc.equal(strings, ""), pa.scalar(None, pa.large_string()), strings)


def _dialogues(array: pa.Array) -> TextColumn | None:
    names = _names(array)
    return named_dialogues(names.to_pylist()) if names.null_count else TextColumn.from_arrow(names)


def _systems(array: pa.Array, default: str) -> tuple[list[str], Ints]:
    import pyarrow.compute as pc

    encoded = pc.fill_null(_names(array), default).dictionary_encode()
    return encoded.dictionary.to_pylist(), _ints(encoded.indices)


def _turns(array: pa.Array) -> Ints | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if _is_null(array):
        return None
    if not pa.types.is_integer(array.type) or pc.min(array).as_py() < 0 or pc.max(array).as_py() > 2**63 - 1:
        raise NotPlainError
    return _ints(pc.fill_null(array.cast(pa.int64()), NO_TURN))


def _ints(array: pa.Array) -> Ints:
    return cast("Ints", array.to_numpy(zero_copy_only=False).astype(np.int64))
