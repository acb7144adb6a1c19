"""Vectors of texts, out of the vectors of their words; shared by the embedding metrics and coherence.

    average = mean over the known words of SIF_WEIGHT / (SIF_WEIGHT + p(word)) * vector(word)
    extrema = per dimension the value of largest magnitude among the vectors of the known words

With `oov=self` the words with a vector are known. With `oov=unk`, as in dialog-eval, those of the vocabulary are, which
`engine/resources.py` defines: other words have no vector, and a known word without a vector counts as the zero vector:
it lengthens the divisor of the average and moves nothing. p is the word's share in the training text, 0 if it does not
occur there. Words that are not known are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import TokenColumn
from dialeval.core.needs import Need
from dialeval.metrics.embedding import embedding_kernel as _kernel
from dialeval.resources.words import KnownWords, Mask, TrainText, VectorTable
from dialeval.text.ngram_values import NgramValues
from dialeval.text.tokenise import Oov, Tokeniser, tokens

TextVector: TypeAlias = Literal["average", "extrema"]

SIF_WEIGHT = 0.001
"""Frequent words weigh less: Arora et al. 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings", ICLR."""


@dataclass(frozen=True, eq=False, slots=True)
class TextVectors:
    """One vector per text, and the number of known words it was made of."""

    vectors: Floats
    counted: Ints


@dataclass(frozen=True, eq=False, slots=True)
class WordValues:
    """By word id: whether a word is known, the row of its vector, its weight."""

    known: Mask
    rows: Ints
    matrix: Floats
    weights: Floats

    @classmethod
    def of(cls, vectors: VectorTable, known: KnownWords | None, shares: NgramValues | None) -> WordValues:
        """Return the values of all words, p being `shares`; without `known` the words with a vector are known."""
        rows, matrix = vectors.arrays()
        rows, mask = _rows_of_known(rows, known)
        p = np.zeros(len(rows)) if shares is None else np.nan_to_num(shares.of_keys(np.arange(len(rows))))
        return cls(mask, rows, matrix, SIF_WEIGHT / (SIF_WEIGHT + p))

    def averages(self, texts: TokenColumn) -> TextVectors:
        """Return the weighted averages of texts."""
        means, counted = np.empty((len(texts), self.matrix.shape[1])), np.empty(len(texts), np.int64)
        words = (self.known, self.rows, self.weights, self.matrix)
        _kernel.weighted_means(texts.ids, texts.offsets, *words, means, counted)
        return TextVectors(means, counted)

    def extrema(self, texts: TokenColumn) -> TextVectors:
        """Return the extrema of texts."""
        ends, counted = np.empty((len(texts), self.matrix.shape[1])), np.empty(len(texts), np.int64)
        _kernel.extrema(texts.ids, texts.offsets, self.known, self.rows, self.matrix, ends, counted)
        return TextVectors(ends, counted)


def _rows_of_known(rows: Ints, known: KnownWords | None) -> tuple[Ints, Mask]:
    """Return the row of each word's vector, -1 for words that are not known, and which words are known."""
    if known is None:
        return rows, rows >= 0
    mask = known.mask()
    size = min(len(rows), len(mask))  # another thread may have met new words in between
    return np.where(mask[:size], rows[:size], -1), mask[:size]


def _vocabulary(batch: Batch, tokeniser: Tokeniser, oov: Oov) -> KnownWords | None:
    """Return the vocabulary that limits which words have a vector; None where there is none."""
    limited = oov == "unk" and batch.has(Need.VOCABULARY)
    return batch.resource(Need.VOCABULARY).by(tokeniser) if limited else None


def text_vectors(batch: Batch, need: Need, by: TextVector, tokeniser: Tokeniser, oov: Oov) -> TextVectors:
    """Return the weighted averages or the extrema of a batch's texts; computed once for all metrics of the batch."""

    def compute() -> TextVectors:
        table: VectorTable = batch.resource(Need.EMBEDDINGS)
        known = _vocabulary(batch, tokeniser, oov)
        if by == "extrema":
            return WordValues.of(table, known, None).extrema(words)
        train: TrainText = batch.resource(Need.TRAIN)
        return WordValues.of(table, known, train.shares(1, tokeniser, oov)).averages(words)

    words = tokens(batch, need, tokeniser)
    return batch.derived((by, "vectors", need, tokeniser, oov), compute)


def cosines(left: TextVectors, right: TextVectors, owners: Ints) -> Floats:
    """Return the cosine of right vector `j` and left vector `owners[j]`; NaN where one has no known word or is 0."""
    result = np.empty(len(owners))
    _kernel.cosines(right.vectors, left.vectors, owners, result)
    result[(left.counted[owners] == 0) | (right.counted == 0)] = np.nan
    return result


def greedy_matches(batch: Batch, owners: Ints, tokeniser: Tokeniser, oov: Oov) -> Floats:
    """Return the greedy matching of each reference text `j` and the response of row `owners[j]`."""
    responses, references = tokens(batch, Need.RESPONSE, tokeniser), tokens(batch, Need.REFERENCE, tokeniser)
    table: VectorTable = batch.resource(Need.EMBEDDINGS)
    rows, matrix, lengths = table.lengths()
    rows, _ = _rows_of_known(rows, _vocabulary(batch, tokeniser, oov))
    result = np.empty(len(references))
    best = np.empty(int(references.lengths.max(initial=0)))
    texts = (responses.ids, responses.offsets, owners, references.ids, references.offsets)
    _kernel.greedy(*texts, rows, matrix, lengths, best, result)
    return result
