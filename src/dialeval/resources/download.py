"""Downloads over HTTP(S) that survive a broken connection.

The bytes go to a `.part` file, and what the server reported about them (`ETag`, `Last-Modified`, length) to a file
next to it. After a break the rest is requested with `Range` and `If-Range`, so that a file that has changed meanwhile
comes whole instead of half old and half new; a server without ranges sends it whole too. A few tries follow after short
waits; then the error says that running the same command goes on where this one stopped.

Only `http` and `https` are used, in redirections too, and never from `https` down to `http`.
"""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urlsplit, urlunsplit

import msgspec
from filelock import FileLock, Timeout

from dialeval.core import gate
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.files import write_bytes
from dialeval.resources.cache import FULL, refusals_explained, sha256_of
from dialeval.resources.progress import Progress
from dialeval.resources.schemas import PartialDownload

WAITS: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
"""Seconds before each further try."""
TIMEOUT_SECONDS = 30.0
MOST_BYTES = 1 << 34
"""Of a download that nobody gives another limit."""

_CHUNK = 1 << 16
_PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,15})-[0-9]{1,15}/([0-9]{1,15})")
_LENGTH = re.compile("[0-9]{1,15}")


class _UselessError(Exception):
    """What was downloaded is not what it should be."""


class _BrokenError(Exception):
    """An attempt that failed for a reason that may be temporary."""


def check_address(address: str) -> str:
    """Return the address itself, or raise SettingError where nothing may be downloaded from it."""
    try:
        parts = urlsplit(address)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as http://[::1, or a port of six digits
        known = False
    if not known:
        raise SettingError(f"cannot download from {address!r}; give an address that starts with https:// or http://")
    if parts.username or parts.password:
        raise SettingError(f"the address at {parts.hostname} holds a user name or password; give one without")
    return address


def shown(address: str) -> str:
    """Return an address for messages and records: without its query, which may hold a token."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return address.partition("?")[0]
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))


def download(
    address: str,
    target: Path,
    sha256: str | None = None,
    progress: Progress | None = None,
    most_bytes: int = MOST_BYTES,
) -> None:
    """Download to `target`, going on from a part that an earlier call left; DataError where it cannot be downloaded.

    What is longer than `most_bytes` is given up, and what came of it is removed.
    """
    check_address(address)
    target.parent.mkdir(parents=True, exist_ok=True)
    part, record, lock = (target.with_name(f"{target.name}.{suffix}") for suffix in ("part", "json", "lock"))
    for place in (part, record, target, lock):
        if place.is_symlink() or (place.exists() and not place.is_file()):  # a pipe would never be open
            place.unlink()
    try:
        with refusals_explained(FULL), FileLock(lock, timeout=0):
            try:
                _fetch(address, part, record, progress, most_bytes)
                if sha256 is not None and (digest := sha256_of(part)) != sha256:
                    raise _UselessError(f"the file has SHA-256 {digest}, but {sha256} is expected")
                part.replace(target)
            except _UselessError as error:
                part.unlink(missing_ok=True)
                remedy = "run again, or give another address; the file was thrown away"
                raise _fault(address, str(error), remedy) from None
            finally:
                if not part.exists():
                    record.unlink(missing_ok=True)
    except Timeout:
        what = "is being downloaded by another process"
        raise _fault(address, what, "wait until it has finished, then run again") from None


def _fetch(address: str, part: Path, record: Path, progress: Progress | None, most_bytes: int) -> None:
    reason = ""
    for wait in (0.0, *WAITS):
        time.sleep(wait)
        try:
            return _attempt(address, part, record, progress, most_bytes)
        except _BrokenError as error:
            reason = str(error)
    remedy = "run the same command again: it goes on where this one stopped"
    raise _fault(address, f"failed {len(WAITS) + 1} times ({reason})", remedy)


def _attempt(address: str, part: Path, record: Path, progress: Progress | None, most_bytes: int) -> None:
    known = _read_record(record, address)
    have = part.stat().st_size if part.exists() else 0
    if known and known.total is not None and have == known.total:
        return
    headers = {"User-Agent": "dialeval", "Accept-Encoding": "identity"}
    resume = have if known and known.validator else 0
    if resume and known and known.validator:
        headers |= {"Range": f"bytes={resume}-", "If-Range": known.validator}
    with _open(address, headers, part) as response:
        start, now = _read_headers(response, address, resume, known, part)
        if (now.total or 0) > most_bytes:
            raise _too_long(most_bytes)
        write_bytes(record, msgspec.json.encode(now))
        with part.open("r+b" if start else "wb") as out:
            out.seek(start)
            out.truncate()
            done = _copy(response, out, start, now.total, progress, most_bytes)
    if now.total is not None and done != now.total:
        raise _BrokenError(f"{done} of {now.total} bytes came")


def _open(address: str, headers: dict[str, str], part: Path) -> http.client.HTTPResponse:
    """Return the server's answer; a failure that may be temporary is a _BrokenError, any other a DataError."""
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 (check_address lets only http(s) through)
    try:
        opener = urllib.request.build_opener(_Redirects)
        return cast("http.client.HTTPResponse", opener.open(request, timeout=TIMEOUT_SECONDS))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)  # longer than the file now is
            raise _BrokenError("the file is another one now") from None
        what = f"the server answers {error.code} {error.reason}"
        if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code in _PASSING:
            raise _BrokenError(what) from None
        raise _fault(address, what, "check the address, or give another one") from None
    except (http.client.HTTPException, OSError) as error:
        raise _BrokenError(str(getattr(error, "reason", error)) or type(error).__name__) from error
    except ValueError:  # of a redirection
        raise _fault(address, "leads to what is no address", "give another address") from None


