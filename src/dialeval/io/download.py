"""Downloads over HTTP(S), checked and written whole or not at all.

The bytes go to a `.part` file that is renamed when the file is complete. A download that breaks off is started again a
few times after short waits. A lock lets one process at a time download a file.

Only `http` and `https` are used, in redirections too, and never from `https` down to `http`.
"""

from __future__ import annotations

import errno
import gzip
import http.client
import lzma
import re
import stat
import struct
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import IO, cast
from urllib.parse import urlsplit, urlunsplit

from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.files import FULL, explain_cache_refusals
from dialeval.io.opening import MOST_TIMES, LimitedStream
from dialeval.io.packs import Progress

WAITS: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
"""Seconds before each further try."""
TIMEOUT_SECONDS = 30.0
MOST_BYTES = 1 << 34
"""The default limit of a download."""

_CHUNK = 1 << 16
_PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_LENGTH = re.compile("[0-9]{1,15}")


class _BrokenError(Exception):
    """An attempt that failed for a reason that may be temporary."""


def check_address(address: str) -> str:
    """Return the address itself, or raise SettingError where nothing may be downloaded from it."""
    try:
        parts = urlsplit(address)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as http://[::1, or a port of six digits
        valid = False
    if not valid:
        raise SettingError(f"cannot download from {address!r}; give an address that starts with https:// or http://")
    if parts.username or parts.password:
        raise SettingError(f"the address at {parts.hostname} holds a user name or password; give one without")
    return address


def hide_query(address: str) -> str:
    """Return an address for messages and records: without its query, which may hold a token."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return address.partition("?")[0]
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))


def download(address: str, target: Path, progress: Progress | None = None, most_bytes: int = MOST_BYTES) -> None:
    """Download to `target`, whole or not at all; DataError where it cannot be downloaded.

    What is longer than `most_bytes` is given up.
    """
    from filelock import FileLock, Timeout  # imports logging, which most commands do not need

    check_address(address)
    target.parent.mkdir(parents=True, exist_ok=True)
    part, lock = (target.with_name(f"{target.name}.{suffix}") for suffix in ("part", "lock"))
    for place in (part, target, lock):
        if place.is_symlink() or (place.exists() and not place.is_file()):  # a pipe would never be open
            place.unlink()
    try:
        with explain_cache_refusals(FULL), FileLock(lock, timeout=0):
            try:
                _fetch(address, part, progress, most_bytes)
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)
    except Timeout:
        what = "is being downloaded by another process"
        raise _problem(address, what, "wait until it has finished, then run again") from None


def _fetch(address: str, part: Path, progress: Progress | None, most_bytes: int) -> None:
    reason = ""
    for wait in (0.0, *WAITS):
        time.sleep(wait)
        try:
            return _attempt(address, part, progress, most_bytes)
        except _BrokenError as error:
            reason = str(error)
    raise _problem(address, f"failed {len(WAITS) + 1} times ({reason})", "run the same command again later")


def _attempt(address: str, part: Path, progress: Progress | None, most_bytes: int) -> None:
    with _open(address) as response, part.open("wb") as out:
        length = response.headers.get("Content-Length")
        if length is not None and not _LENGTH.fullmatch(length):
            raise _problem(address, f"the server states a length of {length[:40]!r}", "give another address")
        total, done = None if length is None else int(length), 0
        while max(total or 0, done) <= most_bytes and (chunk := _read_chunk(response)):
            out.write(chunk)
            done += len(chunk)
            if progress:
                progress(done, total)
    if max(total or 0, done) > most_bytes:
        what = f"is longer than the {most_bytes:,} bytes that it may have"
        raise _problem(address, what, "run again, or give another address; the file was deleted")
    if total is not None and done != total:
        raise _BrokenError(f"{done} of {total} bytes came")


def _open(address: str) -> http.client.HTTPResponse:
    """Return the server's answer; a failure that may be temporary is a _BrokenError, any other a DataError."""
    headers = {"User-Agent": "dialeval", "Accept-Encoding": "identity"}
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 (check_address lets only http(s) through)
    try:
        opener = urllib.request.build_opener(_Redirects)
        return cast("http.client.HTTPResponse", opener.open(request, timeout=TIMEOUT_SECONDS))
    except urllib.error.HTTPError as error:
        error.close()
        what = f"the server answered {error.code} {error.reason}"
        if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code in _PASSING:
            raise _BrokenError(what) from None
        raise _problem(address, what, "check the address, or give another one") from None
    except (http.client.HTTPException, OSError) as error:
        raise _BrokenError(str(getattr(error, "reason", error)) or type(error).__name__) from error
    except ValueError:  # of a redirection
        raise _problem(address, "redirects to an invalid address", "give another address") from None


def _read_chunk(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_CHUNK)
    except (http.client.HTTPException, OSError) as error:
        raise _BrokenError(str(error) or type(error).__name__) from error


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A handler that follows redirections to addresses that `check_address` accepts."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        check_address(newurl)
        if req.type == "https" and urlsplit(newurl).scheme != "https":
            address = hide_query(req.full_url)
            raise SettingError(f"{address} leads to an address without encryption; give another address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _problem(address: str, what: str, remedy: str) -> DataError:
    return DataError(Problem(hide_query(address), None, what, remedy))


# Reading archives from elsewhere without trusting them.
#
# What an archive states about itself is not believed. It is refused where a member is a link, a device or sparse, and
# where it unpacks to more than it should: beyond a number of bytes, or so many times its own size.
#
# `unpack` takes out only the wanted files, by their last name, and also refuses an archive where any member could reach
# beyond the folder (an absolute path, `..`, a drive, a backslash) or two are the same wanted file.

_SMALL = 1 << 20
"""Below this size the ratio says nothing."""
_COPY_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_FAR_MORE = "unpacks to far more than its declared size"

_DAMAGE = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError),
    *(NotImplementedError, ValueError, OverflowError, struct.error),  # sizes, places and names that cannot be
)


