"""Downloads over HTTP(S), checked and written whole or not at all; archives from elsewhere.

Only `http` and `https` are used, in redirections too, and never from `https` down to `http`.
"""

from __future__ import annotations

import errno
import gzip
import http.client
import lzma
import stat
import struct
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast
from urllib.parse import urlsplit, urlunsplit

from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.files import FULL, explain_cache_refusals
from dialeval.io.opening import MOST_TIMES, LimitedStream
from dialeval.io.packs import Progress

TIMEOUT_SECONDS = 30.0
MOST_BYTES = 1 << 34
"""The default limit of a download."""

_CHUNK = 1 << 16


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
    check_address(address)
    headers = {"User-Agent": "dialeval", "Accept-Encoding": "identity"}
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 (check_address lets only http(s) through)
    again = "run the same command again later, or give another address"
    with explain_cache_refusals():
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            urllib.request.build_opener(_Redirects).open(request, timeout=TIMEOUT_SECONDS) as response,
            explain_cache_refusals(FULL),
            tempfile.TemporaryDirectory(dir=target.parent) as place,
        ):
            total, done = response.length, 0
            with Path(place, "part").open("wb") as out:
                while max(total or 0, done) <= most_bytes and (chunk := response.read(_CHUNK)):
                    out.write(chunk)
                    done += len(chunk)
                    if progress:
                        progress(done, total)
            if max(total or 0, done) > most_bytes:
                raise _problem(address, f"is longer than the {most_bytes:,} bytes that it may have", again)
            if done != (total or done):
                raise _problem(address, f"broke off: {done} of {total} bytes came", again)
            Path(place, "part").replace(target)
    except urllib.error.HTTPError as error:
        error.close()
        raise _problem(address, f"the server answered {error.code} {error.reason}", again) from None
    except (http.client.HTTPException, OSError) as error:
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        raise _problem(address, f"cannot be downloaded ({reason})", again) from error
    except ValueError:  # of a redirection
        raise _problem(address, "redirects to an invalid address", "give another address") from None


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
        is_packed = packed.read(len(_GZIP)) == _GZIP
        packed.seek(0)
        unpacked = cast("IO[bytes]", gzip.GzipFile(fileobj=packed)) if is_packed else packed
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


def unpacked_limit(packed_bytes: int, most_bytes: int) -> int:
    """Return how many bytes an archive of some size may unpack to."""
    return min(most_bytes, max(_SMALL, MOST_TIMES * packed_bytes))


def unpack(archive: Path, wanted: Collection[str], folder: Path, most_bytes: int, where: str) -> None:
    """Take the wanted files out of a zip archive; a file that came under the wanted name is taken as it is."""
    untrusted = UntrustedArchive(where, "get it from the official address")
    limit = unpacked_limit(archive.stat().st_size, most_bytes)
    taken: set[str] = set()
    with untrusted.explain_damage(), archive.open("rb") as packed:
        if zipfile.is_zipfile(packed):
            files = untrusted.zip_files(packed, wanted)
        elif PurePosixPath(where).name in wanted:
            packed.seek(0)
            files = iter([(PurePosixPath(where).name, packed)])
        else:
            raise untrusted.refusal("is not a zip archive")
        for path, source in files:
            name = PurePosixPath(path).name
            if name in taken:
                raise untrusted.refusal(f"holds {name!r} twice")
            taken.add(name)
            limit -= _copy_member(source, folder / name, limit)
            if limit < 0:
                (folder / name).unlink()
                raise untrusted.refusal(_FAR_MORE)
    if missing := sorted(set(wanted) - taken):
        raise untrusted.refusal(f"does not hold {', '.join(missing)}")


def _copy_member(source: IO[bytes], target: Path, limit: int) -> int:
    """Copy a stream and count its bytes, few more than the limit; sizes that an archive states are not believed."""
    done = 0
    with target.open("xb") as out:
        while done <= limit and (chunk := source.read(_COPY_BYTES)):
            done += len(chunk)
            out.write(chunk)
    return done
