"""Tables of other libraries as Arrow tables: Arrow, pandas, polars, Hugging Face datasets, and their columns.

Whatever speaks the Arrow PyCapsule interface is taken through it, without its library being imported. A single column
(a series, an array) becomes a table with the one column `response`. A missing value of pandas (NaN, NA) is a null.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dialeval.core.errors import DataError, Fault

if TYPE_CHECKING:
    import pyarrow as pa

    from dialeval.core.needs import Need
    from dialeval.data.formats.records import FieldNames


def as_table(source: object, where: str, names: FieldNames, need: Need) -> pa.Table | None:
    """The table behind an object, or None if it is no table."""
    pandas = sys.modules.get("pandas")  # an object of pandas can only be there if pandas is loaded
    from_pandas = pandas is not None and isinstance(source, pandas.DataFrame | pandas.Series)
    is_dataset = hasattr(source, "column_names") and hasattr(source, "__getitem__")
    if not (from_pandas or is_dataset or hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")):
        return None
    import pyarrow as pa

    try:
        if from_pandas:
            return _from_pandas(source, names, need)
        if is_dataset and not isinstance(source, pa.Table | pa.RecordBatch):
            return _from_dataset(source)
        return _from_arrow(source, names, need)
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = f"cannot be made an Arrow table ({(str(error) or type(error).__name__).splitlines()[0]:.200})"
        remedy = "give every column one type: strings, or lists of strings"
        raise DataError(Fault(where, None, what, remedy)) from None


def _from_pandas(source: Any, names: FieldNames, need: Need) -> pa.Table:
    import pyarrow as pa

    if not hasattr(source, "columns"):
        return _from_arrow(pa.array(source, from_pandas=True), names, need)
    # Only what matters: a column of scores need not be something Arrow knows; and not the index.
    return pa.Table.from_pandas(source[names.chosen(source.columns, need)], preserve_index=False)


def _from_dataset(source: Any) -> pa.Table:
    """A Hugging Face dataset; asked for its rows, since its table also holds rows that were filtered out."""
    import pyarrow as pa

    if hasattr(source, "with_format"):
        return source.with_format("arrow")[:]
    return pa.table({name: list(source[name]) for name in source.column_names})


def _from_arrow(source: Any, names: FieldNames, need: Need) -> pa.Table:
    import pyarrow as pa

    if hasattr(source, "to_arrow"):  # polars, whose interface gives categories that Arrow cannot read
        frame = hasattr(source, "columns")
        source = (source[names.chosen(source.columns, need)] if frame else source).to_arrow()
    if isinstance(source, pa.Table):
        return source
    column = pa.array(source) if hasattr(source, "__arrow_c_array__") else pa.chunked_array(source)
    if pa.types.is_struct(column.type):
        return pa.Table.from_struct_array(column)
    return pa.table({names.response: column})
