"""Byte streams: files that are read from front to back, on this machine or on shared storage.

A path with `://` (s3://, gs://, memory://) is opened through fsspec, `file://` and everything else as a local file.
`.gz` and `.zst` are unpacked while they are read. `LineStream` hands out whole lines, some at a time, so that a file of
any size is read with little memory.
"""

from __future__ import annotations

import glob
import io
import os
import stat
import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.notes import note
from dialeval.data.formats.opening import refuse_device, unpacking, unreadable, version

LONGEST_LINE = 1 << 28
"""Bytes of a line that is read from a stream; a line is held in memory."""
_CHUNK = 1 << 18
_VERSION_FACTS = ("size", "ETag", "etag", "generation", "LastModified", "last_modified", "updated", "mtime", "created")
"""What storages say of a file that changes with its content, and by nothing else: not when it was last read."""

_WILDCARDS = frozenset("*?[")


def is_remote(path: str) -> bool:
    """Return whether a path leads to storage that is not a local file."""
    return "://" in path and not path.startswith("file://")


def local_path(path: str) -> str:
    """Return a local path as the system knows it, without `file://`."""
    try:
        return unquote(urlsplit(path).path) if path.startswith("file://") else path
    except ValueError:  # such as file://[::1
        raise SettingError(f"{path} is no address of a file; give its path") from None


def is_pattern(path: str) -> bool:
    """Return whether a path is a pattern such as `logs/2026-*.jsonl`; a file of just that name is no pattern."""
    return bool(_WILDCARDS & set(path)) and (is_remote(path) or not os.path.lexists(local_path(path)))


def matching(pattern: str) -> list[str]:
    """Return the files that match a pattern, in the order of their names; `**` reaches into folders."""
    if is_remote(pattern):
        system, inside = _storage(pattern)
        with _faults_named(pattern):
            names = [system.unstrip_protocol(name) for name in system.glob(inside) if not system.isdir(name)]
    else:
        there = [name for name in glob.glob(local_path(pattern), recursive=True) if not os.path.isdir(name)]  # noqa: PTH112, PTH207
        names = without_repeated(there)
    if not names:
        raise DataError(Fault(pattern, None, "no file matches", "check the pattern, and quote it for the shell"))
    return sorted(names)


def without_repeated(paths: Sequence[str]) -> list[str]:
    """Return local paths in the order of their names, each file once: a link to one of them is left out with a note."""
    kept: dict[tuple[int, int], str] = {}
    for path in sorted(paths, key=lambda path: (os.path.realpath(path) != os.path.abspath(path), path)):  # noqa: PTH100
        with _faults_named(path):
            status = Path(path).stat()
        if (first := kept.setdefault((status.st_dev, status.st_ino), path)) != path:
            note(f"{path} is the same file as {first} and is not read twice")
    return sorted(kept.values())


def size_of(path: str) -> int:
    """Return the bytes of a file as it is stored."""
    with _faults_named(path):
        if is_remote(path):
            system, inside = _storage(path)
            return int(system.size(inside))
        status = Path(local_path(path)).stat()
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        what, remedy = "is a pipe, and what is read in chunks must be a file", "write it to a file first"
        raise DataError(Fault(path, None, what, remedy))
    return status.st_size


def changed_at(path: str) -> str:
    """Return a key that changes when a file is written again: its time of change, or what the storage has instead."""
    with _faults_named(path):
        if is_remote(path):
            system, inside = _storage(path)
            return str(system.ukey(inside))
        return str(Path(local_path(path)).stat().st_mtime_ns)


def touched_at(path: str) -> str:
    """When anything about a local file was last changed, its time of change included; as `changed_at` elsewhere."""
    if is_remote(path):
        return changed_at(path)
    with _faults_named(path):
        return str(Path(local_path(path)).stat().st_ctime_ns)


def version_of(path: str) -> Hashable:
    """Return what differs between two contents of a file, as it is now; only to be compared on this machine."""
    with _faults_named(path):
        if is_remote(path):
            system, inside = _storage(path)
            system.invalidate_cache()  # else it answers what it knew before
            facts = system.info(inside)
            return tuple(str(facts.get(name)) for name in _VERSION_FACTS)
        # Opened, since a shared disk may answer from memory otherwise; without waiting for the other end of a pipe.
        file = os.open(local_path(path), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            return version(os.fstat(file))
        finally:
            os.close(file)


@contextmanager
def stored(path: str) -> Iterator[IO[bytes]]:
    """Open a stream of the bytes of a file as it is stored; it can seek."""
    with _faults_named(path), _opened(path) as stream:
        yield stream


def _opened(path: str) -> IO[bytes]:
    if is_remote(path):
        system, inside = _storage(path)
        return io.BufferedReader(system.open(inside, "rb"), _CHUNK)
    file = open(local_path(path), "rb")  # noqa: PTH123, SIM115  (a Path would turn an empty name into the current folder)
    try:
        refuse_device(path, file.fileno())
    except DataError:
        file.close()
        raise
    return file


@contextmanager
def unpacked(path: str) -> Iterator[IO[bytes]]:
    """Open a stream of the unpacked bytes of a file, from front to back."""
    with stored(path) as raw, unpacking(raw, size_of(path), path) as stream:
        yield stream


def _storage(path: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise SettingError(f"{path} needs fsspec; run: pip install 'dialeval[cluster]'") from None
    try:
        system, inside = fsspec.core.url_to_fs(path)
    except (ImportError, ValueError, TypeError, KeyError, OSError) as error:  # it may lack settings
        raise SettingError(f"{path} cannot be opened: {error}") from None
    return system, str(inside)


@contextmanager
def _faults_named(path: str) -> Iterator[None]:
    """Turn an error of the system into a DataError that names the path."""
    try:
        yield
    except OSError as error:
        raise DataError(unreadable(path, error)) from None


class LineStream:
    """The lines of a byte stream, some at a time, as bytes with their endings; at most `limit` bytes are read."""

    def __init__(self, stream: IO[bytes], limit: int | None = None, where: str = "a stream") -> None:
        self._lines = _read_lines(stream, limit, where)
        self.lines = 0
        """Lines handed out so far."""

    def take(self, count: int) -> list[bytes]:
        """Take the next lines, as many as asked for or as there are."""
        lines = list(islice(self._lines, count))
        self.lines += len(lines)
        return lines

    def put_back(self, line: bytes) -> None:
        """Hand out once more the line that was handed out last."""
        self._lines = chain((line,), self._lines)
        self.lines -= 1


def _read_lines(stream: IO[bytes], limit: int | None, where: str) -> Iterator[bytes]:
    left = sys.maxsize if limit is None else limit
    longest = LONGEST_LINE
    while line := stream.readline(min(left, longest + 1)):
        if len(line) > longest:
            what = f"has a line of more than {longest:,} bytes"
            raise DataError(Fault(where, None, what, "write one row per line"))
        left -= len(line)
        yield line


def count_lines(path: str, size: int) -> int:
    """Count the line feeds among the first bytes of a file."""
    feeds = 0
    with stored(path) as stream:
        while size > 0 and (chunk := stream.read(min(_CHUNK, size))):
            feeds += chunk.count(b"\n")
            size -= len(chunk)
    return feeds
