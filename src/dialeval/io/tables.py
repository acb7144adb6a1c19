"""Tables: CSV and TSV, Parquet, and tables of other libraries.

CSV and TSV have a header and one row per response, quoted as in RFC 4180. The separator of cells is found from the
header: a comma, a semicolon, a tab or a bar, whichever gives most names of known fields, then most columns, then the
one of the suffix. A first line `sep=;`, as of Excel, states it, and `FieldNames.separator` overrides all. The text is
UTF-8, or UTF-16 with a byte order mark. Where it is neither and no character is one of UTF-8, it is read as
Windows-1252, with a warning.

The header names the fields. LF and CRLF end a row outside quotes; a lone CR has to be in quotes. An empty cell means
that the field is not given, except in the response column, where it is an empty response. Blank lines are skipped; in
a table of one column, where such a line is an empty cell, it is a row. A row with more or fewer cells than the header
is a problem, and every problem names the line of the file on which its row starts.

Objects with the Arrow PyCapsule interface (pandas, polars, Hugging Face datasets and their columns) are read through
it, without importing their library. A single column (a series, an array) becomes a table with the one column
`response`. A missing value of pandas (NaN, NA) is a null.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dialeval.core import arrow, inputs
from dialeval.core.arrays import Bytes
from dialeval.core.errors import DataError, Problem, ProblemList, add_warning
from dialeval.core.inputs import Input
from dialeval.core.validation import InvalidError, JsonObject
from dialeval.io import row_shapes
from dialeval.io.opening import PathSource, find_encoding_problems, is_utf8, read_bytes, split_lines, strip_mark
from dialeval.io.rows import FieldNames, Records, join_names

if TYPE_CHECKING:
    import pyarrow as pa


MOST_COLUMNS = 10_000
_SEPARATORS = ",;\t|"
_SAID = re.compile(r"sep=(?P<separator>[^\r\n\0\"])\r?\n", re.IGNORECASE)
"""The line before the header that states the separator for Excel."""
_LOOKED_AT = 1 << 16
"""Characters of a text that are searched for the header."""
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_UTF_8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def read_delimited(path: PathSource, names: FieldNames, delimiter: str) -> Records:
    """Return the rows of a file, parsed lazily; `delimiter` is that of its suffix."""
    where = str(path)
    text = _decode(read_bytes(path), where)
    problems = ProblemList()
    said = _SAID.match(text)
    if said:
        text, delimiter = text[said.end() :], said["separator"]
    if names.separator is not None:
        delimiter = names.separator
    elif not said:
        delimiter = _find_separator(text, names, delimiter)
    cells = _read_cells(text, delimiter, where, problems, 1 if said else 0)
    line, header = next(cells, (1, []))
    if not any(header):
        raise DataError(problems or Problem(where, line, "has no header", "name the columns in the first row"))
    if len(header) > MOST_COLUMNS:
        what = f"the header names {len(header):,} columns, and at most {MOST_COLUMNS:,} are read"
        raise DataError(Problem(where, line, what, "leave out columns, or check what separates cells"))
    twice = sorted(name for name, count in Counter(header).items() if count > 1)
    if twice:
        what = f"the header names {join_names(map(repr, twice))} more than once"
        raise DataError(Problem(where, line, what, "give every column a name of its own"))
    return Records(where, _name_cells(cells, header, names.response, where, problems), problems)


def _decode(data: Bytes, where: str) -> str:
    """Return the text of a file; warn where its encoding was guessed."""
    start = data[:2].tobytes()
    if start in _UTF_16:
        try:
            return data[2:].tobytes().decode(_UTF_16[start])
        except UnicodeDecodeError as error:
            what = f"begins as UTF-16 and is not ({error.reason} at byte {error.start + 2})"
            raise DataError(Problem(where, None, what, "save the file as UTF-8")) from None
    if not (problems := find_encoding_problems(split_lines(data, where), where)):
        return str(strip_mark(data).data, "utf-8")
    content = data.tobytes()
    if _UTF_8_CHARACTER.search(content):  # a damaged file of UTF-8, whose other characters would be spoilt
        raise DataError(problems)
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        raise DataError(problems) from None
    add_warning(
        f"{where} is not UTF-8 (line {problems[0].line}) and was read as Windows-1252; save it as UTF-8 to be sure"
    )
    return text


def _find_separator(text: str, names: FieldNames, usual: str) -> str:
    """Find the separator of the cells of a text."""
    head = text[:_LOOKED_AT]
    expected = {*names.all, *row_shapes.list_columns()}
    best, most = usual, (0, 0)
    for candidate in dict.fromkeys((usual, *_SEPARATORS)):
        reader = csv.reader(io.StringIO(head, newline="\n"), delimiter=candidate)
        with _lift_cell_limit(), suppress(csv.Error):
            header = next(reader, [])
            score = (len(expected.intersection(header)), len(header))
            if score > most and (score[0] or len(header) > 1):
                best, most = candidate, score
    return best


def _name_cells(
    cells: Iterator[tuple[int, list[str]]], header: list[str], response: str, where: str, problems: list[Problem]
) -> Iterator[tuple[int, object]]:
    for line, row in cells:
        if not row:
            if len(header) > 1:
                continue
            row = [""]
        if len(row) != len(header):
            what = f"has {len(row)} cells where the header has {len(header)}"
            problems.append(Problem(where, line, what, "put cells with delimiters or line ends into double quotes"))
            continue
        named = zip(header, row, strict=True)
        yield line, {name: cell if cell or name == response else None for name, cell in named}


def _read_cells(
    text: str, delimiter: str, where: str, problems: list[Problem], before: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row starts, and its cells; a row that does not parse is added to the problems.

    `before`: lines of the file before the text.
    """
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, strict=True)
    with _lift_cell_limit():
        while True:
            line = reader.line_num + 1 + before
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                remedy = 'close every double quote, and write "" for one inside a quoted cell'
                problems.append(Problem(where, line, f"is not quoted correctly ({error})", remedy))
                continue
            if delimiter == "\t" and any("\t" in cell and "\n" in cell for cell in row):
                what = "has a quoted cell with tabs and line ends in it, most likely several rows"
                problems.append(Problem(where, line, what, 'write """" for a cell that begins with ", or save as .csv'))
                continue
            yield line, row


@contextmanager
def _lift_cell_limit() -> Iterator[None]:
    """Lift the parser's limit of 128 KiB per cell, which holds for the whole process, while a file is read."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


# Parquet files and tables of other libraries.

_ROWS = 1024
"""Rows that are turned into plain data at a time."""


def read_parquet(path: PathSource, names: FieldNames, need: Input | None = inputs.RESPONSE) -> Records:
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
    return Records(where, rows)


def ambiguity_problem(name: str, where: str) -> Problem:
    """Return the problem of a table with several columns of one name."""
    return Problem(where, None, f"has several columns {name!r}", "keep one of them")


def parse_table(content: object, path: PathSource, chosen: Callable[[list[str]], list[str]] | None = None) -> pa.Table:
    """Read the table in the bytes of a Parquet file; `chosen` selects columns by name."""
    import pyarrow as pa

    with explain_damage(path):
        return arrow.read_parquet(pa.BufferReader(pa.py_buffer(content)), chosen)


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
