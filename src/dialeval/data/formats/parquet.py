"""Parquet files, and Arrow files (`.arrow`, `.feather`), as Arrow tables."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dialeval.core.arrow import check_decoded_size
from dialeval.core.errors import DataError, Fault
from dialeval.core.gate import UnfitError
from dialeval.data.formats.opening import PathSource, format_of, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from dialeval.core.needs import Need
    from dialeval.data.formats.records import FieldNames

_ROWS = 1024
"""Rows that are turned into plain data at a time."""


def read(path: PathSource, names: FieldNames | None, need: Need) -> pa.Table:
    """The table of a file; of a Parquet file only the columns that can matter to the need, or all without `names`."""
    import pyarrow as pa

    source = pa.BufferReader(pa.py_buffer(read_bytes(path)))
    return table_of(source, path, None if names is None else lambda there: names.chosen(there, need))


def table_of(
    source: pa.BufferReader, path: PathSource, chosen: Callable[[list[str]], list[str]] | None = None
) -> pa.Table:
    """The table in some bytes, whose format the path says; `chosen` picks columns of a Parquet file by their names."""
    with damage_explained(path):
        return _parquet(source, chosen) if format_of(path) == "parquet" else _arrow(source)


@contextmanager
def damage_explained(path: PathSource) -> Iterator[None]:
    """A file that Arrow cannot read is a fault that names it."""
    import pyarrow as pa

    try:
        yield
    except UnfitError as error:
        raise DataError(Fault(str(path), None, str(error), "leave out what repeats, or write it as lines")) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last one: of a column's name
        what = f"not a readable {format_of(path).capitalize()} file ({_first_line(error)})"
        raise DataError(Fault(str(path), None, what, "write it again, or give it the suffix of its format")) from None


def _parquet(source: pa.BufferReader, chosen: Callable[[list[str]], list[str]] | None) -> pa.Table:
    from pyarrow.parquet import ParquetFile

    check_decoded_size(source, source.size())
    file = ParquetFile(source)
    return file.read(columns=None if chosen is None else chosen(file.schema_arrow.names))


def _arrow(source: pa.BufferReader) -> pa.Table:
    import pyarrow as pa

    try:
        table = pa.ipc.open_file(source).read_all()
    except pa.ArrowInvalid:
        source.seek(0)
        table = pa.ipc.open_stream(source).read_all()
    # The buffers of an Arrow file are used as they are, and offsets in them can point anywhere. Those of a Parquet
    # file are made by its decoder.
    for _, column in zip(table.column_names, table.columns, strict=True):  # names that are not UTF-8 fail as well
        as_bytes(column).validate(full=True)
    return table


def as_bytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of strings as bytes, over the same buffers, so that they can be checked and read whatever they hold."""
    import pyarrow as pa

    kinds = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    kind = kinds.get(column.type)
    return column if kind is None else pa.chunked_array([chunk.view(kind) for chunk in column.chunks], kind)


def column_faults(column: pa.ChunkedArray, name: str, where: str) -> list[Fault]:
    """What keeps a column from being read: rows that are not UTF-8, or buffers that do not fit together."""
    import pyarrow as pa

    remedy = "write the text as UTF-8"
    cells = as_bytes(column)
    try:
        cells.validate(full=True)
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        if cells is column or "UTF8" not in str(error):
            return [Fault(where, None, f"column {name!r} is damaged ({_first_line(error)})", remedy)]
        rows = enumerate(cells.to_pylist(), 1)
        return [Fault(where, row, f"{name} is not UTF-8", remedy) for row, cell in rows if not _is_utf8(cell)]
    return []


def plain_rows(table: pa.Table, where: str) -> Iterator[dict[str, Any]]:
    """The rows of a table as plain data; DataError where that is not possible."""
    import pyarrow as pa

    columns = zip(table.column_names, table.columns, strict=True)
    if faults := [fault for name, column in columns for fault in column_faults(column, name, where)]:
        raise DataError(faults)
    try:
        for batch in table.to_batches(_ROWS):
            yield from batch.to_pylist()
    except (pa.ArrowException, ValueError, OverflowError) as error:  # such as a date of the year 300000
        what = f"holds values that cannot be read ({_first_line(error)})"
        raise DataError(Fault(where, None, what, "write them as texts or numbers")) from None


def _is_utf8(cell: bytes | None) -> bool:
    try:
        (cell or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
