"""Results of an evaluation, and the run store: saving, loading and joining runs.

`Run` maps systems to `Result`; `Result` maps keys such as `distinct-2` to `Estimate`. A run is saved as files in a
folder: `run.json` (every estimate, signature, skipped metric and warning; what `-f json` prints), `scores.parquet` (one
row per turn or dialogue of each system, one column per key), `rows.parquet` (dialogue, turn and texts of those rows),
`contributions.parquet` (per-row statistics of corpus metrics, for resampling) and, if systems were compared,
`comparison.json`. A streamed run has files of consecutive rows in place of the second and third (`scores-00000.parquet`
and so on), which `run.json` lists in order. A loaded run equals the saved one, however its rows were split.

`run.json` holds the digests of the other files, so that files of two different runs are not taken for one, and a digest
of its own content, so that no value in it is changed unnoticed; a mean must be the one of the scores next to it. All
files are written by `core.files.replace_files`. Other files in the folder are left alone, and `check_folder` checks
before a long evaluation that none of them has the name of a file of a run.

A run of other inputs is replaced only on request. Two runs are of the same inputs if they have the same systems from
the same files, floors and ceilings aside. The content of the files may have changed: a repeated run replaces the one
before. Texts in memory have no name, so that for them the digests of references and contexts in the signatures must be
equal too.

`run + run` has the systems of both; `compare` finds the rows that they have in common. Names that both have get the
number of their run, `1/damd` and `2/damd`; a floor or ceiling that is equal in both is kept once. Warnings and commands
of both are kept, and details by system; other details only where they are equal.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from dialeval.core import display, rowtable, validation
from dialeval.core.account import Account
from dialeval.core.arrays import Floats
from dialeval.core.arrow import read_table, text_array, write_tables
from dialeval.core.contributions import Contributions, from_arrow, to_arrow
from dialeval.core.display import Displayable, ScoreTable, Tabular, count_names, flatten_estimates, make_estimate_table
from dialeval.core.errors import DataError, Problem, UnknownNameError
from dialeval.core.features import find_place
from dialeval.core.files import check_files, place_of, read_consistently, replace_files
from dialeval.core.fold import Estimate, Level
from dialeval.core.rowtable import RUN_FILE, RowTable, RunPart
from dialeval.core.run_schema import FORMAT, Role, SavedEstimate, SavedFile, SavedResult, SavedRun, check_details
from dialeval.core.signature import Signature
from dialeval.core.validation import InvalidError, JsonObject, nan_to_null

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_TABLES = ("scores", "rows", "contributions")
_COMPARISON = "comparison"
_FILES = (RUN_FILE, *(f"{what}.parquet" for what in _TABLES), f"{_COMPARISON}.json")
_PART = re.compile(r"(scores|rows)-[0-9]{5,9}\.parquet")
TRAINED_ON = "trained_on"
"""The detail of a run with the training rows of judges, by the digest of a judge (`io.ratings.digest_ratings`)."""
JUDGE_SAMPLING = "judge_sampling"
"""The detail with how much of the variance of grades is the sampling of a judge, by system and metric."""
_COMMAND = "command"
_OWN_FIELDS = frozenset({"dialeval", "systems", "warnings", "format", "digest", _COMPARISON, *_TABLES})
_REMEDY = "pass the folder of a run that Run.save or `dialeval score FILES -o FOLDER` wrote, or save it again"
_DATA = ("reference", "context")
"""Fields of signatures that hold digests of the data."""
_MEAN_TOLERANCE = 1e-9
"""How far a mean may be from the one of its scores, in units of the largest: rounding and no more."""


@dataclass(frozen=True)
class Result(Mapping[str, Estimate], Tabular, Displayable):
    """The estimates of one system: a mapping of metric names to `Estimate`.

    Attributes:
        estimates: The estimates, by metric.
        skipped: The metrics that could not be computed, each with its reason.
        source: The file that the responses came from; None for texts in memory.
        table: The rows behind the per-row scores, where they are known: dialogues, turns, texts, kept fields.
        contributions: The per-row statistics of corpus metrics, for resampling.
        role: `"system"`, or `"floor"` or `"ceiling"` for a baseline that was scored next to the systems.
        account: How many conversations and replies were read, and what is missing; None where rows are not replies.

    Examples:
        >>> import dialeval
        >>> result = dialeval.evaluate(["yes", "no thanks"], metrics="length")["system"]
        >>> list(result)
        ['length']
        >>> result["length"].mean
        1.5
    """

    estimates: Mapping[str, Estimate]
    skipped: Mapping[str, str] = field(default_factory=dict)
    source: str | None = None
    table: RowTable | None = None
    contributions: Mapping[str, Contributions] = field(default_factory=dict)
    role: Role = "system"
    account: Account | None = None

    def __getitem__(self, key: str) -> Estimate:
        if key in self.estimates:
            return self.estimates[key]
        registered = find_place("loaders", "metric name")(key)
        if registered not in self.estimates:
            raise UnknownNameError("metric", key, self.estimates, self.skipped)
        return self.estimates[registered]

    def __contains__(self, key: object) -> bool:
        return key in self.estimates

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __repr__(self) -> str:
        rows = dict.fromkeys(f"{est.units:,} {est.level}{'' if est.units == 1 else 's'}" for est in self.values())
        return f"<{', '.join(['Result: ' + count_names(self, 'metric'), *rows])}>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def to_arrow(self) -> pa.Table:
        """Return a line per metric as an Arrow table: mean, interval, rows, signature."""
        return make_estimate_table({"": self}).drop_columns(["system", "role"])

    def flat(self) -> dict[str, float]:
        """Return values by plain names, for loggers: `bleu-4/mean` and so on; see `Run.flat`.

        Returns:
            Names and numbers.
        """
        return flatten_estimates({None: self})

    __hash__ = None  # type: ignore[assignment]  # holds arrays and mappings


@dataclass(frozen=True)
class Run(Mapping[str, Result], Tabular, Displayable):
    """The results of one evaluation: a mapping of system names to `Result`, in the order the systems were given.

    In a notebook it shows the verdict and the table. `run + other` is a run with the systems of both.

    Attributes:
        systems: The results, by system.
        version: The version of dialeval that computed them.
        warnings: Remarks about the inputs and the results.
        details: Further data of suites and judges, JSON-compatible, by name.

    Examples:
        >>> import dialeval
        >>> run = dialeval.evaluate({"old": ["yes"], "new": ["yes please"]}, metrics="length,distinct-1")
        >>> run
        <Run: 2 systems (old, new), 2 metrics (length, distinct-1)>
        >>> run.to_pandas()[["system", "metric", "mean"]].values.tolist()
        [['old', 'length', 1.0], ['old', 'distinct-1', 1.0], ['new', 'length', 2.0], ['new', 'distinct-1', 1.0]]
        >>> run.score_table.to_pandas()[["system", "row", "length"]].values.tolist()
        [['old', 1, 1.0], ['new', 1, 2.0]]
    """

    systems: Mapping[str, Result]
    version: str
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, system: str) -> Result:
        if system not in self.systems:
            raise UnknownNameError("system", system, self.systems)
        return self.systems[system]

    def __iter__(self) -> Iterator[str]:
        return iter(self.systems)

    def __len__(self) -> int:
        return len(self.systems)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        metrics = count_names(self.keys_in_order, "metric")
        warnings = f", {len(self.warnings)} warning{'s' * (len(self.warnings) > 1)}" if self.warnings else ""
        return f"<{type(self).__name__}: {count_names(self, 'system')}, {metrics}{warnings}>"

    def __add__(self, other: object) -> Run:
        """Return a run with the systems of both."""
        return _join_runs(self, other) if isinstance(other, Run) else NotImplemented

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def to_arrow(self) -> pa.Table:
        """Return a line per system and metric as an Arrow table: mean, interval, rows, signature."""
        return make_estimate_table(self)

    def flat(self) -> dict[str, float]:
        """Return values by plain names, for loggers: `SYSTEM/METRIC/mean`, `low`, `high`, `rows` and `scored`.

        Names consist of letters, digits, `_`, `-`, `.` and `/`; no two are the same, and none is a folder of another.
        What could not be computed is left out.

        Returns:
            Names and numbers.
        """
        return flatten_estimates(dict(self.items()))

    @property
    def score_table(self) -> ScoreTable:
        """The per-row scores as a table: `run.score_table.to_pandas()`."""
        return ScoreTable(self)

    def plot(self, kind: str = "distribution", metric: str | None = None, **options: object) -> Any:
        """Draw a figure.

        Args:
            kind: `means`, `distribution`, `turns`, `forest` or `pass-k`.
            metric: The metric; None: the first of the panel.
            **options: `width` in inches.

        Returns:
            A figure that a notebook shows; `save(path)` writes it.

        Raises:
            SettingError: The run does not have the metric, or there is no such figure.
        """
        return find_place("loaders", "plot")(self, kind, metric, **options)

    def with_report_details(self) -> Run:
        """Return the run with the details that a report shows; the run classes of suites add theirs.

        Returns:
            The run itself, or one with more details.
        """
        return self

    @property
    def skipped(self) -> dict[str, str]:
        """The metrics that some system lacks, each with its reason."""
        return {key: reason for result in self.systems.values() for key, reason in result.skipped.items()}

    @property
    def baselines(self) -> list[str]:
        """The names of the floors and ceilings that were scored next to the systems."""
        return [name for name, result in self.systems.items() if result.role != "system"]

    @property
    def keys_in_order(self) -> list[str]:
        """Every result key that some system has, in the order of the first system that has it."""
        return list(dict.fromkeys(key for result in self.systems.values() for key in result))

    def to_dict(self) -> JsonObject:
        """Return the run without per-row scores as plain data, as `-f json` prints it; NaN is None.

        Returns:
            Data for JSON.
        """
        systems = {
            name: {
                "metrics": {key: nan_to_null(_estimate_to_dict(estimate)) for key, estimate in result.items()},
                "skipped": dict(result.skipped),
                "source": result.source,
                "role": result.role,
                "account": None if result.account is None else result.account.to_dict(),
            }
            for name, result in self.systems.items()
        }
        return {"dialeval": self.version, "systems": systems, "warnings": list(self.warnings), **self.details}

    def save(
        self,
        folder: str | os.PathLike[str],
        parts: Iterable[tuple[RunPart, Mapping[str, str]]] | None = None,
        *,
        force: bool = False,
        comparison: bytes | None = None,
    ) -> Path:
        """Save the run in a folder: `run.json` and Parquet tables of per-row scores and rows.

        A run of the same inputs that was saved there before is replaced; it stays if this one cannot be saved.

        Args:
            folder: The folder, created if it does not exist.
            parts: The files of per-row scores of a run in chunks, in order, each with the names of its systems in this
                run.
            force: Also replace a run of other inputs.
            comparison: A comparison of the systems to save with the run, as `dump_comparison` writes it.

        Returns:
            The folder.

        Raises:
            DataError: The folder has a run of other inputs or other files in the way, or cannot be written.
        """
        folder = Path(folder)
        check_folder(folder, tuple(result.source for result in self.values()))
        if not force:
            _refuse_other_inputs(folder, self)
        tables = {
            "scores": []
            if parts is not None
            else [rowtable.make_score_table(*block) for block in display.split_scores(self)],
            "rows": [result.table.to_arrow(name) for name, result in self.items() if result.table is not None],
            "contributions": [
                to_arrow(result.contributions, name) for name, result in self.items() if result.contributions
            ],
        }
        with replace_files(folder, RUN_FILE) as files:
            files.removed |= _list_own_files(folder)
            saved: dict[str, list[JsonObject]] = {"scores": []}
            for what, parts_of_kind in tables.items():
                if parts_of_kind:
                    name = f"{what}.parquet"
                    saved[what] = [{"file": name, "sha256": files.add(name, partial(write_tables, parts_of_kind))}]
            if comparison is not None:
                name = f"{_COMPARISON}.json"
                saved[_COMPARISON] = [{"file": name, "sha256": files.add_bytes(name, comparison)}]
            for part, names in parts or ():
                before = saved.setdefault(part.kind, [])
                name = f"{part.kind}-{len(before):05}.parquet"
                files.take(name, part.place, part.sha256)
                changed = {system: shown for system, shown in names.items() if system != shown}
                before.append({"file": name, "sha256": part.sha256, **({"systems": changed} if changed else {})})
            files.add_bytes(RUN_FILE, validation.with_digest({**self.to_dict(), "format": FORMAT, **saved}))
        return folder


def _estimate_to_dict(estimate: Estimate) -> JsonObject:
    return {
        "mean": estimate.mean,
        "std": estimate.std,
        "half_width": estimate.half_width,
        "interval": estimate.interval,
        "interval_by": None if estimate.interval_by is None else asdict(estimate.interval_by),
        "units": estimate.units,
        "scored": estimate.scored,
        "of": "corpus" if estimate.corpus else "rows",
        "level": estimate.level.value,
        "signature": None if estimate.signature is None else str(estimate.signature),
        "missing": estimate.missing,
    }


# Preflight checks.


def check_folder(folder: str | os.PathLike[str], *inputs: object, sources: Iterable[str] = ()) -> None:
    """Raise DataError unless a run may be saved in a folder; call it before a long evaluation.

    `inputs`: the inputs of the run, see `core.files.refuse_inputs`. A saved run may be replaced, other files not; with
    `sources`, the files that responses come from, only a run of these.
    """
    folder = Path(folder)
    check_files(folder, _list_file_names(folder), _list_own_files, *inputs)
    paths = tuple(os.path.normpath(path) for path in sources)
    saved = _read_saved_run(folder) if paths else None
    for name, result in saved.systems.items() if saved is not None else ():
        # A source may be within a file, and is then named after it.
        if result.role == "system" and result.source and not os.path.normpath(result.source).startswith(paths):
            what = f"{name} is of {os.path.normpath(result.source)}, which is not among the responses now"
            _refuse_run(folder, f"holds a run in which {what}")


def _refuse_other_inputs(folder: Path, run: Run) -> None:
    """Raise DataError where the run that is saved in a folder is of other inputs."""
    if (saved := _read_saved_run(folder)) is None:
        return
    before = {name: result for name, result in saved.systems.items() if result.role == "system"}
    now = {name: result for name, result in run.items() if result.role == "system"}
    if before and before.keys() != now.keys():
        _refuse_run(folder, f"holds a run of {', '.join(before)}, and this one is of {', '.join(now)}")
    for name, saved_result in before.items():
        old_source, new_source = (
            os.path.normpath(source) if source else None for source in (saved_result.source, now[name].source)
        )
        if old_source != new_source:
            _refuse_run(folder, f"holds a run in which {name} is of {old_source}, and here it is of {new_source}")
        if new_source is None or not os.path.exists(new_source):  # noqa: PTH110  (a name of texts is no path)
            old = _find_data_digests(_read_estimate(metric, None) for metric in saved_result.metrics.values())
            new = _find_data_digests(now[name].values())
            for data in old.keys() & new.keys():
                if old[data] != new[data]:
                    _refuse_run(folder, f"holds a run of other {data}s ({old[data]}, and here {new[data]})")


def _refuse_run(folder: Path, what: str) -> NoReturn:
    remedy = "choose another folder, or replace it: --force, force=True in Python"
    raise DataError(Problem(str(folder / RUN_FILE), None, what, remedy))


def _find_data_digests(estimates: Iterable[Estimate]) -> dict[str, str]:
    """Return the digests of references and contexts in the signatures of estimates, by the field."""
    signatures = [estimate.signature for estimate in estimates if estimate.signature is not None]
    return {name: signature[name] for signature in signatures for name in _DATA if name in signature}


def _list_file_names(folder: Path) -> list[str]:
    """Return the names that files of a run may have, in a folder that may hold parts of one."""
    part_names = sorted(path.name for path in folder.glob("*-*.parquet")) if folder.is_dir() else []
    return [*_FILES, *filter(_PART.fullmatch, part_names)]


def files_of(*runs: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the files that saved runs may consist of, by their folders or `run.json` files."""
    folders = [path if path.is_dir() else path.parent for path in map(Path, runs)]
    return tuple(folder / name for folder in folders for name in _list_file_names(folder))


