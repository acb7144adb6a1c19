"""Arrow tables: of Parquet files, of Arrow files (`.arrow`, `.feather`), and of objects of other libraries.

Objects with the Arrow PyCapsule interface (pandas, polars, Hugging Face datasets and their columns) are read through
it, without importing their library. A single column (a series, an array) becomes a table with the one column
`response`. A missing value of pandas (NaN, NA) is a null.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import unpack_from
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Ints, offsets_of
from dialeval.core.arrow import count_expanded_bytes, decoded_limit, empty_text, numbers_of, read_parquet, size_error
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Problem
from dialeval.core.inputs import Input
from dialeval.core.validation import InvalidError, JsonObject
from dialeval.io.opening import PathSource, format_of, is_utf8, read_bytes
from dialeval.io.rows import NO_TURN, FieldNames, Records

if TYPE_CHECKING:
    import pyarrow as pa


_ARROW_MARK = b"ARROW1\0\0"
_ROWS = 1024
"""Rows that are turned into plain data at a time."""


def read(path: PathSource, names: FieldNames, need: Input | None = inputs.RESPONSE) -> Records:
    """Read the rows of a file: of the columns that can matter to the need, or of all where it is None."""
    return make_records(read_table(path, names, need), str(path), names, need)


def read_table(path: PathSource, names: FieldNames, need: Input | None) -> pa.Table:
    """Read the table of a file; of a Parquet file only the columns that can matter to the need."""
    import pyarrow as pa

    source = pa.BufferReader(pa.py_buffer(read_bytes(path)))
    return parse_table(source, path, lambda there: names.choose_columns(there, need))


def make_records(table: pa.Table, where: str, names: FieldNames, need: Input | None = inputs.RESPONSE) -> Records:
    """Return the rows of a table with the columns that can matter; DataError where these are not sound."""
    columns = table.column_names
    chosen = set(names.choose_columns(columns, need))
    table = table.select([index for index, name in enumerate(columns) if name in chosen])
    twice = sorted(name for name, count in Counter(table.column_names).items() if count > 1)
    if problems := [*(ambiguity_problem(name, where) for name in twice), *_find_column_problems(table, where)]:
        raise DataError(problems)
    rows = enumerate(_read_rows(table, where), 1)
    return Records(where, rows, header=tuple(table.column_names), table=table)


def ambiguity_problem(name: str, where: str) -> Problem:
    """Return the problem of a table with several columns of one name."""
    return Problem(where, None, f"has several columns {name!r}", "keep one of them")


def parse_table(
    source: pa.BufferReader, path: PathSource, chosen: Callable[[list[str]], list[str]] | None = None
) -> pa.Table:
    """Read the table in some bytes, of the format of the path; `chosen` selects columns of a Parquet file by name."""
    with explain_damage(path):
        return read_parquet(source, chosen) if format_of(path) == "parquet" else _read_arrow(source)


@contextmanager
def explain_damage(path: PathSource) -> Iterator[None]:
    """Raise DataError with the name of a file that Arrow cannot read."""
    import pyarrow as pa

    try:
        yield
    except InvalidError as error:
        raise DataError(Problem(str(path), None, str(error), "leave out what repeats, or write it as lines")) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last one: of a column's name
        what = f"not a readable {format_of(path).capitalize()} file ({_first_line(error)})"
        raise DataError(Problem(str(path), None, what, "write it again, or give it the suffix of its format")) from None


def _read_arrow(source: pa.BufferReader) -> pa.Table:
    import pyarrow as pa

    # A file is a stream between a mark and a footer. It is read as a stream, since a footer can point anywhere.
    start = len(_ARROW_MARK) if source.read(len(_ARROW_MARK)) == _ARROW_MARK else 0
    source.seek(start)
    if sum(map(_count_unpacked_bytes, pa.ipc.MessageReader.open_stream(source))) > decoded_limit(source.size()):
        raise size_error()
    source.seek(start)
    table = pa.ipc.open_stream(source).read_all()
    # The buffers of an Arrow file are used as they are, and offsets in them can point anywhere. Those of a Parquet
    # file are made by its decoder.
    for _, column in zip(table.column_names, table.columns, strict=True):  # names that are not UTF-8 fail as well
        view_bytes(column).validate(full=True)
    if count_expanded_bytes(table.to_batches()) > decoded_limit(source.size()):
        raise size_error()
    return table


def _count_unpacked_bytes(message: pa.Message) -> int:
    """Return how many bytes the packed buffers of a message unpack to: each begins with that number.

    The places of the buffers are in its metadata, whose tables (Flatbuffers) Arrow has checked.
    """
    if message.type not in ("record batch", "dictionary"):
        return 0
    data, body = memoryview(message.metadata), memoryview(message.body)

    def field(table: int, number: int) -> int:
        """Return where a field of a table is; 0 where it has none."""
        offsets = table - unpack_from("<i", data, table)[0]
        place = 4 + 2 * number
        offset = unpack_from("<H", data, offsets + place)[0] if place < unpack_from("<H", data, offsets)[0] else 0
        return table + int(offset) if offset else 0

    def follow(place: int) -> int:
        return place + int(unpack_from("<I", data, place)[0])

    batch = follow(field(follow(0), 2))
    if message.type == "dictionary":
        batch = follow(field(batch, 1))
    if not field(batch, 3) or not field(batch, 2):  # not packed, or without buffers
        return 0
    buffers = follow(field(batch, 2))
    places = np.frombuffer(data, "<i8", 2 * unpack_from("<I", data, buffers)[0], buffers + 4).reshape(-1, 2)
    starts = [start for start, length in places.tolist() if length and 0 <= start <= len(body) - 8]
    return sum(max(int(unpack_from("<q", body, start)[0]), 0) for start in starts)


def view_bytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """View a column of strings as bytes, over the same buffers, so that it can be checked whatever it holds."""
    import pyarrow as pa

    kinds = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    kind = kinds.get(column.type)
    return column if kind is None else pa.chunked_array([chunk.view(kind) for chunk in column.chunks], kind)


def _find_column_problems(table: pa.Table, where: str) -> list[Problem]:
    """List the rows that are not UTF-8, and the columns whose buffers do not fit together."""
    import pyarrow as pa

    problems: list[Problem] = []
    remedy = "write the text as UTF-8"
    for name, column in zip(table.column_names, table.columns, strict=True):
        cells = view_bytes(column)
        try:
            cells.validate(full=True)
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            if cells is column or "UTF8" not in str(error):
                problems.append(Problem(where, None, f"column {name!r} is damaged ({_first_line(error)})", remedy))
                continue
            bad = (row for row, cell in enumerate(cells.to_pylist(), 1) if not is_utf8(cell or b""))
            problems += [Problem(where, row, f"{name} is not UTF-8", remedy) for row in bad]
    return problems


def list_rows(table: pa.Table, where: str) -> Iterator[JsonObject]:
    """Return the rows of a table as plain data; DataError where that is not possible."""
    if problems := _find_column_problems(table, where):
        raise DataError(problems)
    return _read_rows(table, where)


def _read_rows(table: pa.Table, where: str) -> Iterator[JsonObject]:
    import pyarrow as pa

    for batch in table.to_batches(_ROWS):
        try:
            rows = batch.to_pylist()
        except (pa.ArrowException, ValueError, OverflowError) as error:  # such as a date of the year 300000
            what = f"holds values that cannot be read ({_first_line(error)})"
            raise DataError(Problem(where, None, what, "write them as texts or numbers")) from None
        yield from rows


# Columns without a Python object per value. What is not as simple is an InvalidError, and left to the reader of rows.


def read_text_column(column: pa.ChunkedArray) -> TextColumn:
    """Return a column of strings without nulls, over its buffers."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if column.null_count or not any(is_text(column.type) for is_text in texts):
        raise InvalidError(f"holds {column.type} with {column.null_count} nulls")
    return TextColumn.from_arrow(column)


