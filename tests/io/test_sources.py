"""Which files are the shards of which system."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval.core import inputs
from dialeval.core.errors import DataError, SettingError
from dialeval.io.reading import read_responses
from dialeval.io.rows import OF_SOME_ROWS
from dialeval.io.sources import Shard, Source, find_sources, list_file_names, name_system, wrap_systems


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b-2", "b-10", "a-1"):
        (tmp_path / f"{name}.txt").write_text("hello\n")
    (tmp_path / "references").mkdir()
    for name in ("x", "y", "z"):
        (tmp_path / "references" / f"{name}.txt").write_text("hello\n")
    return tmp_path


def names(paths: list[str]) -> list[str]:
    return [Path(path).name for path in paths]


def test_a_pattern_is_one_system(folder: Path) -> None:
    (source,) = find_sources(f"{folder}/b-*.txt")
    assert (source.system, source.name, source.where, source.role) == ("b", None, f"{folder}/b-*.txt", "system")
    assert names([shard.path for shard in source.shards]) == ["b-10.txt", "b-2.txt"]


def test_a_folder_is_a_system_per_file_or_the_shards_of_one(folder: Path) -> None:
    assert [source.system for source in find_sources(folder)] == ["a-1", "b-10", "b-2"]
    (source,) = find_sources(folder, as_shards=True)
    assert source.system == folder.name
    assert names([shard.path for shard in source.shards]) == ["a-1.txt", "b-10.txt", "b-2.txt"]


def test_named_systems(folder: Path) -> None:
    sources = find_sources({"one": f"{folder}/b-*.txt", "two": folder / "a-1.txt", "all": folder})
    assert [(source.argument, source.name, source.system) for source in sources] == [
        (0, "one", "one"),
        (1, "two", "two"),
        (2, "all", "a-1"),
        (2, "all", "b-10"),
        (2, "all", "b-2"),
    ]


def test_files_beside(folder: Path) -> None:
    (source,) = find_sources(f"{folder}/*.txt", {"r": f"{folder}/references/*", "s": f"{folder}/*.txt"})
    ((need, files),) = source.shards[1].beside
    assert need == inputs.REFERENCE
    assert names(list(files)) == ["y.txt", "b-10.txt"]
    with pytest.raises(DataError, match="2 files of responses and 3 of references"):
        find_sources(f"{folder}/b-*.txt", f"{folder}/references/*")
    (folder / "c.jsonl").write_text("{}")
    with pytest.raises(DataError, match=r"c.jsonl: holds rows, and rows carry their own"):
        find_sources(folder / "c.jsonl", folder / "a-1.txt")


def test_what_is_not_there_is_told_at_once(folder: Path) -> None:
    with pytest.raises(DataError, match="no file matches"):
        find_sources(f"{folder}/nothing-*.txt")
    with pytest.raises(DataError, match="there is no such file"):
        find_sources(folder / "nothing.txt")
    with pytest.raises(DataError, match="write --shards"):
        find_sources(folder / "a-1.txt", folder / "references")
    with pytest.raises(SettingError, match="memory of this process"):
        find_sources(["hello"])
    with pytest.raises(DataError, match="empty mapping"):
        find_sources({})


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").write_text("hello\n")
    (source,) = find_sources(tmp_path / "a[1].txt")
    assert len(source.shards) == 1
    assert source.system == "a[1]"


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("logs/2026-*.jsonl", "2026"),
        ("damd/*.parquet", "damd"),
        ("damd-??.jsonl.gz", "damd"),
        ("*.txt", "system"),
        ("s3://bucket/chats/part-*.jsonl", "part"),
        ("logs/x[0-9].txt", "x"),
        ("plain/damd.txt", "damd"),
    ],
)
def test_what_a_pattern_is_called(pattern: str, name: str) -> None:
    assert name_system(pattern) == name


def test_files_among_responses(folder: Path) -> None:
    file = folder / "a-1.txt"
    assert list_file_names(file) == [str(file)]
    assert list_file_names({"one": f"{folder}/b-*.txt", "two": file, "three": ["a text"]}) == [
        f"{folder}/b-*.txt",
        str(file),
    ]
    assert list_file_names(["a text"]) == []
    assert list_file_names({"one": file, "all": folder}) == [], "a folder may be read in several ways"


def test_columns_of_sources(folder: Path) -> None:
    lines, rows = Shard("a.txt"), Shard("b.jsonl")
    beside = Shard("a.txt", ((inputs.CONTEXT, ("c.txt", "d.txt")),))
    every = {inputs.RESPONSE, inputs.REFERENCE, inputs.CONTEXT, *OF_SOME_ROWS}
    for shards, needs in (
        ((lines,), {inputs.RESPONSE, inputs.OUTCOME}),
        ((lines, rows), every),
        ((beside, lines), {inputs.RESPONSE, inputs.OUTCOME, inputs.CONTEXT}),
    ):
        assert Source(0, None, "s", "here", shards).columns == needs
    assert beside.paths == ["a.txt", "c.txt", "d.txt"]
    [memory] = wrap_systems(read_responses([{"response": "a", "reference": "b"}]))
    assert memory.columns == {inputs.RESPONSE, inputs.REFERENCE}
    assert (memory.shards, memory.role) == ((), "system")


def test_systems_in_memory() -> None:
    given = [
        {"response": text, "dialog_id": name, "system": name[0]}
        for text, name in zip("abc", ("x1", "x1", "y1"), strict=True)
    ]
    one, two = wrap_systems(read_responses(given), {"y": "floor"})
    assert [(each.argument, each.name, each.system, each.role) for each in (one, two)] == [
        (0, None, "x", "system"),
        (1, None, "y", "floor"),
    ]
    assert one.rows is not None
    assert one.rows.offsets is not None
    assert one.rows.offsets.tolist() == [0, 2]
    [plain] = wrap_systems(read_responses(["a"]))
    assert plain.rows is not None
    assert plain.rows.offsets is None


def test_contexts_and_references_beside_lines(folder: Path) -> None:
    references, contexts = f"{folder}/references/x.txt", {"a": folder / "a-1.txt", "b": folder / "b-2.txt"}
    [source] = find_sources(folder / "b-10.txt", references, contexts)
    assert source.shards == (
        Shard(
            str(folder / "b-10.txt"),
            (
                (inputs.REFERENCE, (references,)),
                (inputs.CONTEXT, (str(folder / "a-1.txt"), str(folder / "b-2.txt"))),
            ),
        ),
    )
    [source] = find_sources(folder / "references", {"r": folder / "references"}, as_shards=True)
    assert [shard.beside for shard in source.shards] == [
        ((inputs.REFERENCE, (f"{folder}/references/{name}.txt",)),) for name in "xyz"
    ]
    assert (source.system, source.where) == ("references", str(folder / "references"))


def test_folders_of_a_storage() -> None:
    storage = pytest.importorskip("fsspec").filesystem("memory")
    for name in ("a", "b"):
        storage.pipe_file(f"/sources/part/{name}.txt", b"hello\n")
    for given, shards in (("memory://sources/part/", 2), ("memory://sources/part", 1)):
        [source] = find_sources(given, as_shards=True)
        assert (source.system, len(source.shards)) == ("part", shards)
    [source] = find_sources("memory://sources/part/")
    assert [shard.path for shard in source.shards] == ["memory://sources/part/"]
