"""Results: what an evaluation gives, saves and loads.

`Run` maps systems to `Result`; `Result` maps keys such as `distinct-2` to `Estimate`. A run is saved as files in a
folder: `run.json` (every figure, signature, skipped metric and warning; what `-f json` prints), `items.parquet` (one
row per turn or dialogue of each system, one column per key), `rows.parquet` (what those rows are: dialogue, turn,
texts) and `contributions.parquet` (what each row adds to corpus values, for resampling). A streamed run has files of
consecutive rows in place of the second and third (`items-00000.parquet` and so on), which `run.json` lists in order.
Loading gives an equal run back. `run.json` holds the digests of the other files, so that files of two different runs
are not taken for one, and a digest of its own content, so that no value in it is changed unnoticed; all of them are
written by `core.files.replacing_together`. Other files in the folder are left alone, and `check_folder` says before a
long evaluation whether one of them is in the way.

A run is also given as tables for other programs (`run_tables`), joined with another by `+` (`joining`), and shows
itself in a notebook (`display`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from dialeval.core import gate
from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats
from dialeval.core.contributions import Contributions, to_arrow
from dialeval.core.display import Shown, listed, maker
from dialeval.core.errors import DataError
from dialeval.core.files import reading_together, replacing_together
from dialeval.core.fold import Estimate, Level
from dialeval.core.item_parts import ItemPart
from dialeval.core.itemfile import write_items
from dialeval.core.jsondata import null_for_nan
from dialeval.core.rowtable import RowTable
from dialeval.core.run_tables import ItemTable, estimate_table, flat_figures
from dialeval.core.tabular import Tabular
from dialeval.core.targets import check_files

if TYPE_CHECKING:
    import pyarrow as pa


T = TypeVar("T")

RUN_FILE = "run.json"
ITEMS_FILE = "items.parquet"
ROWS_FILE = "rows.parquet"
CONTRIBUTIONS_FILE = "contributions.parquet"
_FILES = (RUN_FILE, ITEMS_FILE, ROWS_FILE, CONTRIBUTIONS_FILE)
_PART = re.compile(r"(items|rows)-[0-9]{5,9}\.parquet")
TRAINED_ON = "trained_on"
"""The detail of a run that says, by the digest of a judge, which rated rows it learned from (`ratings.row_digests`)."""
_FILE_FIELDS = ("items", "rows", "contributions", "statistics")
OWN_FIELDS = frozenset({"dialeval", "systems", "warnings", "format", "digest", *_FILE_FIELDS})
REMEDY = "pass the folder of a run that Run.save or `dialeval score -o` wrote, or save it again"
FORMAT = 2
"""Version of the saved layout; a run of a later layout is refused with a clear message."""

Role: TypeAlias = Literal["system", "floor", "ceiling"]
"""What a result is of: a system that somebody built, or a floor or ceiling (an anchor) that is scored beside it."""


@dataclass(frozen=True)
class Result(Mapping[str, Estimate], Tabular, Shown):
    """The estimates of one system, by key, and the metrics that could not be computed, each with its reason."""

    estimates: Mapping[str, Estimate]
    skipped: Mapping[str, str] = field(default_factory=dict)
    source: str | None = None
    """The file that the responses came from, if it was one."""
    rows: RowTable | None = None
    """What the rows behind the items are, where that is known."""
    contributions: Mapping[str, Contributions] = field(default_factory=dict)
    """What each row adds to corpus values, by name; `Metric.resampled` knows the names."""
    role: Role = "system"

    def __getitem__(self, key: str) -> Estimate:
        return self.estimates[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __repr__(self) -> str:
        rows = dict.fromkeys(f"{est.rows:,} {est.level}{'' if est.rows == 1 else 's'}" for est in self.values())
        return f"<{', '.join(['Result: ' + listed(self, 'metric'), *rows])}>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def to_arrow(self) -> pa.Table:
        """One line per key, see `run_tables.estimate_table`."""
        return estimate_table({"": self}).drop_columns(["system", "role"])

    def flat(self) -> dict[str, float]:
        """Plain names to numbers for any logger: `bleu-4/mean`, ...; see `Run.flat`."""
        return flat_figures({None: self})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return (
            list(self) == list(other)
            and all(_same_estimate(self[key], other[key]) for key in self)
            and dict(self.skipped) == dict(other.skipped)
            and self.source == other.source
            and self.rows == other.rows
            and dict(self.contributions) == dict(other.contributions)
            and self.role == other.role
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays and mappings


@dataclass(frozen=True)
class Run(Mapping[str, Result], Tabular, Shown):
    """The results of one evaluation, by system, in the order the systems were given."""

    systems: Mapping[str, Result]
    version: str
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    """What a family of metrics has to show beside numbers, as plain data for JSON, under a name of its own."""

    def __getitem__(self, system: str) -> Result:
        return self.systems[system]

    def __iter__(self) -> Iterator[str]:
        return iter(self.systems)

    def __len__(self) -> int:
        return len(self.systems)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        metrics = listed(self.keys_in_order, "metric")
        warnings = f", {len(self.warnings)} warning{'s' * (len(self.warnings) > 1)}" if self.warnings else ""
        return f"<{type(self).__name__}: {listed(self, 'system')}, {metrics}{warnings}>"

    def __add__(self, other: object) -> Run:
        """The systems of both runs, which were scored on the same rows; see `joining`."""
        from dialeval.core.joining import joined

        return joined(self, other) if isinstance(other, Run) else NotImplemented

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def to_arrow(self) -> pa.Table:
        """One line per system and key, see `run_tables.estimate_table`."""
        return estimate_table(self)

    def flat(self) -> dict[str, float]:
        """Plain names to numbers for any logger: `SYSTEM/KEY/mean`, `low`, `high`, `rows` and `scored`.

        Names hold letters, digits, `_`, `-`, `.` and `/` and nothing else; no two are the same, and none is the folder
        of another. What could not be computed is left out.
        """
        return flat_figures(dict(self.items()))

    @property
    def item_table(self) -> ItemTable:
        """The values of single rows and dialogues, to be had as a table: `run.item_table.to_pandas()`."""
        return ItemTable(self)

    @checked
    def plot(self, key: str) -> Any:
        """A drawing of one metric: means, intervals and how the items are spread; a notebook shows it."""
        return maker().plot(self, key)

    @property
    def skipped(self) -> dict[str, str]:
        """The metrics that some system lacks, each with its reason."""
        return {key: reason for result in self.systems.values() for key, reason in result.skipped.items()}

    @property
    def anchors(self) -> list[str]:
        """The names of the floors and ceilings that were scored beside the systems."""
        return [name for name, result in self.systems.items() if result.role != "system"]

    @property
    def keys_in_order(self) -> list[str]:
        """Every result key that some system has, in the order of the first system that has it."""
        return list(dict.fromkeys(key for result in self.systems.values() for key in result))

    def to_dict(self) -> dict[str, Any]:
        """The run without its items, as `-f json` prints it; NaN is null."""
        systems = {
            name: {
                "metrics": {key: null_for_nan(_estimate_to_dict(estimate)) for key, estimate in result.items()},
                "skipped": dict(result.skipped),
                "source": result.source,
                "role": result.role,
            }
            for name, result in self.systems.items()
        }
        return {"dialeval": self.version, "systems": systems, "warnings": list(self.warnings), **self.details}

    @checked
    def save(
        self,
        folder: str | os.PathLike[str],
        parts: Iterable[tuple[ItemPart, Mapping[str, str]]] | None = None,
        *,
        force: bool = False,
    ) -> Path:
        """Write the run into a folder (made if it is not there) and return the folder.

        A run of the same inputs that was saved there before is replaced, and with `force` any run; it stays if this one
        cannot be saved. `parts`: files with the items of a streamed run, which are not in its estimates, and with what
        its rows are, in order; each with the names of its systems in this run.
        """
        folder = Path(folder)
        check_folder(folder, tuple(result.source for result in self.values()))
        if not force and (saved := _saved_document(folder)) is not None:
            from dialeval.core.run_inputs import refuse_other_inputs

            refuse_other_inputs(folder / RUN_FILE, saved, self)
        rows = [result.rows.to_arrow(name) for name, result in self.items() if result.rows is not None]
        contributions = [to_arrow(result.contributions, name) for name, result in self.items() if result.contributions]
        writers: dict[str, tuple[str, Callable[[Path], None]]] = {}
        if parts is None:
            writers["items"] = ITEMS_FILE, partial(write_items, keys=_keys_with_items(self), blocks=_blocks(self))
        if rows:
            writers["rows"] = ROWS_FILE, partial(_write_tables, rows)
        if contributions:
            writers["contributions"] = CONTRIBUTIONS_FILE, partial(_write_tables, contributions)
        with replacing_together(folder, RUN_FILE) as files:
            files.removed |= _own_files(folder)
            written: dict[str, list[dict[str, Any]]] = {
                what: [{"file": name, "sha256": files.add(name, write)}] for what, (name, write) in writers.items()
            }
            for part, names in parts or ():
                before = written.setdefault(part.kind, [])
                name = f"{part.kind}-{len(before):05}.parquet"
                files.take(name, part.place, part.sha256)
                changed = {system: shown for system, shown in names.items() if system != shown}
                before.append({"file": name, "sha256": part.sha256, **({"systems": changed} if changed else {})})
            files.add_bytes(RUN_FILE, gate.with_digest({**self.to_dict(), "format": FORMAT, "items": [], **written}))
        return folder


def check_folder(folder: str | os.PathLike[str], *inputs: Any, sources: Iterable[str] = ()) -> None:
    """DataError unless a run may be saved in a folder; ask it before a long evaluation.

    `inputs`: what the run is made of, see `core.targets.refuse_inputs`. A saved run may be replaced, other files not;
    with `sources`, the files that responses come from, only a run of these.
    """
    check_files(folder, _names_in(Path(folder)), _own_files, *inputs)
    if (files := set(sources)) and (saved := _saved_document(Path(folder))) is not None:
        from dialeval.core.run_inputs import refuse_other_files

        refuse_other_files(Path(folder) / RUN_FILE, saved, files)


def _names_in(folder: Path) -> list[str]:
    """The names that files of a run may have, in a folder that may hold parts of one."""
    there = sorted(path.name for path in folder.glob("*-*.parquet")) if folder.is_dir() else []
    return [*_FILES, *filter(_PART.fullmatch, there)]


def files_of(*runs: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The files that saved runs may consist of, by their folders or `run.json` files."""
    folders = [path if path.is_dir() else path.parent for path in map(Path, runs)]
    return tuple(folder / name for folder in folders for name in _names_in(folder))


