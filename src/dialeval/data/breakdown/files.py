"""Where the documents of the breakdown challenge lie: JSON documents, one per dialogue.

- a folder of files, `<dialogue-id>.log.json` with annotated dialogues or `<dialogue-id>.labels.json` with labels;
- a `.jsonl` file (also `.gz`, `.zst`) with one such document per line;
- a `.tar.gz` (`.tgz`, `.tar`) of such files. One with labels in several folders holds several detectors.

Archives are read in memory and nothing is ever written. What an archive states is not believed: it is refused where it
unpacks to far more than it should or where a member is a link or a device. Names of files are only compared with names,
so no dialogue-id leads out of a folder.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from dialeval.core.errors import DataError, Fault
from dialeval.data.formats.lines import split
from dialeval.data.formats.opening import PathSource, format_of, read_bytes, stem_of

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = "log.json"
LABELS = ".labels.json"
"""How the names of files with dialogues and with labels end; any name that ends in `log.json` is a dialogue's."""

MOST_TIMES = 200
"""JSON shrinks to a twentieth or so; what unpacks to more than this many times its size is a trap."""
MOST_BYTES = 1 << 33
_SMALL = 1 << 20
"""Below this size the ratio says nothing."""
_CHUNK = 1 << 16
_ARCHIVES = (".tar.gz", ".tgz", ".tar")


class Document(NamedTuple):
    """The bytes of a document and where they stand; a line of a JSONL file has no name of its own."""

    where: str
    line: int | None
    name: str | None
    data: bytes


@dataclass(frozen=True)
class Folder:
    """Files of a folder, read when they are asked for."""

    path: str
    names: frozenset[str]

    @property
    def where(self) -> str:
        """What to call it in a message."""
        return self.path

    def documents(self) -> Iterator[Document]:
        """Every document, in the order of names."""
        return (self.document(name) for name in sorted(self.names))

    def document(self, name: str) -> Document:
        """The document of that name; one that cannot be read is a fault."""
        place = f"{self.path}{os.sep}{name}"
        try:
            # Plain calls of the system: there may be 70,000 files, and `open` costs more than their content.
            file = os.open(place, os.O_RDONLY)
            try:
                data = os.read(file, _CHUNK)
                while more := os.read(file, _CHUNK):
                    data += more
            finally:
                os.close(file)
        except OSError as error:
            what = f"cannot be read ({error.strerror or error})"
            raise DataError(Fault(place, None, what, "check the file and its permissions")) from None
        return Document(place, None, name, data)


@dataclass(frozen=True)
class Members:
    """Files of one folder of an archive, in memory."""

    path: str
    inside: str
    members: dict[str, bytes]

    @property
    def where(self) -> str:
        """What to call it in a message."""
        return f"{self.path}:{self.inside}" if self.inside else self.path

    @property
    def names(self) -> frozenset[str]:
        """The names of its files."""
        return frozenset(self.members)

    def documents(self) -> Iterator[Document]:
        """Every document, in the order of names."""
        return (self.document(name) for name in sorted(self.members))

    def document(self, name: str) -> Document:
        """The document of that name."""
        return Document(f"{self.where}/{name}", None, name, self.members[name])


@dataclass(frozen=True)
class Lines:
    """The documents of a JSONL file."""

    path: str

    @property
    def where(self) -> str:
        """What to call it in a message."""
        return self.path

    def documents(self) -> Iterator[Document]:
        """Every document, in the order of lines; blank lines are none."""
        lines = split(read_bytes(self.path))
        view = lines.data.data
        for number, (start, end) in enumerate(zip(lines.starts.tolist(), lines.ends.tolist(), strict=True), 1):
            data = bytes(view[start:end])
            if data.strip():
                yield Document(self.path, number, None, data)


Store = Folder | Members | Lines


def open_logs(path: PathSource) -> list[Store]:
    """The places with annotated dialogues that a path leads to."""
    return list(_stores(path, LOG, "annotated dialogues (*.log.json)").values())


