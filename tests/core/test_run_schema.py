"""A saved run that was changed by hand is refused where it is wrong, whatever its digests say."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dialeval.core.errors import DataError
from dialeval.core.result import load
from sealing import write_sealed

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "saved_runs"


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[str], Path]:
    def copied(kind: str) -> Path:
        return Path(shutil.copytree(GOLDEN / kind, tmp_path / kind))

    return copied


def put(document: Any, path: str, value: Any) -> None:
    *places, last = path.split(".")
    for place in places:
        document = document[int(place) if isinstance(document, list) else place]
    if value is KeyError:
        del document[last]
    else:
        document[int(last) if isinstance(document, list) else last] = value


LENGTH = "systems.careful.metrics.length"


@pytest.mark.parametrize(
    ("kind", "path", "value", "what"),
    [
        ("responses", "format", "1", "format: expected int"),
        ("responses", "dialeval", None, "dialeval: expected str"),
        ("responses", "systems", [], "systems: expected object"),
        ("responses", "warnings", "none", "warnings: expected array"),
        ("responses", "scores", KeyError, "missing required field scores"),
        ("responses", "scores.0.file", "../scores.parquet", "scores[0].file: expected str matching"),
        ("responses", "scores.0.file", "/dev/zero", "scores[0].file: expected str matching"),
        ("responses", "scores.0.sha256", "", "scores[0].sha256: expected str matching"),
        ("responses", "systems.careful.role", "king", "role: invalid enum value"),
        ("responses", "systems.careful.skipped", {"x": 1}, "skipped"),
        (*("responses", f"{LENGTH}.mean"), "14", "mean: expected"),
        (*("responses", f"{LENGTH}.std"), -1.0, "std: expected float >= 0"),
        (*("responses", f"{LENGTH}.units"), 60.5, "units: expected int"),
        (*("responses", f"{LENGTH}.units"), 2**70, "units: expected int"),
        (*("responses", f"{LENGTH}.scored"), 61, "61 of 60 rows are scored"),
        (*("responses", f"{LENGTH}.units"), 59, "60 of 59 rows"),
        (*("responses", f"{LENGTH}.units"), 61, "60 values of length are saved for 61 rows"),
        (*("responses", f"{LENGTH}.of"), "all", "of: invalid enum value"),
        (*("responses", f"{LENGTH}.level"), "row", "level: invalid enum value"),
        (*("responses", f"{LENGTH}.level"), "dialogue", ""),
        (*("responses", f"{LENGTH}.signature"), "length|x", "not a signature"),
        (*("responses", f"{LENGTH}.interval"), [1.0], "interval: expected array of length 2"),
        (*("responses", f"{LENGTH}.interval_by"), {}, "missing required field method"),
        ("responses", "baselines", None, "baselines: expected object"),
        ("responses", "baselines.standing.careful", 7, "standing"),
        ("breakdown", "curves.keywords.0.label", ["O"], "columns of different lengths"),
        ("breakdown", "curves.keywords.0.turns", [1, 2, 3, 4], "are of different turns"),
        ("breakdown", "curves.keywords.0.shares.0", [1.0, None], "expected array of length 3"),
        ("lsdscc", "alignments.safe.0.groups.0.references", None, "references: expected array"),
        ("breakdown", "curves.keywords.0.said", [[1, True]], "expected array of length 3"),
        ("town", "transcripts.hasty.0.turns.0.state", {"inn": 7}, "state"),
        ("town", "transcripts.hasty.0.turns.0.user", 7, "user"),
        ("town", "failures", {"hasty": {"no offer": 2}}, "failures"),
    ],
)
def test_a_changed_document_is_refused(
    saved: Callable[[str], Path], kind: str, path: str, value: Any, what: str
) -> None:
    folder = saved(kind)
    document = json.loads((folder / "run.json").read_text())
    put(document, path, value)
    write_sealed(document, folder / "run.json")
    if not what:  # the items are then those of nobody
        assert load(folder)["careful"]["length"].scores is None
        return
    with pytest.raises(DataError) as info:
        load(folder)
    [problem] = info.value.problems
    assert problem.where == str(folder / "run.json")
    assert what in problem.what


def sealed(folder: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> Path:
    """Change a table of a run, and its digest in `run.json` with it."""
    document = json.loads((folder / "run.json").read_text())
    pq.write_table(change(pq.read_table(folder / f"{name}.parquet")), folder / f"{name}.parquet")
    document[name][0]["sha256"] = hashlib.sha256((folder / f"{name}.parquet").read_bytes()).hexdigest()
    write_sealed(document, folder / "run.json")
    return folder / f"{name}.parquet"


def replaced(name: str, make: Callable[[pa.ChunkedArray], Any]) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.column_names.index(name), name, make(table[name]))


@pytest.mark.parametrize(
    ("kind", "name", "change", "what"),
    [
        ("responses", "scores", replaced("length", lambda column: column.cast(pa.string())), "'length' holds string"),
        ("responses", "scores", replaced("row", lambda column: pc.add(column, 1)), "not numbered from 1"),
        ("responses", "scores", replaced("length", lambda column: pc.divide(column, 0.0)), "too large to compute with"),
        ("responses", "scores", lambda table: table.drop_columns("level"), "has no column level"),
        ("responses", "scores", lambda table: table.slice(1), "not numbered from 1"),
        ("responses", "scores", lambda table: table.slice(0, len(table) - 1), "values of length are saved for 60 rows"),
        ("responses", "rows", replaced("dialogue", pc.negate), "a number below 1"),
        ("responses", "rows", replaced("dialogue", lambda column: column.cast(pa.float64())), "holds double"),
        ("responses", "rows", lambda table: table.slice(0, len(table) - 1), "59 rows are saved"),
        ("town", "contributions", lambda table: table.slice(0, len(table) - 1), "another number of rows"),
        (
            "town",
            "contributions",
            replaced("task-words", lambda column: pa.array([None, *column.to_pylist()[1:]], column.type)),
            "task-words has gaps",
        ),
        (
            "town",
            "contributions",
            replaced("task-bleu/town/ignored", lambda column: pa.array([[1.0], *column.to_pylist()[1:]], column.type)),
            "different numbers of values",
        ),
        ("town", "contributions", replaced("task-words", lambda column: pa.array([1] * len(column))), "holds int64"),
    ],
)
def test_a_changed_table_is_refused(
    saved: Callable[[str], Path], kind: str, name: str, change: Callable[[pa.Table], pa.Table], what: str
) -> None:
    folder = saved(kind)
    sealed(folder, name, change)
    with pytest.raises(DataError) as info:
        load(folder)
    [problem] = info.value.problems
    assert str(folder) in problem.where
    assert what in problem.what


@pytest.mark.parametrize("name", ["run.json", "scores.parquet", "rows.parquet"])
def test_pipes_and_devices_are_not_opened(saved: Callable[[str], Path], name: str) -> None:
    file = saved("responses") / name
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DataError, match=rf"{name}: is not a regular file"):
        load(file.parent)
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(DataError, match=rf"{name}: is not a regular file"):
        load(file.parent)


def test_what_is_deeper_than_it_can_be_written(saved: Callable[[str], Path]) -> None:
    folder = saved("responses")
    document = (folder / "run.json").read_text().rstrip().removesuffix("}")
    (folder / "run.json").write_text(f'{document}, "mine": {"[" * 500}{"]" * 500}}}')
    with pytest.raises(DataError, match="nested too deeply"):
        load(folder)
