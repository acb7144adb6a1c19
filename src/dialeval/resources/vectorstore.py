"""Word vectors in the cache: parsed once, memory-mapped ever after.

An *entry* is a folder named after the SHA-256 of the source's bytes; it never changes:

- `matrix.bin`: the vectors, row by row, little-endian;
- `words.bin`, `offsets.npy`, `hashes.npy`, `rows.npy`: the arrays of `WordTable`;
- `checks.npy`: a check number for each row of the matrix (`row_checks`);
- `entry.json`: shape, type, content digest, what the reader found beside the vectors and the checks (`file_check`) of
  all other files but the matrix, written last, with a SHA-256 of itself.

What is read is checked: those files when an entry is opened (a few tens of bytes a word), rows of the matrix when their
vectors are asked for. An entry that does not check out is made anew from its source, and a line of the log says so.
Without a cache folder that can be written to, a new entry lasts as long as the process.

A *note* per source remembers its size, its times of change, its place on the disk (inode) and that SHA-256, so that a
second load reads nothing of the source. A program can set a file's time of modification, but not that of its last
change (ctime), so both count. Where any of these differ, or the source is so fresh that its times prove nothing, the
bytes are hashed again: the same bytes lead to the same entry, others to a new one, and an entry that no note refers to
is removed.

The content digest covers the words and the vectors as float64 in file order, block by block as they are read: the same
for a text file, its compressed copy and an array with equal vectors, unless they are so large that blocks differ.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval.core import gate
from dialeval.core.arrays import Floats
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.files import write_bytes
from dialeval.core.gate import UnfitError
from dialeval.core.targets import check_writable
from dialeval.resources.cache import building, cache_folder, discard, sha256_of
from dialeval.resources.row_checks import Checks, file_check, row_checks
from dialeval.resources.vector_oddities import Findings
from dialeval.resources.wordtable import WordTable

if TYPE_CHECKING:
    from dialeval.resources.schemas import VectorEntry

Matrix: TypeAlias = npt.NDArray[np.floating[Any]]
WordRows: TypeAlias = tuple[list[bytes], Matrix]
"""Some words of a source, and a matrix with a row for each."""

Remake: TypeAlias = Callable[[], "Embeddings"]
"""Loads the same vectors once more."""

_LAYOUT = 3
"""Part of an entry's name: raise it when what is parsed, or how it is stored, changes."""
_FRESH_SECONDS = 2.0
"""File systems record times coarsely; a file changed twice within this span may look unchanged."""
_SHA_LENGTH = 40
_ARRAYS = ("offsets", "hashes", "rows", "checks")
_CHECKED = ("words.bin", *(f"{array}.npy" for array in _ARRAYS))
_DAMAGE = (DataError, OSError, UnfitError)
_ANEW = "remove it: it is made anew"
_LOG = logging.getLogger("dialeval")


def _write(folder: Path, dtype: npt.DTypeLike, rows: Iterable[WordRows], findings: Findings) -> None:
    """Write the files of an entry out of words and vectors in file order."""
    stored: np.dtype[Any] = np.dtype(dtype).newbyteorder("<")
    lengths: list[int] = []
    checks: list[Checks] = []
    dimension = 0
    sha = hashlib.sha256()
    with (folder / "matrix.bin").open("wb") as matrix, (folder / "words.bin").open("wb") as blob:
        for words, vectors in rows:
            dimension = vectors.shape[1]
            written = np.ascontiguousarray(vectors, stored)
            checks.append(row_checks(written, np.arange(len(lengths), len(lengths) + len(words))))
            lengths.extend(map(len, words))
            blob.write(b"".join(words))
            matrix.write(written.data)
            sha.update(b"".join([b"%d:%s," % (len(word), word) for word in words]))
            # -0.0 and 0.0 are the same number, so they are the same content.
            sha.update(np.ascontiguousarray(vectors + 0.0, "<f8").data)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    table = WordTable.build(np.fromfile(folder / "words.bin", np.uint8), offsets)
    arrays = {
        "offsets": offsets,
        "hashes": table.hashes,
        "rows": table.rows,
        "checks": np.concatenate([np.empty(0, np.uint64), *checks]),
    }
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", arrays[name], allow_pickle=False)
    facts = {
        "dtype": stored.str,
        "shape": [len(lengths), dimension],
        "digest": sha.hexdigest()[:DIGEST_LENGTH],
        "header": findings.header,
        "warning": findings.warning(),
        "files": {name: file_check(folder / name) for name in _CHECKED},
    }
    (folder / "entry.json").write_text(json.dumps({**facts, "sha256": _sha256_of(facts)}), "utf-8")


