"""Vectors of texts, out of the vectors of their words; shared by the embedding metrics and coherence.

    average = mean over the known words of SIF_WEIGHT / (SIF_WEIGHT + p(word)) * vector(word)
    extrema = per dimension the value of largest magnitude among the vectors of the known words

A word is known if it is in the vocabulary, which every word with a vector is; `engine/resources.py` says which words
count as having one. p is the word's share in the training text, 0 if it does not occur there. A known word without a
vector counts as the zero vector: it lengthens the divisor of the average and moves nothing. Other words are passed
over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import TokenColumn
from dialeval.core.kernels import Kernels
from dialeval.core.needs import Need
from dialeval.resources.words import KnownWords, Mask, TrainText, VectorTable
from dialeval.text.ngram_values import NgramValues
from dialeval.text.tokenise import Tokeniser, tokens

_kernel = Kernels("dialeval.metrics.embedding.embedding_kernel")


SIF_WEIGHT = 0.001
"""Frequent words weigh less: Arora et al. 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings", ICLR."""


@dataclass(frozen=True, eq=False, slots=True)
class TextVectors:
    """One vector per text, and the number of known words it was made of."""

    vectors: Floats
    counted: Ints


@dataclass(frozen=True, eq=False, slots=True)
class WordValues:
    """What the vector of a text is made of, by word id: whether a word is known, its vector's row, its weight."""

    known: Mask
    rows: Ints
    matrix: Floats
    weights: Floats

    @classmethod
    def of(cls, vectors: VectorTable, known: KnownWords | None, shares: NgramValues | None) -> WordValues:
        """The values of all words, p being `shares`; without `known` the words with a vector are known."""
        rows, matrix = vectors.arrays()
        mask = rows >= 0 if known is None else known.mask()
        size = min(len(rows), len(mask))  # another thread may have met new words in between
        p = np.zeros(size) if shares is None else np.nan_to_num(shares.of_keys(np.arange(size)))
        return cls(mask[:size], rows[:size], matrix, SIF_WEIGHT / (SIF_WEIGHT + p))

    def averages(self, texts: TokenColumn) -> TextVectors:
        """The weighted averages of texts."""
        means, counted = np.empty((len(texts), self.matrix.shape[1])), np.empty(len(texts), np.int64)
        words = (self.known, self.rows, self.weights, self.matrix)
        _kernel.weighted_means(texts.ids, texts.offsets, *words, means, counted)
        return TextVectors(means, counted)

    def extrema(self, texts: TokenColumn) -> TextVectors:
        """The extrema of texts."""
        ends, counted = np.empty((len(texts), self.matrix.shape[1])), np.empty(len(texts), np.int64)
        _kernel.extrema(texts.ids, texts.offsets, self.known, self.rows, self.matrix, ends, counted)
        return TextVectors(ends, counted)


def average_vectors(batch: Batch, need: Need, tokeniser: Tokeniser) -> TextVectors:
    """The weighted averages of a batch's texts; computed once for all metrics of the batch."""
    words = tokens(batch, need, tokeniser)
    table, known = (batch.resource(need).by(tokeniser) for need in (Need.EMBEDDINGS, Need.VOCABULARY))
    train: TrainText = batch.resource(Need.TRAIN)
    return batch.derived(
        ("average vectors", need, tokeniser),
        lambda: WordValues.of(table, known, train.shares(1, tokeniser, "unk")).averages(words),
    )


def extrema_vectors(batch: Batch, need: Need, tokeniser: Tokeniser) -> TextVectors:
    """The extrema of a batch's texts; computed once for all metrics of the batch."""
    words = tokens(batch, need, tokeniser)
    table, known = (batch.resource(need).by(tokeniser) for need in (Need.EMBEDDINGS, Need.VOCABULARY))
    return batch.derived(("extrema vectors", need, tokeniser), lambda: WordValues.of(table, known, None).extrema(words))


def cosines(left: TextVectors, right: TextVectors, owners: Ints) -> Floats:
    """The cosine of each right vector `j` and the left vector `owners[j]`; NaN where one has no known word or is 0."""
    result = np.empty(len(owners))
    _kernel.cosines(right.vectors, left.vectors, owners, result)
    result[(left.counted[owners] == 0) | (right.counted == 0)] = np.nan
    return result


def greedy_matches(batch: Batch, owners: Ints, tokeniser: Tokeniser) -> Floats:
    """The greedy matching of each reference text `j` and the response of row `owners[j]`."""
    responses, references = tokens(batch, Need.RESPONSE, tokeniser), tokens(batch, Need.REFERENCE, tokeniser)
    table: VectorTable = batch.resource(Need.EMBEDDINGS).by(tokeniser)
    rows, matrix, lengths = table.lengths()
    result = np.empty(len(references))
    best = np.empty(int(references.lengths.max(initial=0)))
    texts = (responses.ids, responses.offsets, owners, references.ids, references.offsets)
    _kernel.greedy(*texts, rows, matrix, lengths, best, result)
    return result
