"""Word vectors from any source, behind one small interface.

`load_embeddings` takes

- a file of word vectors, plain or packed (`.gz`, `.zst`):
  - text (GloVe, word2vec, fastText `.vec`): a line is a word and its numbers, separated by single spaces or tabs. A
    first line of two integers is a header, `words dimension`. Numbers are float64, as `float` reads them;
  - word2vec binary (`.bin`): a header line, then per word its bytes, a space, and little-endian float32 numbers;
- the name of an installed data pack, `glove-6b`, or of one of its files, `glove-6b/glove.6B.100d.txt`: see `packs`;
- `wordllama`, a table of word pieces inside a Python package.

A few lines that are no word with its numbers (such as words with spaces in GloVe, which no text contains, or words that
are not UTF-8) are left out with a warning; a file with more than ten of them that are also more than 1% is refused, and
so is one that has fewer words than its header says. Of two equal words the later counts.

A file is parsed once. The parsed vectors are kept in the cache and memory-mapped.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from statistics import mode
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval.core import validation
from dialeval.core.arrays import Floats
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Problem, SettingError, suggest
from dialeval.core.files import build_folder, cache_folder, discard, sha256_of
from dialeval.core.validation import Array, InvalidError
from dialeval.io.opening import change_problem, is_utf8, open_unpacked, packing_of
from dialeval.io.packs import PACK_SOURCES, require_pack

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from dialeval.io.schemas import VectorEntry


# Files of word vectors.

Matrix: TypeAlias = npt.NDArray[np.float32 | np.float64]
WordRows: TypeAlias = tuple[list[bytes], Matrix]
"""Some words of a file, and a matrix with a row for each."""

_HEAD_LINES = 64
_LONGEST_LINE = 1 << 24
_ROWS = 1 << 14
"""Rows of a binary file that are read at a time."""
_LARGEST_DIMENSION = 1 << 20
_FEW, _FRACTION = 10, 0.01
_AS_TEXT = "give vectors as text, a word and its numbers in each line, or in the word2vec binary format (.bin)"


class _VectorFile:
    """A file of word vectors that is read once; what is not yielded is counted in `odd`."""

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self.odd: Counter[str] = Counter()
        self.promised: int | None = None
        """The number of words that the header states."""
        self._is_binary = (path.with_suffix("") if packing_of(path) else path).suffix.lower() == ".bin"

    def read(self) -> Iterator[WordRows]:
        """Yield the words that are UTF-8 and their vectors, in the order of the file; DataError for other files."""
        count = 0
        for words, rows in self._read_binary() if self._is_binary else self._read_text():
            if not np.isfinite(rows).all():
                word = words[int(np.isfinite(rows).all(axis=1).argmin())].decode(errors="replace")
                raise self._refuse(f"the vector of {word!r:.40} has a number that is not finite", "correct it")
            sound = [row for row, word in enumerate(words) if word.strip() and is_utf8(word)]
            self.odd["no word in UTF-8"] += len(words) - len(sound)
            count += len(sound)
            yield [words[row] for row in sound], rows[sound]
        odd = self.odd.total()
        if odd > max(min(_FEW, count), _FRACTION * count) or not count:
            raise self._refuse(f"holds {count:,} word vectors and {odd:,} other lines", _AS_TEXT)
        if self.promised is not None and self.promised - count - odd > max(_FEW, _FRACTION * count):
            what = f"the header promises {self.promised:,} words, but {count + odd:,} follow"
            raise self._refuse(what, "get the whole file, or correct the header")

    def warning(self) -> str | None:
        """Return what was left out; None where nothing was."""
        return (
            "; ".join(
                f"{count:,} line{'s' * (count > 1)} left out: {what}" for what, count in self.odd.items() if count
            )
            or None
        )

    def _refuse(self, what: str, remedy: str) -> DataError:
        return DataError(Problem(self.where, None, what, remedy))

    def _read_text(self) -> Iterator[WordRows]:
        """Read lines with Arrow's CSV reader, whose floats equal those of `float`."""
        import pyarrow as pa
        from pyarrow import csv

        def note_line(_row: object) -> str:
            self.odd["no word with its numbers"] += 1
            return "skip"

        with open_unpacked(self.where) as stream:
            head = [line for _ in range(_HEAD_LINES) if (line := stream.readline(_LONGEST_LINE))]
        if b"\0" in b"".join(head):
            raise self._refuse("is not a text file", _AS_TEXT)
        lines = [line for line in head if line.strip()] or [b""]
        first, sizes = lines[0].split(), [len(line.split()) - 1 for line in lines]
        dimension = mode([size for size in sizes[1:] if size > 0] or sizes)
        if len(first) == 2 and all(map(bytes.isdigit, first)) and (dimension > 1 or first[1] == b"1"):
            self.promised, dimension = map(int, first)
        if not 0 < dimension <= max(sizes):
            raise self._refuse(f"has no {dimension:,} numbers in a line", _AS_TEXT)
        sample = lines[-1].rstrip(b"\r\n")
        delimiter = "\t" if b"\t" in sample else " "
        ends = [""] if sample.endswith(delimiter.encode()) else []  # as the tool of word2vec writes
        names = ["word", *map(str, range(dimension)), *ends]
        types = {**dict.fromkeys(names, pa.float64()), "word": pa.binary(), "": pa.binary()}
        try:
            with open_unpacked(self.where) as stream:
                batches = csv.open_csv(
                    pa.PythonFile(stream, "r"),
                    csv.ReadOptions(
                        use_threads=False,
                        block_size=_LONGEST_LINE,
                        skip_rows=int(self.promised is not None),
                        column_names=names,
                    ),
                    csv.ParseOptions(delimiter=delimiter, quote_char=False, invalid_row_handler=note_line),
                    csv.ConvertOptions(column_types=types, null_values=[]),
                )
                for batch in batches:
                    rows = (
                        np.stack(batch.columns[1 : dimension + 1], axis=1) if len(batch) else np.empty((0, dimension))
                    )
                    yield batch["word"].to_pylist(), rows
        except pa.ArrowInvalid as error:
            raise self._refuse(f"is not a file of word vectors ({error})", _AS_TEXT) from None

    def _read_binary(self) -> Iterator[WordRows]:
        broken = self._refuse("is cut short, or is not in the word2vec binary format", _AS_TEXT)
        with open_unpacked(self.where) as stream:
            header = stream.readline(_HEAD_LINES).split()
            if len(header) != 2 or not all(map(bytes.isdigit, header)):
                raise broken
            self.promised, dimension = map(int, header)
            if not 0 < dimension <= _LARGEST_DIMENSION:
                raise broken
            for start in range(0, self.promised, _ROWS):
                words, rows = [], []
                for _ in range(min(_ROWS, self.promised - start)):
                    letters = takewhile(lambda letter: letter not in (b" ", b""), iter(partial(stream.read, 1), None))
                    words.append(b"".join(letters).removeprefix(b"\n"))
                    rows.append(stream.read(4 * dimension))
                    if len(rows[-1]) < 4 * dimension:
                        raise broken
                yield words, np.frombuffer(b"".join(rows), "<f4").reshape(len(rows), dimension)