def _read_headers(
    response: http.client.HTTPResponse, address: str, resume: int, known: PartialDownload | None, part: Path
) -> tuple[int, PartialDownload]:
    """Return where in the part this answer begins, and what it says about the file."""
    length = response.headers.get("Content-Length")
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if not known or not match or int(match[1]) != resume or known.total not in (None, int(match[2])):
            part.unlink(missing_ok=True)
            raise _BrokenError("the server sent another part than was asked for")
        return resume, PartialDownload(address, known.validator, int(match[2]))
    if length is not None and not _LENGTH.fullmatch(length):
        raise _fault(address, f"the server states a length of {length[:40]!r}", "give another address")
    validator = response.headers.get("ETag")
    if not validator or validator.startswith("W/"):  # `If-Range` takes no weak tag
        validator = response.headers.get("Last-Modified")
    return 0, PartialDownload(address, validator, None if length is None else int(length))


def _copy(
    response: http.client.HTTPResponse,
    out: IO[bytes],
    done: int,
    total: int | None,
    progress: Progress | None,
    most_bytes: int,
) -> int:
    while True:
        try:
            chunk = response.read(_CHUNK)
        except (http.client.HTTPException, OSError) as error:
            raise _BrokenError(str(error) or type(error).__name__) from error
        if not chunk:
            return done
        done += len(chunk)
        if done > most_bytes:
            raise _too_long(most_bytes)
        out.write(chunk)
        if progress:
            progress(done, total)


def _read_record(record: Path, address: str) -> PartialDownload | None:
    try:
        known = gate.read_json(record, PartialDownload, "")
    except DataError:
        return None
    return known if known.address == address else None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections as far as `check_address` goes."""

    def redirect_request(self, req: urllib.request.Request, *rest: Any) -> urllib.request.Request | None:
        target = str(rest[-1])
        check_address(target)
        if req.type == "https" and urlsplit(target).scheme != "https":
            raise SettingError(f"{shown(req.full_url)} leads to an address without encryption; give another address")
        return super().redirect_request(req, *rest)


def _too_long(most_bytes: int) -> _UselessError:
    return _UselessError(f"is longer than the {most_bytes:,} bytes that it may have")


def _fault(address: str, what: str, remedy: str) -> DataError:
    return DataError(Fault(shown(address), None, what, remedy))
