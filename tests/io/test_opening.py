from __future__ import annotations

import gzip
import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from dialeval.core.errors import DataError, Problem
from dialeval.io import opening
from dialeval.io.opening import (
    LimitedStream,
    check_lines,
    open_unpacked,
    read_bytes,
    stem_of,
    unpacked_limit,
)


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


def test_where_nothing_can_be_written_it_is_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "SPILLED_BYTES", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    (tmp_path / "a.txt").write_bytes(b"hello\n")
    assert read_bytes(tmp_path / "a.txt").tobytes() == b"hello\n"


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more\n")


def cut_off(path: Path) -> None:
    os.truncate(path, 10_000)


def rewritten_with_its_time(path: Path) -> None:
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"J")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [grown, cut_off, rewritten_with_its_time])
def test_a_file_that_changes_while_it_is_read_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"hello\n" * 10_000)
    monkeypatch.setattr(opening, "_READ_BYTES", 1 << 14)
    monkeypatch.setattr(opening, "release", lambda part: change(path) if part[:2].tobytes() == b"he" else None)
    with pytest.raises(DataError, match=r"a\.txt: changed while it was read"):
        read_bytes(path)


def test_archives_may_follow_one_another(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    (tmp_path / "a.txt.zst").write_bytes(zstd(b"one\n") + zstd(b"two\n"))
    assert read_bytes(tmp_path / "a.txt.gz").tobytes() == b"one\ntwo\n"
    assert read_bytes(tmp_path / "a.txt.zst").tobytes() == b"one\ntwo\n"


@pytest.mark.parametrize(
    ("packing", "harm"), [("gz", "cut"), ("gz", "other"), ("gz", "flipped"), ("zst", "cut"), ("zst", "other")]
)
def test_a_broken_archive_is_a_problem(
    tmp_path: Path, packing: str, harm: str, problems_of: Callable[[Callable[[], object]], list[Problem]]
) -> None:
    text = bytes(range(256)) * 40
    whole = gzip.compress(text) if packing == "gz" else zstd(text)
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 0xFF]) * 8 + whole[middle + 8 :]
    path = tmp_path / f"a.txt.{packing}"
    path.write_bytes({"cut": whole[:-5], "other": b"plain text\n", "flipped": flipped}[harm])
    [problem] = problems_of(lambda: read_bytes(path))
    assert problem.where == str(path)
    assert f".{packing} archive" in problem.what
    assert "pack it again" in problem.remedy


def test_missing_file_folder_and_permission_are_problems(
    tmp_path: Path, problems_of: Callable[[Callable[[], object]], list[Problem]]
) -> None:
    [missing] = problems_of(lambda: read_bytes(tmp_path / "no.txt"))
    assert (missing.where, missing.what) == (str(tmp_path / "no.txt"), "there is no such file")
    [folder] = problems_of(lambda: read_bytes(tmp_path))
    assert "folder" in folder.what
    [nothing] = problems_of(lambda: read_bytes(""))
    assert "no such file" in nothing.what


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_one_may_not_read_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x")
    path.chmod(0)
    with pytest.raises(DataError, match="cannot be read: permission denied"):
        read_bytes(path)


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"piped\n")
    os.close(writing)
    try:
        assert read_bytes(f"/dev/fd/{reading}").tobytes() == b"piped\n"
    finally:
        os.close(reading)


def test_a_device_is_no_file(tmp_path: Path) -> None:
    """/dev/zero never ends."""
    link = tmp_path / "rows.jsonl"
    link.symlink_to("/dev/zero")
    with pytest.raises(DataError, match=r"rows\.jsonl: is a device; give a file or a pipe"):
        read_bytes(link)


def test_a_name_that_is_not_utf8_can_be_written() -> None:
    assert stem_of(os.fsdecode(b"caf\xe9.txt.gz")) == "caf\\udce9"


@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_a_small_file_that_unpacks_to_very_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: str
) -> None:
    monkeypatch.setattr(opening, "_SURELY_UNPACKED", 1 << 20)
    monkeypatch.setattr(opening, "_READ_BYTES", 1 << 16)
    path = tmp_path / f"lines.txt{packing}"

    def pack(content: bytes) -> None:
        packed = gzip.compress(content) if packing == ".gz" else pa.Codec("zstd").compress(content, asbytes=True)
        path.write_bytes(packed)

    pack(bytes(4 << 20))
    assert path.stat().st_size * 200 < 4 << 20
    with pytest.raises(DataError, match=rf"txt{packing}: unpacks to more than 200 times its size; if that is correct"):
        read_bytes(path)
    with pytest.raises(DataError, match="unpacks to more than 200 times its size"), open_unpacked(str(path)) as stream:
        while stream.read(1 << 16):
            pass
    with pytest.raises(DataError, match="unpacks to more than 200 times its size"), open_unpacked(str(path)) as stream:
        stream.read()
    pack(bytes(1 << 20))
    assert len(read_bytes(path)) == 1 << 20, "small enough"
    sound = os.urandom(1 << 15) * 100
    pack(sound)
    assert read_bytes(path).tobytes() == sound, "much, and not too many times its size"
    with open_unpacked(str(path)) as stream:
        assert stream.read() == sound


def test_limits_of_what_is_unpacked() -> None:
    assert unpacked_limit(0) == 64 << 20
    assert unpacked_limit((64 << 20) // 200) == 64 << 20
    assert unpacked_limit(1 << 20) == 200 << 20


def test_a_stream_ends_at_its_limit() -> None:
    refusal = DataError(Problem("x", None, "too long", "cut it"))
    stream = LimitedStream(io.BytesIO(b"abcdef"), 6, refusal)
    assert stream.readable()
    assert (stream.read(4), stream.left) == (b"abcd", 2)
    assert (stream.read(4), stream.left) == (b"ef", 0)
    assert (stream.read(4), stream.left) == (b"", 0)
    stream = LimitedStream(io.BytesIO(b"abcdefg"), 6, refusal)
    assert stream.read(6) == b"abcdef"
    with pytest.raises(DataError, match="too long"):
        stream.read(1)
    source = io.BytesIO(b"abcdefghij")
    with pytest.raises(DataError, match="too long"):
        LimitedStream(source, 6, refusal).read(10)
    assert source.tell() == 7, "no more is read than shows that there is more"


def test_very_many_short_lines() -> None:
    check_lines(4_194_304, 0, "x")
    check_lines(4_194_305, 4 * 4_194_305, "x")
    with pytest.raises(
        DataError, match="x: has 4,194,304 lines of less than 4 bytes on average; remove the empty lines"
    ):
        check_lines(4_194_305, 4 * 4_194_305 - 1, "x")