def read_text_lists(column: pa.ChunkedArray) -> RaggedColumn:
    """Return a column of strings or lists of strings; null is a row without a text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        sizes = numbers_of(pc.list_value_length(column), 0)
        return RaggedColumn(read_text_column(pc.list_flatten(column)), offsets_of(sizes))
    if pa.types.is_null(column.type):
        return RaggedColumn(TextColumn.from_strings([]), offsets_of([0] * len(column)))
    present = numbers_of(column.is_valid())
    return RaggedColumn(read_text_column(column.drop_null()), offsets_of(present))


def read_identifiers(column: pa.ChunkedArray | None) -> TextColumn | None:
    """Return a column of names or whole numbers as texts; null is the empty one. None where there is no name."""
    import pyarrow as pa

    if column is None or column.null_count == len(column):
        return None
    if pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    elif pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise InvalidError(f"holds {column.type}")
    return read_text_column(column.fill_null(empty_text().cast(column.type)) if column.null_count else column)


def read_turn_numbers(column: pa.ChunkedArray | None) -> Ints | None:
    """Return a column of turns; NO_TURN in place of null. None where there is none."""
    import pyarrow as pa

    if column is None or column.null_count == len(column):
        return None
    if not pa.types.is_integer(column.type) or column.type == pa.uint64():
        raise InvalidError(f"holds {column.type}")
    column = column.cast(pa.int64())
    if numbers_of(column, 0).min() < 0:
        raise InvalidError("holds a turn below 0")
    return numbers_of(column, NO_TURN)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def to_table(source: Any, where: str, names: FieldNames, need: Input) -> pa.Table | None:
    """Return the table behind an object, or None if it is no table."""
    pandas = sys.modules.get("pandas")  # an object of pandas can only be there if pandas is loaded
    from_pandas = pandas is not None and isinstance(source, pandas.DataFrame | pandas.Series)
    is_dataset = hasattr(source, "column_names") and hasattr(source, "__getitem__")
    if not (from_pandas or is_dataset or hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")):
        return None
    import pyarrow as pa

    try:
        if from_pandas and hasattr(source, "columns"):
            # Only what matters: a column of scores need not be something Arrow knows; and not the index.
            return pa.Table.from_pandas(source[names.choose_columns(source.columns, need)], preserve_index=False)
        if from_pandas:
            source = pa.array(source, from_pandas=True)
        elif is_dataset and not isinstance(source, pa.Table | pa.RecordBatch):
            if hasattr(source, "with_format"):  # by its rows, since its table also holds rows that were filtered out
                return source.with_format("arrow")[:]
            return pa.table({name: list(source[name]) for name in source.column_names})
        return _from_arrow(source, names, need)
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = f"cannot be made an Arrow table ({_first_line(error)})"
        remedy = "give every column one type: strings, or lists of strings"
        raise DataError(Problem(where, None, what, remedy)) from None


def _from_arrow(source: Any, names: FieldNames, need: Input) -> pa.Table:
    import pyarrow as pa

    if hasattr(source, "to_arrow"):  # polars, whose interface gives categories that Arrow cannot read
        frame = hasattr(source, "columns")
        source = (source[names.choose_columns(source.columns, need)] if frame else source).to_arrow()
    if isinstance(source, pa.Table):
        return source
    column = pa.array(source) if hasattr(source, "__arrow_c_array__") else pa.chunked_array(source)
    if pa.types.is_struct(column.type):
        return pa.Table.from_struct_array(column)
    return pa.table({names.response: column})
