"""Unpacking archives from elsewhere without trusting them.

Only the wanted files are taken out, by their last name. An archive is refused whole where any member could reach
beyond the folder (an absolute path, `..`, a drive, a backslash), where one is a link or a device, where two are the
same wanted file, or where it unpacks to more than it should: beyond a number of bytes, or so many times its own size.
"""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from dialeval.core.errors import DataError, Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MOST_TIMES = 200
"""Text shrinks to a quarter or a tenth; what unpacks to more than this many times its size is a trap."""
_SMALL = 1 << 20
"""Below this size the ratio says nothing."""
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"


def unpack(archive: Path, wanted: Collection[str], folder: Path, most_bytes: int, where: str) -> None:
    """Take the wanted files out of a zip or tar.gz; a file that came under the wanted name is taken as it is."""
    limit = min(most_bytes, max(_SMALL, MOST_TIMES * archive.stat().st_size))
    with archive.open("rb") as stream:
        start = stream.read(len(_GZIP))
    with _faults_explained(where):
        if zipfile.is_zipfile(archive):
            taken = _unpack_zip(archive, wanted, folder, limit, where)
        elif start == _GZIP:
            taken = _unpack_tar(archive, wanted, folder, limit, where)
        elif (name := _last(where)) in wanted:
            taken = {name}
            with archive.open("rb") as source:
                _copy(source, folder / name, most_bytes, where)
        else:
            raise _refused(where, "is neither a zip nor a tar.gz archive")
    if missing := sorted(set(wanted) - taken):
        raise _refused(where, f"does not hold {', '.join(missing)}")


def _unpack_zip(archive: Path, wanted: Collection[str], folder: Path, limit: int, where: str) -> set[str]:
    taken: set[str] = set()
    with zipfile.ZipFile(archive) as opened:
        members = opened.infolist()
        for member in members:
            # `orig_filename`: `filename` has been cut at a null byte and had its separators changed.
            kind = stat.S_IFMT(member.external_attr >> 16)
            _check(member.orig_filename, kind in (0, stat.S_IFREG, stat.S_IFDIR), where)
        if sum(member.file_size for member in members if _last(member.filename) in wanted) > limit:
            raise _too_large(where)
        for member in members:
            name = _last(member.filename)
            if name in wanted and not member.is_dir():
                _once(name, taken, where)
                with opened.open(member) as source:
                    limit -= _copy(source, folder / name, limit, where)
    return taken


def _unpack_tar(archive: Path, wanted: Collection[str], folder: Path, limit: int, where: str) -> set[str]:
    taken: set[str] = set()
    # Read as a stream, so that what is skipped counts too: every byte has to be unpacked to get past it.
    with _Limited(archive, limit, where) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as opened:
        for member in opened:
            _check(member.name, member.isreg() or member.isdir(), where)
            name = _last(member.name)
            if name in wanted and member.isreg():
                _once(name, taken, where)
                source = opened.extractfile(member)
                if source is None:
                    raise _refused(where, f"holds {name!r} in a form that cannot be read")
                with source:
                    _copy(source, folder / name, limit, where)
    return taken


class _Limited(gzip.GzipFile):
    """A gzip file that refuses to give more than it should."""

    def __init__(self, archive: Path, limit: int, where: str) -> None:
        super().__init__(archive)
        self._left, self._where = limit, where

    def read(self, size: int | None = -1) -> bytes:
        chunk = super().read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise _too_large(self._where)
        return chunk


def _copy(source: IO[bytes], target: Path, limit: int, where: str) -> int:
    """Copy a stream; sizes that an archive states are not believed."""
    done = 0
    with target.open("xb") as out:
        while chunk := source.read(_CHUNK):
            done += len(chunk)
            if done > limit:
                raise _too_large(where)
            out.write(chunk)
    return done


def _check(name: str, plain: bool, where: str) -> None:
    path, first = PurePosixPath(name), name.partition("/")[0]
    if path.is_absolute() or ".." in path.parts or ":" in first or "\\" in name or "\0" in name:
        raise _refused(where, f"holds {name!r}, which would be written outside its folder")
    if not plain:
        raise _refused(where, f"holds {name!r}, which is a link or a device")


def _once(name: str, taken: set[str], where: str) -> None:
    if name in taken:
        raise _refused(where, f"holds {name!r} twice")
    taken.add(name)


def _last(name: str) -> str:
    return PurePosixPath(name).name


def _too_large(where: str) -> DataError:
    return _refused(where, "unpacks to far more than it should")


def _refused(where: str, what: str) -> DataError:
    return DataError(Fault(where, None, f"the archive {what}", "get it from the official address"))


@contextmanager
def _faults_explained(where: str) -> Iterator[None]:
    damaged = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError)
    try:
        yield
    except damaged as error:
        raise _refused(where, f"is damaged: {error}") from error
    except RuntimeError as error:  # how zipfile speaks of a password
        raise _refused(where, f"cannot be unpacked: {error}") from error
