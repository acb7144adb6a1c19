"""Arrow arrays over our own columns, and Parquet files of them, written and read with checks.

`pyarrow.array`, `to_numpy` and every function that takes a Python value import pandas where it is installed, and that
takes longer than a small run. The functions here use buffers and import nothing.

A Parquet file that dialeval wrote is checked against its digest and schema when it is read (`read_table`). Files whose
values take far more memory than the file has bytes are refused: a column that repeats one value is stored as a
dictionary of one entry and a run length, so that 489 bytes can hold gigabytes. Before a small file is decoded, the
longest entry of each dictionary times the number of values bounds what comes out of it. Where that is more than
`decoded_limit`, the lengths of all values are added up, which takes four bytes for each. That takes too long for files
above `LARGEST_CHECKED` bytes: their values are counted while they are read, a batch of rows at a time. The lengths of
lists of numbers are not checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Ints, Mask, offsets_of, ranges, split_clusters
from dialeval.core.columns import TextColumn
from dialeval.core.validation import InvalidError, explain_errors, read_bytes

if TYPE_CHECKING:
    import pyarrow as pa

MOST_TIMES = 200
SURELY_DECODED = 1 << 29
LARGEST_CHECKED = 1 << 26
_NUMBER_BYTES = 8
_GROUP_ROWS = 1 << 16
_COUNTED_ROWS = 1 << 14
_THREADED_BYTES = 1 << 20
_MOST_BYTES = (1 << 31) - 1
"""The bytes of an array of texts, and the values of an array of lists: their offsets are 32-bit numbers."""
_COPIED_BYTES = 1 << 22
"""Bytes of texts that are copied at a time."""


def number_array(values: npt.NDArray[Any], missing: Mask | None = None) -> pa.Array:
    """Return an Arrow array of integers, floats or booleans; null where they are missing."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(values.dtype)
    content = _pack_bits(values) if values.dtype == np.bool_ else np.ascontiguousarray(values)
    validity = None if missing is None or not missing.any() else pa.py_buffer(_pack_bits(~missing))
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(content)])


def numbers_of(column: pa.Array | pa.ChunkedArray, missing: float = np.nan) -> npt.NDArray[Any]:
    """Return the numbers or booleans of a column, with `missing` in place of null."""
    import pyarrow as pa

    if not len(column):
        return np.empty(0, column.type.to_pandas_dtype())
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    here = slice(array.offset, array.offset + len(array))
    validity, data = array.buffers()
    if pa.types.is_boolean(array.type):
        values = _unpack_bits(data)[here]
    else:
        values = np.frombuffer(data, array.type.to_pandas_dtype())[here]
    return np.where(_unpack_bits(validity)[here], values, values.dtype.type(missing)) if array.null_count else values


def empty_text() -> pa.Scalar:
    """Return the empty text, which replaces null."""
    return repeat_text("", 1)[0]


def _unpack_bits(data: pa.Buffer) -> Mask:
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").astype(np.bool_)


def _pack_bits(values: Mask) -> npt.NDArray[np.uint8]:
    return np.packbits(values, bitorder="little")


def text_array(values: TextColumn | Sequence[str | None]) -> pa.Array:
    """Return an array of texts; None is null."""
    import pyarrow as pa

    missing = None
    if not isinstance(values, TextColumn):
        missing = np.fromiter((text is None for text in values), np.bool_, len(values))
        values = TextColumn.from_strings([text or "" for text in values])
    lengths = values.ends - values.starts
    if lengths.sum() > _MOST_BYTES:  # an array in chunks
        return pa.array(list(values), pa.string(), mask=missing)
    validity = None if missing is None or not missing.any() else pa.py_buffer(_pack_bits(~missing))
    offsets, data = offsets_of(lengths), np.empty(int(lengths.sum()), np.uint8)
    for first, last in split_clusters(offsets, _COPIED_BYTES):  # the places of all bytes would take eight times as much
        part = ranges(values.starts[first:last], lengths[first:last])
        data[offsets[first] : offsets[last]] = values.data[part]
    return pa.Array.from_buffers(pa.string(), len(values), [validity, _offset_buffer(offsets), pa.py_buffer(data)])