def open_labels(path: PathSource) -> dict[str, Store]:
    """The places with labels that a path leads to, by the name of their detector."""
    return _stores(path, LABELS, "labels (*.labels.json)")


def _stores(path: PathSource, ending: str, called: str) -> dict[str, Store]:
    where = os.fspath(path)
    if os.path.isdir(where):  # noqa: PTH112  (Path.is_dir takes an empty name for ".")
        return {Path(where).resolve().name: _folder(where.rstrip(os.sep) or os.sep, ending, called)}
    if not where.lower().endswith(_ARCHIVES):
        if format_of(path) != "jsonl":
            remedy = f"give a folder of {called}, a .jsonl file or a .tar.gz"
            what = "is neither" if Path(where).exists() else "there is no such file or folder"
            raise DataError(Fault(where, None, what, remedy))
        return {stem_of(path): Lines(where)}
    folders = _archived(where, ending)
    if not folders:
        raise _nothing(where, called)
    named = {PurePosixPath(inside).name: inside for inside in folders}
    # Folders are told apart by their last name where that does it.
    short = len(named) == len(folders)
    return {
        ((PurePosixPath(inside).name if short else inside) or stem_of(where)): Members(where, inside, members)
        for inside, members in folders.items()
    }


def _folder(where: str, ending: str, called: str) -> Folder:
    try:
        names = frozenset(name for name in os.listdir(where) if name.endswith(ending))  # noqa: PTH208
    except OSError as error:
        what = f"cannot be listed ({error.strerror})"
        raise DataError(Fault(where, None, what, "give yourself permission to read it")) from None
    if not names:
        raise _nothing(where, called)
    return Folder(where, names)


def _nothing(where: str, called: str) -> DataError:
    return DataError(Fault(where, None, f"holds no {called}", "check the path; the challenge's names are expected"))


def _archived(where: str, ending: str) -> dict[str, dict[str, bytes]]:
    """The wanted members of an archive by folder and name, in the order of folders."""
    raw = read_bytes_of(where)
    limit = min(MOST_BYTES, max(_SMALL, MOST_TIMES * len(raw)))
    found: dict[str, dict[str, bytes]] = {}
    try:
        stream = io.BytesIO(raw) if where.lower().endswith(".tar") else gzip.GzipFile(fileobj=io.BytesIO(raw))
        # As a stream, so that what is skipped counts too: every byte has to be unpacked to get past it.
        with tarfile.open(fileobj=_Limited(stream, limit, where), mode="r|") as opened:
            for member in opened:
                if not (member.isreg() or member.isdir()):
                    raise _refused(where, f"holds {member.name!r}, which is a link or a device")
                path = PurePosixPath(member.name)
                content = opened.extractfile(member) if member.isreg() and path.name.endswith(ending) else None
                if content is not None:
                    members = found.setdefault(str(path.parent).removeprefix("."), {})
                    if path.name in members:
                        raise _refused(where, f"holds {member.name!r} twice")
                    members[path.name] = content.read()
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise _refused(where, f"is damaged: {error}") from None
    return dict(sorted(found.items()))


def read_bytes_of(where: str) -> bytes:
    """The bytes of a file as they are, packed or not."""
    try:
        return Path(where).read_bytes()
    except OSError as error:
        what = f"cannot be read ({error.strerror or error})"
        raise DataError(Fault(where, None, what, "check the path")) from None


class _Limited(io.RawIOBase):
    """A stream that refuses to give more than it should."""

    def __init__(self, stream: io.BytesIO | gzip.GzipFile, limit: int, where: str) -> None:
        super().__init__()
        self._stream, self._left, self._where = stream, limit, where

    def read(self, size: int | None = -1) -> bytes:
        chunk = self._stream.read(min(self._left + 1, size if size is not None and size >= 0 else self._left + 1))
        self._left -= len(chunk)
        if self._left < 0:
            raise _refused(self._where, "unpacks to far more than it should")
        return chunk


def _refused(where: str, what: str) -> DataError:
    return DataError(Fault(where, None, f"the archive {what}", "pack the files of the challenge again"))