# Word vectors in the cache: parsed once, then memory-mapped.
#
# An *entry* is a folder of the cache, named by the SHA-256 of its source; it never changes:
#
# - `rows.bin`: the vectors in the order of the file, little-endian, each with its CRC-32;
# - `words.json`: their words;
# - `entry.json`: shape, type, content digest, the CRC-32 of the words, and a digest of itself.
#
# The words are checked when an entry is opened, a row when its vector is asked for. An entry that is damaged is made
# anew from its source, with a line in the log.
#
# The content digest covers the words and the vectors as float64 in file order: the same for a text file and its
# compressed copy.

_LAYOUT = 5
"""Part of an entry's name: raise it when what is parsed, or how it is stored, changes."""
_REMEDY = "remove it: it is rebuilt"
_LOG = logging.getLogger("dialeval")


class _Entry(NamedTuple):
    """An opened entry."""

    facts: VectorEntry
    rows: dict[str, int]
    """The number of each word's row."""
    table: Array

    def look_up(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return what `Embeddings.vectors_for` returns; InvalidError where a row is not as it was written."""
        numbers = np.array([self.rows.get(word, -1) for word in words], np.int64)
        in_vocabulary = numbers >= 0
        read = self.table[numbers[in_vocabulary]]
        if _check_rows(read["vector"]) != read["check"].tolist():
            raise InvalidError("rows.bin is damaged")
        vectors = np.zeros((len(words), self.facts.shape[1]))
        vectors[in_vocabulary] = read["vector"]
        return vectors, in_vocabulary


class Embeddings:
    """Word vectors of a file: an opened entry, pickled as the place of its source.

    `sha256` is the SHA-256 that the file must have. `header` says whether the first line of the file states the number
    of words, and `warnings` what is odd about it.
    """

    def __init__(self, path: Path, name: str, sha256: str | None = None) -> None:
        self.name, self._path, self._sha256 = name, path, sha256
        self._entry = self._load()
        facts = self._entry.facts
        self.digest, self.dimension, self.header = facts.content, facts.shape[1], facts.header
        self.warnings: tuple[str, ...] = (f"{name}: {facts.warning}",) if facts.warning else ()

    def __reduce__(self) -> tuple[type[Embeddings], tuple[Path, str, str | None]]:
        return Embeddings, (self._path, self.name, self._sha256)

    def __len__(self) -> int:
        """Return the number of distinct words."""
        return len(self._entry.rows)

    def __contains__(self, word: object) -> bool:
        return word in self._entry.rows

    def words(self) -> list[str]:
        """Return the distinct words in the order of the file."""
        return list(self._entry.rows)

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return one row per word, and whether the word is known; the row of an unknown word is zero."""
        try:
            return self._entry.look_up(words)
        except InvalidError as error:
            self._discard(error)
        self._entry = self._load()
        with validation.explain_errors(self._path, "run again"):
            return self._entry.look_up(words)

    def _load(self) -> _Entry:
        """Open the entry of the source; make it if it is not there or damaged."""
        with validation.explain_errors(self._path, "grant read permission"):
            sha256 = sha256_of(self._path)
        if self._sha256 not in (None, sha256):
            what, remedy = (
                f"SHA-256 {sha256} instead of {self._sha256}",
                "get the file again; or run again with this one",
            )
            raise DataError(Problem(str(self._path), None, what, remedy))
        self._sha256 = sha256
        folder = find_entry(sha256)
        if folder.exists():
            try:
                return _open_entry(folder)
            except (DataError, OSError, InvalidError) as error:
                self._discard(error)
        with build_folder(folder) as unfinished:
            _write_entry(unfinished, self._path)
            if sha256_of(self._path) != sha256:
                raise DataError(change_problem(str(self._path)))
        return _open_entry(folder)

    def _discard(self, reason: object) -> None:
        _LOG.warning("%s: its entry in the cache is damaged (%s) and is rebuilt", self.name, reason)
        discard(find_entry(str(self._sha256)))


def find_entry(sha256: str) -> Path:
    """Return the place of the entry of a source with a digest."""
    return cache_folder("vectors") / f"{sha256}-{_LAYOUT}"


def _write_entry(folder: Path, path: Path) -> None:
    """Parse a source into the files of an entry."""
    source = _VectorFile(path)
    every: list[str] = []
    sha = hashlib.sha256()
    stored, dimension = np.dtype(np.float64), 0
    with (folder / "rows.bin").open("wb") as out:
        for words, vectors in source.read():
            stored, dimension = vectors.dtype.newbyteorder("<"), vectors.shape[1]
            table = np.empty(len(words), _row_type(stored, dimension))
            table["vector"] = vectors
            table["check"] = _check_rows(table["vector"])
            out.write(table.tobytes())
            every += map(bytes.decode, words)
            sha.update(b"".join([b"%d:%s," % (len(word), word) for word in words]))
            # -0.0 and 0.0 are the same number, so they are the same content.
            sha.update(np.ascontiguousarray(vectors + 0.0, "<f8").data)
    (folder / "words.json").write_text(json.dumps(every), "utf-8")
    facts = {
        "dtype": stored.str,
        "shape": [len(every), dimension],
        "content": sha.hexdigest()[:DIGEST_LENGTH],
        "header": source.promised is not None,
        "warning": source.warning(),
        "words_check": zlib.crc32((folder / "words.json").read_bytes()),
    }
    (folder / "entry.json").write_bytes(validation.with_digest(facts))


def _open_entry(folder: Path) -> _Entry:
    """Map the files of an entry; DataError, OSError or InvalidError where they are not whole."""
    from dialeval.io.schemas import VectorEntry

    facts, _ = validation.read_manifest(folder / "entry.json", VectorEntry, _REMEDY)
    words = validation.read_json(folder / "words.json", list[str], _REMEDY)
    if len(words) != facts.shape[0] or zlib.crc32((folder / "words.json").read_bytes()) != facts.words_check:
        raise InvalidError("words.json is damaged")
    row_type = _row_type(np.dtype(facts.dtype), facts.shape[1])
    table = validation.map_array(folder / "rows.bin", row_type, facts.shape[:1], _REMEDY)
    return _Entry(facts, {word: row for row, word in enumerate(words)}, table)


def _row_type(stored: np.dtype[Any], dimension: int) -> np.dtype[np.void]:
    return np.dtype([("check", "<u4"), ("vector", stored, (dimension,))])


def _check_rows(vectors: Array) -> list[int]:
    """Return the CRC-32 of each row."""
    return [zlib.crc32(row.tobytes()) for row in vectors]


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
            return Embeddings(pack.file(file_name), f"{pack_name}/{file_name}", pack.files[file_name].sha256)
    if path.is_file():
        return Embeddings(path, path.name)
    if path.suffix or len(path.parts) > 1 or not isinstance(source, str):
        what = "is a folder, not a file of word vectors" if path.is_dir() else "no such file"
        raise DataError(Problem(name, None, what, "give a file of word vectors or the name of a data pack"))
    choices = [*PACK_SOURCES, _WORDLLAMA]
    hint = suggest(name, choices, f"give a file or one of {', '.join(choices)}")
    raise SettingError(f"no word vectors named {name!r}; {hint}")


class Subwords:
    """Vectors for any word, out of the pieces of words: the table that the `wordllama` package carries.

    A word's vector is the mean of the vectors of its pieces (32,000 pieces, 256 numbers each). So no word is unknown
    but the empty one and the markers `<unk>`, `<s>`, `</s>`. The table and the piece list are read from the installed
    package's own files; nothing of the package is run and nothing is downloaded.
    """

    name = _WORDLLAMA

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _find_package()
        path, remedy = self._folder / _WEIGHTS, f"run: pip install --force-reinstall {_WORDLLAMA}"
        with validation.explain_errors(path, remedy):
            self._matrix = validation.take_tensor(validation.read_tensors(path, remedy), _TENSOR, (None, None))
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
                # float64 before adding: the sums of numbers of float16 are exact then, whatever the order.
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