def _saved_document(folder: Path) -> dict[str, Any] | None:
    """The `run.json` in a folder, whatever it holds; None if there is none."""
    try:
        return gate.read_json(folder / RUN_FILE, dict[str, Any], REMEDY)
    except DataError:
        return None


def _own_files(folder: Path) -> set[str]:
    """The files of the run that is saved in a folder; none if there is no run."""
    document = _saved_document(folder)
    if document is None:
        return set()
    fields = [document.get(what) for what in _FILE_FIELDS]
    entries = [entry for field in fields for entry in (field if isinstance(field, list) else [field])]
    named = {RUN_FILE, *(str(entry.get("file")) for entry in entries if isinstance(entry, dict))}
    ours = {name for name in named if name in _FILES or _PART.fullmatch(name)}
    return ours if isinstance(document.get("dialeval"), str) else set()


@checked
def load(path: str | os.PathLike[str]) -> Run:
    """The run saved in a folder (or beside the given run.json); DataError for what is none, or not a whole one."""
    from dialeval.core.saved_run import read

    path = Path(path)
    file = path / RUN_FILE if path.is_dir() else path
    return reading_together(file, lambda: read(file))


def _keys_with_items(run: Run) -> list[str]:
    return list(dict.fromkeys(key for _, _, (block,) in _blocks(run) for key in block))


