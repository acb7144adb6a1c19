"""Word vectors, whatever they come from, behind one small interface.

`load_embeddings` takes

- a text file (GloVe, word2vec text, fastText `.vec`; also `.gz`, `.zst`): see `vector_text`;
- `x.npy` with its vocabulary beside it, or a word2vec `.bin`: see `vector_binary`; an `.npy` that is text, such as the
  `vocab.npy` of dialog-eval, is read as text;
- the name of an installed data pack, `glove-6b`, or of one of its files, `glove-6b/glove.6B.100d.txt`: see `packs`;
- `wordllama`, a table of word pieces inside a Python package: see `subwords`.

A file is parsed once; what was parsed is kept in the cache and memory-mapped from then on (`vectorstore`). Numbers that
come from text are float64, equal to what `float` makes of them; arrays keep their type. Either way vectors are handed
out as float64. The digest is that of the words and numbers in their order (see `vectorstore`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.resources import vector_binary, vector_text
from dialeval.resources.packs import PACK_SOURCES, installed_pack
from dialeval.resources.subwords import WORDLLAMA, Subwords
from dialeval.resources.vector_oddities import Findings
from dialeval.resources.vectorstore import Embeddings, WordRows, stored

_BEGINNING = 1 << 12
_NUMPY = b"\x93NUMPY"


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
        """One row per word, and whether the word is known; the row of an unknown word is zero."""


@checked
def load_embeddings(source: str | os.PathLike[str]) -> Embeddings | Subwords:
    """Word vectors from a file, an installed data pack or an installed package; see the top of this module."""
    path, name = Path(source), os.fspath(source)
    if isinstance(source, str):  # a name means the same in every working folder
        if name == WORDLLAMA:
            return Subwords()
        pack_name, _, file_name = name.partition("/")
        if pack_name in PACK_SOURCES:
            return _from_pack(pack_name, file_name)
    if path.is_file():
        return _from_file(path, path.name)
    if path.suffix or len(path.parts) > 1 or not isinstance(source, str):
        what = "is a folder, not a file of word vectors" if path.is_dir() else "no such file"
        raise DataError(Fault(name, None, what, "give a file of word vectors or the name of a data pack"))
    raise SettingError(_unknown(name))


def _from_pack(name: str, file_name: str) -> Embeddings:
    pack = installed_pack(name)
    file_name = file_name or PACK_SOURCES[name].files[0]
    if file_name not in pack.files:
        raise SettingError(f"the data pack {name} has no file {file_name!r}; it has {', '.join(pack.files)}")
    return _from_file(pack.file(file_name), f"{name}/{file_name}", pack.files[file_name].sha256)


def _unknown(name: str) -> str:
    choices = [*PACK_SOURCES, WORDLLAMA]
    close = get_close_matches(name, choices, 1)
    hint = f"did you mean {close[0]}?" if close else f"give a file or one of {', '.join(choices)}"
    return f"no word vectors named {name!r}; {hint}"


def _from_file(path: Path, name: str, expected: str | None = None) -> Embeddings:
    try:
        return stored(name, *_reader(path), remake=partial(_from_file, path, name, expected), expected=expected)
    except PermissionError as error:
        raise DataError(Fault(str(path), None, "must not be read", "give yourself the right to read it")) from error


def _reader(path: Path) -> tuple[list[Path], npt.DTypeLike, Iterator[WordRows], Findings]:
    """The files of a source, the type of its numbers, a generator that reads it, and what that fills in."""
    findings = Findings()
    plain = path.with_suffix("") if path.suffix.lower() in vector_text.COMPRESSIONS else path
    if path.suffix.lower() == ".npy" and not _is_text(path):
        vocabulary = vector_binary.vocabulary_beside(path)
        dtype = vector_binary.open_matrix(path).dtype
        return [path, vocabulary], dtype, vector_binary.read_matrix(path, vocabulary, findings), findings
    if plain.suffix.lower() == ".bin":
        return [path], np.float32, vector_binary.read_word2vec(path, findings), findings
    return [path], np.float64, vector_text.read_text(path, findings), findings


def _is_text(path: Path) -> bool:
    """Whether the beginning of a file is neither a NumPy array nor other binary data."""
    with path.open("rb") as stream:
        beginning = stream.read(_BEGINNING)
    return bool(beginning.strip()) and not beginning.startswith(_NUMPY) and b"\0" not in beginning