def _read_saved_run(folder: Path) -> SavedRun | None:
    """Return the `run.json` in a folder; None if it is not that of a run."""
    if not (folder / RUN_FILE).exists():
        return None
    try:
        return validation.read_json(folder / RUN_FILE, SavedRun, _REMEDY)
    except (DataError, RecursionError):
        return None


def _list_own_files(folder: Path) -> set[str]:
    """Return the files of the run that is saved in a folder; none if there is no run."""
    saved = _read_saved_run(folder)
    if saved is None:
        return set()
    named = {entry.file for entry in (*saved.scores, *saved.rows, *saved.contributions, *saved.comparison)}
    return {RUN_FILE, *(name for name in named if name in _FILES or _PART.fullmatch(name))}


# Loading.


def load(path: str | os.PathLike[str]) -> Run:
    """Load a saved run.

    Args:
        path: The folder of a run that `Run.save` or `dialeval score -o` wrote, or its `run.json`.

    Returns:
        The run, equal to the one that was saved.

    Raises:
        DataError: There is no run, a file of it is missing or was changed, or it was saved in another layout.

    Examples:
        >>> import dialeval
        >>> folder = dialeval.evaluate(["yes", "no"], metrics="length").save("results")
        >>> dialeval.load(folder)["system"]["length"].mean
        1.0
    """
    path, is_folder = Path(path), os.path.isdir(path)  # noqa: PTH112  (pathlib raises for a name that is too long)
    file = path / RUN_FILE if is_folder else path
    if not os.path.exists(file):  # noqa: PTH110
        what = "holds no saved run" if is_folder else "there is no such folder"
        raise DataError(Problem(str(path), None, what, _REMEDY))
    if path.is_file() and path.suffix != ".json":
        raise DataError(Problem(str(path), None, "is a file, and a saved run is expected", _REMEDY))
    return read_consistently(file, lambda: _read_run(file))


