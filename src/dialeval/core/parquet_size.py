"""Refuse Parquet files whose values take far more memory than the file has bytes.

A column that repeats one value is stored as a dictionary of one entry and a run length: 489 bytes can hold gigabytes.
Before a small file is decoded, the longest entry of each dictionary times the number of values bounds what comes out of
it. Where that is more than `decoded_limit`, the lengths of all values are added up, which takes four bytes for each.
Files above `LARGEST_CHECKED` bytes are not looked at: their readers expect to need memory. Nor are the lengths of lists
of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core.arrow_arrays import numbers_of
from dialeval.core.gate import UnfitError

if TYPE_CHECKING:
    import pyarrow as pa

MOST_TIMES = 200
SURELY_DECODED = 1 << 29
LARGEST_CHECKED = 1 << 26
_NUMBER_BYTES = 8


def decoded_limit(size: int) -> int:
    """Return how many bytes the values of a file of some size may take: 200 times as many, and 512 MiB in any case."""
    return max(SURELY_DECODED, MOST_TIMES * size)


def check_decoded_size(source: Any, size: int) -> None:
    """Raise UnfitError where the values of a Parquet file of `size` bytes, open for reading, take too much memory.

    Raises:
        UnfitError: They do.
        pyarrow.ArrowException: It is not a readable Parquet file.
    """
    from pyarrow.parquet import ParquetFile

    if size > LARGEST_CHECKED:
        return
    metadata = ParquetFile(source).metadata
    limit, total = decoded_limit(size), 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [metadata.schema.column(place) for place in range(group.num_columns)]
        # Every column has at least a value for each row. Lists may have more, which only the metadata of a chunk say.
        sizes = (each.length for each in columns if each.physical_type == "FIXED_LEN_BYTE_ARRAY")
        total += group.total_byte_size + group.num_rows * (_NUMBER_BYTES * len(columns) + sum(sizes))
        if total > limit:
            raise _refusal()
        texts = {each.path: at for at, each in enumerate(columns) if each.physical_type == "BYTE_ARRAY"}
        if texts and group.num_rows:
            total += _text_bytes(source, group, number, texts, limit)
        if total > limit:
            raise _refusal()


def _refusal() -> UnfitError:
    return UnfitError(f"its values take more than {MOST_TIMES} times the size of the file")


def _text_bytes(source: Any, group: Any, number: int, places: Mapping[str, int], limit: int) -> int:
    """Return a bound of the bytes of the texts in columns of a row group: exact where a rough one is too large.

    `places`: the number of each column, by its path.
    """
    from pyarrow.parquet import ParquetFile

    paths = list(places)
    file = ParquetFile(source, read_dictionary=paths)
    try:
        first = next(iter(file.iter_batches(1, row_groups=[number], columns=paths, use_threads=False)), None)
        leaves = () if first is None else _leaves(first)
        longest = max((int(_lengths(each).max(initial=0)) for each in leaves), default=0)
        # Only now: where the metadata of a chunk are damaged, asking for them ends the process, and reading does not.
        values = sum(int(group.column(place).num_values) for place in places.values())
        if (longest + _NUMBER_BYTES) * values <= limit:
            return (longest + _NUMBER_BYTES) * values
        total = _NUMBER_BYTES * values
        if total > limit:
            raise _refusal()
        for path in paths:
            whole = file.read_row_group(number, columns=[path]).to_batches()
            total += sum(int(_lengths(each)[_indices(each)].sum()) for batch in whole for each in _leaves(batch))
    except KeyError:
        raise UnfitError("it names columns that it does not have") from None
    return total


def _leaves(batch: pa.RecordBatch) -> Iterator[pa.DictionaryArray]:
    """Yield the dictionary-encoded arrays of a batch, however deep they are nested."""
    import pyarrow as pa

    stack = list(batch.columns)
    while stack:
        array = stack.pop()
        if pa.types.is_dictionary(array.type):
            yield array
        elif pa.types.is_struct(array.type):
            stack += array.flatten()
        elif pa.types.is_map(array.type):
            stack += [array.keys, array.items]
        elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            stack.append(array.values)


def _lengths(array: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    import pyarrow.compute as pc

    return numbers_of(pc.binary_length(array.dictionary), 0).astype(np.int64)


def _indices(array: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    return numbers_of(array.indices.drop_null()).astype(np.int64)
