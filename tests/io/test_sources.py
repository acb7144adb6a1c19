"""Which files are the shards of which system."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval.core.batch import Need
from dialeval.core.errors import DataError, SettingError
from dialeval.io.sources import find_sources, list_file_names, name_system


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
    assert need is Need.REFERENCE
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
