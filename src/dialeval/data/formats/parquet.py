"""Parquet files, and Arrow files (`.arrow`, `.feather`), as Arrow tables."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dialeval.core.errors import DataError, Fault
from dialeval.data.formats.opening import PathSource, format_of, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from dialeval.core.needs import Need
    from dialeval.data.formats.records import FieldNames


def read(path: PathSource, names: FieldNames | None, need: Need) -> pa.Table:
    """The table of a file; of a Parquet file only the columns that can matter to the need, or all without `names`."""
    import pyarrow as pa

    source = pa.BufferReader(pa.py_buffer(read_bytes(path)))
    with damage_explained(path):
        table = _parquet(source, names, need) if format_of(path) == "parquet" else _arrow(source)
        # A damaged file can hold offsets that point outside of its own bytes.
        table.validate()
    return table


@contextmanager
def damage_explained(path: PathSource) -> Iterator[None]:
    """A file that Arrow cannot read is a fault that names it."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        what = f"not a readable {format_of(path).capitalize()} file ({_first_line(error)})"
        raise DataError(Fault(str(path), None, what, "write it again, or give it the suffix of its format")) from None


def _parquet(source: pa.BufferReader, names: FieldNames | None, need: Need) -> pa.Table:
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(source)
    return file.read(columns=None if names is None else names.chosen(file.schema_arrow.names, need))


def _arrow(source: pa.BufferReader) -> pa.Table:
    import pyarrow as pa

    try:
        return pa.ipc.open_file(source).read_all()
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source).read_all()


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
