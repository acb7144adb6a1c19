"""Arrow arrays over the bytes of our own arrays and columns, and back.

`pyarrow.array`, `to_numpy` and every function that takes a Python value import pandas, wherever it is installed, and
that takes longer than a small run. These go by buffers and import nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Ints, Mask
from dialeval.core.columns import TextColumn
from dialeval.core.ragged import offsets_of, ranges

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_BYTES = (1 << 31) - 1
"""The bytes of an array of texts, and the values of an array of lists: their offsets are 32-bit numbers."""


def number_array(values: npt.NDArray[Any], missing: Mask | None = None) -> pa.Array:
    """Whole numbers, floating-point numbers or truth values; null where they are missing."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(values.dtype)
    content = _bits(values) if values.dtype == np.bool_ else np.ascontiguousarray(values)
    there = None if missing is None or not missing.any() else pa.py_buffer(_bits(~missing))
    return pa.Array.from_buffers(kind, len(values), [there, pa.py_buffer(content)])


def numbers_of(column: pa.Array | pa.ChunkedArray, missing: float = np.nan) -> npt.NDArray[Any]:
    """The numbers or truth values of a column, with `missing` in the place of null."""
    import pyarrow as pa

    if not len(column):
        return np.empty(0, column.type.to_pandas_dtype())
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    here = slice(array.offset, array.offset + len(array))
    there, data = array.buffers()
    if pa.types.is_boolean(array.type):
        values = _of_bits(data)[here]
    else:
        values = np.frombuffer(data, array.type.to_pandas_dtype())[here]
    return np.where(_of_bits(there)[here], values, values.dtype.type(missing)) if array.null_count else values


def no_text() -> pa.Scalar:
    """The empty text, to be put in the place of null."""
    return repeated_text("", 1)[0]


def _of_bits(data: pa.Buffer) -> Mask:
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").astype(np.bool_)


def _bits(values: Mask) -> npt.NDArray[np.uint8]:
    return np.packbits(values, bitorder="little")


def text_array(values: TextColumn | Sequence[str | None]) -> pa.Array:
    """Texts; None is null."""
    import pyarrow as pa

    missing = None
    if not isinstance(values, TextColumn):
        missing = np.fromiter((text is None for text in values), np.bool_, len(values))
        values = TextColumn.from_strings([text or "" for text in values])
    lengths = values.ends - values.starts
    if lengths.sum() > _MOST_BYTES:  # an array in chunks
        return pa.array(list(values), pa.string(), mask=missing)
    there = None if missing is None or not missing.any() else pa.py_buffer(_bits(~missing))
    data = pa.py_buffer(values.data[ranges(values.starts, lengths)])
    return pa.Array.from_buffers(pa.string(), len(values), [there, _offsets(offsets_of(lengths)), data])


def repeated_text(text: str, rows: int) -> pa.Array:
    """The same text in all rows."""
    import pyarrow as pa

    data = text.encode()
    if len(data) * rows > _MOST_BYTES:
        return pa.repeat(text, rows)
    offsets = _offsets(np.arange(rows + 1) * len(data))
    return pa.Array.from_buffers(pa.string(), rows, [None, offsets, pa.py_buffer(data * rows)])


def list_array(offsets: Ints, values: pa.Array) -> pa.Array:
    """Lists of values: row `i` holds those from `offsets[i]` to `offsets[i + 1]`."""
    import pyarrow as pa

    kind = pa.list_(values.type)
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, _offsets(offsets)], children=[values])


def _offsets(offsets: Ints) -> pa.Buffer:
    import pyarrow as pa

    if offsets[-1] > _MOST_BYTES:
        raise OverflowError(f"{offsets[-1]} values are more than an array of lists holds")
    return pa.py_buffer(offsets.astype(np.int32))
