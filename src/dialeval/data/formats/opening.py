"""The bytes of a file, and what its name says about it.

A file is read once, and one that changes meanwhile is a fault. It is not mapped: what others write to a mapped file
would show in the middle of a run, and one that they shorten would end the process (SIGBUS). A plain file from
`SPILLED_BYTES` on is copied to a temporary file, so that its texts take no memory. `.gz` and `.zst` are unpacked, also
where several archives follow one another, as long as they give no more than `unpacked_limit` bytes. The suffix left of
`.gz` or `.zst` gives the format (`x.jsonl.gz` is JSONL), and a suffix that is not in `FORMATS` means lines of text.
Whatever keeps a file from being read is a fault that names it.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from dialeval.core.arrays import empty_array, release
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.plain_text import whole_characters
from dialeval.data.formats.archives import MOST_TIMES

if TYPE_CHECKING:
    from dialeval.core.arrays import Bytes

PathSource: TypeAlias = str | os.PathLike[str]

LINES = "txt"
"""The format of a file whose suffix says nothing else."""

FORMATS = {
    ".txt": LINES,
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}

PACKINGS = frozenset({".gz", ".zst"})

BROKEN_PACKING = (OSError, EOFError, zlib.error)
"""What the libraries raise for an archive that is cut off or none at all."""

SPILLED_BYTES = 1 << 20
_READ_BYTES = 1 << 24
_USUAL_TIMES = 4

_SURELY_UNPACKED = 1 << 26
"""Bytes that a packed file may give however small it is; what is small says little by its ratio."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


_ZIP = b"PK\x03\x04"
_ZIPPED = {
    ".xlsx": ("is a workbook of Excel", 'save it as "CSV UTF-8" there'),
    ".eval": (
        "is a log of inspect_ai in its own format",
        "run: inspect log convert FILE --to json --output-dir FOLDER",
    ),
    "": ("is a zip archive", "unpack it first"),
}
"""What a file that begins as a zip archive is, by its suffix, and what to do with it."""


def packing_of(path: PathSource) -> str:
    """The suffix of a packed file's packing; nothing for a plain one."""
    return _parts(path)[2]


def _parts(path: PathSource) -> tuple[str, str, str]:
    """A file name as stem, suffix of the format and suffix of the packing; a suffix not known stays in the stem."""
    name = Path(path)
    packing = name.suffix.lower() if name.suffix.lower() in PACKINGS else ""
    inner = Path(name.stem) if packing else Path(name.name)
    suffix = inner.suffix.lower()
    return (inner.stem, suffix, packing) if suffix in FORMATS else (inner.name, "", packing)


def format_of(path: PathSource) -> str:
    """The format that a file's name announces."""
    return FORMATS.get(_parts(path)[1], LINES)


def stem_of(path: PathSource) -> str:
    """A file's name without folder, format and packing: what its system is called unless it is named."""
    return whole_characters(_parts(path)[0])


def read_bytes(path: PathSource) -> Bytes:
    """The unpacked bytes of a file."""
    where = os.fspath(path)
    try:
        raw = _read(where)
    except OSError as error:
        raise DataError(unreadable(where, error)) from None
    except ValueError:
        raise DataError(Fault(repr(where), None, "is no path (it holds a NUL)", "check the path")) from None
    packing = _parts(path)[2]
    if raw[: len(_ZIP)].tobytes() == _ZIP:
        raise DataError(Fault(where, None, *_ZIPPED.get(Path(where).suffix.lower(), _ZIPPED[""])))
    if not packing:
        return raw
    try:
        with _unpacking(raw, packing) as stream:
            limit, usual = unpacked_limit(len(raw)), max(_READ_BYTES, _USUAL_TIMES * len(raw))
            if packing == ".gz":  # whose `readinto` is slow
                return np.frombuffer(read_limited(stream.read, limit, where, usual), np.uint8)
            return _unpacked(stream, limit, where, usual)
    except BROKEN_PACKING as error:
        raise DataError(not_whole(where, packing, error)) from None


def unpacked_limit(packed_bytes: int) -> int:
    """Return how many bytes a packed file of some size may give: 200 times as many, and 64 MiB in any case."""
    return max(_SURELY_UNPACKED, MOST_TIMES * packed_bytes)


