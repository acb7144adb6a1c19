"""Bytes of files and their lines, and formats by their names.

A file is read once, and one that changes meanwhile is a problem. It is not mapped: changes by others would appear in
the middle of a run, and truncation would end the process (SIGBUS). A plain file from `SPILLED_BYTES` on is copied to a
temporary file, so that its texts take no memory. `.gz` and `.zst` are unpacked, also several concatenated archives, up
to `unpacked_limit` bytes. The suffix left of `.gz` or `.zst` is that of the format (`x.jsonl.gz` is JSONL), and a
suffix that is not in `FORMATS` means lines of text. An error of reading is a problem that names the file.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import unquote, urlsplit

import numpy as np

from dialeval.core.arrays import Bytes, Ints, empty_array, release
from dialeval.core.columns import TextColumn
from dialeval.core.errors import MOST_PROBLEMS, DataError, Problem, SettingError, add_warning, escape_surrogates

PathSource: TypeAlias = str | os.PathLike[str]

MOST_TIMES = 200
"""Text shrinks to a quarter or a twentieth; a file that unpacks to more than this many times its size is an attack."""
MOST_SHORT_LINES, SHORT_LINE = 1 << 22, 4
"""A file with more lines than this, of fewer bytes than this on average, does not hold responses."""
LINES = "txt"
"""The format of a file with any other suffix."""


class FileFormat(NamedTuple):
    """A format of files with responses; `io.reading` has the reader of each."""

    name: str
    suffixes: tuple[str, ...]
    pieces: Literal["lines", "rows", "groups", "whole"] = "whole"
    """What a large file is split into for several workers."""


FORMATS = (
    FileFormat(LINES, (".txt",), "lines"),
    FileFormat("jsonl", (".jsonl", ".ndjson"), "rows"),
    FileFormat("json", (".json",)),
    FileFormat("csv", (".csv",)),
    FileFormat("tsv", (".tsv",)),
    FileFormat("parquet", (".parquet",), "groups"),
    FileFormat("eval", (".eval",)),
    FileFormat("markdown", (".md", ".markdown")),
)
_JSON = re.compile(rb'\s*(\{\s*"|\[\s*[\[{"])')
_PAGE = re.compile(r"\s*<(!doctype html|html)\b(?!.*</html>)", re.IGNORECASE)
"""The first line of a page that has several: a line that holds a whole page is a failed reply."""
_BY_SUFFIX = {suffix: each for each in FORMATS for suffix in each.suffixes}

PACKINGS = frozenset({".gz", ".zst"})

SPILLED_BYTES = 1 << 20
_READ_BYTES = 1 << 24
_BUFFER = 1 << 18

_SURELY_UNPACKED = 1 << 26
"""Bytes that a packed file of any size may unpack to."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


_ARROW = (".arrow", ".feather")
_ZIP = b"PK\x03\x04"
_ZIPPED = {
    ".xlsx": ("is a workbook of Excel", 'save it as "CSV UTF-8" there'),
    "": ("is a zip archive", "unpack it first"),
}
"""By suffix: what a file that begins as a zip archive is, and the remedy."""


def packing_of(path: PathSource) -> str:
    """Return the suffix of a file's compression; an empty text for a plain file."""
    return _parts(path)[2]


def _parts(path: PathSource) -> tuple[str, str, str]:
    """Split a file name into stem, suffix of the format and of the compression; an unknown suffix stays in the stem."""
    name = Path(path)
    packing = name.suffix.lower() if name.suffix.lower() in PACKINGS else ""
    inner = Path(name.stem) if packing else Path(name.name)
    suffix = inner.suffix.lower()
    return (inner.stem, suffix, packing) if suffix in _BY_SUFFIX else (inner.name, "", packing)


def format_of(path: PathSource) -> str:
    """Return the name of the format of a file, by its suffix."""
    return file_format(path).name


def file_format(path: PathSource) -> FileFormat:
    """Return the format of a file, by its suffix; of a file with an unknown one, what its first bytes say."""
    return _BY_SUFFIX[_parts(path)[1] or _guess_suffix(os.fspath(path))]


