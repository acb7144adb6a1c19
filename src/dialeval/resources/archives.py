"""Unpacking archives from elsewhere without trusting them.

Only the wanted files are taken out, by their last name. An archive is refused where any member could reach beyond the
folder (an absolute path, `..`, a drive, a backslash), where one is a link or a device, where two are the same wanted
file, or where it unpacks to more than it should: beyond a number of bytes, or so many times its own size, of which the
last is looked at while it is unpacked.
"""

from __future__ import annotations

import errno
import gzip
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from dialeval.core.errors import DataError
from dialeval.data.formats.archives import Unpacking, UntrustedArchive, unpacked_limit

_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"

_DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError),
    *(NotImplementedError, ValueError, OverflowError, struct.error),  # sizes, places and names that cannot be
)


def unpack(archive: Path, wanted: Collection[str], folder: Path, most_bytes: int, where: str) -> None:
    """Take the wanted files out of a zip or tar.gz; a file that came under the wanted name is taken as it is."""
    limit = unpacked_limit(archive.stat().st_size, most_bytes)
    taken: set[str] = set()
    with _faults_explained(where):
        for name, source in _wanted_files(archive, wanted, limit, where):
            if name in taken:
                raise _refused(where, f"holds {name!r} twice")
            taken.add(name)
            limit -= _copy(source, folder / name, limit, where)
    if missing := sorted(set(wanted) - taken):
        raise _refused(where, f"does not hold {', '.join(missing)}")


def _wanted_files(archive: Path, wanted: Collection[str], limit: int, where: str) -> Iterator[tuple[str, IO[bytes]]]:
    """The last name and the content of each wanted file; each is to be read before the next is asked for."""
    with archive.open("rb") as stream:
        start = stream.read(len(_GZIP))
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                # `orig_filename`: `filename` has been cut at a null byte and had its separators changed.
                kind = stat.S_IFMT(entry.external_attr >> 16)
                _check(entry.orig_filename, kind in (0, stat.S_IFREG, stat.S_IFDIR), where)
            for entry in opened.infolist():
                if (name := PurePosixPath(entry.filename).name) in wanted and not entry.is_dir():
                    with opened.open(entry) as source:
                        yield name, source
    elif start == _GZIP:
        # Read as a stream, so that what is skipped counts too: every byte has to be unpacked to get past it.
        with (
            archive.open("rb") as packed,
            tarfile.open(fileobj=Unpacking(packed, limit, _untrusted(where)), mode="r|") as tar,
        ):
            for member in tar:
                _check(member.name, (member.isreg() and not member.issparse()) or member.isdir(), where)
                if (name := PurePosixPath(member.name).name) in wanted and (content := tar.extractfile(member)):
                    yield name, content
    elif (name := PurePosixPath(where).name) in wanted:
        with archive.open("rb") as stream:
            yield name, stream
    else:
        raise _refused(where, "is neither a zip nor a tar.gz archive")


def _copy(source: IO[bytes], target: Path, limit: int, where: str) -> int:
    """Copy a stream and count its bytes; sizes that an archive states are not believed."""
    done = 0
    with target.open("xb") as out:
        while done <= limit and (chunk := source.read(_CHUNK)):
            done += len(chunk)
            out.write(chunk)
    if done > limit:
        target.unlink()
        raise _too_large(where)
    return done


def _check(name: str, plain: bool, where: str) -> None:
    path, first = PurePosixPath(name), name.partition("/")[0]
    if path.is_absolute() or ".." in path.parts or ":" in first or "\\" in name or "\0" in name:
        raise _refused(where, f"holds {name!r}, which would be written outside its folder")
    if not plain:
        raise _refused(where, f"holds {name!r}, which is a link or a device")


def _too_large(where: str) -> DataError:
    return _refused(where, "unpacks to far more than it should")


def _refused(where: str, what: str) -> DataError:
    return _untrusted(where).refusal(what)


def _untrusted(where: str) -> UntrustedArchive:
    return UntrustedArchive(where, "get it from the official address")


@contextmanager
def _faults_explained(where: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise _refused(where, f"is damaged: {error}") from error
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # a full disk, a folder that may not be written to
            raise
        raise _refused(where, f"is damaged: {error}") from error  # a place before its start; bzip2 that is none
    except RuntimeError as error:  # how zipfile reports a password
        raise _refused(where, f"cannot be unpacked: {error}") from error