def read_limited(read: Callable[[int], bytes], limit: int, where: str, size: int = _READ_BYTES) -> bytes:
    """Read a stream to its end, `size` bytes at a time; DataError beyond a number of bytes."""
    parts: list[bytes] = []
    while part := read(size):
        parts.append(part)
        limit -= len(part)
        if limit < 0:
            raise DataError(unpacks_to_too_much(where))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unpacked(stream: Any, limit: int, where: str, size: int) -> Bytes:
    """Return all bytes of an unpacking stream, in an array of a size that most files do not fill: it is not copied."""
    content, filled = np.empty(min(size, limit + 1), np.uint8), 0
    while count := stream.readinto(content[filled:].data):
        filled += count
        if filled > limit:
            raise DataError(unpacks_to_too_much(where))
        if filled == len(content):
            larger = np.empty(min(2 * filled, limit + 1), np.uint8)
            larger[:filled] = content
            content = larger
    return content[:filled]


def unpacks_to_too_much(where: str) -> Fault:
    """Return the problem of a packed file that gives far more bytes than a text of its size would."""
    what = f"unpacks to more than {MOST_TIMES} times its size"
    return Fault(where, None, what, "unpack it yourself if that is as it should be")


def not_whole(where: str, packing: str, error: Exception) -> Fault:
    """The fault of a packed file that cannot be unpacked to its end."""
    what = f"not a whole {packing} archive ({error})"
    return Fault(where, None, what, f"pack it again or, if it is not packed, take {packing} off its name")


def without_mark(data: Bytes) -> Bytes:
    """The bytes without the byte order mark that some editors put first."""
    return data[3:] if data[:3].tobytes() == BYTE_ORDER_MARK else data


def _read(where: str) -> Bytes:
    with open(where, "rb") as file:  # noqa: PTH123  (a Path would turn an empty name into the current folder)
        refuse_device(where, file.fileno())
        before = os.fstat(file.fileno())
        if (
            not stat.S_ISREG(before.st_mode) or not before.st_size
        ):  # a pipe has no size, nor do some files of the system
            return np.frombuffer(file.read(), np.uint8)
        content = _room_for(before.st_size)
        parts = [content[start : start + _READ_BYTES] for start in range(0, len(content), _READ_BYTES)]
        for part in parts:
            if file.readinto(part.data) < len(part):
                raise DataError(changed(where))
            release(part)
        if version(os.fstat(file.fileno())) != version(before):
            raise DataError(changed(where))
    return content


def _room_for(size: int) -> Bytes:
    try:
        return empty_array((size,), np.uint8, SPILLED_BYTES)
    except (OSError, SettingError):  # nothing can be written anywhere
        return np.empty(size, np.uint8)


def version(status: os.stat_result) -> tuple[int, ...]:
    """What differs between two contents of a local file, also where its size and its time are made to look the same."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def changed(where: str) -> Fault:
    """The fault of a file that is not what it was when reading began."""
    return Fault(where, None, "changed while it was read", "run the same command again when nothing writes to it")


def refuse_device(where: str, file: int) -> None:
    """DataError for an open file that is a device, such as /dev/zero, which never ends; a terminal does."""
    mode = os.fstat(file).st_mode
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not os.isatty(file)):
        raise DataError(Fault(where, None, "is a device", "give a file or a pipe"))


def _unpacking(raw: Bytes, packing: str) -> IO[bytes]:
    if packing == ".gz":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=io.BytesIO(raw.data)))
    import pyarrow as pa

    return cast("IO[bytes]", pa.input_stream(pa.py_buffer(raw), compression="zstd"))


def unreadable(where: str, error: OSError) -> Fault:
    """The fault of a file that the system does not let us read."""
    if isinstance(error, FileNotFoundError):
        return Fault(where or "''", None, "there is no such file", "check the path")
    if isinstance(error, IsADirectoryError):
        return Fault(where, None, "is a folder, and one file is expected", "name a file in it")
    if isinstance(error, PermissionError):
        return Fault(where, None, "may not be read", "give yourself permission to read it (chmod +r)")
    return Fault(where, None, f"cannot be read ({error.strerror or error})", "check the path and the disk")