def _guess_suffix(path: str) -> str:
    """Return the suffix that a file of an unknown one should have: JSON is never taken for lines of text."""
    local = local_path(path)
    if not Path(path).suffix or is_remote(path) or not os.path.isfile(local):  # noqa: PTH113
        return ".txt"
    with suppress(OSError, DataError), open_unpacked(local) as stream:
        lines = [stream.readline(_BUFFER), stream.readline(_BUFFER)]
        if _JSON.match(b"".join(lines)) is not None:
            return (
                ".jsonl" if lines[1].strip()[:1] in (b"{", b"[") and lines[0].strip() not in (b"{", b"[") else ".json"
            )
    return ".txt"


def stem_of(path: PathSource) -> str:
    """Return a file's name without folder and suffixes: the default name of its system."""
    return escape_surrogates(_parts(path)[0])


def read_bytes(path: PathSource) -> Bytes:
    """Read the unpacked bytes of a file."""
    where = os.fspath(path)
    try:
        raw = _read(where)
    except OSError as error:
        raise DataError(read_problem(where, error)) from None
    except ValueError:
        raise DataError(
            Problem(repr(where), None, "is not a path (it contains a NUL character)", "check the path")
        ) from None
    if Path(where).suffix.lower() in _ARROW:
        raise DataError(Problem(where, None, "is an Arrow file", "write it as Parquet, or pass the table in Python"))
    if raw[: len(_ZIP)].tobytes() == _ZIP and format_of(path) != "eval":
        raise DataError(Problem(where, None, *_ZIPPED.get(Path(where).suffix.lower(), _ZIPPED[""])))
    if not packing_of(path):
        return raw
    with unpack_stream(io.BytesIO(raw.data), len(raw), where) as stream:
        return np.frombuffer(b"".join(iter(partial(stream.read, _READ_BYTES), b"")), np.uint8)


