from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.errors import DataError, collect_warnings
from dialeval.io import opening
from dialeval.io.opening import LineStream, find_files, open_unpacked


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"bc"])).map(b"".join), st.lists(st.integers(1, 4)))
def test_lines_are_handed_out_as_a_file_would(content: bytes, counts: list[int]) -> None:
    stream, expected = LineStream(io.BytesIO(content)), io.BytesIO(content)
    for count in counts:
        lines = [expected.readline() for _ in range(count)]
        before = stream.lines
        assert stream.take(count) == list(filter(None, lines))
        assert stream.lines - before == sum(map(bool, lines))


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
        run = dialeval.evaluate(tmp_path, metrics="length", reading=dialeval.Reading(shards=True))
    assert [result["length"].units for result in run.values()] == [2]