def repeat_text(text: str, rows: int) -> pa.Array:
    """Return an array with the same text in all rows."""
    import pyarrow as pa

    data = text.encode()
    if len(data) * rows > _MOST_BYTES:
        return pa.repeat(text, rows)
    offsets = _offset_buffer(np.arange(rows + 1) * len(data))
    return pa.Array.from_buffers(pa.string(), rows, [None, offsets, pa.py_buffer(data * rows)])


def list_array(offsets: Ints, values: pa.Array) -> pa.Array:
    """Return an array of lists: row `i` holds the values from `offsets[i]` to `offsets[i + 1]`."""
    import pyarrow as pa

    kind = pa.list_(values.type)
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, _offset_buffer(offsets)], children=[values])


def _offset_buffer(offsets: Ints) -> pa.Buffer:
    import pyarrow as pa

    if offsets[-1] > _MOST_BYTES:
        raise OverflowError(f"{offsets[-1]} values are more than an array of lists holds")
    return pa.py_buffer(offsets.astype(np.int32))


def write_tables(tables: Sequence[pa.Table], target: object) -> None:
    """Write tables one below the other to a Parquet file, with null where one lacks a column of another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.concat_tables(tables, promote_options="default")
    counted = [name for name in ("row", "dialogue") if name in table.column_names]  # they would fill a dictionary
    repeated = [field for field in table.schema if field.type != pa.float64() and field.name not in counted]
    pq.write_table(
        table,
        target,
        row_group_size=_GROUP_ROWS,
        compression="zstd",
        use_dictionary=[field.name + ".list.element" * pa.types.is_list(field.type) for field in repeated],
        column_encoding=dict.fromkeys(counted, "DELTA_BINARY_PACKED"),
    )


def read_table(
    path: str | os.PathLike[str],
    columns: Mapping[str, pa.DataType],
    others: Sequence[pa.DataType],
    remedy: str,
    sha256: str,
    of: str,
) -> pa.Table:
    """Read a Parquet file that has the `columns`, of these types and without a gap, and others of some types.

    A name that ends in a question mark is a column that may be missing, and may have gaps. `sha256` is what the
    document `of` says of the file.
    """
    import pyarrow as pa

    content = read_bytes(path, remedy, sha256, of)
    with explain_errors(path, remedy):
        try:
            table = read_parquet(pa.BufferReader(content))
            table.validate(full=True)
            names = table.column_names
        except InvalidError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: a name that is not UTF-8
            what = (str(error) or type(error).__name__).splitlines()[0]
            raise InvalidError(f"not a readable Parquet file ({what})") from None
        if len(set(names)) < len(names):
            raise InvalidError("has two columns of one name")
        for name in columns:
            if name not in names and not name.endswith("?"):
                raise InvalidError(f"has no column {name}")
        for name in names:
            kind, actual = columns.get(name, columns.get(f"{name}?")), table[name].type
            if kind is None and actual not in others:
                raise InvalidError(f"column {name!r} holds {actual}")
            if kind not in (None, actual):
                raise InvalidError(f"column {name} holds {actual}, not {kind}")
            if name in columns and table[name].null_count:
                raise InvalidError(f"column {name} has gaps")
    return table


def read_parquet(source: pa.BufferReader, chosen: Callable[[list[str]], list[str]] | None = None) -> pa.Table:
    """Read the table of a Parquet file; `chosen` picks columns by name. What `check_decoded_size` raises is raised."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    check_decoded_size(source, source.size())
    file = ParquetFile(source)  # pyarrow.parquet.read_table would import pandas
    columns = None if chosen is None else chosen(file.schema_arrow.names)
    if source.size() <= LARGEST_CHECKED:
        # No threads for little: a process that ends at once may abort while pyarrow still starts them.
        return file.read(columns=columns, use_threads=source.size() > _THREADED_BYTES)
    batches = list(read_batches(file, source.size(), _COUNTED_ROWS, columns=columns))
    return pa.Table.from_batches(batches) if batches else file.schema_arrow.empty_table()