@contextmanager
def unpack_stream(raw: IO[bytes], size: int, where: str) -> Iterator[IO[bytes]]:
    """Open a stream of the unpacked bytes of a file; of a plain file the bytes as they are.

    Args:
        raw: The packed bytes.
        size: How many they are.
        where: The path of the file.
    """
    packing = packing_of(where)
    if not packing:
        yield raw
        return
    try:
        if packing == ".gz":
            packed = cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
        else:
            import pyarrow as pa

            packed = cast("IO[bytes]", pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd"))
        with packed as stream:
            what, remedy = f"unpacks to more than {MOST_TIMES} times its size", "if that is correct, unpack it yourself"
            refusal = DataError(Problem(where, None, what, remedy))
            yield io.BufferedReader(LimitedStream(stream, unpacked_limit(size), refusal), _BUFFER)
    except (OSError, EOFError, zlib.error) as error:  # what the libraries raise for an archive that is cut off, or none
        what = f"not a whole {packing} archive ({error})"
        remedy = f"pack it again or, if it is not packed, take {packing} off its name"
        raise DataError(Problem(where, None, what, remedy)) from None


def unpacked_limit(packed_bytes: int) -> int:
    """Return how many bytes a packed file of some size may unpack to: 200 times as many, and at least 64 MiB."""
    return max(_SURELY_UNPACKED, MOST_TIMES * packed_bytes)


class LimitedStream(io.RawIOBase):
    """The bytes of a stream; an error beyond a number of bytes. `left`: how many more there may be."""

    def __init__(self, stream: IO[bytes], limit: int, refusal: DataError) -> None:
        super().__init__()
        self._stream, self.left, self._refusal = stream, limit, refusal

    def readable(self) -> bool:
        """Return whether the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer; 0 at the end."""
        chunk = self._stream.read(min(len(buffer), self.left + 1))
        self.left -= len(chunk)
        if self.left < 0:
            raise self._refusal
        buffer[: len(chunk)] = chunk
        return len(chunk)


def strip_mark(data: Bytes) -> Bytes:
    """Return the bytes without the byte order mark that some editors put first."""
    return data[3:] if data[:3].tobytes() == BYTE_ORDER_MARK else data


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are text in UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read(where: str) -> Bytes:
    with open(where, "rb") as file:  # noqa: PTH123  (a Path would turn an empty name into the current folder)
        refuse_device(where, file.fileno())
        before = os.fstat(file.fileno())
        # A pipe has no size, nor do some files of the system.
        if not stat.S_ISREG(before.st_mode) or not before.st_size:
            return np.frombuffer(file.read(), np.uint8)
        try:
            content = empty_array((before.st_size,), np.uint8, SPILLED_BYTES)
        except (OSError, SettingError):  # nothing can be written anywhere
            content = np.empty(before.st_size, np.uint8)
        parts = [content[start : start + _READ_BYTES] for start in range(0, len(content), _READ_BYTES)]
        for part in parts:
            if file.readinto(part.data) < len(part):
                raise DataError(change_problem(where))
            release(part)
        if version(os.fstat(file.fileno())) != version(before):
            raise DataError(change_problem(where))
    return content


def version(status: os.stat_result) -> tuple[int, ...]:
    """Return a value that changes with the content of a local file, even if its size and time were reset."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def change_problem(where: str) -> Problem:
    """Return the problem of a file that changed while it was read."""
    return Problem(where, None, "changed while it was read", "run the same command again when nothing writes to it")


def refuse_device(where: str, file: int) -> None:
    """Raise DataError for an open file that is a device, such as /dev/zero, which never ends; a terminal does."""
    mode = os.fstat(file).st_mode
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not os.isatty(file)):
        raise DataError(Problem(where, None, "is a device", "give a file or a pipe"))


def read_problem(where: str, error: OSError) -> Problem:
    """Return the problem of a file that could not be opened or read."""
    if isinstance(error, FileNotFoundError):
        return Problem(where or "''", None, "there is no such file", "check the path")
    if isinstance(error, IsADirectoryError):
        return Problem(where, None, "is a folder, and one file is expected", "name a file in it")
    if isinstance(error, PermissionError):
        return Problem(where, None, "cannot be read: permission denied", "grant read permission (chmod +r)")
    return Problem(where, None, f"cannot be read ({error.strerror or error})", "check the path and the disk")


# Byte streams: files that are read sequentially, on this machine or on shared storage.
#
# A path with `://` (s3://, gs://, memory://) is opened through fsspec, `file://` and everything else as a local file.
# `.gz` and `.zst` are unpacked while they are read. `LineStream` returns whole lines, some at a time, so that a file of
# any size is read with little memory.

LONGEST_LINE = 1 << 28
"""The maximum bytes of a line of a stream; a line is held in memory."""
_CHUNK = 1 << 18
_WILDCARDS = frozenset("*?[")


def is_remote(path: str) -> bool:
    """Return whether a path leads to storage that is not a local file."""
    return "://" in path and not path.startswith("file://")


def local_path(path: str) -> str:
    """Return a local path as the system knows it, without `file://`."""
    try:
        return unquote(urlsplit(path).path) if path.startswith("file://") else path
    except ValueError:  # such as file://[::1
        raise SettingError(f"{path} is not a file; give its path") from None


def is_pattern(path: str) -> bool:
    """Return whether a path is a pattern such as `logs/2026-*.jsonl`; a file of just that name is no pattern."""
    return bool(_WILDCARDS & set(path)) and (is_remote(path) or not os.path.lexists(local_path(path)))


def find_files(pattern: str) -> list[str]:
    """Return the files that match a pattern, in the order of their names; `**` reaches into folders."""
    if is_remote(pattern):
        system, inside = _find_storage(pattern)
        with _name_problems(pattern):
            names = [system.unstrip_protocol(name) for name in system.glob(inside) if not system.isdir(name)]
    else:
        matches = [name for name in glob.glob(local_path(pattern), recursive=True) if not os.path.isdir(name)]  # noqa: PTH112, PTH207
        names = drop_repeated(matches)
    if not names:
        raise DataError(Problem(pattern, None, "no file matches", "check the pattern, and quote it for the shell"))
    return sorted(names)


def drop_repeated(paths: Sequence[str]) -> list[str]:
    """Return local paths in the order of their names, each file once; warn of links that are left out."""
    kept: dict[tuple[int, int], str] = {}
    for path in sorted(paths, key=lambda path: (os.path.realpath(path) != os.path.abspath(path), path)):  # noqa: PTH100
        with _name_problems(path):
            status = Path(path).stat()
        if (first := kept.setdefault((status.st_dev, status.st_ino), path)) != path:
            add_warning(f"{path} is the same file as {first} and is not read twice")
    return sorted(kept.values())


def size_of(path: str) -> int:
    """Return the bytes of a file as it is stored."""
    with _name_problems(path):
        if is_remote(path):
            system, inside = _find_storage(path)
            return int(system.size(inside))
        status = Path(local_path(path)).stat()
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        what, remedy = "is a pipe, and what is read in chunks must be a file", "write it to a file first"
        raise DataError(Problem(path, None, what, remedy))
    return status.st_size


def version_of(path: str) -> Hashable:
    """Return a value that changes with the content of a file; only comparable on this machine."""
    with _name_problems(path):
        if is_remote(path):
            system, inside = _find_storage(path)
            system.invalidate_cache()
            return str(system.ukey(inside))
        # Opened, since a shared disk may answer from memory otherwise; without waiting for the other end of a pipe.
        file = os.open(local_path(path), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            return version(os.fstat(file))
        finally:
            os.close(file)


@contextmanager
def open_stored(path: str) -> Iterator[IO[bytes]]:
    """Open a stream of the bytes of a file as it is stored; it can seek."""
    with _name_problems(path):
        if is_remote(path):
            system, inside = _find_storage(path)
            with io.BufferedReader(system.open(inside, "rb"), _CHUNK) as stream:
                yield stream
        else:
            with open(local_path(path), "rb") as stream:  # noqa: PTH123  (a Path turns an empty name into ".")
                refuse_device(path, stream.fileno())
                yield stream


@contextmanager
def open_unpacked(path: str) -> Iterator[IO[bytes]]:
    """Open a stream of the unpacked bytes of a file, from front to back."""
    with open_stored(path) as raw, unpack_stream(raw, size_of(path), path) as stream:
        yield stream


def _find_storage(path: str) -> tuple[Any, str]:
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
def _name_problems(path: str) -> Iterator[None]:
    """Turn an error of the system into a DataError that names the path."""
    try:
        yield
    except OSError as error:
        raise DataError(read_problem(path, error)) from None


class LineStream:
    """The lines of a byte stream, some at a time, as bytes with their endings; at most `limit` bytes are read."""

    def __init__(self, stream: IO[bytes], limit: int | None = None, where: str = "a stream") -> None:
        self._lines = _read_lines(stream, limit, where)
        self.lines = 0
        """Lines taken so far."""

    def take(self, count: int) -> list[bytes]:
        """Take the next lines, as many as asked for or as there are."""
        lines = list(islice(self._lines, count))
        self.lines += len(lines)
        return lines

    def put_back(self, line: bytes) -> None:
        """Put back the line that was taken last."""
        self._lines = chain((line,), self._lines)
        self.lines -= 1


def _read_lines(stream: IO[bytes], limit: int | None, where: str) -> Iterator[bytes]:
    left = sys.maxsize if limit is None else limit
    longest = LONGEST_LINE
    while line := stream.readline(min(left, longest + 1)):
        if len(line) > longest:
            what = f"has a line of more than {longest:,} bytes"
            raise DataError(Problem(where, None, what, "write one row per line"))
        left -= len(line)
        yield line


def check_lines(lines: int, size: int, where: str) -> None:
    """Raise DataError for a file of very many lines that are nearly all empty, each of which would be a row."""
    if lines > MOST_SHORT_LINES and size < SHORT_LINE * lines:
        what = f"has {MOST_SHORT_LINES:,} lines of less than {SHORT_LINE} bytes on average"
        raise DataError(Problem(where, None, what, "remove the empty lines"))


def count_lines(path: str, size: int, feeds: int = 0) -> int:
    """Count the line feeds among the first bytes of a file, and add them to `feeds`."""
    with open_stored(path) as stream:
        while size > 0 and (chunk := stream.read(min(_CHUNK, size))):
            feeds += chunk.count(b"\n")
            size -= len(chunk)
    return feeds


# Lines of text: one response, reference or context per line, without building a single Python string.
#
# UTF-8 always; a byte order mark at the start is dropped. LF and CRLF end a line and nothing else does: a lone CR,
# U+2028, U+0085, a form feed or a NUL is part of the text. The last line may go without its line feed. An empty line
# is a row with an empty text; a file without a line is a problem, and so is every line that is not UTF-8.

_SEARCHED_BYTES = 1 << 24
"""Bytes searched at a time, so that a huge file does not need a mask of its own size."""

_CHECKED_LINES = 1 << 14
"""Lines that are decoded together; where that fails, they are decoded one by one."""


def read_lines(path: PathSource) -> TextColumn:
    """Return the lines of a file."""
    where = str(path)
    column = split_lines(read_bytes(path), where)
    if not len(column):
        raise DataError(Problem(where, None, "is empty", "give one line per row"))
    problems = find_encoding_problems(column, where)
    if problems:
        raise DataError(problems)
    if len(column) > 1 and _PAGE.match(column[0]) and "</html>" in column[len(column) - 1].lower():
        raise DataError(Problem(where, None, "is an HTML page", "give one reply per line, or JSONL; download it again"))
    return column


def split_lines(data: Bytes, where: str = "the file", marked: bool = True) -> TextColumn:
    """Return the lines of some bytes, without their endings and, at the start of a file, a byte order mark."""
    data = strip_mark(data) if marked else data
    ends = _find_line_feeds(data, where)
    if len(data) and (not len(ends) or ends[-1] != len(data) - 1):
        ends = np.append(ends, len(data))
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1] + 1
    # A carriage return belongs to the ending only before a line feed, never at the end of the file.
    ended = np.flatnonzero((ends > starts) & (ends < len(data)))
    returns = ended[data[ends[ended] - 1] == ord("\r")]
    ends[returns] -= 1
    return TextColumn(data, starts, ends)


def find_encoding_problems(column: TextColumn, where: str) -> list[Problem]:
    """Return a problem for each row of consecutive lines that is not UTF-8."""
    view = column.data.data
    problems: list[Problem] = []
    for first in range(0, len(column), _CHECKED_LINES):
        block = column.slice(first, first + _CHECKED_LINES)
        if _try_decoding(view[block.starts[0] : block.ends[-1]]):
            spans = zip(block.starts.tolist(), block.ends.tolist(), strict=True)
            errors = ((line, _try_decoding(view[start:end])) for line, (start, end) in enumerate(spans, first + 1))
            problems += [encoding_problem(where, line, error) for line, error in errors if error]
        block.release()
        if len(problems) >= MOST_PROBLEMS:
            return [
                *problems[:MOST_PROBLEMS],
                Problem(where, None, "further problems are not listed", "correct these first"),
            ]
    return problems


def _find_line_feeds(data: Bytes, where: str) -> Ints:
    """Return the places of all line feeds."""
    parts, feeds = [np.zeros(0, np.int64)], 0
    for start in range(0, len(data), _SEARCHED_BYTES):
        part = data[start : start + _SEARCHED_BYTES]
        parts.append(np.flatnonzero(part == ord("\n")) + start)
        feeds += len(parts[-1])
        check_lines(feeds, start + len(part), where)
        release(part)
    return np.concatenate(parts)


def _try_decoding(view: memoryview) -> UnicodeDecodeError | None:
    try:
        str(view, "utf-8")
    except UnicodeDecodeError as error:
        return error
    return None


def encoding_problem(where: str, line: int, error: UnicodeDecodeError) -> Problem:
    """Return the problem of a line that cannot be decoded."""
    what = f"byte 0x{error.object[error.start]:02x} at position {error.start + 1} of the line is not UTF-8"
    return Problem(where, line, what, "save the file as UTF-8")
