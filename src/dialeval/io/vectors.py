"""Word vectors from any source, behind one small interface.

`load_embeddings` takes

- a file of word vectors (text, word2vec `.bin`): see `vector_files`;
- the name of an installed data pack, `glove-6b`, or of one of its files, `glove-6b/glove.6B.100d.txt`: see `packs`;
- `wordllama`, a table of word pieces inside a Python package.

A file is parsed once; the parsed vectors are kept in the cache and memory-mapped. Numbers of text files are float64,
equal to those of `float`; those of a binary file are float32. Either way vectors are returned as float64.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from dialeval.core import validation
from dialeval.core.arrays import Floats
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Problem, SettingError, suggest
from dialeval.core.files import build_folder, cache_folder, discard, sha256_of
from dialeval.core.validation import InvalidError
from dialeval.io.packs import PACK_SOURCES, require_pack
from dialeval.io.vector_files import Matrix, VectorFindings, read_vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from dialeval.io.schemas import VectorEntry


# Word vectors in the cache: parsed once, then memory-mapped.
#
# An *entry* is a folder of the cache; it never changes:
#
# - `matrix.bin`: the vectors, row by row, little-endian;
# - `index.npy`: for each distinct word its key (128 bits of BLAKE2b), in ascending order, with its row of the matrix
#   and the CRC-32 of that row. Of two equal words the later counts;
# - `words.json`: the distinct words in the order of their rows;
# - `entry.json`: shape, type, content digest, what the reader found in addition to the vectors, the CRC-32 of the two
#   files above, and a digest of itself.
#
# The index is checked when an entry is opened, a row of the matrix when its vector is asked for. An entry that is
# damaged is made anew from its source, with a line in the log.
#
# The name of an entry is made of the path, size, times of change and inode of its source. A program can set a file's
# time of modification, but not that of its last change (ctime), so both count. Where the source is so fresh that its
# times prove nothing, the SHA-256 of its bytes is part of the name too. Entries of earlier states of a source are
# removed after a day.
#
# The content digest covers the words and the vectors as float64 in file order, block by block as they are read: the
# same for a text file and its compressed copy.

_LAYOUT = 4
"""Part of an entry's name: raise it when what is parsed, or how it is stored, changes."""
_FRESH_SECONDS = 2.0
"""File systems record times coarsely; a file changed twice within this span may look unchanged."""
_OLD_SECONDS = 24 * 3600.0
"""Machines may share a cache, but not a source: an entry of another state may be in use elsewhere."""
_KEY_BYTES = 16
_INDEX = np.dtype([("key", f"S{_KEY_BYTES}"), ("row", "<i8"), ("check", "<u4")])
_CHECKED = ("index.npy", "words.json")
_REMEDY = "remove it: it is rebuilt"
_LOG = logging.getLogger("dialeval")