def _blocks(run: Run) -> Iterator[tuple[str, Level, list[dict[str, Floats]]]]:
    """The items that lie in the estimates of a run, one block for each system and level."""
    for system, result in run.items():
        for level in Level:
            here = {key: est.items for key, est in result.items() if est.items is not None and est.level == level}
            if here:
                yield system, level, [here]


def _write_tables(tables: list[pa.Table], target: Path) -> None:
    """Write tables one below the other, with null where one lacks a column of another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.concat_tables(tables, promote_options="default"), target, compression="zstd")


def _estimate_to_dict(estimate: Estimate) -> dict[str, Any]:
    return {
        "mean": estimate.mean,
        "std": estimate.std,
        "confidence": estimate.confidence,
        "interval": estimate.interval,
        "interval_by": None if estimate.interval_by is None else asdict(estimate.interval_by),
        "rows": estimate.rows,
        "scored": estimate.scored,
        "of": "corpus" if estimate.corpus else "rows",
        "level": estimate.level.value,
        "signature": None if estimate.signature is None else str(estimate.signature),
    }


def _same_estimate(left: Estimate, right: Estimate) -> bool:
    """Equality in which NaN equals NaN, and items are compared value by value."""
    if (left.items is None) != (right.items is None):
        return False
    if left.items is not None and not np.array_equal(left.items, right.items, equal_nan=True):  # type: ignore[arg-type]
        return False
    # Printed, because NaN is not equal to itself.
    return all(repr(getattr(left, each.name)) == repr(getattr(right, each.name)) for each in _COMPARED)


_COMPARED = [each for each in fields(Estimate) if each.name != "items"]