def read_comparison(path: str | os.PathLike[str]) -> object:
    """Read the comparison that was saved with a run, as plain data; None where there is none.

    Raises:
        DataError: It does not belong to the run.
    """
    path = Path(path)
    file = path / RUN_FILE if path.is_dir() else path

    def read() -> object:
        for entry in validation.read_json(file, SavedRun, _REMEDY).comparison:
            place = place_of(file.with_name(entry.file), entry.sha256)
            return validation.read_document(place, _REMEDY, entry.sha256, file.name)
        return None

    return read_consistently(file, read)


def _read_run(file: Path) -> Run:
    import pyarrow as pa

    saved, document = validation.read_manifest(file, SavedRun, _REMEDY, FORMAT)
    check_details(document, str(file), _REMEDY)
    lists = pa.list_(pa.string())
    tables = (
        _read_tables(file, saved.scores, rowtable.list_place_columns(), [pa.float64()]),
        _read_tables(file, saved.rows, rowtable.rows_schema(), [pa.string(), lists, pa.bool_()]),
        _read_tables(file, saved.contributions, {"system": pa.string()}, [pa.list_(pa.float64()), lists]),
    )
    systems = {name: _read_result(file, name, result, *tables) for name, result in saved.systems.items()}
    details = {name: value for name, value in document.items() if name not in _OWN_FIELDS}
    return Run(systems, saved.dialeval, tuple(saved.warnings), details)


