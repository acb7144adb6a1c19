"""Embedding similarity: how close a response is to its reference in meaning, by word vectors.

    embedding-average = cosine of the weighted averages of the two texts' word vectors
    embedding-extrema = cosine of the two vectors of per-dimension extremes
    embedding-greedy  = (m(response, reference) + m(reference, response)) / 2, where m(a, b) is the mean over the words
                        of a of the largest cosine with a word of b, at least 0

`vectors` says how a text becomes a vector: only words with a vector count, and words that are frequent in the training
text weigh less in the average. With several references the best one counts.

Papers: Liu et al. 2016, "How NOT To Evaluate Your Dialogue System", EMNLP; Forgues et al. 2014, "Bootstrapping Dialog
Systems with Word Embeddings" (extrema); Rus and Lintean 2012, "A Comparison of Greedy and Optimal Assessment of Natural
Language Student Input Using Word-to-Word Similarity Metrics", BEA (greedy).

Edge cases: a text without a known word, or whose vector is zero, cannot be compared: the row is not scored. In the
greedy matching words with a zero vector do not count, a negative cosine counts as 0, and a side that comes to exactly
0 leaves the row without a score. With `oov=unk` (`-m dialog-eval`) all of it as in dialog-eval; there a word2vec header
or a short line in the vector file ends the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dialeval.core.arrays import Floats, Ints, row_numbers
from dialeval.core.batch import Batch, Need
from dialeval.core.columns import TokenColumn
from dialeval.core.fold import Bounds, RowMetric
from dialeval.core.kernels import kernel
from dialeval.core.signature import Signature
from dialeval.metrics.word_resources import KnownWords, Mask, TrainText, VectorTable
from dialeval.text.resampled import NgramValues
from dialeval.text.tokenizers import DEFAULT, Oov, Tokenizer, tokens

# Kernels over word vectors: a vector for a text, and the greedy matching of two texts.
#
# Words come as ids. `known` says whether a word is in the vocabulary at all; `rows` gives its row in `matrix`, or -1
# for a known word without a vector, which stands for the zero vector. Sums may be reassociated by the compiler,
# always in the same way for the same text, so that results do not depend on batches or threads.

_FREE_ORDER = {"reassoc", "contract"}
"""Lets a sum of products use vector instructions; nothing else of IEEE arithmetic is given up."""


@kernel(fastmath=_FREE_ORDER)
def weighted_means(ids, offsets, known, rows, weights, matrix, means, counted):  # type: ignore[no-untyped-def]
    """Fill `means` with the mean of weight * vector over the known words of each text, `counted` with their number."""
    size = matrix.shape[1]
    for text in range(means.shape[0]):
        words = 0
        for k in range(size):
            means[text, k] = 0.0
        for i in range(offsets[text], offsets[text + 1]):
            if known[ids[i]]:
                words += 1
                row = rows[ids[i]]
                if row >= 0:
                    weight = weights[ids[i]]
                    for k in range(size):
                        means[text, k] += weight * matrix[row, k]
        for k in range(size):
            means[text, k] /= max(words, 1)
        counted[text] = words


@kernel
def extrema(ids, offsets, known, rows, matrix, ends, counted):  # type: ignore[no-untyped-def]
    """Fill `ends` with the value of largest magnitude per dimension over the known words, the first of equal ones."""
    size = matrix.shape[1]
    for text in range(ends.shape[0]):
        words = 0
        for k in range(size):
            ends[text, k] = 0.0
        for i in range(offsets[text], offsets[text + 1]):
            if known[ids[i]]:
                words += 1
                row = rows[ids[i]]
                if row >= 0:
                    for k in range(size):
                        # The zero that stands there at first loses to everything but zero, so the first word wins ties.
                        if abs(matrix[row, k]) > abs(ends[text, k]):
                            ends[text, k] = matrix[row, k]
        counted[text] = words


@kernel
def sums_of_texts(vectors, counted, starts, ends, sums, words):  # type: ignore[no-untyped-def]
    """Fill `sums` with the sum of vector * words over the texts of each row, from first to last, `words` likewise.

    A row that continues the texts of the row before goes on with its sum: a chat takes as long as it has messages.
    """
    size = vectors.shape[1]
    for row in range(starts.shape[0]):
        start = starts[row]
        words[row] = 0
        for k in range(size):
            sums[row, k] = 0.0
        if row > 0 and starts[row - 1] == start and ends[row - 1] <= ends[row]:
            start = ends[row - 1]
            words[row] = words[row - 1]
            for k in range(size):
                sums[row, k] = sums[row - 1, k]
        for text in range(start, ends[row]):
            words[row] += counted[text]
            for k in range(size):
                sums[row, k] += vectors[text, k] * counted[text]


@kernel(fastmath=_FREE_ORDER)
def fill_cosines(left, right, which, result):  # type: ignore[no-untyped-def]
    """Fill `result` with the cosine of `left[i]` and `right[which[i]]`; NaN where either is the zero vector."""
    for i in range(result.shape[0]):
        product = 0.0
        square = 0.0
        other = 0.0
        for k in range(left.shape[1]):
            a = left[i, k]
            b = right[which[i], k]
            product += a * b
            square += a * a
            other += b * b
        result[i] = product / (np.sqrt(square) * np.sqrt(other)) if square > 0.0 and other > 0.0 else np.nan


@kernel(fastmath=_FREE_ORDER)
def greedy(ids, offsets, owners, other_ids, other_offsets, rows, matrix, lengths, best, result):  # type: ignore[no-untyped-def]
    """Fill `result` with the greedy matching of text `owners[j]` and other text `j`, for every `j`.

    `lengths` are those of the vectors in `matrix`; a word whose vector is zero has no row. `best` is scratch, as long
    as the longest other text. NaN where a text has no word with a vector, or where one side matches nothing at all.
    """
    size = matrix.shape[1]
    for j in range(result.shape[0]):
        start = other_offsets[j]
        end = other_offsets[j + 1]
        words = 0
        others = 0
        for b in range(start, end):
            best[b - start] = 0.0
            if rows[other_ids[b]] >= 0:
                others += 1
        total = 0.0
        for a in range(offsets[owners[j]], offsets[owners[j] + 1]):
            row = rows[ids[a]]
            if row < 0:
                continue
            words += 1
            nearest = 0.0
            for b in range(start, end):
                other = rows[other_ids[b]]
                if other < 0:
                    continue
                product = 0.0
                for k in range(size):
                    product += matrix[row, k] * matrix[other, k]
                similarity = product / (lengths[row] * lengths[other])
                if similarity > nearest:
                    nearest = similarity
                if similarity > best[b - start]:
                    best[b - start] = similarity
            total += nearest
        back = 0.0
        for b in range(end - start):
            back += best[b]
        result[j] = (total / words + back / others) / 2.0 if total > 0.0 and back > 0.0 else np.nan


# Vectors of texts, out of the vectors of their words; shared by the embedding metrics and coherence.
#
#     average = mean over the known words of SIF_WEIGHT / (SIF_WEIGHT + p(word)) * vector(word)
#     extrema = per dimension the value of largest magnitude among the vectors of the known words
#
# With `oov=self` the words with a vector are known. With `oov=unk`, as in dialog-eval, those of the vocabulary are,
# which `engine/resources.py` defines: other words have no vector, and a known word without a vector counts as the
# zero
# vector:
# it lengthens the divisor of the average and moves nothing. p is the word's share in the training text, 0 if it does
# not occur there. Words that are not known are left out.

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
        weighted_means(texts.ids, texts.offsets, *words, means, counted)
        return TextVectors(means, counted)

    def extrema(self, texts: TokenColumn) -> TextVectors:
        """Return the extrema of texts."""
        ends, counted = np.empty((len(texts), self.matrix.shape[1])), np.empty(len(texts), np.int64)
        extrema(texts.ids, texts.offsets, self.known, self.rows, self.matrix, ends, counted)
        return TextVectors(ends, counted)


def _rows_of_known(rows: Ints, known: KnownWords | None) -> tuple[Ints, Mask]:
    """Return the row of each word's vector, -1 for words that are not known, and which words are known."""
    if known is None:
        return rows, rows >= 0
    mask = known.mask()
    size = min(len(rows), len(mask))  # another thread may have met new words in between
    return np.where(mask[:size], rows[:size], -1), mask[:size]


