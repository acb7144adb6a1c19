"""Which files are the shards of which system."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval.core import inputs
from dialeval.core.errors import DataError, SettingError
from dialeval.io.sources import find_sources, name_system


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
