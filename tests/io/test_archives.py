from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from dialeval.core.errors import DataError
from dialeval.io.download import unpack

GIB = 1 << 30


def make_zip(path: Path, members: list[tuple[str | zipfile.ZipInfo, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content, compress_type=zipfile.ZIP_DEFLATED)
    return path


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "deep" / "out"
    folder.mkdir(parents=True)
    return folder


def test_plain_file_under_its_own_name(tmp_path: Path, out: Path) -> None:
    (tmp_path / "a").write_bytes(b"the 1 2\n")
    unpack(tmp_path / "a", ["v.txt"], out, GIB, "https://example.org/v.txt")
    assert (out / "v.txt").read_bytes() == b"the 1 2\n"
    with pytest.raises(DataError, match="is not a zip"):  # such as the page of a hotel's wireless network
        unpack(tmp_path / "a", ["v.txt"], out, GIB, "https://example.org/v.zip")


UNSAFE = ["/etc/a.txt", "../a.txt", "d/../../a.txt", "C:/a.txt", "..\\a.txt", "d/.."]


@pytest.mark.parametrize("name", UNSAFE)
def test_members_that_reach_outside(tmp_path: Path, out: Path, name: str) -> None:
    make_zip(tmp_path / "a", [("a.txt", b"good"), (name, b"bad")])
    with pytest.raises(DataError, match="outside its folder"):
        unpack(tmp_path / "a", ["a.txt"], out, GIB, "x")
    assert names(tmp_path / "deep") == ["out"]


def test_link_in_zip(tmp_path: Path, out: Path) -> None:
    link = zipfile.ZipInfo("a.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(DataError, match="link or a device"):
        unpack(make_zip(tmp_path / "a", [(link, b"/etc/passwd")]), ["a.txt"], out, GIB, "x")


def test_zip_bomb(tmp_path: Path, out: Path) -> None:
    bomb = make_zip(tmp_path / "a", [("a.txt", bytes(20 << 20))])
    with pytest.raises(DataError, match="far more"):
        unpack(bomb, ["a.txt"], out, GIB, "x")
    assert names(out) == []


def test_sizes_stated_by_the_archive_are_not_believed(tmp_path: Path, out: Path) -> None:
    path = make_zip(tmp_path / "a", [("a.txt", bytes(20 << 20))])
    size = (20 << 20).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (5).to_bytes(4, "little")))
    with pytest.raises(DataError):
        unpack(path, ["a.txt"], out, GIB, "x")
    assert sum(file.stat().st_size for file in out.iterdir()) <= 1 << 20


def test_missing_twice_and_damaged(tmp_path: Path, out: Path) -> None:
    with pytest.raises(DataError, match=r"does not hold b\.txt"):
        unpack(make_zip(tmp_path / "a", [("a.txt", b"1")]), ["a.txt", "b.txt"], out, GIB, "x")
    (out / "a.txt").unlink()
    with pytest.raises(DataError, match="twice"):
        unpack(make_zip(tmp_path / "b", [("d/a.txt", b"1"), ("e/a.txt", b"2")]), ["a.txt"], out, GIB, "x")
    (out / "a.txt").unlink()
    content = make_zip(tmp_path / "d", [("a.txt", b"x" * 1000)]).read_bytes()
    (tmp_path / "d").write_bytes(content.replace(b"a.txt" + content[35:40], b"a.txt" + b"\xff" * 5, 1))
    with pytest.raises(DataError, match="damaged"):
        unpack(tmp_path / "d", ["a.txt"], out, GIB, "x")


def test_encrypted_zip(tmp_path: Path, out: Path) -> None:
    path = make_zip(tmp_path / "a", [("a.txt", b"1")])
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be unpacked"):
        unpack(path, ["a.txt"], out, GIB, "x")


@pytest.mark.parametrize(("before", "after"), [(-30, -26), (-22, -18), (-10, -6)])
def test_places_that_cannot_be_are_damage(tmp_path: Path, before: int, after: int) -> None:
    """A directory of a zip whose numbers lead before its start, or nowhere."""
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("x.txt", b"text")
    content = bytearray(archive.read_bytes())
    content[before:after] = b"\xff\xff\xff\x7f"
    archive.write_bytes(content)
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError, match="the archive"):
        unpack(archive, {"x.txt"}, tmp_path / "out", 1 << 20, "a.zip")
