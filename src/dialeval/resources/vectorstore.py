"""Word vectors in the cache: parsed once, memory-mapped ever after.

An *entry* is a folder named after the SHA-256 of the source's bytes; it never changes:

- `matrix.bin`: the vectors, row by row, little-endian;
- `words.bin`, `offsets.npy`, `hashes.npy`, `rows.npy`: the arrays of `WordTable`;
- `entry.json`: shape, type, content digest and what the reader found beside the vectors, written last.

A *note* per source remembers its size, its time of change and that SHA-256, so that a second load reads nothing of the
source. Where size or time differ, or the source is so fresh that its time proves nothing, the bytes are hashed again:
the same bytes lead to the same entry, others to a new one, and an entry that no note refers to is removed.

The content digest covers the words and the vectors as float64 in file order, block by block as they are read: the same
for a text file, its compressed copy and an array with equal vectors, unless they are so large that blocks differ.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Fault
from dialeval.core.files import write_bytes
from dialeval.resources.cache import building, cache_folder, discard, sha256_of
from dialeval.resources.vector_oddities import Findings
from dialeval.resources.wordtable import WordTable

Matrix: TypeAlias = npt.NDArray[np.floating[Any]]
WordRows: TypeAlias = tuple[list[bytes], Matrix]
"""Some words of a source, and a matrix with a row for each."""

_LAYOUT = 2
"""Part of an entry's name: raise it when what is parsed, or how it is stored, changes."""
_FRESH_SECONDS = 2.0
"""File systems record times coarsely; a file changed twice within this span may look unchanged."""
_SHA_LENGTH = 40
_ARRAYS = ("offsets", "hashes", "rows")


def _write(folder: Path, dtype: npt.DTypeLike, rows: Iterable[WordRows], findings: Findings) -> None:
    """Write the files of an entry out of words and vectors in file order."""
    stored: np.dtype[Any] = np.dtype(dtype).newbyteorder("<")
    lengths: list[int] = []
    dimension = 0
    sha = hashlib.sha256()
    with (folder / "matrix.bin").open("wb") as matrix, (folder / "words.bin").open("wb") as blob:
        for words, vectors in rows:
            dimension = vectors.shape[1]
            lengths.extend(map(len, words))
            blob.write(b"".join(words))
            matrix.write(np.ascontiguousarray(vectors, stored).data)
            sha.update(b"".join([b"%d:%s," % (len(word), word) for word in words]))
            # -0.0 and 0.0 are the same number, so they are the same content.
            sha.update(np.ascontiguousarray(vectors + 0.0, "<f8").data)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    table = WordTable.build(np.fromfile(folder / "words.bin", np.uint8), offsets)
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", getattr(table, name), allow_pickle=False)
    facts = {
        "dtype": stored.str,
        "shape": [len(lengths), dimension],
        "digest": sha.hexdigest()[:DIGEST_LENGTH],
        "header": findings.header,
        "warning": findings.warning(),
    }
    (folder / "entry.json").write_text(json.dumps(facts), "utf-8")


@dataclass(frozen=True, eq=False, slots=True)
class Embeddings:
    """Word vectors with a fixed list of words: an opened entry, whose arrays stay on disk until they are read."""

    name: str
    folder: Path
    digest: str
    table: WordTable
    matrix: Matrix
    """One row per line of the source that was read; `table` says which rows count."""
    header: bool
    """Whether the source says in its first line how many words it has."""
    warnings: tuple[str, ...]
    """What is odd about the source."""

    @classmethod
    def open(cls, name: str, folder: Path) -> Embeddings:
        """Map the files of an entry; OSError or ValueError where they are not whole."""
        facts = json.loads((folder / "entry.json").read_text("utf-8"))
        # Plain views of the maps: taking a slice of a `memmap` object itself is many times slower.
        offsets, hashes, rows = (
            np.asarray(np.load(folder / f"{array}.npy", mmap_mode="r", allow_pickle=False)) for array in _ARRAYS
        )
        blob = np.asarray(np.memmap(folder / "words.bin", np.uint8, "r", shape=(int(offsets[-1]),)))
        matrix: Matrix = np.asarray(np.memmap(folder / "matrix.bin", facts["dtype"], "r", shape=tuple(facts["shape"])))
        table, warning = WordTable(blob, offsets, hashes, rows), facts["warning"]
        warnings = () if warning is None else (f"{name}: {warning}",)
        return cls(name, folder, str(facts["digest"]), table, matrix, bool(facts["header"]), warnings)

    def __reduce__(self) -> tuple[Callable[[str, Path], Embeddings], tuple[str, Path]]:
        return Embeddings.open, (self.name, self.folder)

    def __len__(self) -> int:
        """Number of distinct words."""
        return len(self.table)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and bool(self.table.find([word])[0] >= 0)

    @property
    def dimension(self) -> int:
        """Numbers per word."""
        return int(self.matrix.shape[1])

    def words(self) -> list[str]:
        """The distinct words in the order of their rows."""
        return self.table.words()

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """One row per word, and whether the word is known; the row of an unknown word is zero."""
        rows = self.table.find(words)
        known = rows >= 0
        vectors = self.matrix[np.maximum(rows, 0)].astype(np.float64, copy=False)
        vectors[~known] = 0.0
        return vectors, known


def stored(
    name: str, sources: Sequence[Path], dtype: npt.DTypeLike, rows: Iterable[WordRows], findings: Findings
) -> Embeddings:
    """The vectors of a source: a file, and those that belong to it.

    `rows` parses it, is read only if need be, and fills in the `findings`.
    """
    note = _note_of(sources[0])
    stamp = _stamp(sources)
    known = _read_note(note)
    if known and known["stamp"] == stamp and known["settled"] and (entry := _opened(name, str(known["sha256"]))):
        return entry
    started = time.time()
    sha256 = sha256_of(*sources)
    entry = _opened(name, sha256)
    if entry is None:
        target = _folder_of(sha256)
        with building(target) as folder:
            _write(folder, dtype, rows, findings)
            if _stamp(sources) != stamp:
                what, remedy = "the file changed while it was read", "run again when nothing writes to it"
                raise DataError(Fault(str(sources[0]), None, what, remedy))
        entry = Embeddings.open(name, target)
    try:
        _write_note(note, sources[0], stamp, sha256, started)
    except DataError:  # a cache that others made and that may only be read serves too
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


def _opened(name: str, sha256: str) -> Embeddings | None:
    folder = _folder_of(sha256)
    try:
        return Embeddings.open(name, folder)
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


def _drop_unused(sha256: str) -> None:
    """Remove an entry that no note refers to."""
    notes = map(_read_note, cache_folder("vectors").glob("*.json"))
    if not any(note and note["sha256"] == sha256 for note in notes):
        discard(_folder_of(sha256))
