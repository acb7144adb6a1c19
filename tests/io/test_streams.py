from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.errors import DataError, collect_warnings
from dialeval.io import opening
from dialeval.io.opening import LineStream, count_lines, find_files, is_pattern, local_path, open_unpacked, size_of

Write = Callable[[str, "bytes | str"], Path]


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"bc"])).map(b"".join), st.lists(st.integers(1, 4)))
def test_lines_are_handed_out_as_a_file_would(content: bytes, counts: list[int]) -> None:
    stream, expected = LineStream(io.BytesIO(content)), io.BytesIO(content)
    for count in counts:
        lines = [expected.readline() for _ in range(count)]
        before = stream.lines
        assert stream.take(count) == list(filter(None, lines))
        assert stream.lines - before == sum(map(bool, lines))


def test_a_line_is_handed_out_once_more_and_a_limit_is_kept() -> None:
    stream = LineStream(io.BytesIO(b"a\nb\nc\n"), limit=4)
    assert (stream.take(1), stream.take(1)) == ([b"a\n"], [b"b\n"])
    stream.put_back(b"b\n")
    assert (stream.lines, stream.take(5), stream.take(1)) == (1, [b"b\n"], [])
    stream = LineStream(io.BytesIO(b"a\nb\nc"))
    stream.put_back(stream.take(3)[2])
    assert (stream.lines, stream.take(2), stream.lines) == (2, [b"c"], 3)


def test_files_and_patterns(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = write("b-1.txt.gz", "x\ny\n"), write("a-1.txt", "x\ny\nz")
    pattern = str(first.parent / "*-1.txt*")
    assert (is_pattern(pattern), is_pattern(str(first))) == (True, False)
    (first.parent / "c-1.txt.d").mkdir()
    assert find_files(pattern) == [str(second), str(first)]
    with open_unpacked(str(first)) as stream:
        assert stream.read() == b"x\ny\n"
    monkeypatch.setattr(opening, "_CHUNK", 2)
    assert (count_lines(str(second), 4), size_of(f"file://{second}"), local_path("file:///a%20b")) == (2, 5, "/a b")


def test_problems_name_the_path(write: Write, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file matches"):
        find_files(str(tmp_path / "*.none"))
    with pytest.raises(DataError, match=r"none\.txt: there is no such file"):
        size_of(str(tmp_path / "none.txt"))
    broken = tmp_path / "x.gz"
    broken.write_bytes(b"\x1f\x8b nothing")
    with pytest.raises(DataError, match="not a whole"), open_unpacked(str(broken)) as stream:
        stream.read()


def test_a_device_is_no_stream(tmp_path: Path) -> None:
    link = tmp_path / "rows.jsonl"
    link.symlink_to("/dev/zero")
    with pytest.raises(DataError, match="is a device"), open_unpacked(str(link)):
        pass


def test_a_line_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "LONGEST_LINE", 100)
    monkeypatch.setattr(opening, "_CHUNK", 10)
    assert LineStream(io.BytesIO(b"x" * 90 + b"\n")).take(1) == [b"x" * 90 + b"\n"]
    assert LineStream(io.BytesIO(b"x" * 99 + b"\ny")).take(2) == [b"x" * 99 + b"\n", b"y"]
    with pytest.raises(DataError, match="here: has a line of more than 100 bytes; write one row per line"):
        LineStream(io.BytesIO(b"x" * 101), where="here").take(1)
    with pytest.raises(DataError, match="a stream: has a line of more than 100 bytes"):
        LineStream(io.BytesIO(b"x" * 100 + b"\n")).take(1)


def test_the_longest_line() -> None:
    asked: list[int] = []

    class Stream(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            asked.append(size or 0)
            return b""

    assert LineStream(Stream()).take(1) == []
    assert LineStream(Stream(), limit=7).take(1) == []
    assert asked == [(1 << 28) + 1, 7]


@pytest.mark.parametrize("link", ["file", "folder", "hard link"])
def test_a_link_to_a_matching_file_does_not_repeat_its_rows(tmp_path: Path, link: str) -> None:
    (tmp_path / "logs" / "day").mkdir(parents=True)
    for name in ("b", "c"):
        (tmp_path / "logs" / "day" / f"{name}.txt").write_text(f"{name}\n")
    if link == "file":
        (tmp_path / "logs" / "a.txt").symlink_to(tmp_path / "logs" / "day" / "b.txt")
    elif link == "folder":
        (tmp_path / "logs" / "again").symlink_to(tmp_path / "logs" / "day")
    else:
        os.link(tmp_path / "logs" / "day" / "b.txt", tmp_path / "logs" / "x.txt")
    with collect_warnings() as notes:
        found = find_files(f"{tmp_path}/logs/**/*.txt")
    assert [Path(path).name for path in found] == ["b.txt", "c.txt"]
    assert len(notes) == (2 if link == "folder" else 1)
    assert all("is the same file as" in str(each) for each in notes)


def test_files_of_a_folder_of_shards_count_once(tmp_path: Path) -> None:
    import dialeval

    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "z.txt").symlink_to(tmp_path / "a.txt")
    with collect_warnings():
        run = dialeval.evaluate(tmp_path, shards=True, metrics="length")
    assert [result["length"].rows for result in run.values()] == [2]