class _Table(NamedTuple):
    """A table next to a `run.json`, and the names that its systems have in the run."""

    path: Path
    table: pa.Table
    names: Mapping[str, str]


def _read_tables(
    file: Path, entries: list[SavedFile], columns: Mapping[str, pa.DataType], others: list[pa.DataType]
) -> list[_Table]:
    tables = []
    for entry in entries:
        path = place_of(file.with_name(entry.file), entry.sha256)
        tables.append(_Table(path, read_table(path, columns, others, _REMEDY, entry.sha256, file.name), entry.systems))
    return tables


def _read_result(
    file: Path, name: str, saved: SavedResult, items: list[_Table], rows: list[_Table], contributions: list[_Table]
) -> Result:
    scores = _read_lines(
        items, name, lambda lines: {level: rowtable.read_scores(lines, name, level) for level in Level}
    )
    by_level = {level: rowtable.join_score_parts(block[level] for block in scores) for level in Level}
    tables = _read_lines(rows, name, RowTable.from_arrow)
    statistics = _read_lines(contributions, name, from_arrow)
    result = Result(
        {key: _read_estimate(estimate, by_level[estimate.level].get(key)) for key, estimate in saved.metrics.items()},
        saved.skipped,
        saved.source,
        RowTable.join(tables) if any(map(len, tables)) else None,  # a table without it has no rows of the system
        statistics[0] if statistics else {},
        saved.role,
        saved.account,
    )
    with validation.explain_errors(file, _REMEDY):
        _check_result(name, result)
    return result


