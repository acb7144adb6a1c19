"""Downloads over HTTP(S) that survive a broken connection.

The bytes go to a `.part` file, and what the server reported about them (`ETag`, `Last-Modified`, length) to a file
beside it. After a break the rest is requested with `Range` and `If-Range`, so that a file that has changed meanwhile
comes whole instead of half old and half new; a server without ranges sends it whole too. A few tries follow after short
waits; then the error says that running the same command goes on where this one stopped.

Only `http` and `https` are used, in redirections too, and never from `https` down to `http`.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

from dialeval.core import gate
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.files import write_bytes
from dialeval.resources.cache import FULL, refusals_explained, sha256_of
from dialeval.resources.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WAITS: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
"""Seconds before each further try."""
TIMEOUT_SECONDS = 30.0

_CHUNK = 1 << 16
_PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,15})-[0-9]{1,15}/([0-9]{1,15})")
_LENGTH = re.compile("[0-9]{1,15}")
MOST_BYTES = 1 << 34
"""Of a download that nobody gives another limit."""


class _TooLongError(Exception):
    """A download has more bytes than it may."""


class _BrokenError(Exception):
    """An attempt that failed for a reason that may be temporary."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the server reported about the file that a part belongs to."""

    address: str
    validator: str | None
    total: int | None


def check_address(address: str) -> str:
    """The address itself, or SettingError where it is none that may be downloaded from."""
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
    """An address for messages and records: without its query, which may hold a token."""
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
    part, record = target.with_name(f"{target.name}.part"), target.with_name(f"{target.name}.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    with refusals_explained(FULL), _alone(target.with_name(f"{target.name}.lock"), address):
        for place in (part, record, target):
            if place.is_symlink() or (place.exists() and not place.is_file()):  # a pipe would never be open
                place.unlink()
        try:
            _fetch(address, part, record, progress, most_bytes)
        except _TooLongError:
            part.unlink(missing_ok=True)
            record.unlink(missing_ok=True)
            what = f"is longer than the {most_bytes:,} bytes that it may have"
            raise _fault(address, what, "give another address; the file was thrown away") from None
        if sha256 is not None and (digest := sha256_of(part)) != sha256:
            part.unlink()
            record.unlink(missing_ok=True)
            what = f"the file has SHA-256 {digest}, but {sha256} is expected"
            raise _fault(address, what, "run again, or give another address; the file was thrown away")
        part.replace(target)
        record.unlink(missing_ok=True)


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
    facts = _read_facts(record, address)
    have = part.stat().st_size if part.exists() else 0
    if facts and facts.total is not None and have == facts.total:
        return
    validator = facts.validator if facts else None
    resume = have if validator else 0
    headers = {"User-Agent": "dialeval", "Accept-Encoding": "identity"}
    if resume and validator:
        headers |= {"Range": f"bytes={resume}-", "If-Range": validator}
    with _open(address, headers, part) as response:
        start, fresh = _start(response, address, resume, facts, part)
        if (fresh.total or 0) > most_bytes:
            raise _TooLongError
        write_bytes(record, json.dumps(asdict(fresh)).encode())
        with part.open("r+b" if start else "wb") as out:
            out.seek(start)
            out.truncate()
            done = _copy(response, out, start, fresh.total, progress, most_bytes)
    if fresh.total is not None and done != fresh.total:
        raise _BrokenError(f"{done} of {fresh.total} bytes came")


def _open(address: str, headers: dict[str, str], part: Path) -> http.client.HTTPResponse:
    """The server's answer; a failure that may be temporary is a _BrokenError, any other a DataError."""
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
    except urllib.error.URLError as error:
        raise _BrokenError(str(error.reason)) from error
    except (http.client.HTTPException, OSError) as error:
        raise _BrokenError(str(error) or type(error).__name__) from error
    except ValueError:  # of a redirection
        raise _fault(address, "leads to what is no address", "give another address") from None


def _start(
    response: http.client.HTTPResponse, address: str, resume: int, facts: _Facts | None, part: Path
) -> tuple[int, _Facts]:
    """Where in the part this answer begins, and what it says about the file."""
    length = response.headers.get("Content-Length")
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if not facts or not match or int(match[1]) != resume or facts.total not in (None, int(match[2])):
            part.unlink(missing_ok=True)
            raise _BrokenError("the server sent another part than was asked for")
        return resume, _Facts(address, facts.validator, int(match[2]))
    if length is not None and not _LENGTH.fullmatch(length):
        raise _fault(address, f"the server states a length of {length[:40]!r}", "give another address")
    return 0, _Facts(address, _validator(response), None if length is None else int(length))


def _validator(response: http.client.HTTPResponse) -> str | None:
    """What `If-Range` may be given: a strong entity tag, else the date."""
    tag: str | None = response.headers.get("ETag")
    if tag and not tag.startswith("W/"):
        return tag
    return response.headers.get("Last-Modified")


def _copy(
    response: http.client.HTTPResponse,
    out: IO[bytes],
    done: int,
    total: int | None,
    progress: Progress | None,
    most_bytes: int,
) -> int:
    while chunk := _read(response):
        done += len(chunk)
        if done > most_bytes:
            raise _TooLongError
        out.write(chunk)
        if progress:
            progress(done, total)
    return done


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_CHUNK)
    except (http.client.HTTPException, OSError) as error:
        raise _BrokenError(str(error) or type(error).__name__) from error


def _read_facts(record: Path, address: str) -> _Facts | None:
    from dialeval.resources.schemas import PartialDownload

    try:
        facts = gate.read_json(record, PartialDownload, "")
    except DataError:
        return None
    return _Facts(facts.address, facts.validator, facts.total) if facts.address == address else None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections as far as `check_address` goes."""

    def redirect_request(self, req: urllib.request.Request, *rest: Any) -> urllib.request.Request | None:
        target = str(rest[-1])
        check_address(target)
        if req.type == "https" and urlsplit(target).scheme != "https":
            raise SettingError(f"{shown(req.full_url)} leads to an address without encryption; give another address")
        return super().redirect_request(req, *rest)


@contextmanager
def _alone(lock: Path, address: str) -> Iterator[None]:
    """Keep a second process from writing to the same part; the lock goes with the process that holds it."""
    try:
        import fcntl
    except ImportError:  # Windows: an open file cannot be replaced there anyway
        yield
        return
    while True:
        held = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            what = "is being downloaded by another process"
            raise _fault(address, what, "wait until it has finished, then run again") from None
        if os.fstat(held).st_nlink:
            break
        os.close(held)  # another process removed it before it was locked
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(held)


def _fault(address: str, what: str, remedy: str) -> DataError:
    return DataError(Fault(shown(address), None, what, remedy))
