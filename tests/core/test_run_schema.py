"""A saved run that was changed by hand is refused where it is wrong, whatever its digests say."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save

from dialeval.core import validation
from dialeval.core.arrow import read_table
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
        ("lsdscc", "alignments.safe.0.groups.0.references", None, "references: expected array"),
        ("town", "transcripts.hasty.0.turns.0.notes", {"inn": 7}, "notes"),
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


# Validation of documents and files: plain files only; a misfit is one problem that names the file.


class Note(msgspec.Struct):
    """A schema."""

    rows: Annotated[int, msgspec.Meta(ge=0)]
    by: dict[str, list[float]] = {}


def reads(path: Path) -> list[Callable[[], object]]:
    """Everything that opens a file."""
    return [
        lambda: validation.size_of(path, "mend it"),
        lambda: validation.read_bytes(path, "mend it"),
        lambda: validation.read_json(path, Note, "mend it"),
        lambda: validation.read_array(path, np.float64, "mend it"),
        lambda: validation.map_array(path, np.uint8, (3,), "mend it"),
        lambda: validation.read_manifest(path, Note, "mend it"),
        lambda: validation.read_tensors(path, "mend it"),
        lambda: read_table(path, {}, [pa.float64()], "mend it", "", "run.json"),
    ]


def special_files(folder: Path) -> dict[str, Path]:
    os.mkfifo(folder / "pipe")
    (folder / "to a pipe").symlink_to(folder / "pipe")
    (folder / "to nowhere").symlink_to(folder / "gone")
    (folder / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s")[:100])
    names = ("pipe", "to a pipe", "to nowhere", "folder", "missing")
    return {"device": Path("/dev/zero"), **{name: folder / name for name in names}}


@pytest.mark.parametrize("kind", ["device", "pipe", "to a pipe", "to nowhere", "folder", "missing"])
def test_only_plain_files_are_opened(tmp_path: Path, kind: str) -> None:
    path = special_files(tmp_path)[kind]
    for read in reads(path):
        with pytest.raises(DataError, match=r"is not a regular file|is a folder|there is no such file") as info:
            read()
        assert info.value.problems[0].where == str(path)
        assert info.value.problems[0].remedy == "mend it"


def test_a_link_to_a_plain_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "note.json").write_text('{"rows": 1}')
    (tmp_path / "link.json").symlink_to(tmp_path / "note.json")
    assert validation.read_json(tmp_path / "link.json", Note, "") == Note(1)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('{"rows": -1}', "rows: expected int >= 0"),
        ('{"rows": "1"}', "rows: expected int, got str"),
        ('{"rows": true}', "rows: expected int, got bool"),
        ('{"rows": 1, "by": {"a": [null]}}', "by[...][0]: expected float, got null"),
        ("{}", "does not hold what it should: object missing required field rows"),
        ("[]", "does not hold what it should: expected object, got array"),
        ('{"rows": 1e400}', "not JSON"),
        ('{"rows": NaN}', "not JSON"),
        ("[" * 5000, "not JSON"),
        ("", "not JSON"),
    ],
)
def test_documents_that_do_not_fit(tmp_path: Path, content: str, what: str) -> None:
    (tmp_path / "note.json").write_text(content)
    with pytest.raises(DataError) as info:
        validation.read_json(tmp_path / "note.json", Note, "mend it")
    [problem] = info.value.problems
    assert problem.what.startswith(what)
    assert problem.where == str(tmp_path / "note.json")


def test_the_largest_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "LARGEST_DOCUMENT", 11)
    (tmp_path / "note.json").write_text('{"rows": 1}')
    assert validation.read_json(tmp_path / "note.json", Note, "").rows == 1
    (tmp_path / "note.json").write_text('{"rows": 10}')
    with pytest.raises(DataError, match="more than 11 bytes"):
        validation.read_json(tmp_path / "note.json", Note, "")


def test_digests(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"content")
    assert validation.read_bytes(tmp_path / "x", "", hashlib.sha256(b"content").hexdigest()) == b"content"
    with pytest.raises(DataError, match=r"x: does not belong to run\.json"):
        validation.read_bytes(tmp_path / "x", "", hashlib.sha256(b"other").hexdigest(), "run.json")


@pytest.mark.parametrize("name", ["", ".", "..", "/dev/zero", "a/b", "../x", "a\\b", "c:x", "a\0b", "x\n", "x" * 256])
def test_names_that_are_none(name: str) -> None:
    kind = Annotated[str, msgspec.Meta(pattern=validation.FILE_NAME)]
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(name, kind)
    for sound in ("scores.parquet", "...", "a b", ".hidden", "ä"):
        assert msgspec.convert(sound, kind) == sound


def test_depth() -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    validation.check_depth([[[]]])
    with pytest.raises(validation.InvalidError, match="nested too deeply"):
        validation.check_depth({"x": deep})


@pytest.mark.parametrize(
    ("array", "shape", "what"),
    [
        (np.zeros(3, np.float32), (None,), r"holds float32 of shape \(3,\), not float64 of any"),
        (np.zeros((3, 1)), (None,), r"holds float64 of shape \(3, 1\)"),
        (np.zeros(3), (4,), "not float64 of 4"),
        (np.zeros(3, "S2"), (None,), "not float64"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path: Path, array: Any, shape: tuple[int | None, ...], what: str) -> None:
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(DataError, match=rf"x\.npy: .*{what}"):
        validation.read_array(tmp_path / "x.npy", np.float64, "mend it", shape)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"'<f8'", b"'|O' "),
        (b"(3,)", b"(9,)"),
        (b"(3,)", b"(-3,)"[:4]),
        (b"{", b"("),
        (b"False", b"1/0  "),
        (b"NUMPY", b"NUMBY"),
        (b"3", b"9" * 1),
    ],
)
def test_headers_of_arrays_that_are_broken(tmp_path: Path, old: bytes, new: bytes) -> None:
    np.save(tmp_path / "x.npy", np.arange(3.0))
    content = (tmp_path / "x.npy").read_bytes()
    assert old in content
    (tmp_path / "x.npy").write_bytes(content.replace(old, new, 1))
    with pytest.raises(DataError, match=r"x\.npy: is not a NumPy array"):
        validation.read_array(tmp_path / "x.npy", np.float64, "mend it")


def test_arrays_are_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3.0))
    assert validation.read_array(tmp_path / "x.npy", np.float64, "").tolist() == [0, 1, 2]
    (tmp_path / "x.bin").write_bytes(np.arange(4, dtype="<f4").tobytes())
    assert validation.map_array(tmp_path / "x.bin", "<f4", (2, 2), "").tolist() == [[0, 1], [2, 3]]
    (tmp_path / "empty").write_bytes(b"")
    assert validation.map_array(tmp_path / "empty", "<f4", (0, 2), "").shape == (0, 2)
    with pytest.raises(DataError, match=r"x\.bin: has another size than 2 x 3 numbers"):
        validation.map_array(tmp_path / "x.bin", "<f4", (2, 3), "")


def test_tensors(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    tensors = {"a": np.ones((2, 3), np.float32), "half": np.ones(2, np.float16), "ids": np.ones(2, np.int64)}
    path.write_bytes(save(tensors))
    found = validation.read_tensors(path, "")
    assert found.keys() == tensors.keys()
    assert validation.take_tensor(found, "half", (2,)).dtype == np.float32
    assert validation.take_tensor(found, "a", (2, None)).shape == (2, 3)
    for name, shape, what in (("b", (2,), "holds no b"), ("ids", (2,), "holds no ids"), ("a", (3, 2), "has the shape")):
        with pytest.raises(validation.InvalidError, match=what):
            validation.take_tensor(found, name, shape)
    path.write_bytes(save({"a": np.array([1, np.nan], np.float32)}))
    with pytest.raises(DataError, match=r"a holds numbers that are not finite"):
        validation.read_tensors(path, "")
    path.write_bytes(save(tensors)[:-3])
    with pytest.raises(DataError, match=r"x\.safetensors: holds no readable weights"):
        validation.read_tensors(path, "")


TABLE = {"system": ["a", "b"], "row": [0, 1], "x": [0.5, None]}


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (pa.table({**TABLE, "system": [b"a", b"b"]}), "column system holds binary, not string"),
        (pa.table({**TABLE, "row": [0, None]}), "column row has gaps"),
        (pa.table({**TABLE, "row": [0.0, 1.0]}), "column row holds double, not int64"),
        (pa.table({**TABLE, "x": ["a", "b"]}), "column 'x' holds string"),
        (pa.table({**TABLE, "turn": ["a", "b"]}), "column turn holds string, not int64"),
        (pa.table({"system": ["a"], "x": [1.0]}), "has no column row"),
        (pa.table([["a"], ["b"]], names=["system", "system"]), "has two columns of one name"),
    ],
)
def test_tables_that_do_not_fit(tmp_path: Path, table: pa.Table, what: str) -> None:
    columns = {"system": pa.string(), "row": pa.int64(), "turn?": pa.int64()}

    def read(table: pa.Table) -> pa.Table:
        pq.write_table(table, tmp_path / "x.parquet")
        sha256 = hashlib.sha256((tmp_path / "x.parquet").read_bytes()).hexdigest()
        return read_table(tmp_path / "x.parquet", columns, [pa.float64()], "", sha256, "run.json")

    assert read(pa.table(TABLE)).num_rows == 2
    assert read(pa.table({**TABLE, "turn": pa.array([None, 1], pa.int64())})).num_columns == 4
    with pytest.raises(DataError, match=rf"x\.parquet: {what}"):
        read(table)


def test_texts_of_tables_are_utf8(tmp_path: Path) -> None:
    binary = pa.array([b"ok", b"\xe9"])
    text = pa.StringArray.from_buffers(2, binary.buffers()[1], binary.buffers()[2])
    for content in (pa.table({"system": text}), pa.table({"systXX": ["a"]})):
        pq.write_table(content, tmp_path / "x.parquet")
        changed = (tmp_path / "x.parquet").read_bytes().replace(b"systXX", b"syst\xff\xfe")
        (tmp_path / "x.parquet").write_bytes(changed)
        with pytest.raises(DataError, match="not a readable Parquet file"):
            read_table(tmp_path / "x.parquet", {}, [pa.string()], "", hashlib.sha256(changed).hexdigest(), "run.json")


@pytest.mark.parametrize("content", [b"a = ", b"\xff = 1", b"a = " + b"9" * 5000, b"a = " + b"[" * 5000])
def test_what_is_no_toml_is_named(content: bytes) -> None:
    with pytest.raises(DataError, match=r"form\.toml: not TOML"):
        validation.parse_toml(content, "form.toml", "mend it")
    assert validation.parse_toml(b"a = 1", "form.toml", "mend it") == {"a": 1}


def test_the_largest_document_is_a_gibibyte(tmp_path: Path) -> None:
    """The file of this test has a hole and no content."""
    (tmp_path / "note.json").touch()
    os.truncate(tmp_path / "note.json", (1 << 30) + 1)
    with pytest.raises(DataError, match=r"note\.json: has more than 1,073,741,824 bytes; mend it$"):
        validation.read_document(tmp_path / "note.json", "mend it")