def _read_lines(tables: list[_Table], system: str, read: Callable[[pa.Table], T]) -> list[T]:
    """Read the lines of a system in each table that has some, or in the only one."""
    import pyarrow.compute as pc

    parts = []
    for path, table, names in tables:
        inside = [saved_name for saved_name, shown in names.items() if shown == system]
        inside += [system] if system not in names else []
        lines = table.filter(pc.is_in(table["system"], text_array(inside)))
        if len(lines) or len(tables) == 1:
            with validation.explain_errors(path, _REMEDY):
                parts.append(read(lines))
    return parts


def _read_estimate(saved: SavedEstimate, items: Floats | None) -> Estimate:
    """Make an estimate; columns without a single row are every system's, and count where it has no rows."""
    return Estimate(
        mean=_to_float(saved.mean),
        std=_to_float(saved.std),
        units=saved.units,
        scored=saved.scored,
        corpus=saved.of == "corpus",
        half_width=_to_float(saved.half_width),
        interval=None if saved.interval is None else (_to_float(saved.interval[0]), _to_float(saved.interval[1])),
        scores=None if items is not None and not len(items) and saved.units else items,
        level=saved.level,
        signature=None if saved.signature is None else Signature.parse(saved.signature),
        interval_by=saved.read_method(),
        missing=saved.missing,
    )