def _vocabulary(batch: Batch, tokenizer: Tokenizer, oov: Oov) -> KnownWords | None:
    """Return the vocabulary that limits which words have a vector; None where there is none."""
    limited = oov == "unk" and batch.has(Need.VOCABULARY)
    return batch.resource(Need.VOCABULARY).by(tokenizer) if limited else None


def text_vectors(batch: Batch, need: Need, by: TextVector, tokenizer: Tokenizer, oov: Oov) -> TextVectors:
    """Return the weighted averages or the extrema of a batch's texts; computed once for all metrics of the batch."""

    def compute() -> TextVectors:
        table: VectorTable = batch.resource(Need.EMBEDDINGS)
        known = _vocabulary(batch, tokenizer, oov)
        if by == "extrema":
            return WordValues.of(table, known, None).extrema(words)
        train: TrainText = batch.resource(Need.TRAIN)
        return WordValues.of(table, known, train.shares(1, tokenizer, oov)).averages(words)

    words = tokens(batch, need, tokenizer)
    return batch.derived((by, "vectors", need, tokenizer, oov), compute)


def cosines(left: TextVectors, right: TextVectors, owners: Ints) -> Floats:
    """Return the cosine of right vector `j` and left vector `owners[j]`; NaN where one has no known word or is 0."""
    result = np.empty(len(owners))
    fill_cosines(right.vectors, left.vectors, owners, result)
    result[(left.counted[owners] == 0) | (right.counted == 0)] = np.nan
    return result