def read_batches(file: Any, size: int, rows: int, **chosen: object) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a Parquet file of `size` bytes; InvalidError as soon as they take too much memory."""
    left = decoded_limit(size)
    for batch in file.iter_batches(rows, **chosen):
        left -= batch.nbytes
        if left < 0:
            raise size_error()
        yield batch


def decoded_limit(size: int) -> int:
    """Return how many bytes the values of a file of some size may take: 200 times as many, and 512 MiB in any case."""
    return max(SURELY_DECODED, MOST_TIMES * size)


def check_decoded_size(source: object, size: int) -> None:
    """Raise InvalidError where the values of a Parquet file of `size` bytes, open for reading, take too much memory.

    Raises:
        InvalidError: They do.
        pyarrow.ArrowException: It is not a readable Parquet file.
    """
    from pyarrow.parquet import ParquetFile

    metadata = ParquetFile(source).metadata
    limit, total = decoded_limit(size), 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [metadata.schema.column(place) for place in range(group.num_columns)]
        # Every column has at least a value for each row. Lists may have more, which only the metadata of a chunk say.
        sizes = (column.length for column in columns if column.physical_type == "FIXED_LEN_BYTE_ARRAY")
        total += group.total_byte_size + group.num_rows * (_NUMBER_BYTES * len(columns) + sum(sizes))
        if total > limit:
            raise size_error()
        texts = {column.path: at for at, column in enumerate(columns) if column.physical_type == "BYTE_ARRAY"}
        if texts and group.num_rows and size <= LARGEST_CHECKED:
            total += _bound_text_bytes(source, group, number, texts, limit)
        if total > limit:
            raise size_error()


def size_error() -> InvalidError:
    """Return the error of a file whose values take too much memory."""
    return InvalidError(f"its values take more than {MOST_TIMES} times the size of the file")


def _bound_text_bytes(source: object, group: Any, number: int, places: Mapping[str, int], limit: int) -> int:
    """Return a bound of the bytes of the texts in columns of a row group: exact where a rough one is too large.

    `places`: the number of each column, by its path.
    """
    from pyarrow.parquet import ParquetFile

    paths = list(places)
    file = ParquetFile(source, read_dictionary=paths)
    try:
        first = next(iter(file.iter_batches(1, row_groups=[number], columns=paths, use_threads=False)), None)
        leaves = () if first is None else _find_text_arrays(first)
        longest = max((int(_measure(leaf).max(initial=0)) for leaf in leaves), default=0)
        # Only now: where the metadata of a chunk are damaged, asking for them ends the process, and reading does not.
        values = sum(int(group.column(place).num_values) for place in places.values())
        if (longest + _NUMBER_BYTES) * values <= limit:
            return (longest + _NUMBER_BYTES) * values
        total = _NUMBER_BYTES * values
        if total > limit:
            raise size_error()
        for path in paths:
            whole = file.read_row_group(number, columns=[path]).to_batches()
            total += count_expanded_bytes(whole)
    except KeyError:
        raise InvalidError("it names columns that it does not have") from None
    return total


def count_expanded_bytes(batches: Iterable[pa.RecordBatch]) -> int:
    """Return the bytes of all texts in dictionary-encoded columns, each as often as it occurs."""
    leaves = (leaf for batch in batches for leaf in _find_text_arrays(batch))
    return sum(int(_measure(leaf)[numbers_of(leaf.indices.drop_null()).astype(np.int64)].sum()) for leaf in leaves)


def _find_text_arrays(batch: pa.RecordBatch) -> Iterator[pa.DictionaryArray]:
    """Yield the arrays of texts of a batch that are dictionary-encoded, however deep they are nested."""
    import pyarrow as pa

    texts = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    stack = list(batch.columns)
    while stack:
        array = stack.pop()
        if pa.types.is_dictionary(array.type):
            if array.type.value_type in texts:
                yield array
        elif pa.types.is_struct(array.type):
            stack += array.flatten()
        elif pa.types.is_map(array.type):
            stack += [array.keys, array.items]
        elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            stack.append(array.values)


def _measure(array: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    import pyarrow.compute as pc

    return numbers_of(pc.binary_length(array.dictionary), 0).astype(np.int64)