def _to_float(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _check_result(name: str, result: Result) -> None:
    """Raise InvalidError where items, rows and per-row statistics contradict what `run.json` states."""
    rows = result.table
    for key, estimate in result.items():
        if estimate.scores is None:
            continue
        if len(estimate.scores) != estimate.units:
            raise InvalidError(f"{name}: {len(estimate.scores)} values of {key} are saved for {estimate.units} rows")
        expected = None if rows is None else len(rows) if estimate.level is Level.TURN else len(rows.offsets) - 1
        if expected not in (None, estimate.units):
            raise InvalidError(f"{name}: {expected} rows are saved, and {key} has {estimate.units}")
        scored = estimate.scores[~np.isnan(estimate.scores)]
        if len(scored) != estimate.scored:
            raise InvalidError(f"{name}: {len(scored)} values of {key} are saved, and {estimate.scored} are stated")
        if len(scored) and not estimate.corpus:
            mean = float(scored.mean())
            if not abs(mean - estimate.mean) <= _MEAN_TOLERANCE * float(np.abs(scored).max()):
                what = f"the values of {key} have the mean {mean:.6g}, and {estimate.mean:.6g} is stated"
                raise InvalidError(f"{name}: {what}")
    counts = {len(statistics) for statistics in result.contributions.values()} | (
        {len(rows)} if rows is not None else set()
    )
    if result.contributions and len(counts) > 1:
        raise InvalidError(f"{name}: per-row statistics are saved for another number of rows")


# Joining.


def name_systems(labeled: Mapping[str, Mapping[str, object]]) -> dict[tuple[str, str], str]:
    """Return the name of each system by its run's label and its own name; a name that two have gets the label."""
    times = Counter(system for systems in labeled.values() for system in systems)
    return {
        (label, system): system if times[system] == 1 else f"{label}/{system}"
        for label, systems in labeled.items()
        for system in systems
    }


def _join_runs(left: Run, right: Run) -> Run:
    same = {name for name in right if name in left and left[name].role != "system" and left[name] == right[name]}
    parts = {"1": left, "2": {name: result for name, result in right.items() if name not in same}}
    names = name_systems(parts)
    systems = {names[label, name]: result for label, part in parts.items() for name, result in part.items()}
    renamed = [_rename_systems(left.details, {name: names["1", name] for name in left})]
    renamed.append(_rename_systems(right.details, {name: names["1" if name in same else "2", name] for name in right}))
    details = {name: value for name, value in _merge_details(*renamed).items() if name != _COMMAND}
    if commands := list(dict.fromkeys(run.details[_COMMAND] for run in (left, right) if _COMMAND in run.details)):
        details[_COMMAND] = "\n".join(commands)
    version = ", ".join(dict.fromkeys((left.version, right.version)))
    return Run(systems, version, tuple(dict.fromkeys((*left.warnings, *right.warnings))), details)


def _rename_systems(details: object, names: Mapping[str, str]) -> Any:
    """Rename systems wherever details are by system."""
    if not isinstance(details, Mapping):
        return details
    if details and details.keys() <= names.keys():
        return {names[name]: value for name, value in details.items()}
    return {name: _rename_systems(value, names) for name, value in details.items()}


def _merge_details(left: Mapping[str, Any], right: Mapping[str, Any]) -> JsonObject:
    """Merge nested mappings; what is not the same in both is left out."""
    merged = {**left, **right}
    for name in left.keys() & right.keys():
        if isinstance(left[name], Mapping) and isinstance(right[name], Mapping):
            merged[name] = _merge_details(left[name], right[name])
        elif left[name] != right[name]:
            del merged[name]
    return merged
