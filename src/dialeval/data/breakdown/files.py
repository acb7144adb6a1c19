"""Where the documents of the breakdown challenge lie: JSON documents, one per dialogue.

- a folder of files, `<dialogue-id>.log.json` with annotated dialogues or `<dialogue-id>.labels.json` with labels;
- a `.jsonl` file (also `.gz`, `.zst`) with one such document per line;
- a `.tar.gz` (`.tgz`, `.tar`) of such files. One with labels in several folders holds several detectors;
- a list of documents that are parsed already.

Archives are read in memory and nothing is ever written. Names of files are only compared with names, so no dialogue-id
leads out of a folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from dialeval.core.errors import DataError, Fault
from dialeval.data.formats.archives import UntrustedArchive, unpacked_limit
from dialeval.data.formats.lines import split
from dialeval.data.formats.opening import PathSource, format_of, read_bytes, refuse_device, stem_of, unreadable

LOG = "log.json"
LABELS = ".labels.json"
"""How the names of files with dialogues and with labels end; any name that ends in `log.json` is a dialogue's."""

MOST_BYTES = 1 << 33
"""What an archive may unpack to."""
_CHUNK = 1 << 17
"""Bytes read at once; a dialogue of the challenge has half as many."""
_ARCHIVES = (".tar.gz", ".tgz", ".tar")


class Document(NamedTuple):
    """A document, as bytes or parsed already, and where it stands; only the lines of a JSONL file have a line."""

    where: str
    line: int | None
    content: Any


@dataclass(frozen=True)
class Files:
    """Documents that are found by their names, in a folder or in a folder of an archive."""

    where: str
    names: frozenset[str]
    read: Callable[[str], bytes]

    def documents(self) -> Iterator[Document]:
        """Every document, in the order of names."""
        return (self.document(name) for name in sorted(self.names))

    def document(self, name: str) -> Document:
        """The document of that name; one that cannot be read is a fault."""
        return Document(f"{self.where}/{name}", None, self.read(name))


@dataclass(frozen=True)
class Listed:
    """Documents without names: the lines of a JSONL file, or parsed objects."""

    where: str
    items: Callable[[], Iterable[tuple[int, Any]]]

    def documents(self) -> Iterator[Document]:
        """Every document, in order."""
        return (Document(self.where, number, content) for number, content in self.items())


Store = Files | Listed


def open_logs(source: Any) -> list[Store]:
    """The places with annotated dialogues: of a path, or parsed ones."""
    if isinstance(source, str | os.PathLike):
        return list(_stores(source, LOG, "annotated dialogues (*.log.json)").values())
    if isinstance(source, Iterable) and not isinstance(source, Mapping):
        return [Listed("data", partial(enumerate, source, 1))]
    what = f"cannot read annotated dialogues from {type(source).__name__}"
    raise DataError(Fault("data", None, what, "pass a path, or a list of parsed dialogues"))


def open_labels(source: Any) -> dict[str, Store]:
    """The places with labels by the name of their detector: of a path, or parsed ones."""
    if isinstance(source, str | os.PathLike):
        return _stores(source, LABELS, "labels (*.labels.json)")
    if isinstance(source, Iterable) and not isinstance(source, Mapping):
        return {"labels": Listed("labels", partial(enumerate, source, 1))}
    what = f"cannot read labels from {type(source).__name__}"
    raise DataError(Fault("labels", None, what, "pass a path, or a list of parsed labels documents"))


def _stores(path: PathSource, ending: str, called: str) -> dict[str, Store]:
    where = os.fspath(path)
    if os.path.isdir(where):  # noqa: PTH112  (Path.is_dir takes an empty name for ".")
        return {Path(where).resolve().name: _folder(where.rstrip(os.sep) or os.sep, ending, called)}
    if not where.lower().endswith(_ARCHIVES):
        if format_of(path) != "jsonl":
            remedy = f"give a folder of {called}, a .jsonl file or a .tar.gz"
            there = os.path.exists(where)  # noqa: PTH110  (Path.exists raises for a name that is too long)
            what = "is neither" if there else "there is no such file or folder"
            raise DataError(Fault(where, None, what, remedy))
        return {stem_of(path): Listed(where, partial(_lines, where))}
    folders = _archived(where, ending)
    if not folders:
        raise _nothing(where, called)
    last_names = {PurePosixPath(inside).name for inside in folders}
    # Folders are told apart by their last name where that suffices.
    short = len(last_names) == len(folders)
    return {
        ((PurePosixPath(inside).name if short else inside) or stem_of(where)): Files(
            f"{where}:{inside}" if inside else where, frozenset(members), members.__getitem__
        )
        for inside, members in folders.items()
    }


def _folder(where: str, ending: str, called: str) -> Files:
    try:
        names = frozenset(name for name in os.listdir(where) if _is_wanted(name, ending))  # noqa: PTH208
    except OSError as error:
        what = f"cannot be listed ({error.strerror})"
        raise DataError(Fault(where, None, what, "give yourself permission to read it")) from None
    if not names:
        raise _nothing(where, called)
    return Files(where, names, partial(_file_bytes, where))


def _is_wanted(name: str, ending: str) -> bool:
    """Whether a file is one of those that are looked for; the original passes over hidden ones with dialogues."""
    return name.endswith(ending) and not (ending == LOG and name.startswith("."))


def _file_bytes(folder: str, name: str) -> bytes:
    place = f"{folder}/{name}"
    try:
        # Plain calls of the system: there may be 70,000 files, and `open` costs more than their content.
        file = os.open(place, os.O_RDONLY)
        try:
            refuse_device(place, file)
            data = os.read(file, _CHUNK)
            while more := os.read(file, _CHUNK):
                data += more
        finally:
            os.close(file)
    except OSError as error:
        raise DataError(unreadable(place, error)) from None
    return data


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, with their numbers."""
    lines = split(read_bytes(path))
    view = lines.data.data
    for number, (start, end) in enumerate(zip(lines.starts.tolist(), lines.ends.tolist(), strict=True), 1):
        data = bytes(view[start:end])
        if data.strip():
            yield number, data


def _nothing(where: str, called: str) -> DataError:
    return DataError(Fault(where, None, f"holds no {called}", "check the path; the challenge's names are expected"))


def _archived(where: str, ending: str) -> dict[str, dict[str, bytes]]:
    """The wanted members of an archive by folder and name, in the order of folders."""
    archive = UntrustedArchive(where, "pack the files of the challenge again")
    folders: dict[str, dict[str, bytes]] = {}
    try:
        with Path(where).open("rb") as packed, archive.damage_explained():
            limit = unpacked_limit(os.fstat(packed.fileno()).st_size, MOST_BYTES)
            for member, content in archive.tar_files(packed, limit):
                path = PurePosixPath(member)
                if not _is_wanted(path.name, ending):
                    continue
                members = folders.setdefault(str(path.parent).removeprefix("."), {})
                if path.name in members:
                    raise archive.refusal(f"holds {member!r} twice")
                members[path.name] = content.read()
    except OSError as error:
        raise DataError(unreadable(where, error)) from None
    return dict(sorted(folders.items()))
