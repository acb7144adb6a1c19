"""Figures as a table for other programs: an Arrow table, and from it a data frame of pandas or polars.

pandas and polars are not among what dialeval needs; they are imported when a data frame is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dialeval.core.errors import NeedError

if TYPE_CHECKING:
    import pyarrow as pa


class Tabular:
    """What can be given as a table; a class says what its lines are in `to_arrow`."""

    def to_arrow(self) -> pa.Table:
        """Return the table, for Arrow."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the table as a data frame of pandas."""
        _installed("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the table as a data frame of polars."""
        return _installed("polars").from_arrow(self.to_arrow())


def _installed(library: str) -> Any:
    try:
        return import_module(library)
    except ModuleNotFoundError:
        raise NeedError(f"a data frame of {library} needs {library}; install it: pip install {library}") from None
