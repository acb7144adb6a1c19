"""How results show themselves: in one line (`repr`), and in a notebook as the report shows them.

Pages and figures are made above this layer: a feature has `html` and `plot`, imported when something is shown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from itertools import chain, pairwise
from math import isfinite, nan
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.columns import TextColumn
from dialeval.core.errors import NeedError, escape_controls
from dialeval.core.features import find_place
from dialeval.core.fold import Estimate, Level
from dialeval.core.rowtable import NO_TURN
from dialeval.core.validation import JsonObject

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from dialeval.core.result import Result, Run
    from dialeval.core.rowtable import RowTable

MOST_NAMED = 3


class Displayable:
    """A result that a notebook shows."""

    def _repr_html_(self) -> str:
        return str(find_place("loaders", "html")(self))

    def to_latex(self, **settings: object) -> str:
        r"""Return the table of the result for a paper: booktabs rules, a caption in words, signatures as comments.

        Args:
            **settings: `width` (`"column"` or `"text"`, which the table fits), `label`, `rename` (names of the paper
                by names of metrics and systems) and `spread` (`"interval"`, `"pm"` or `"none"`); of runs also
                `metrics` and `transpose`, of runs and comparisons `percent`.

        Returns:
            The table in LaTeX.

        Raises:
            SettingError: A setting does not exist, or a metric.

        Examples:
            >>> import dialeval
            >>> run = dialeval.evaluate({"ours": ["a b", "c"]}, metrics="length")
            >>> print(run.to_latex(rename={"ours": "Our model"}, label="tab:main").splitlines()[5])
            \label{tab:main}
        """
        return str(find_place("loaders", "write_table")(self, "latex", **settings))

    def to_markdown(self, **settings: object) -> str:
        """Return the table of `to_latex` in Markdown.

        Args:
            **settings: Those of `to_latex`.

        Returns:
            The table in Markdown.
        """
        return str(find_place("loaders", "write_table")(self, "md", **settings))

    def to_html(self, **settings: object) -> str:
        """Return the table of `to_latex` in HTML, without a style.

        Args:
            **settings: Those of `to_latex`.

        Returns:
            The table in HTML.
        """
        return str(find_place("loaders", "write_table")(self, "html", **settings))


def count_names(names: Collection[str], noun: str) -> str:
    """Return `1 system (damd)`, `12 systems (damd, ubar, mintl and 9 more)`: a line, whatever the names are."""
    many = f"{len(names):,} {noun}" + ("" if len(names) == 1 else "s")
    return f"{many} ({list_some(list(map(escape_controls, names)), MOST_NAMED)})" if names else many


def list_some(names: Sequence[str], most: int) -> str:
    """Return the first names and how many more there are: `damd, ubar and 9 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


# Figures as a table for other programs: an Arrow table, and from it a data frame of pandas or polars.
#
# pandas and polars are not among what dialeval needs; they are imported when a data frame is asked for.


class Tabular:
    """A result that converts to tables; a class defines `lines`, or `to_arrow` where columns have types of their own.

    `to_pandas` and `to_polars` need the library of that name, which dialeval does not install.
    """

    def lines(self) -> list[JsonObject]:
        """Return the rows of the table as dictionaries, all with the same columns."""
        return list(self.to_arrow().to_pylist())

    def to_arrow(self) -> pa.Table:
        """Return the table as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.lines())

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas data frame.

        Raises:
            NeedError: pandas is not installed.
        """
        _import_library("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a polars data frame.

        Raises:
            NeedError: polars is not installed.
        """
        return _import_library("polars").from_arrow(self.to_arrow())


def _import_library(library: str) -> ModuleType:
    try:
        return import_module(library)
    except ModuleNotFoundError:
        raise NeedError(f"a data frame of {library} needs {library}; install it: pip install {library}") from None


def flatten_intervals(fields: JsonObject) -> JsonObject:
    """Return the fields with two columns, `low` and `high`, in place of each interval."""
    flat: JsonObject = {}
    for name, value in fields.items():
        if name.endswith("interval"):
            prefix = name.removesuffix("interval")
            flat |= dict(zip((f"{prefix}low", f"{prefix}high"), value or (None, None), strict=True))
        else:
            flat[name] = value
    return flat


# A run for other programs: its estimates as a table or as flat figures, and its items, a line per row.
#
# What is not there is null; NaN is a value that could not be computed.


def make_estimate_table(systems: Mapping[str, Result]) -> pa.Table:
    """Return one line per system and key.

    `low` and `high` are the ends of the interval and `half_width` is half of its width, NaN where there is none. `std`
    is that of the per-row scores, NaN for a corpus value, which has none. `of` is `rows` or `corpus`.
    """
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema((name, types[kind]) for name, kind in _COLUMNS.items())
    lines = [
        dict(zip(_COLUMNS, _make_line(system, result.role, key, estimate), strict=True))
        for system, result in systems.items()
        for key, estimate in result.items()
    ]
    return pa.Table.from_pylist(lines, schema)


_COLUMNS = {
    **dict.fromkeys(("system", "role", "metric"), str),
    **dict.fromkeys(("mean", "std", "low", "high", "half_width"), float),
    **dict.fromkeys(("interval_by",), str),
    **dict.fromkeys(("units", "scored"), int),
    **dict.fromkeys(("of", "level", "signature"), str),
}


def _make_line(system: str, role: str, key: str, estimate: Estimate) -> tuple[object, ...]:
    low, high = estimate.interval or (None, None)
    half = nan if low is None or high is None else (high - low) / 2
    method = None if estimate.interval_by is None or low is None else estimate.interval_by.method
    signature = None if estimate.signature is None else str(estimate.signature)
    return (
        *(system, role, key),
        *(estimate.mean, nan if estimate.corpus else estimate.std, low, high, half),
        *(method, estimate.units, estimate.scored),
        *("corpus" if estimate.corpus else "rows", estimate.level.value, signature),
    )


_UNSAFE_NAME = re.compile(r"[^A-Za-z0-9_.\-]+")
_FIGURES = ("mean", "low", "high")
_COUNTS = ("units", "scored")
_LONGEST_NAME = 200
"""Characters of a flat name; MLflow takes 250."""


def flatten_estimates(systems: Mapping[str | None, Mapping[str, Estimate]]) -> dict[str, float]:
    """Return values by plain names, `SYSTEM/KEY/mean` and so on (no system where it is None); see `Run.flat`."""
    flat: dict[str, float] = {}
    met_systems: set[str] = set()
    met: set[str] = set()
    for system, result in systems.items():
        before = "" if system is None else f"{_make_flat_name(system, met_systems)}/"
        for key, estimate in result.items():
            stem = _make_flat_name(f"{before}{key}", met)
            figures = dict(zip(_FIGURES, (estimate.mean, *(estimate.interval or (nan, nan))), strict=True))
            flat |= {f"{stem}/{name}": float(value) for name, value in figures.items() if isfinite(value)}
            flat |= {f"{stem}/{name}": getattr(estimate, name) for name in _COUNTS}
    return flat


def _make_flat_name(name: str, met: set[str]) -> str:
    """Return a new name that every logger takes; names differ in more than upper and lower case."""
    parts = [_UNSAFE_NAME.sub("_", part).strip("_.") or "_" for part in name.split("/")]
    # Loggers that keep figures in files: a figure is not the folder of another.
    safe = "/".join(f"{part}_" if part.lower() in (*_FIGURES, *_COUNTS) else part for part in parts)
    if len(safe) > _LONGEST_NAME:
        safe = f"{safe[:_LONGEST_NAME]}-{sha256(safe.encode()).hexdigest()[:8]}"
    unique, number = safe, 1
    while unique.lower() in met:
        number += 1
        unique = f"{safe}-{number}"
    met.add(unique.lower())
    return unique


def split_scores(run: Mapping[str, Result]) -> Iterator[tuple[str, Level, dict[str, Floats]]]:
    """Yield the items in the estimates of a run, one block for each system and level."""
    for system, result in run.items():
        for level in Level:
            items = {key: est.scores for key, est in result.items() if est.scores is not None and est.level is level}
            if items:
                yield system, level, items


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTable(Tabular, Displayable):
    """The per-row scores of a run: a line per turn or dialogue of each system, a column per metric.

    Before the metrics are `system`, `level`, `row` (counted from 1) and, where the run knows them, `dialog_id`, `turn`,
    the texts of the row (`response`; `context` and `reference` as lists) and the fields that the run kept. A field
    whose name another column has is called `field/NAME`.

    Attributes:
        run: The run.

    Examples:
        >>> import dialeval
        >>> rows = [{"response": "at nine", "context": ["when ?"], "city": "Bern"}, {"response": "no", "city": "Basel"}]
        >>> table = dialeval.evaluate(rows, metrics="length", keep="city").score_table
        >>> list(table.to_pandas().columns)
        ['system', 'level', 'row', 'context', 'response', 'city', 'length']
        >>> table.to_pandas()[["row", "response", "city", "length"]].values.tolist()
        [[1, 'at nine', 'Bern', 2.0], [2, 'no', 'Basel', 1.0]]
    """

    run: Run

    def __repr__(self) -> str:
        return f"<items of {self.run!r}>"

    def to_arrow(self) -> pa.Table:
        """Return the table as an Arrow table."""
        import pyarrow as pa

        tables = []
        known_rows = [result.table for result in self.run.values() if result.table is not None]
        taken = {*_PLACE_COLUMNS, *self.run.keys_in_order, *(name for rows in known_rows for name in rows.texts)}
        fields = [field for rows in known_rows for field in rows.fields.items()]
        several = {name for name, column in fields if any(len(values) > 1 for values in column)}
        for system, level, items in split_scores(self.run):
            size, rows = len(next(iter(items.values()))), self.run[system].table
            places = {"system": pa.repeat(system, size), "level": pa.repeat(level.value, size)}
            columns = {} if rows is None else _list_places(rows, level) | _list_fields(rows, level, taken, several)
            tables.append(pa.table({**places, "row": np.arange(1, size + 1), **columns, **items}))
        if not tables:
            return pa.table({"system": pa.array([], pa.string()), "level": pa.array([], pa.string()), "row": []})
        whole = pa.concat_tables(tables, promote_options="default")
        keys = [key for key in self.run.keys_in_order if key in whole.column_names]
        return whole.select([*(name for name in whole.column_names if name not in keys), *keys])


_PLACE_COLUMNS = ("system", "level", "row", "dialog_id", "turn")


def _list_places(rows: RowTable, level: Level) -> dict[str, pa.Array]:
    """Return the columns that say which row or dialogue a line is."""
    import pyarrow as pa

    names = None if rows.dialogues is None else pa.array([name or None for name in rows.dialogues], pa.string())
    if level is Level.DIALOGUE:
        return {} if names is None else {"dialog_id": names}
    columns: dict[str, pa.Array] = {} if names is None else {"dialog_id": names.take(pa.array(rows.clusters))}
    if rows.turns is not None:
        columns["turn"] = pa.array(rows.turns, mask=rows.turns == NO_TURN)
    return columns | {
        name: pa.array(list(column), pa.string() if isinstance(column, TextColumn) else pa.list_(pa.string()))
        for name, column in rows.texts.items()
    }


def _list_fields(rows: RowTable, level: Level, taken: Collection[str], several: Collection[str]) -> dict[str, pa.Array]:
    """Return the columns of kept fields; a dialogue has the values of its rows, null where they differ.

    `several`: fields of which some row has several values, whose columns are lists.
    """
    import pyarrow as pa

    columns: dict[str, pa.Array] = {}
    for name, column in rows.fields.items():
        values = list(column)
        if level is Level.DIALOGUE:
            spans = pairwise(rows.offsets.tolist())
            values = [list(dict.fromkeys(chain.from_iterable(values[start:end]))) for start, end in spans]
        made = (
            pa.array(values, pa.list_(pa.string()))
            if name in several
            else pa.array([texts[0] if len(texts) == 1 else None for texts in values], pa.string())
        )
        columns[f"field/{name}" if name in taken else name] = made
    return columns