@dataclass(frozen=True, slots=True)
class _Entry:
    """An opened entry; `keys` is the first column of the index, the rest stays on disk until it is read."""

    folder: Path
    facts: VectorEntry
    keys: npt.NDArray[np.bytes_]
    index: npt.NDArray[np.void]
    matrix: Matrix

    def look_up(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return what `Embeddings.vectors_for` returns; InvalidError where a row is not as it was written."""
        # A lone surrogate has no UTF-8 form, so no file contains it; looking it up must not fail.
        keys = _hash_words(word.encode("utf-8", "surrogatepass") for word in words)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        in_vocabulary = self.keys[at] == keys
        entries = self.index[at[in_vocabulary]]
        read = self.matrix[entries["row"]]
        if _check_rows(read, entries["row"]) != entries["check"].tolist():
            raise InvalidError("matrix.bin is damaged")
        vectors = np.zeros((len(words), self.matrix.shape[1]))
        vectors[in_vocabulary] = read
        return vectors, in_vocabulary


class Embeddings:
    """Word vectors of a file: an opened entry, pickled as the place of its source.

    `sha256` is the SHA-256 that the file must have, `digest` the content digest that it must lead to. `header` says
    whether the first line of the file states the number of words, and `warnings` what is odd about it.
    """

    def __init__(self, path: Path, name: str, sha256: str | None = None, digest: str | None = None) -> None:
        self.name, self._path, self._sha256 = name, path, sha256
        self._entry = self._load(digest)
        facts = self._entry.facts
        self.digest, self.dimension, self.header = facts.content, facts.shape[1], facts.header
        self.warnings = (f"{name}: {facts.warning}",) if facts.warning else ()

    def __reduce__(self) -> tuple[type[Embeddings], tuple[Path, str, str | None, str]]:
        return Embeddings, (self._path, self.name, self._sha256, self.digest)

    def __len__(self) -> int:
        """Return the number of distinct words."""
        return len(self._entry.keys)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and bool(self.vectors_for([word])[1][0])

    def words(self) -> list[str]:
        """Return the distinct words in the order of their rows."""
        return validation.read_json(self._entry.folder / "words.json", list[str], _REMEDY)

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return one row per word, and whether the word is known; the row of an unknown word is zero."""
        for loaded_again in (False, True):
            try:
                return self._entry.look_up(words)
            except InvalidError as error:
                if loaded_again:  # else another process may have made the entry anew
                    self._discard(self._entry.folder, error)
                self._entry = self._load(self.digest)
        with validation.explain_errors(self._entry.folder, "run again: it is then rebuilt"):
            return self._entry.look_up(words)

    def _load(self, digest: str | None) -> _Entry:
        """Open the entry of the source; make it if it is not there or damaged."""
        stamp = _stamp(self._path)
        folder = _find_folder(self._path, stamp, self._sha256)
        entry: _Entry | None = None
        if folder.exists():
            try:
                entry = _open_entry(folder)
            except (DataError, OSError, InvalidError) as error:
                self._discard(folder, error)
        entry = entry or self._build(folder, stamp)
        if digest not in (None, entry.facts.content):
            what, remedy = "the file has changed since the run began", "run again when nothing writes to it"
            raise DataError(Problem(self.name, None, what, remedy))
        return entry

    def _discard(self, folder: Path, reason: object) -> None:
        _LOG.warning("%s: its entry in the cache is damaged (%s) and is rebuilt", self.name, reason)
        discard(folder)

    def _build(self, folder: Path, stamp: list[int]) -> _Entry:
        if self._sha256 is not None and (sha256 := sha256_of(self._path)) != self._sha256:
            what, remedy = f"SHA-256 {sha256} instead of {self._sha256}", "run: dialeval data remove, then: data add"
            raise DataError(Problem(str(self._path), None, what, remedy))
        with build_folder(folder) as unfinished:
            _write_entry(unfinished, self._path)
            if _stamp(self._path) != stamp:
                what, remedy = "the file changed while it was read", "run again when nothing writes to it"
                raise DataError(Problem(str(self._path), None, what, remedy))
        forget(self._path, _OLD_SECONDS)
        return _open_entry(folder)


def forget(source: Path, seconds: float = 0.0) -> None:
    """Remove the entries of a source that are older than some seconds."""
    for entry in cache_folder("vectors").glob(f"{_hash_path(source)}-*"):
        with suppress(FileNotFoundError):  # another process removes too
            if entry.stat().st_mtime <= time.time() - seconds:
                discard(entry)


def _write_entry(folder: Path, source: Path) -> None:
    """Parse a source into the files of an entry."""
    findings = VectorFindings()
    every: list[bytes] = []
    checks: list[int] = []
    sha = hashlib.sha256()
    stored, dimension = np.dtype(np.float64), 0
    with (folder / "matrix.bin").open("wb") as matrix:
        for words, vectors in read_vectors(source, findings):
            stored, dimension = vectors.dtype.newbyteorder("<"), vectors.shape[1]
            rows = np.ascontiguousarray(vectors, stored)
            matrix.write(rows.data)
            checks += _check_rows(rows, range(len(every), len(every) + len(words)))
            every += words
            sha.update(b"".join([b"%d:%s," % (len(word), word) for word in words]))
            # -0.0 and 0.0 are the same number, so they are the same content.
            sha.update(np.ascontiguousarray(vectors + 0.0, "<f8").data)
    keys, last = np.unique(_hash_words(every)[::-1], return_index=True)
    index = np.empty(len(keys), _INDEX)
    index["key"], index["row"] = keys, len(every) - 1 - last
    index["check"] = np.array(checks, np.uint32)[index["row"]]
    np.save(folder / "index.npy", index, allow_pickle=False)
    words_in_order = [every[row].decode() for row in np.sort(index["row"]).tolist()]
    (folder / "words.json").write_text(json.dumps(words_in_order), "utf-8")
    facts = {
        "dtype": stored.str,
        "shape": [len(every), dimension],
        "content": sha.hexdigest()[:DIGEST_LENGTH],
        "header": findings.header,
        "warning": findings.warning(),
        "files": {name: zlib.crc32((folder / name).read_bytes()) for name in _CHECKED},
    }
    (folder / "entry.json").write_bytes(validation.with_digest(facts))


def _open_entry(folder: Path) -> _Entry:
    """Map the files of an entry; DataError, OSError or InvalidError where they are not whole."""
    from dialeval.io.schemas import VectorEntry

    facts, _ = validation.read_manifest(folder / "entry.json", VectorEntry, _REMEDY)
    for name in _CHECKED:
        if zlib.crc32(validation.read_bytes(folder / name, _REMEDY)) != facts.files.get(name):
            raise InvalidError(f"{name} is damaged")
    index = validation.read_array(folder / "index.npy", _INDEX, _REMEDY)
    if not len(index) or not 0 <= index["row"].min() <= index["row"].max() < facts.shape[0]:
        raise InvalidError("words are not where they should be")
    matrix: Matrix = validation.map_array(folder / "matrix.bin", facts.dtype, facts.shape, _REMEDY)
    return _Entry(folder, facts, np.ascontiguousarray(index["key"]), index, matrix)


def _hash_words(words: Iterable[bytes]) -> npt.NDArray[np.bytes_]:
    digests = b"".join([hashlib.blake2b(word, digest_size=_KEY_BYTES).digest() for word in words])
    return np.frombuffer(digests, f"S{_KEY_BYTES}")


def _check_rows(matrix: Matrix, numbers: Iterable[int]) -> list[int]:
    """Return the CRC-32 of each row, which depends on its number too."""
    return [zlib.crc32(row, int(number) & 0xFFFFFFFF) for row, number in zip(matrix, numbers, strict=True)]


def _stamp(source: Path) -> list[int]:
    status = source.stat()
    return [status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino]


def _hash_path(source: Path) -> str:
    return hashlib.sha256(bytes(source.resolve())).hexdigest()[:32]


def _find_folder(source: Path, stamp: list[int], sha256: str | None) -> Path:
    """Return the place of the entry of a source in its present state."""
    is_fresh = max(stamp[:2]) / 1e9 + _FRESH_SECONDS >= time.time()
    state = [stamp, sha256, sha256_of(source) if is_fresh else None]
    name = f"{_hash_path(source)}-{hashlib.sha256(json.dumps(state).encode()).hexdigest()[:32]}-{_LAYOUT}"
    return cache_folder("vectors") / name


_WORDLLAMA = "wordllama"
_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_PIECES = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_TENSOR = "embedding.weight"
_MARKERS = 3
"""The first ids are `<unk>`, `<s>`, `</s>`: markers, not pieces of words."""


class WordVectors(Protocol):
    """The protocol of word vectors as metrics use them."""

    @property
    def name(self) -> str:
        """Their source, for messages."""

    @property
    def dimension(self) -> int:
        """Numbers per word."""

    @property
    def digest(self) -> str:
        """Their digest, for signatures."""

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return one row per word, and whether the word is known; the row of an unknown word is zero."""


def load_embeddings(source: str | os.PathLike[str]) -> Embeddings | Subwords:
    """Load word vectors from a file, an installed data pack or an installed package; see the top of this module."""
    path, name = Path(source), os.fspath(source)
    if isinstance(source, str):  # a name means the same in every working folder
        if name == _WORDLLAMA:
            return Subwords()
        pack_name, _, file_name = name.partition("/")
        if pack_name in PACK_SOURCES:
            pack = require_pack(pack_name)
            file_name = file_name or PACK_SOURCES[pack_name].files[0]
            if file_name not in pack.files:
                held = ", ".join(pack.files)
                raise SettingError(f"the data pack {pack_name} has no file {file_name!r}; it has {held}")
            return _load_file(pack.file(file_name), f"{pack_name}/{file_name}", pack.files[file_name].sha256)
    if path.is_file():
        return _load_file(path, path.name)
    if path.suffix or len(path.parts) > 1 or not isinstance(source, str):
        what = "is a folder, not a file of word vectors" if path.is_dir() else "no such file"
        raise DataError(Problem(name, None, what, "give a file of word vectors or the name of a data pack"))
    choices = [*PACK_SOURCES, _WORDLLAMA]
    hint = suggest(name, choices, f"give a file or one of {', '.join(choices)}")
    raise SettingError(f"no word vectors named {name!r}; {hint}")


def _load_file(path: Path, name: str, sha256: str | None = None) -> Embeddings:
    try:
        return Embeddings(path, name, sha256)
    except PermissionError as error:
        raise DataError(
            Problem(str(path), None, "cannot be read: permission denied", "grant read permission")
        ) from error


class Subwords:
    """Vectors for any word, out of the pieces of words: the table that the `wordllama` package carries.

    A word's vector is the mean of the vectors of its pieces (32,000 pieces, 256 numbers each). So no word is unknown
    but the empty one and the markers `<unk>`, `<s>`, `</s>`. The table and the piece list are read from the installed
    package's own files; nothing of the package is run and nothing is downloaded.
    """

    name = _WORDLLAMA

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _find_package()
        self._matrix = _read_table(self._folder / _WEIGHTS)
        self.dimension = int(self._matrix.shape[1])

    def __reduce__(self) -> tuple[type[Subwords], tuple[Path]]:
        return Subwords, (self._folder,)

    @cached_property
    def digest(self) -> str:
        """Digest of the table and of the piece list."""
        return sha256_of(self._folder / _WEIGHTS, self._folder / _PIECES)[:DIGEST_LENGTH]

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return one row per word, and whether the word is known; the row of an unknown word is zero."""
        vectors, in_vocabulary = np.zeros((len(words), self.dimension)), np.zeros(len(words), np.bool_)
        for place, word in enumerate(self._tokenizer.encode_batch(list(words), add_special_tokens=False)):
            pieces = [piece for piece in word.ids if piece >= _MARKERS]
            if pieces and words[place]:
                in_vocabulary[place] = True
                # float64 before adding: the sums of float16 numbers are exact then, whatever the order.
                vectors[place] = self._matrix[pieces].astype(np.float64).sum(axis=0) / len(pieces)
        return vectors, in_vocabulary

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(self._folder / _PIECES))


def _find_package() -> Path:
    """Return the package's folder without importing it: that would configure logging for everybody."""
    spec = find_spec(_WORDLLAMA)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in map(Path, folders):
        if (folder / _WEIGHTS).is_file() and (folder / _PIECES).is_file() and find_spec("tokenizers"):
            return folder
    problem = "holds no vectors here" if folders else "is not installed"
    raise SettingError(f"the package {_WORDLLAMA} {problem}; run: pip install 'dialeval[vectors]'")


def _read_table(path: Path) -> npt.NDArray[np.float16]:
    """Read the vectors of all pieces."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np") as file:
            table: npt.NDArray[np.float16] = file.get_tensor(_TENSOR)
    except (SafetensorError, OSError):
        table = np.empty(0, np.float16)
    if table.dtype != np.float16 or table.ndim != 2:
        remedy = f"run: pip install --force-reinstall {_WORDLLAMA}"
        raise SettingError(f"{path} does not hold the expected table; {remedy}")
    return table
