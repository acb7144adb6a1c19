"""Reading a saved run: `run.json`, and the tables beside it as items, rows and contributions of its systems.

A value that an edited file states is not taken for one that was computed: `run.json` has the digest that it carries,
the tables have those that it names, and a mean is the one of the items next to it.

Every file passes the gate (`core.gate`) first. The files of an entry are of consecutive rows; what they hold of a
system is put together in their order, so that a run is the same however it was cut. Runs of the first layout, which
had one file for each entry, are read in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from dialeval.core import gate
from dialeval.core.arrays import Floats
from dialeval.core.arrow_arrays import text_array
from dialeval.core.contributions import contributions_schema, from_arrow, is_lists
from dialeval.core.errors import DataError, Fault
from dialeval.core.files import place_of
from dialeval.core.fold import Analytic, Estimate, Level, Resampling
from dialeval.core.itemfile import items_of, items_schema, joined
from dialeval.core.result import FORMAT, OWN_FIELDS, REMEDY, Result, Role, Run
from dialeval.core.rowtable import RowTable, is_texts, rows_schema
from dialeval.core.run_schema import SavedRun, files_in
from dialeval.core.signature import Signature

if TYPE_CHECKING:
    import pyarrow as pa

    from dialeval.core.run_schema import SavedEstimate, SavedResult

T = TypeVar("T")

_MEAN_TOLERANCE = 1e-9
"""How far a mean may be from the one of its items, in units of the largest: rounding and no more."""


def read(file: Path) -> Run:
    """The run of a `run.json` and the files beside it; DataError where they are not whole or do not fit together."""
    document = gate.read_json(file, dict[str, Any], REMEDY)
    if isinstance(layout := document.get("format"), int) and layout > FORMAT:
        what = f"layout {layout} is newer than this dialeval reads ({FORMAT})"
        raise DataError(Fault(str(file), None, what, "upgrade dialeval"))
    details = {name: value for name, value in document.items() if name not in OWN_FIELDS}
    with gate.explained(file, REMEDY):
        gate.check_depth(details)
    saved = gate.fitting(document, SavedRun, str(file), REMEDY)
    with gate.explained(file, REMEDY):
        gate.check_digest(document)
    return _Files(file, saved).run(details)


class _Part(NamedTuple):
    """A table beside a `run.json`, and what its systems are called there."""

    path: Path
    table: pa.Table
    names: Mapping[str, str]

    def of_system(self, name: str) -> pa.Table:
        """The lines of a system of the run."""
        import pyarrow.compute as pc

        inside = [own for own, shown in self.names.items() if shown == name]
        inside += [name] if name not in self.names else []
        return self.table.filter(pc.is_in(self.table["system"], text_array(inside)))


def _items(name: str, level: Level, table: pa.Table) -> dict[str, Floats]:
    return items_of(table, name, level)


class _Files:
    """The tables beside a `run.json`, and the run that they make with it."""

    def __init__(self, file: Path, saved: SavedRun) -> None:
        import pyarrow as pa

        self._file, self._saved = file, saved
        self._items = self._parts(saved.items, items_schema(), pa.types.is_float64)
        self._rows = self._parts(saved.rows, rows_schema(), is_texts)
        self._contributions = self._parts(saved.contributions or saved.statistics, contributions_schema(), is_lists)

    def _parts(
        self, entry: Any, columns: Mapping[str, pa.DataType], others: Callable[[pa.DataType], bool]
    ) -> list[_Part]:
        parts = []
        for written in files_in(entry):
            path = place_of(self._file.with_name(written.file), written.sha256)
            table = gate.read_table(path, columns, others, REMEDY, written.sha256, self._file.name)
            parts.append(_Part(path, table, written.systems))
        return parts

    def run(self, details: dict[str, Any]) -> Run:
        """The run; DataError where its files do not fit together."""
        saved = self._saved
        systems = {name: self._result(name, result, details) for name, result in saved.systems.items()}
        return Run(systems, saved.dialeval, tuple(saved.warnings), details)

    def _result(self, name: str, saved: SavedResult, details: Mapping[str, Any]) -> Result:
        items = {level: joined(self._made(self._items, name, partial(_items, name, level))) for level in Level}
        rows = self._made(self._rows, name, RowTable.from_arrow)
        contributions = self._made(self._contributions, name, from_arrow)
        result = Result(
            {key: _estimate_of(each, items[each.level].get(key)) for key, each in saved.metrics.items()},
            saved.skipped,
            saved.source,
            RowTable.joined(rows) if any(map(len, rows)) else None,  # a table without it has no rows of the system
            contributions[0] if contributions else {},
            saved.role or _role_by_name(name, details),
        )
        with gate.explained(self._file, REMEDY):
            _check_sizes(name, result)
            for key, estimate in result.items():
                _check_summary(name, key, estimate)
        return result

    @staticmethod
    def _made(parts: list[_Part], system: str, make: Callable[[pa.Table], T]) -> list[T]:
        """What is made of the lines of a system in each part that has some, or in the first one if none has."""
        made = []
        for part in parts:
            table = part.of_system(system)
            if len(table) or len(parts) == 1:
                with gate.explained(part.path, REMEDY):
                    made.append(make(table))
        return made


def _check_sizes(name: str, result: Result) -> None:
    """UnfitError where items, rows and contributions of a system are not of the same rows."""
    rows = result.rows
    for key, estimate in result.items():
        if estimate.items is not None and len(estimate.items) != estimate.rows:
            raise gate.UnfitError(f"{name}: {len(estimate.items)} values of {key} are saved for {estimate.rows} rows")
        known = None if rows is None else len(rows) if estimate.level is Level.TURN else len(rows.offsets) - 1
        if estimate.items is not None and known not in (None, estimate.rows):
            raise gate.UnfitError(f"{name}: {known} rows are saved, and {key} has {estimate.rows}")
    counts = {len(each) for each in result.contributions.values()} | ({len(rows)} if rows is not None else set())
    if result.contributions and len(counts) > 1:
        raise gate.UnfitError(f"{name}: contributions are saved for another number of rows")


def _check_summary(name: str, key: str, estimate: Estimate) -> None:
    """UnfitError where the items of a metric have another mean, or are more or fewer, than is stated."""
    if estimate.items is None:
        return
    scored = estimate.items[~np.isnan(estimate.items)]
    if len(scored) != estimate.scored:
        raise gate.UnfitError(f"{name}: {len(scored)} values of {key} are saved, and {estimate.scored} are stated")
    if estimate.corpus or not len(scored):
        return
    mean = float(scored.mean())
    if not abs(mean - estimate.mean) <= _MEAN_TOLERANCE * float(np.abs(scored).max()):
        what = f"the values of {key} have the mean {mean:.6g}, and {estimate.mean:.6g} is stated"
        raise gate.UnfitError(f"{name}: {what}")


def _role_by_name(system: str, document: Mapping[str, Any]) -> Role:
    """The role of a system in a run that was saved before results had one; its anchors were known by their prefix."""
    prefix = system.split("/", 1)[0]
    anchors = document.get("anchors", {}).get("systems", {})
    detectors = document.get("breakdown")
    is_anchor = system in anchors or (detectors is not None and system not in detectors)
    return prefix if is_anchor and prefix in ("floor", "ceiling") else "system"  # type: ignore[return-value]


def _estimate_of(saved: SavedEstimate, items: Floats | None) -> Estimate:
    """An estimate; columns without a single row are every system's, and count where it has no rows."""
    how = saved.found_by()
    return Estimate(
        mean=_float(saved.mean),
        std=_float(saved.std),
        rows=saved.rows,
        scored=saved.scored,
        corpus=saved.of == "corpus",
        confidence=_float(saved.confidence),
        interval=None if saved.interval is None else (_float(saved.interval[0]), _float(saved.interval[1])),
        items=None if items is not None and not len(items) and saved.rows else items,
        level=saved.level,
        signature=None if saved.signature is None else Signature.parse(saved.signature),
        resampling=how if isinstance(how, Resampling) else None,
        analytic=how if isinstance(how, Analytic) else None,
    )


def _float(value: float | None) -> float:
    return math.nan if value is None else float(value)
