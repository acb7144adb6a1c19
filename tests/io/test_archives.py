from __future__ import annotations

import gzip
import io
import stat
import tarfile
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


def make_tar(path: Path, members: list[tuple[str, bytes, bytes]]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content, kind in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            member.size = len(content)
            member.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            archive.addfile(member, io.BytesIO(content))
    return path


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "deep" / "out"
    folder.mkdir(parents=True)
    return folder


def test_only_what_is_wanted_from_tar(tmp_path: Path, out: Path) -> None:
    members = [("d", b"", tarfile.DIRTYPE), ("d/a.txt", b"one", tarfile.REGTYPE), ("c.txt", b"three", tarfile.REGTYPE)]
    unpack(make_tar(tmp_path / "a", members), ["a.txt"], out, GIB, "x")
    assert names(out) == ["a.txt"]
    assert (out / "a.txt").read_bytes() == b"one"


def test_plain_file_under_its_own_name(tmp_path: Path, out: Path) -> None:
    (tmp_path / "a").write_bytes(b"the 1 2\n")
    unpack(tmp_path / "a", ["v.txt"], out, GIB, "https://example.org/v.txt")
    assert (out / "v.txt").read_bytes() == b"the 1 2\n"
    with pytest.raises(DataError, match="neither a zip"):  # such as the page of a hotel's wireless network
        unpack(tmp_path / "a", ["v.txt"], out, GIB, "https://example.org/v.zip")


UNSAFE = ["/etc/a.txt", "../a.txt", "d/../../a.txt", "C:/a.txt", "..\\a.txt", "d/.."]


@pytest.mark.parametrize("name", UNSAFE)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_members_that_reach_outside(tmp_path: Path, out: Path, name: str, kind: str) -> None:
    path = tmp_path / "a"
    if kind == "zip":
        make_zip(path, [("a.txt", b"good"), (name, b"bad")])
    else:
        make_tar(path, [(name, b"bad", tarfile.REGTYPE), ("a.txt", b"good", tarfile.REGTYPE)])
    with pytest.raises(DataError, match="outside its folder"):
        unpack(path, ["a.txt"], out, GIB, "x")
    assert names(tmp_path / "deep") == ["out"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
@pytest.mark.parametrize("name", ["a.txt", "other"])
def test_links_and_devices_in_tar(tmp_path: Path, out: Path, kind: bytes, name: str) -> None:
    with pytest.raises(DataError, match="link or a device"):
        unpack(make_tar(tmp_path / "a", [(name, b"", kind)]), ["a.txt"], out, GIB, "x")


def test_link_in_zip(tmp_path: Path, out: Path) -> None:
    link = zipfile.ZipInfo("a.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(DataError, match="link or a device"):
        unpack(make_zip(tmp_path / "a", [(link, b"/etc/passwd")]), ["a.txt"], out, GIB, "x")


@pytest.mark.parametrize("wanted", ["a.txt", "b.txt"])
def test_tar_bomb(tmp_path: Path, out: Path, wanted: str) -> None:
    bomb = make_tar(tmp_path / "a", [("a.txt", bytes(20 << 20), tarfile.REGTYPE), ("b.txt", b"", tarfile.REGTYPE)])
    assert bomb.stat().st_size < 50_000
    with pytest.raises(DataError, match="far more"):
        unpack(bomb, [wanted], out, GIB, "x")


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
    (tmp_path / "c").write_bytes(gzip.compress(bytes(1000))[:-9])
    with pytest.raises(DataError, match="damaged"):
        unpack(tmp_path / "c", ["a.txt"], out, GIB, "x")
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
