"""Targets: what dialeval writes itself or takes ready-made, changed by somebody who knows how it is checked.

Digests in a document are made anew before a changed file is read (`sealed`), as a forger would; so what is behind the
digests is reached as well.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fuzz.harness import Files, target
from fuzz.mutation import Unfit

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "saved_runs"


def files_of(folder: Path) -> Files:
    """The files of a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@contextmanager
def copied(folder: Path) -> Iterator[Path]:
    """A copy of an input that may be changed."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place, "copy")
        shutil.copytree(folder, copy)
        yield copy


def parsed(path: Path) -> Any:
    """The document in a file, or None."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def sealed(document: Any, folder: Path, names: Mapping[str, str]) -> bool:
    """Put the digests of files into a document, by the names of the fields that describe them."""
    changed = False
    for field, default in names.items():
        entry = document.get(field) if isinstance(document, dict) else None
        if isinstance(entry, dict) and (folder / default).is_file():
            entry["sha256"] = hashlib.sha256((folder / default).read_bytes()).hexdigest()
            changed = True
    return changed


# Tables.


_TYPES = (pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.float32(), pa.bool_(), pa.binary(), pa.large_string())
_CELLS = (None, 0, 1, -1, 2**31, 2**62, -(2**63), 0.5, 1e150, float("nan"), float("inf"), "", "x", "\0", [], [1.0])


def _changed_cell(column: pa.ChunkedArray, rng: random.Random) -> pa.Array:
    values = column.to_pylist()
    if not values:
        raise Unfit
    at = rng.randrange(len(values))
    new: Any = rng.choice(_CELLS)
    if isinstance(values[at], list) and rng.random() < 0.7:
        inside = list(values[at])
        inside[rng.randint(0, len(inside)) : rng.randint(0, len(inside))] = [new] * rng.randint(0, 2)
        new = inside
    values[at] = new
    return pa.array(values, column.type)


def changed_table(content: bytes, rng: random.Random) -> bytes:
    """A Parquet file with another cell, type, name, order or number of columns or rows."""
    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read()
        if not table.num_columns:
            raise Unfit
        at = rng.randrange(table.num_columns)
        name, column = table.column_names[at], table.column(at)
        kind = rng.randrange(8)
        if kind <= 2:
            table = table.set_column(at, name, _changed_cell(column, rng))
        elif kind == 3:
            table = table.set_column(at, name, column.cast(rng.choice(_TYPES), safe=False))
        elif kind == 4:
            table = table.remove_column(at)
        elif kind == 5:
            other = rng.choice([*table.column_names, "system", "dialogue", "", "\0", "x" * 300])
            table = table.rename_columns(
                [other if here == at else each for here, each in enumerate(table.column_names)]
            )
        elif kind == 6:
            table = table.slice(rng.randint(0, len(table)), rng.randint(0, len(table)))
        else:
            table = table.take([rng.randrange(len(table)) for _ in range(rng.randint(0, 2 * len(table)))])
        out = io.BytesIO()
        pq.write_table(table, out)
        return out.getvalue()
    except (pa.ArrowException, ValueError, TypeError, OverflowError, OSError):
        raise Unfit from None


# Saved runs.

_RUN_FILES = ("items", "rows", "contributions", "statistics")


def _runs() -> list[Files]:
    seeds = [files_of(folder) for folder in sorted(GOLDEN.iterdir())]
    return [*seeds, _compared_run()]


def _compared_run() -> Files:
    """A run of today, with intervals."""
    import dialeval

    lines = {"one": ["hello there", "good bye", "yes"], "two": ["hello", "no no", "maybe so"]}
    run = dialeval.evaluate(
        lines, references=["hello you", "bye", "yes"], metrics=["length", "distinct", "bleu", "chrf"]
    )
    run = dialeval.with_intervals(run, resamples=100)
    with tempfile.TemporaryDirectory() as folder:
        run.save(folder)
        return files_of(Path(folder))


def _sealed_run(folder: Path) -> None:
    document = parsed(folder / "run.json")
    if sealed(document, folder, {name: f"{name}.parquet" for name in _RUN_FILES}):
        (folder / "run.json").write_text(json.dumps(document, ensure_ascii=False), "utf-8", "surrogatepass")


@target("saved-run", seeds=_runs, mutators={".parquet": [changed_table]})
def saved_run(folder: Path) -> None:
    """A saved run, and that it loads equal once it has been saved again."""
    from dialeval.core.result import load

    with copied(folder) as copy:
        _sealed_run(copy)
        run = load(copy)
        assert load(run.save(copy / "again")) == run


@target("saved-run-used", seeds=_runs, mutators={".parquet": [changed_table]}, seconds=20)
def saved_run_used(folder: Path) -> None:
    """A saved run as the commands use it: tables, a comparison, intervals, a report."""
    import dialeval
    from dialeval.core.errors import DialevalError
    from dialeval.reports import tables

    with copied(folder) as copy:
        _sealed_run(copy)
        run = dialeval.load(copy)
        uses = [
            lambda: [
                write(run) for write in (tables.to_csv, tables.to_markdown, tables.to_latex, tables.to_metrics_txt)
            ],
            lambda: dialeval.compare(run, resamples=100, trials=100),
            lambda: dialeval.with_intervals(run, resamples=100),
            lambda: dialeval.report(run, copy / "report.html", interactive=False, compared=False),
        ]
        for use in uses:
            try:
                use()
            except DialevalError as error:
                str(error)
