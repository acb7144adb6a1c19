"""Word vectors from any source, behind one small interface.

`load_embeddings` takes

- a file of word vectors (text, `.npy` with its vocabulary, word2vec `.bin`): see `vector_files`;
- the name of an installed data pack, `glove-6b`, or of one of its files, `glove-6b/glove.6B.100d.txt`: see `packs`;
- `wordllama`, a table of word pieces inside a Python package.

A file is parsed once; what was parsed is kept in the cache and memory-mapped from then on (`vectorstore`). Numbers that
come from text are float64, equal to what `float` makes of them; arrays keep their type. Either way vectors are returned
as float64.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.resources.cache import sha256_of
from dialeval.resources.packs import PACK_SOURCES, installed_pack
from dialeval.resources.vectorstore import Embeddings

_WORDLLAMA = "wordllama"
_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_PIECES = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_TENSOR = "embedding.weight"
_MARKERS = 3
"""The first ids are `<unk>`, `<s>`, `</s>`: markers, not pieces of words."""


class WordVectors(Protocol):
    """What metrics ask of word vectors."""

    @property
    def name(self) -> str:
        """Where they come from, for people."""

    @property
    def dimension(self) -> int:
        """Numbers per word."""

    @property
    def digest(self) -> str:
        """What they are, for signatures."""

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return one row per word, and whether the word is known; the row of an unknown word is zero."""


@checked
def load_embeddings(source: str | os.PathLike[str]) -> Embeddings | Subwords:
    """Load word vectors from a file, an installed data pack or an installed package; see the top of this module."""
    path, name = Path(source), os.fspath(source)
    if isinstance(source, str):  # a name means the same in every working folder
        if name == _WORDLLAMA:
            return Subwords()
        pack_name, _, file_name = name.partition("/")
        if pack_name in PACK_SOURCES:
            return _load_from_pack(pack_name, file_name)
    if path.is_file():
        return _load_file(path, path.name)
    if path.suffix or len(path.parts) > 1 or not isinstance(source, str):
        what = "is a folder, not a file of word vectors" if path.is_dir() else "no such file"
        raise DataError(Fault(name, None, what, "give a file of word vectors or the name of a data pack"))
    choices = [*PACK_SOURCES, _WORDLLAMA]
    close = get_close_matches(name, choices, 1)
    hint = f"did you mean {close[0]}?" if close else f"give a file or one of {', '.join(choices)}"
    raise SettingError(f"no word vectors named {name!r}; {hint}")


def _load_from_pack(name: str, file_name: str) -> Embeddings:
    pack = installed_pack(name)
    file_name = file_name or PACK_SOURCES[name].files[0]
    if file_name not in pack.files:
        raise SettingError(f"the data pack {name} has no file {file_name!r}; it has {', '.join(pack.files)}")
    return _load_file(pack.file(file_name), f"{name}/{file_name}", pack.files[file_name].sha256)


def _load_file(path: Path, name: str, sha256: str | None = None) -> Embeddings:
    try:
        return Embeddings(path, name, sha256)
    except PermissionError as error:
        raise DataError(Fault(str(path), None, "must not be read", "give yourself the right to read it")) from error


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
        vectors, known = np.zeros((len(words), self.dimension)), np.zeros(len(words), np.bool_)
        for place, word in enumerate(self._tokenizer.encode_batch(list(words), add_special_tokens=False)):
            pieces = [piece for piece in word.ids if piece >= _MARKERS]
            if pieces and words[place]:
                known[place] = True
                # float64 before adding: the sums of float16 numbers are exact then, whatever the order.
                vectors[place] = self._matrix[pieces].astype(np.float64).sum(axis=0) / len(pieces)
        return vectors, known

    @cached_property
    def _tokenizer(self) -> Any:
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