def greedy_matches(batch: Batch, owners: Ints, tokenizer: Tokenizer, oov: Oov) -> Floats:
    """Return the greedy matching of each reference text `j` and the response of row `owners[j]`."""
    responses, references = tokens(batch, Need.RESPONSE, tokenizer), tokens(batch, Need.REFERENCE, tokenizer)
    table: VectorTable = batch.resource(Need.EMBEDDINGS)
    rows, matrix, lengths = table.lengths()
    rows, _ = _rows_of_known(rows, _vocabulary(batch, tokenizer, oov))
    result = np.empty(len(references))
    best = np.empty(int(references.lengths.max(initial=0)))
    texts = (responses.ids, responses.offsets, owners, references.ids, references.offsets)
    greedy(*texts, rows, matrix, lengths, best, result)
    return result


@dataclass(frozen=True)
class Embedding(RowMetric):
    """Closeness of response and reference in meaning, by word vectors."""

    family = "embedding"
    presets = {
        "embedding-average": {"by": "average"},
        "embedding-extrema": {"by": "extrema"},
        "embedding-greedy": {"by": "greedy"},
    }
    better = "higher"
    definition = 2

    by: Literal["average", "extrema", "greedy"] = "average"
    oov: Oov = "self"
    tokenizer: Tokenizer = DEFAULT

    @property
    def wants(self) -> frozenset[Need]:
        return frozenset({Need.VOCABULARY}) if self.oov == "unk" else frozenset()

    @property
    def bounds(self) -> Bounds:
        return (0.0 if self.by == "greedy" else -1.0, 1.0)

    @property
    def needs(self) -> frozenset[Need]:
        weighted = {Need.TRAIN} if self.by == "average" else set()
        return frozenset({Need.RESPONSE, Need.REFERENCE, Need.EMBEDDINGS} | weighted)

    def signature(self) -> Signature:
        plain = super().signature()
        return plain.with_fields(weight=SIF_WEIGHT) if self.by == "average" else plain

    def score(self, batch: Batch) -> Floats:
        owners = row_numbers(batch.lists(Need.REFERENCE).offsets)
        if self.by == "greedy":
            values = greedy_matches(batch, owners, self.tokenizer, self.oov)
        else:
            sides = (Need.RESPONSE, Need.REFERENCE)
            response, reference = (text_vectors(batch, need, self.by, self.tokenizer, self.oov) for need in sides)
            values = cosines(response, reference, owners)
        best = np.full(len(batch), -np.inf)
        np.fmax.at(best, owners, values)
        return np.where(np.isinf(best), np.nan, best)
