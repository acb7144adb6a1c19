"""Tables of other libraries as Arrow tables: Arrow, pandas, polars, Hugging Face datasets, and their columns.

Nothing is imported to find out: an object of a library can only be there if the library is loaded. A single column (a
series, an array) becomes a table with the one column `response`. A missing value of pandas (NaN, NA) is a null.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeAlias

from dialeval.core.errors import DataError, Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from dialeval.core.needs import Need
    from dialeval.data.formats.records import FieldNames

    Converter: TypeAlias = Callable[[Any, FieldNames, Need], pa.Table]


def as_table(source: object, where: str, names: FieldNames, need: Need) -> pa.Table | None:
    """The table behind an object, or None if it is no table."""
    convert = _converter(source)
    if convert is None:
        return None
    import pyarrow as pa

    try:
        return convert(source, names, need)
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = f"cannot be made an Arrow table ({(str(error) or type(error).__name__).splitlines()[0]:.200})"
        remedy = "give every column one type: strings, or lists of strings"
        raise DataError(Fault(where, None, what, remedy)) from None


def _converter(source: object) -> Converter | None:
    for library, kinds in _CONVERTERS.items():
        module = sys.modules.get(library)
        for kind, convert in kinds.items():
            if module is not None and isinstance(source, getattr(module, kind)):
                return convert
    if hasattr(source, "column_names") and hasattr(source, "__getitem__"):
        return _from_dataset
    return _from_stream if hasattr(source, "__arrow_c_stream__") else None


def _from_table(source: pa.Table, _names: FieldNames, _need: Need) -> pa.Table:
    return source


def _from_record_batch(source: pa.RecordBatch, _names: FieldNames, _need: Need) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches([source])


def _from_array(source: pa.Array | pa.ChunkedArray, names: FieldNames, _need: Need) -> pa.Table:
    import pyarrow as pa

    if pa.types.is_struct(source.type):
        return pa.Table.from_struct_array(source)
    return pa.table({names.response: source})


def _from_pandas(source: Any, names: FieldNames, need: Need) -> pa.Table:
    import pyarrow as pa

    # Only what matters: a column of scores need not be something Arrow knows.
    return pa.Table.from_pandas(source[names.chosen(source.columns, need)], preserve_index=False)


def _from_pandas_series(source: Any, names: FieldNames, need: Need) -> pa.Table:
    import pyarrow as pa

    return _from_array(pa.array(source, from_pandas=True), names, need)


def _from_polars(source: Any, names: FieldNames, need: Need) -> pa.Table:
    return source.select(names.chosen(source.columns, need)).to_arrow()


def _from_polars_series(source: Any, names: FieldNames, need: Need) -> pa.Table:
    return _from_array(source.to_arrow(), names, need)


def _from_dataset(source: Any, _names: FieldNames, _need: Need) -> pa.Table:
    """A Hugging Face dataset; asked for its rows, since its table also holds rows that were filtered out."""
    import pyarrow as pa

    if hasattr(source, "with_format"):
        return source.with_format("arrow")[:]
    return pa.table({name: list(source[name]) for name in source.column_names})


def _from_stream(source: Any, _names: FieldNames, _need: Need) -> pa.Table:
    import pyarrow as pa

    return pa.table(source)


_CONVERTERS: dict[str, dict[str, Converter]] = {
    "pyarrow": {
        "Table": _from_table,
        "RecordBatch": _from_record_batch,
        "Array": _from_array,
        "ChunkedArray": _from_array,
    },
    "pandas": {"DataFrame": _from_pandas, "Series": _from_pandas_series},
    "polars": {"DataFrame": _from_polars, "Series": _from_polars_series},
}