@dataclass(frozen=True)
class UntrustedArchive:
    """An archive by its name in messages, and what to do where it is refused."""

    where: str
    remedy: str

    def refusal(self, what: str) -> DataError:
        """Return the error that says what is wrong with the archive."""
        return DataError(Problem(self.where, None, f"the archive {what}", self.remedy))

    def check_path(self, name: str) -> None:
        """Refuse the archive where a member could be written outside of the folder it is unpacked to."""
        path, first = PurePosixPath(name), name.partition("/")[0]
        if path.is_absolute() or ".." in path.parts or ":" in first or "\\" in name or "\0" in name:
            raise self.refusal(f"holds {name!r}, which would be written outside its folder")

    @contextmanager
    def explain_damage(self) -> Iterator[None]:
        """Refuse the archive where it turns out to be damaged while its members are read."""
        try:
            yield
        except _DAMAGE as error:
            raise self.refusal(f"is damaged: {error}") from error
        except OSError as error:
            if error.errno not in (None, errno.EINVAL):  # a full disk, a folder that may not be written to
                raise
            raise self.refusal(f"is damaged: {error}") from error  # a place before its start; bzip2 that is none
        except RuntimeError as error:  # how zipfile reports a password
            raise self.refusal(f"cannot be unpacked: {error}") from error

    def tar_files(self, packed: IO[bytes], limit: int) -> Iterator[tuple[str, IO[bytes]]]:
        """Yield name and content of each file in a tar or tar.gz; read the content before asking for the next."""
        unpacked = cast("IO[bytes]", gzip.GzipFile(fileobj=packed)) if _is_gzip(packed) else packed
        unpacking = LimitedStream(unpacked, limit, self.refusal(_FAR_MORE))
        # As a stream, so that what is skipped counts too: every byte has to be unpacked to get past it.
        with tarfile.open(fileobj=unpacking, mode="r|") as opened:
            for member in opened:
                if member.issparse() or not (member.isreg() or member.isdir()):
                    raise self.refusal(f"holds {member.name!r}, which is a link or a device, or sparse")
                if member.size > unpacking.left:
                    raise self.refusal(_FAR_MORE)
                content = opened.extractfile(member) if member.isreg() else None
                if content is not None:
                    yield member.name, content

    def zip_files(self, packed: IO[bytes], wanted: Collection[str]) -> Iterator[tuple[str, IO[bytes]]]:
        """Yield name and content of each file in a zip archive whose last name is wanted."""
        with zipfile.ZipFile(packed) as opened:
            for entry in opened.infolist():
                # `orig_filename`: `filename` has been cut at a null byte and had its separators changed.
                self.check_path(entry.orig_filename)
                if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise self.refusal(f"holds {entry.filename!r}, which is a link or a device")
            for entry in opened.infolist():
                if PurePosixPath(entry.filename).name in wanted and not entry.is_dir():
                    with opened.open(entry) as content:
                        yield entry.filename, content


def _is_gzip(packed: IO[bytes]) -> bool:
    packed.seek(0)
    start = packed.read(len(_GZIP))
    packed.seek(0)
    return start == _GZIP


def unpacked_limit(packed_bytes: int, most_bytes: int) -> int:
    """Return how many bytes an archive of some size may unpack to."""
    return min(most_bytes, max(_SMALL, MOST_TIMES * packed_bytes))


def unpack(archive: Path, wanted: Collection[str], folder: Path, most_bytes: int, where: str) -> None:
    """Take the wanted files out of a zip or tar.gz; a file that came under the wanted name is taken as it is."""
    untrusted = UntrustedArchive(where, "get it from the official address")
    limit = unpacked_limit(archive.stat().st_size, most_bytes)
    taken: set[str] = set()
    with untrusted.explain_damage(), archive.open("rb") as packed:
        for path, source in _list_files(packed, wanted, limit, untrusted):
            untrusted.check_path(path)
            if (name := PurePosixPath(path).name) not in wanted:
                continue
            if name in taken:
                raise untrusted.refusal(f"holds {name!r} twice")
            taken.add(name)
            limit -= _copy_member(source, folder / name, limit)
            if limit < 0:
                (folder / name).unlink()
                raise untrusted.refusal(_FAR_MORE)
    if missing := sorted(set(wanted) - taken):
        raise untrusted.refusal(f"does not hold {', '.join(missing)}")


def _list_files(
    packed: IO[bytes], wanted: Collection[str], limit: int, untrusted: UntrustedArchive
) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield name and content of each file of an archive, or the file itself if it has a wanted name."""
    if zipfile.is_zipfile(packed):
        return untrusted.zip_files(packed, wanted)
    if _is_gzip(packed):
        return untrusted.tar_files(packed, limit)
    if (name := PurePosixPath(untrusted.where).name) in wanted:
        return iter([(name, packed)])
    raise untrusted.refusal("is neither a zip nor a tar.gz archive")


def _copy_member(source: IO[bytes], target: Path, limit: int) -> int:
    """Copy a stream and count its bytes, few more than the limit; sizes that an archive states are not believed."""
    done = 0
    with target.open("xb") as out:
        while done <= limit and (chunk := source.read(_COPY_BYTES)):
            done += len(chunk)
            out.write(chunk)
    return done
