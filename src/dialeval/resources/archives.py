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

from dialeval.data.formats.archives import Unpacking, UntrustedArchive, unpacked_limit

_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"

_DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError),
    *(NotImplementedError, ValueError, OverflowError, struct.error),  # sizes, places and names that cannot be
)


def unpack(archive: Path, wanted: Collection[str], folder: Path, most_bytes: int, where: str) -> None:
    """Take the wanted files out of a zip or tar.gz; a file that came under the wanted name is taken as it is."""
    untrusted = UntrustedArchive(where, "get it from the official address")
    limit = unpacked_limit(archive.stat().st_size, most_bytes)
    taken: set[str] = set()
    with _damage_explained(untrusted):
        for name, source in _wanted_files(archive, wanted, limit, untrusted):
            if name in taken:
                raise untrusted.refusal(f"holds {name!r} twice")
            taken.add(name)
            limit -= _copy(source, folder / name, limit)
            if limit < 0:
                (folder / name).unlink()
                raise untrusted.refusal("unpacks to far more than it should")
    if missing := sorted(set(wanted) - taken):
        raise untrusted.refusal(f"does not hold {', '.join(missing)}")


def _wanted_files(
    archive: Path, wanted: Collection[str], limit: int, untrusted: UntrustedArchive
) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the last name and the content of each wanted file; each is to be read before the next is asked for."""
    with archive.open("rb") as packed:
        if zipfile.is_zipfile(packed):
            with zipfile.ZipFile(packed) as opened:
                for entry in opened.infolist():
                    # `orig_filename`: `filename` has been cut at a null byte and had its separators changed.
                    kind = stat.S_IFMT(entry.external_attr >> 16)
                    _check(entry.orig_filename, kind in (0, stat.S_IFREG, stat.S_IFDIR), untrusted)
                for entry in opened.infolist():
                    if (name := PurePosixPath(entry.filename).name) in wanted and not entry.is_dir():
                        with opened.open(entry) as source:
                            yield name, source
            return
        packed.seek(0)
        if packed.read(len(_GZIP)) == _GZIP:
            packed.seek(0)
            # Read as a stream, so that what is skipped counts too: every byte has to be unpacked to get past it.
            with tarfile.open(fileobj=Unpacking(packed, limit, untrusted), mode="r|") as tar:
                for member in tar:
                    _check(member.name, (member.isreg() and not member.issparse()) or member.isdir(), untrusted)
                    if (name := PurePosixPath(member.name).name) in wanted and (content := tar.extractfile(member)):
                        yield name, content
        elif (name := PurePosixPath(untrusted.where).name) in wanted:
            packed.seek(0)
            yield name, packed
        else:
            raise untrusted.refusal("is neither a zip nor a tar.gz archive")


def _copy(source: IO[bytes], target: Path, limit: int) -> int:
    """Copy a stream and count its bytes, few more than the limit; sizes that an archive states are not believed."""
    done = 0
    with target.open("xb") as out:
        while done <= limit and (chunk := source.read(_CHUNK)):
            done += len(chunk)
            out.write(chunk)
    return done


def _check(name: str, plain: bool, untrusted: UntrustedArchive) -> None:
    path, first = PurePosixPath(name), name.partition("/")[0]
    if path.is_absolute() or ".." in path.parts or ":" in first or "\\" in name or "\0" in name:
        raise untrusted.refusal(f"holds {name!r}, which would be written outside its folder")
    if not plain:
        raise untrusted.refusal(f"holds {name!r}, which is a link or a device")


@contextmanager
def _damage_explained(untrusted: UntrustedArchive) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise untrusted.refusal(f"is damaged: {error}") from error
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # a full disk, a folder that may not be written to
            raise
        raise untrusted.refusal(f"is damaged: {error}") from error  # a place before its start; bzip2 that is none
    except RuntimeError as error:  # how zipfile reports a password
        raise untrusted.refusal(f"cannot be unpacked: {error}") from error
