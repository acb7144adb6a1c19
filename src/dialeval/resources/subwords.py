"""Vectors for any word at all, out of the pieces of words: the table that the `wordllama` package carries.

A word's vector is the mean of the vectors of its pieces (32,000 pieces, 256 numbers each). So no word is unknown but
the empty one and the markers `<unk>`, `<s>`, `</s>`. The table and the piece list are read from the installed package's
own files; nothing of the package is run and nothing is downloaded.
"""

from __future__ import annotations

from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import SettingError
from dialeval.resources.cache import sha256_of

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDLLAMA = "wordllama"

_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_PIECES = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_TENSOR = "embedding.weight"
_MARKERS = 3
"""The first ids are `<unk>`, `<s>`, `</s>`: markers, not pieces of words."""


class Subwords:
    """Word vectors made of piece vectors; see `embeddings.WordVectors` for the interface."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _installed()
        self._matrix = _table(self._folder / _WEIGHTS)
        self.name = WORDLLAMA
        self.dimension = int(self._matrix.shape[1])

    def __reduce__(self) -> tuple[type[Subwords], tuple[Path]]:
        return Subwords, (self._folder,)

    @cached_property
    def digest(self) -> str:
        """Digest of the table and of the piece list."""
        return sha256_of(self._folder / _WEIGHTS, self._folder / _PIECES)[:DIGEST_LENGTH]

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        encoded = self._splitter.encode_batch(list(words), add_special_tokens=False)
        pieces = [[piece for piece in word.ids if piece >= _MARKERS] for word in encoded]
        counts = np.fromiter(map(len, pieces), np.int64, len(pieces))
        known = (counts > 0) & np.fromiter(map(bool, words), np.bool_, len(pieces))
        vectors = np.zeros((len(pieces), self.dimension))
        flat = np.fromiter((piece for ids in pieces for piece in ids), np.int64, int(counts.sum()))
        if len(flat):
            filled = counts > 0
            # float64 before adding: the sums of float16 numbers are exact then, whatever the order.
            starts = (np.cumsum(counts) - counts)[filled]
            vectors[filled] = np.add.reduceat(self._matrix[flat].astype(np.float64), starts) / counts[filled, None]
        vectors[~known] = 0.0
        return vectors, known

    @cached_property
    def _splitter(self) -> Any:
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(self._folder / _PIECES))


def _installed() -> Path:
    """The package's folder, found without importing it: that would configure logging for everybody."""
    spec = find_spec(WORDLLAMA)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in map(Path, folders):
        if (folder / _WEIGHTS).is_file() and (folder / _PIECES).is_file() and find_spec("tokenizers"):
            return folder
    problem = "holds no vectors here" if folders else "is not installed"
    raise SettingError(f"the package {WORDLLAMA} {problem}; run: pip install 'dialeval[vectors]'")


def _table(path: Path) -> npt.NDArray[np.float16]:
    """The vectors of all pieces."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np") as file:
            table: npt.NDArray[np.float16] = file.get_tensor(_TENSOR)
    except (SafetensorError, OSError):
        table = np.empty(0, np.float16)
    if table.dtype != np.float16 or table.ndim != 2:
        remedy = f"run: pip install --force-reinstall {WORDLLAMA}"
        raise SettingError(f"{path} does not hold the expected table; {remedy}")
    return table
