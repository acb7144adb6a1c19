"""A file that is changed, replaced, cut off or removed is noticed, whatever its size and its time say."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval.core import inputs
from dialeval.core.errors import DataError
from dialeval.io.sources import Shard, Source, Versions, find_sources
from engine.chats import CHANGES


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text(f"{name}\n" * 100)
    return [str(path) for path in sorted(tmp_path.iterdir())]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_refused_by_name(files: list[str], change: Callable[[Path], None]) -> None:
    versions = Versions(files)
    versions.refuse_changed()
    change(Path(files[1]))
    versions.refuse_changed([files[0], files[2]])
    for paths in (files, None, files[1:2]):
        with pytest.raises(DataError, match=r"b.txt: changed while it was read") as caught:
            versions.refuse_changed(paths)
        assert [problem.where for problem in caught.value.problems] == [files[1]]


def test_reading_is_no_change(files: list[str]) -> None:
    versions = Versions(files)
    Path(files[0]).read_bytes()
    versions.refuse_changed()


def test_files_beside_the_responses_count(files: list[str]) -> None:
    shard = Shard(files[0], ((inputs.REFERENCE, (files[1],)), (inputs.CONTEXT, (files[2],))))
    versions = Versions.of([Source(0, None, "s", "here", (shard,)), Source(1, None, "m", "memory")])
    Path(files[1]).unlink()
    Path(files[2]).unlink()
    with pytest.raises(DataError) as caught:
        versions.refuse_changed()
    assert [problem.where for problem in caught.value.problems] == files[1:]


def test_an_error_that_comes_of_a_change_is_told_as_the_change(files: list[str]) -> None:
    versions = Versions(files)
    with pytest.raises(ValueError, match="half a line"), versions.report_changes():
        raise ValueError("half a line")
    with pytest.raises(DataError, match=r"c.txt: changed") as caught, versions.report_changes():
        os.truncate(files[2], 3)
        raise ValueError("half a line")
    assert isinstance(caught.value.__cause__, ValueError)
    with versions.report_changes():
        pass  # what was read is told by `refuse_changed`


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    Versions([str(tmp_path / "pipe")]).refuse_changed()


def test_files_on_shared_storage() -> None:
    fsspec = pytest.importorskip("fsspec")
    storage = fsspec.filesystem("memory")
    for name in "ab":
        storage.pipe_file(f"/versions/{name}.txt", b"hello\n")
    versions = Versions.of(find_sources("memory://versions/*.txt"))
    versions.refuse_changed()
    storage.pipe_file("/versions/b.txt", b"jello\n")
    with pytest.raises(DataError, match=r"memory:/+versions/b.txt: changed while it was read"):
        versions.refuse_changed()
    storage.rm_file("/versions/b.txt")
    with pytest.raises(DataError, match=r"b.txt: changed while it was read"):
        versions.refuse_changed()
