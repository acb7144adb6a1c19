"""Arrow tables: of Parquet files, and of objects of other libraries.

Objects with the Arrow PyCapsule interface (pandas, polars, Hugging Face datasets and their columns) are read through
it, without importing their library. A single column (a series, an array) becomes a table with the one column
`response`. A missing value of pandas (NaN, NA) is a null.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dialeval.core import inputs
from dialeval.core.arrow import read_parquet
from dialeval.core.errors import DataError, Problem
from dialeval.core.inputs import Input
from dialeval.core.validation import InvalidError, JsonObject
from dialeval.io.opening import PathSource, is_utf8, read_bytes
from dialeval.io.rows import FieldNames, Records

if TYPE_CHECKING:
    import pyarrow as pa


_ROWS = 1024
"""Rows that are turned into plain data at a time."""


def read(path: PathSource, names: FieldNames, need: Input | None = inputs.RESPONSE) -> Records:
    """Read the rows of a file: of the columns that can matter to the need, or of all where it is None."""
    table = parse_table(read_bytes(path), path, lambda there: names.choose_columns(there, need))
    return make_records(table, str(path), names, need)


def make_records(table: pa.Table, where: str, names: FieldNames, need: Input | None = inputs.RESPONSE) -> Records:
    """Return the rows of a table with the columns that can matter; DataError where these are not sound."""
    columns = table.column_names
    chosen = set(names.choose_columns(columns, need))
    table = table.select([index for index, name in enumerate(columns) if name in chosen])
    twice = sorted(name for name, count in Counter(table.column_names).items() if count > 1)
    if problems := [*(ambiguity_problem(name, where) for name in twice), *_find_column_problems(table, where)]:
        raise DataError(problems)
    rows = enumerate(_read_rows(table, where), 1)
    return Records(where, rows, header=tuple(table.column_names))


def ambiguity_problem(name: str, where: str) -> Problem:
    """Return the problem of a table with several columns of one name."""
    return Problem(where, None, f"has several columns {name!r}", "keep one of them")


def parse_table(content: object, path: PathSource, chosen: Callable[[list[str]], list[str]] | None = None) -> pa.Table:
    """Read the table in the bytes of a Parquet file; `chosen` selects columns by name."""
    import pyarrow as pa

    with explain_damage(path):
        return read_parquet(pa.BufferReader(pa.py_buffer(content)), chosen)


@contextmanager
def explain_damage(path: PathSource) -> Iterator[None]:
    """Raise DataError with the name of a Parquet file that cannot be read."""
    import pyarrow as pa

    try:
        yield
    except InvalidError as error:
        raise DataError(Problem(str(path), None, str(error), "leave out what repeats, or write it as lines")) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last one: of a column's name
        what = f"not a readable Parquet file ({_first_line(error)})"
        raise DataError(Problem(str(path), None, what, "write it again, or give it the suffix of its format")) from None


def _view_bytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
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
        cells = _view_bytes(column)
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
