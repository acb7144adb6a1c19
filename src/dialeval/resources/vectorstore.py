"""Word vectors in the cache: parsed once, memory-mapped ever after.

An *entry* is a folder named after the SHA-256 of the source's bytes; it never changes:

- `matrix.bin`: the vectors, row by row, little-endian;
- `words.bin`, `offsets.npy`, `hashes.npy`, `rows.npy`: the arrays of `WordTable`;
- `entry.json`: shape, type and content digest, written last.

A *note* per source remembers its size, its time of change and that SHA-256, so that a second load reads nothing of the
source. Where size or time differ, or the source is so fresh that its time proves nothing, the bytes are hashed again:
the same bytes lead to the same entry, others to a new one, and the entry that nobody refers to any more is removed.

The content digest covers the words and the vectors as float64 in file order: one and the same for a text file, its
compressed copy and an array that hold equal vectors.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Fault
from dialeval.core.files import write_bytes
from dialeval.resources.cache import building, cache_folder, discard, sha256_of
from dialeval.resources.wordtable import WordTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

Matrix: TypeAlias = npt.NDArray[np.floating[Any]]

_LAYOUT = 1
"""Part of an entry's name: raise it when what is parsed, or how it is stored, changes."""
_FRESH_SECONDS = 2.0
"""File systems tell times apart only so finely; a file changed twice within this span may look unchanged."""
_SHA_LENGTH = 40
_ARRAYS = ("offsets", "hashes", "rows")


class Writer:
    """Takes words and vectors in file order and writes them to an entry's folder."""

    def __init__(self, folder: Path, dtype: npt.DTypeLike) -> None:
        self._folder = folder
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._lengths: list[int] = []
        self._dimension = 0
        self._sha = hashlib.sha256()
        with ExitStack() as files:
            self._matrix = files.enter_context((folder / "matrix.bin").open("wb"))
            self._words = files.enter_context((folder / "words.bin").open("wb"))
            self._files = files.pop_all()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()
        if kind is None:
            self._finish()

    def add(self, words: Sequence[bytes], vectors: Matrix) -> None:
        """Append one row per word."""
        self._dimension = vectors.shape[1]
        self._lengths.extend(map(len, words))
        self._words.write(b"".join(words))
        self._matrix.write(np.ascontiguousarray(vectors, self._dtype).data)
        self._sha.update(b"".join([b"%d:%s," % (len(word), word) for word in words]))
        # -0.0 and 0.0 are the same number, so they are the same content.
        self._sha.update(np.ascontiguousarray(vectors + 0.0, "<f8").data)

    def _finish(self) -> None:
        offsets = np.zeros(len(self._lengths) + 1, np.int64)
        np.cumsum(self._lengths, out=offsets[1:])
        table = WordTable.build(np.fromfile(self._folder / "words.bin", np.uint8), offsets)
        for name in _ARRAYS:
            np.save(self._folder / f"{name}.npy", getattr(table, name), allow_pickle=False)
        facts = {
            "dtype": self._dtype.str,
            "shape": [len(self._lengths), self._dimension],
            "digest": self._sha.hexdigest()[:DIGEST_LENGTH],
        }
        (self._folder / "entry.json").write_text(json.dumps(facts), "utf-8")


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """An opened entry; its arrays stay on disk until they are read."""

    folder: Path
    digest: str
    table: WordTable
    matrix: Matrix

    @classmethod
    def open(cls, folder: Path) -> Entry:
        """Map the files of an entry; OSError or ValueError where they are not whole."""
        facts = json.loads((folder / "entry.json").read_text("utf-8"))
        # Plain views of the maps: taking a slice of a `memmap` object itself is many times slower.
        offsets, hashes, rows = (
            np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)) for name in _ARRAYS
        )
        blob = np.asarray(np.memmap(folder / "words.bin", np.uint8, "r", shape=(int(offsets[-1]),)))
        matrix: Matrix = np.asarray(np.memmap(folder / "matrix.bin", facts["dtype"], "r", shape=tuple(facts["shape"])))
        return cls(folder, str(facts["digest"]), WordTable(blob, offsets, hashes, rows), matrix)


def entry_for(sources: Sequence[Path], fill: Callable[[Path], None]) -> Entry:
    """The entry of a source: a file, and those that belong to it. `fill` parses it into a folder if need be."""
    note = _note_of(sources[0])
    stamp = _stamp(sources)
    known = _read_note(note)
    if known and known["stamp"] == stamp and known["settled"] and (entry := _opened(str(known["sha256"]))):
        return entry
    started = time.time()
    sha256 = sha256_of(*sources)
    entry = _opened(sha256)
    if entry is None:
        target = _folder_of(sha256)
        with building(target) as folder:
            fill(folder)
            _refuse_change(sources, stamp)
        entry = Entry.open(target)
    try:
        _write_note(note, sources[0], stamp, sha256, started)
    except OSError:  # a cache that others made and that may only be read serves too
        return entry
    if known and known["sha256"] != sha256:
        _drop_unused(str(known["sha256"]))
    return entry


def forget(source: Path) -> None:
    """Remove what is kept of a source, for one that is going away."""
    note = _note_of(source)
    if known := _read_note(note):
        note.unlink(missing_ok=True)
        _drop_unused(str(known["sha256"]))


def _opened(sha256: str) -> Entry | None:
    folder = _folder_of(sha256)
    try:
        return Entry.open(folder)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError):  # damaged from outside: built anew
        discard(folder)
        return None


def _folder_of(sha256: str) -> Path:
    return cache_folder("vectors") / f"{sha256[:_SHA_LENGTH]}-{_LAYOUT}"


def _note_of(source: Path) -> Path:
    name = hashlib.sha256(os.fsencode(source.resolve())).hexdigest()[:_SHA_LENGTH]
    return cache_folder("vectors") / f"{name}.json"


def _stamp(sources: Sequence[Path]) -> list[list[int]]:
    return [[status.st_size, status.st_mtime_ns] for status in (source.stat() for source in sources)]


def _read_note(note: Path) -> dict[str, Any] | None:
    try:
        known = json.loads(note.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) and known.keys() >= {"stamp", "settled", "sha256"} else None


def _write_note(note: Path, source: Path, stamp: list[list[int]], sha256: str, started: float) -> None:
    newest = max(changed for _, changed in stamp) / 1e9
    facts = {
        "source": str(source.resolve()),
        "stamp": stamp,
        "settled": newest + _FRESH_SECONDS < started,
        "sha256": sha256,
    }
    write_bytes(note, json.dumps(facts).encode())


def _refuse_change(sources: Sequence[Path], stamp: list[list[int]]) -> None:
    for source, before, after in zip(sources, stamp, _stamp(sources), strict=True):
        if before != after:
            raise DataError(
                Fault(str(source), None, "the file changed while it was read", "run again when it is still")
            )


def _drop_unused(sha256: str) -> None:
    """Remove an entry that no note refers to."""
    notes = map(_read_note, cache_folder("vectors").glob("*.json"))
    if not any(note and note["sha256"] == sha256 for note in notes):
        discard(_folder_of(sha256))