def _sha256_of(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _facts_of(folder: Path) -> VectorEntry:
    """What `entry.json` says, once everything that it says a digest of has been checked."""
    from dialeval.resources.schemas import VectorEntry

    facts = gate.read_json(folder / "entry.json", dict[str, Any], _ANEW)
    if facts.pop("sha256", None) != _sha256_of(facts):
        raise UnfitError("entry.json is damaged")
    entry = gate.fitting(facts, VectorEntry, str(folder / "entry.json"), _ANEW)
    for name in _CHECKED:
        gate.size_of(folder / name, _ANEW)
        if file_check(folder / name) != entry.files.get(name):
            raise UnfitError(f"{name} is damaged")
    return entry


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
    checks: Checks
    """The check number of each row of the matrix."""
    remake: Remake | None = None

    @classmethod
    def open(cls, name: str, folder: Path, remake: Remake | None = None) -> Embeddings:
        """Map the files of an entry; one of `_DAMAGE` where they are not whole."""
        facts = _facts_of(folder)
        words, _ = facts.shape
        offsets = gate.read_array(folder / "offsets.npy", np.int64, _ANEW, (words + 1,))
        hashes = gate.read_array(folder / "hashes.npy", np.uint64, _ANEW)
        rows = gate.read_array(folder / "rows.npy", np.int64, _ANEW, hashes.shape)
        checks = gate.read_array(folder / "checks.npy", np.uint64, _ANEW, (words,))
        if offsets[0] or (np.diff(offsets) < 0).any() or (len(rows) and not 0 <= rows.min() <= rows.max() < words):
            raise UnfitError("words are not where they should be")
        blob = gate.mapped_array(folder / "words.bin", np.uint8, (int(offsets[-1]),), _ANEW)
        matrix: Matrix = gate.mapped_array(folder / "matrix.bin", facts.dtype, facts.shape, _ANEW)
        warnings = () if facts.warning is None else (f"{name}: {facts.warning}",)
        table = WordTable(blob, offsets, hashes, rows)
        return cls(name, folder, facts.digest, table, matrix, facts.header, warnings, checks, remake)

    def __reduce__(self) -> tuple[Callable[..., Embeddings], tuple[Any, ...]]:
        return _reopened, (self.name, self.folder, self.digest, self.remake)

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
        there = rows[known]
        read = self.rows_of(there)
        if read is None:
            self._make_anew(there)
            read = self.rows_of(there)
        if read is None:
            raise _damaged(self.name, self.folder)
        vectors = np.zeros((len(words), self.dimension))
        vectors[known] = read
        return vectors, known

    def rows_of(self, rows: npt.NDArray[np.int64]) -> Matrix | None:
        """Rows of the matrix; None where one of them is not as it was written."""
        read = self.matrix[rows]
        return read if np.array_equal(row_checks(read, rows), self.checks[rows]) else None

    def _make_anew(self, rows: npt.NDArray[np.int64]) -> None:
        """Replace a damaged entry and take the new one's files; rows that are needed may have been mended meanwhile."""
        fresh = _reopened(self.name, self.folder, self.digest, self.remake)
        if fresh.rows_of(rows) is None:
            _throw_away(self.name, self.folder, "matrix.bin is damaged")
            fresh = _remade(self.name, self.folder, self.digest, self.remake)
        for part in ("table", "matrix", "checks"):  # equal to what was written first, as the digest says
            object.__setattr__(self, part, getattr(fresh, part))


def _reopened(name: str, folder: Path, digest: str, remake: Remake | None) -> Embeddings:
    """An entry that was open before; made anew if it is damaged or gone."""
    try:
        return Embeddings.open(name, folder, remake)
    except _DAMAGE as error:
        _throw_away(name, folder, error)
        return _remade(name, folder, digest, remake)


def _remade(name: str, folder: Path, digest: str, remake: Remake | None) -> Embeddings:
    if remake is None:
        raise _damaged(name, folder)
    fresh = remake()
    if fresh.digest != digest:
        what, remedy = "the file has changed since the run began", "run again when nothing writes to it"
        raise DataError(Fault(name, None, what, remedy))
    return fresh


def _throw_away(name: str, folder: Path, reason: object) -> None:
    """Remove an entry that is damaged, and say so; nothing happens where there is none."""
    if folder.exists():
        _LOG.warning("%s: its entry in the cache is damaged (%s) and is made anew", name, reason)
        discard(folder)


def _damaged(name: str, folder: Path) -> DataError:
    return DataError(Fault(name, None, f"the cache of it is damaged ({folder})", "run again: it is then made anew"))


def stored(
    name: str,
    sources: Sequence[Path],
    dtype: npt.DTypeLike,
    rows: Iterable[WordRows],
    findings: Findings,
    remake: Remake | None = None,
    expected: str | None = None,
) -> Embeddings:
    """The vectors of a source: a file, and those that belong to it.

    `rows` parses it, is read only if need be, and fills in the `findings`. `remake` calls this function again with a
    new reader, for an entry that turns out to be damaged later on. `expected` is the SHA-256 that the source must have.
    """
    note = _note_of(sources[0])
    stamp = _stamp(sources)
    known = _read_note(note)
    if (
        known
        and known["stamp"] == stamp
        and known["settled"]
        and expected in (None, known["sha256"])
        and (entry := _opened(name, str(known["sha256"]), remake))
    ):
        return entry
    started = time.time()
    sha256 = sha256_of(*sources)
    if expected not in (None, sha256):
        what, remedy = f"SHA-256 {sha256} instead of {expected}", "run: dialeval data remove, then: dialeval data add"
        raise DataError(Fault(str(sources[0]), None, what, remedy))
    entry = _opened(name, sha256, remake)
    if entry is None:
        target = _folder_of(sha256)
        with building(target) as folder:
            _write(folder, dtype, rows, findings)
            if _stamp(sources) != stamp:
                what, remedy = "the file changed while it was read", "run again when nothing writes to it"
                raise DataError(Fault(str(sources[0]), None, what, remedy))
        entry = Embeddings.open(name, target, remake)
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


def _opened(name: str, sha256: str, remake: Remake | None) -> Embeddings | None:
    folder = _folder_of(sha256)
    try:
        return Embeddings.open(name, folder, remake)
    except _DAMAGE as error:
        _throw_away(name, folder, error)
        return None


def _folder_of(sha256: str) -> Path:
    name = f"{sha256[:_SHA_LENGTH]}-{_LAYOUT}"
    folder = _home() / name
    if folder.exists():
        return folder
    try:
        check_writable(folder.parent)
    except DataError:
        return _for_this_process() / name
    return folder


def _note_of(source: Path) -> Path:
    name = hashlib.sha256(os.fsencode(source.resolve())).hexdigest()[:_SHA_LENGTH]
    return _home() / f"{name}.json"


def _home() -> Path:
    """The folder of all entries: in the cache, or for this process alone where that cannot be made."""
    try:
        return cache_folder("vectors")
    except SettingError:
        return _for_this_process()


@cache
def _for_this_process() -> Path:
    """A folder that is removed when the process ends."""
    try:
        folder = tempfile.mkdtemp(prefix="dialeval-vectors-")
    except OSError as error:
        reason = f"no folder can be written to, neither the cache nor the one for temporary files ({error.strerror})"
        raise SettingError(f"{reason}; set DIALEVAL_CACHE or TMPDIR to one that can") from None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _LOG.warning("the cache folder cannot be written to; word vectors are read anew in each run")
    return Path(folder)


def _stamp(sources: Sequence[Path]) -> list[list[int]]:
    found = (source.stat() for source in sources)
    return [[status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino] for status in found]


def _read_note(note: Path) -> dict[str, Any] | None:
    from dialeval.resources.schemas import VectorNote

    try:
        known = gate.read_json(note, dict[str, Any], _ANEW)
        gate.fitting(known, VectorNote, str(note), _ANEW)
    except DataError:
        return None
    return known


def _write_note(note: Path, source: Path, stamp: list[list[int]], sha256: str, started: float) -> None:
    newest = max(time_ns for _, *times, _ in stamp for time_ns in times) / 1e9
    facts = {
        "source": str(source.resolve()),
        "stamp": stamp,
        "settled": newest + _FRESH_SECONDS < started,
        "sha256": sha256,
    }
    write_bytes(note, json.dumps(facts).encode())


def _drop_unused(sha256: str) -> None:
    """Remove an entry that no note refers to."""
    notes = map(_read_note, _home().glob("*.json"))
    if not any(note and note["sha256"] == sha256 for note in notes):
        discard(_folder_of(sha256))
