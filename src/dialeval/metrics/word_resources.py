"""Facts about the words of an evaluation: their vectors, whether they are in the vocabulary, and how often they occur
in the training text.

Each is an array over the ids of the evaluation's shared vocabulary and grows with it: only words that occur are ever
looked up. All of it may be used by several threads at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats, Ids, Ints
from dialeval.core.columns import TextColumn
from dialeval.core.fingerprint import short_digest
from dialeval.io.vectors import WordVectors
from dialeval.text.ngrams import COUNTED_TEXTS, count_texts
from dialeval.text.resampled import NgramValues
from dialeval.text.tokenizers import DEFAULT, UNKNOWN, Oov, Tokenizer, tokenize
from dialeval.text.vocabulary import Vocabulary

Mask = npt.NDArray[np.bool_]


class VectorTable:
    """Vectors by word id: `rows` leads from an id to a row of `matrix`, or to -1 for a word without a vector."""

    def __init__(self, vocabulary: Vocabulary, vectors: WordVectors) -> None:
        self._vocabulary = vocabulary
        self._vectors = vectors
        self._rows: Ints = np.empty(0, np.int64)
        self._matrix: Floats = np.empty((0, vectors.dimension))
        self._used = 0
        self._lengths: Floats = np.empty(0)
        self._lock = Lock()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know about the file that the vectors come from."""
        return tuple(getattr(self._vectors, "warnings", ()))

    @property
    def digest(self) -> str:
        """What the vectors are, for signatures."""
        return self._vectors.digest

    def arrays(self) -> tuple[Ints, Floats]:
        """Return `rows` and `matrix` for every word that has occurred so far."""
        with self._lock:
            start, stop = len(self._rows), len(self._vocabulary)
            if start < stop:
                words = self._vocabulary.column().slice(start, stop)
                vectors, known = self._vectors.vectors_for(list(words))
                self._rows = np.concatenate((self._rows, np.where(known, self._used + np.cumsum(known) - 1, -1)))
                self._append(vectors[known])
            return self._rows, self._matrix[: self._used]

    def _append(self, vectors: Floats) -> None:
        """Append rows to the matrix; it is doubled when it is full, and views of the old one stay valid."""
        used = self._used + len(vectors)
        if used > len(self._matrix):
            larger = np.empty((max(2 * len(self._matrix), used), self._matrix.shape[1]))
            larger[: self._used] = self._matrix[: self._used]
            self._matrix = larger
        self._matrix[self._used : used] = vectors
        self._used = used

    def lengths(self) -> tuple[Ints, Floats, Floats]:
        """Return `rows`, `matrix` and the norm of each row; a word with a zero vector counts as one without."""
        rows, matrix = self.arrays()
        with self._lock:
            if len(self._lengths) < len(matrix):
                new = matrix[len(self._lengths) :]
                self._lengths = np.concatenate((self._lengths, np.sqrt((new * new).sum(axis=1))))
            lengths = self._lengths[: len(matrix)]
        zero = np.append(lengths == 0, False)  # the last entry is for the row -1
        return np.where(zero[rows], -1, rows), matrix, lengths


class KnownWords:
    """The vocabulary of dialog-eval: the listed words and those with a vector; any other word is `<unk>`.

    The words of a training text, a column of texts, depend on the tokenizer.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        listed: Vocabulary | TextColumn | None,
        vectors: VectorTable | None,
        tokenizer: Tokenizer = DEFAULT,
    ) -> None:
        self._vocabulary, self._given, self._vectors, self._tokenizer = vocabulary, listed, vectors, tokenizer
        self._listed = all_words(listed, tokenizer) if isinstance(listed, TextColumn) else listed
        self._others: dict[Tokenizer, KnownWords] = {}
        self._unknown = vocabulary.add(TextColumn.from_strings([UNKNOWN]))[0]
        self._mask: Mask = np.empty(0, np.bool_)
        self._lock = Lock()

    @property
    def digest(self) -> str:
        """Which words are known, for signatures."""
        listed = self._listed.column().digest if self._listed else ""
        return short_digest(f"{listed} {self._vectors.digest if self._vectors else ''}")

    def by(self, tokenizer: Tokenizer) -> KnownWords:
        """Return the words that are known to a tokenizer: others where they are those of the training text."""
        if tokenizer == self._tokenizer or not isinstance(self._given, TextColumn):
            return self
        with self._lock:
            if tokenizer not in self._others:
                self._others[tokenizer] = KnownWords(self._vocabulary, self._given, self._vectors, tokenizer)
            return self._others[tokenizer]

    def mask(self) -> Mask:
        """Return whether each word that has occurred so far is known."""
        with self._lock:
            start, stop = len(self._mask), len(self._vocabulary)
            if start < stop:
                known = np.zeros(stop - start, np.bool_)
                if self._listed is not None:
                    known |= self._listed.find(self._vocabulary.column().slice(start, stop)) >= 0
                if self._vectors is not None:
                    known |= self._vectors.arrays()[0][start:stop] >= 0
                self._mask = np.concatenate((self._mask, known))
            return self._mask

    def unified(self, ids: Ids) -> Ids:
        """Return the ids with that of `<unk>` for every word that is not known."""
        return np.where(self.mask()[ids], ids, self._unknown).astype(np.int32, copy=False)


class TrainText:
    """The frequencies of n-grams in the training text."""

    def __init__(self, vocabulary: Vocabulary, texts: TextColumn, known: KnownWords) -> None:
        self._vocabulary = vocabulary
        self.texts = texts
        self._known = known
        self._shares: dict[tuple[int, str, Oov], NgramValues] = {}
        self._lock = Lock()

    @property
    def digest(self) -> str:
        """What the text is, for signatures."""
        return self.texts.digest

    def shares(self, n: int, tokenizer: Tokenizer, oov: Oov) -> NgramValues:
        """Return the relative frequency of each n-gram of one or two words."""
        key = (n, tokenizer, oov)
        with self._lock:
            if key not in self._shares:
                unified = self._known.by(tokenizer).unified if oov == "unk" else None
                counts = count_texts(self.texts, self._vocabulary, n, tokenizer, unified)
                shares = counts.counts / max(counts.total, 1)
                self._shares[key] = NgramValues(counts.keys[:, 0], shares, n, self._vocabulary)
            return self._shares[key]


def all_words(texts: TextColumn, tokenizer: Tokenizer = DEFAULT) -> Vocabulary:
    """Return every word of some texts."""
    vocabulary = Vocabulary()
    for start in range(0, len(texts), COUNTED_TEXTS):
        tokenize(texts.slice(start, start + COUNTED_TEXTS), vocabulary, tokenizer)
    return vocabulary


def listed_words(lines: Iterable[str]) -> Vocabulary:
    """Return the words of a list with one word a line; spaces around a word are not part of it."""
    return Vocabulary(line.strip() for line in lines)
