"""Similarity in meaning by vectors of words and word pieces: embedding metrics, coherence, greedy matching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints, row_numbers
from dialeval.core.batch import Batch
from dialeval.core.columns import TokenColumn
from dialeval.core.fold import Bounds, RowMetric
from dialeval.core.inputs import Input
from dialeval.core.kernels import kernel
from dialeval.core.signature import Signature
from dialeval.metrics.encoder import SentenceVectors
from dialeval.metrics.words import KnownWords, Mask, TrainText, VectorTable
from dialeval.text.ngrams import NgramValues
from dialeval.text.tokenizers import DEFAULT, Oov, Tokenizer, tokens

# Kernels over word vectors: a vector for a text, and the greedy matching of two texts.
#
# Words come as ids. `known` says whether a word is in the vocabulary at all; `rows` gives its row in `matrix`, or -1
# for a known word without a vector, which stands for the zero vector. Sums may be reassociated by the compiler,
# always in the same way for the same text, so that results do not depend on batches or threads.

_FREE_ORDER = {"reassoc"}
"""Lets a sum of products use vector instructions, in one order for all processors (`tools/compile_kernels.py`)."""


@kernel("(i4[::1], i8[::1], b1[::1], i8[::1], f8[::1], f8[:, ::1], f8[:, ::1], i8[::1])", fastmath=_FREE_ORDER)
def weighted_means(ids, offsets, known, rows, weights, matrix, means, counted):  # type: ignore[no-untyped-def]
    """Fill `means` with the mean of weight * vector over in-vocabulary words of each text, and `counted`."""
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


@kernel("(i4[::1], i8[::1], b1[::1], i8[::1], f8[:, ::1], f8[:, ::1], i8[::1])")
def extrema(ids, offsets, known, rows, matrix, ends, counted):  # type: ignore[no-untyped-def]
    """Fill `ends` with the value of largest magnitude per dimension over in-vocabulary words, the first of ties."""
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


@kernel("(f8[:, ::1], f8[:, ::1], i8[::1], f8[::1])", fastmath=_FREE_ORDER)
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


@kernel(
    "(i4[::1], i8[::1], i8[::1], i4[::1], i8[::1], i8[::1], f8[:, ::1], f8[::1], f8[::1], f8[::1])",
    fastmath=_FREE_ORDER,
)
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
#     average = mean over the in-vocabulary words of SIF_WEIGHT / (SIF_WEIGHT + p(word)) * vector(word)
#     extrema = per dimension the value of largest magnitude among the vectors of the in-vocabulary words
#
# With `oov=self` the words with a vector are known. With `oov=unk`, as in dialog-eval, those of the vocabulary are,
# which `engine/resources.py` defines: other words have no vector, and a known word without a vector counts as the zero
# vector: it lengthens the divisor of the average and moves nothing. p is the word's share in the training text, 0 if it
# does not occur there. Words that are not known are left out.

TextVector: TypeAlias = Literal["average", "extrema"]

SIF_WEIGHT = 0.001
"""Frequent words weigh less: Arora et al. 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings", ICLR."""


@dataclass(frozen=True, eq=False, slots=True)
class TextVectors:
    """One vector per text, and the number of in-vocabulary words it was made of."""

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
        rows, matrix = vectors.collect_arrays()
        rows, mask = _find_known_rows(rows, known)
        p = np.zeros(len(rows)) if shares is None else np.nan_to_num(shares.look_up(np.arange(len(rows))))
        return cls(mask, rows, matrix, SIF_WEIGHT / (SIF_WEIGHT + p))

    def average_texts(self, texts: TokenColumn) -> TextVectors:
        """Return the weighted averages of texts."""
        means, counted = np.empty((len(texts), self.matrix.shape[1])), np.empty(len(texts), np.int64)
        words = (self.known, self.rows, self.weights, self.matrix)
        weighted_means(texts.ids, texts.offsets, *words, means, counted)
        return TextVectors(means, counted)

    def find_extrema(self, texts: TokenColumn) -> TextVectors:
        """Return the extrema of texts."""
        ends, counted = np.empty((len(texts), self.matrix.shape[1])), np.empty(len(texts), np.int64)
        extrema(texts.ids, texts.offsets, self.known, self.rows, self.matrix, ends, counted)
        return TextVectors(ends, counted)


def _find_known_rows(rows: Ints, known: KnownWords | None) -> tuple[Ints, Mask]:
    """Return the row of each word's vector, -1 for words that are not known, and which words are known."""
    if known is None:
        return rows, rows >= 0
    mask = known.find_known()
    size = min(len(rows), len(mask))  # another thread may have met new words in between
    return np.where(mask[:size], rows[:size], -1), mask[:size]


def _find_vocabulary(batch: Batch, tokenizer: Tokenizer, oov: Oov) -> KnownWords | None:
    """Return the vocabulary that limits which words have a vector; None where there is none."""
    limited = oov == "unk" and batch.has(inputs.VOCABULARY)
    return batch.resource(inputs.VOCABULARY).with_tokenizer(tokenizer) if limited else None


def embed_texts(batch: Batch, need: Input, by: TextVector, tokenizer: Tokenizer, oov: Oov) -> TextVectors:
    """Return the weighted averages or the extrema of a batch's texts; computed once for all metrics of the batch."""

    def compute() -> TextVectors:
        table: VectorTable = batch.resource(inputs.EMBEDDINGS)
        known_words = _find_vocabulary(batch, tokenizer, oov)
        if by == "extrema":
            return WordValues.of(table, known_words, None).find_extrema(words)
        train: TrainText = batch.resource(inputs.TRAIN)
        return WordValues.of(table, known_words, train.compute_shares(1, tokenizer, oov)).average_texts(words)

    words = tokens(batch, need, tokenizer)
    return batch.derive((by, "vectors", need, tokenizer, oov), compute)


def cosines(left: TextVectors, right: TextVectors, owners: Ints) -> Floats:
    """Return the cosine of right vector `j` and left vector `owners[j]`; NaN where one has no known word or is 0."""
    result = np.empty(len(owners))
    fill_cosines(right.vectors, left.vectors, owners, result)
    result[(left.counted[owners] == 0) | (right.counted == 0)] = np.nan
    return result


def compute_greedy_matches(batch: Batch, owners: Ints, tokenizer: Tokenizer, oov: Oov) -> Floats:
    """Return the greedy matching of each reference text `j` and the response of row `owners[j]`."""
    responses, references = tokens(batch, inputs.RESPONSE, tokenizer), tokens(batch, inputs.REFERENCE, tokenizer)
    table: VectorTable = batch.resource(inputs.EMBEDDINGS)
    rows, matrix, lengths = table.compute_lengths()
    rows, _ = _find_known_rows(rows, _find_vocabulary(batch, tokenizer, oov))
    result = np.empty(len(references))
    best = np.empty(int(references.lengths.max(initial=0)))
    texts = (responses.ids, responses.offsets, owners, references.ids, references.offsets)
    greedy(*texts, rows, matrix, lengths, best, result)
    return result


@dataclass(frozen=True)
class Embedding(RowMetric):
    """Semantic similarity of response and reference, by word vectors.

    Embedding similarity: how close a response is to its reference in meaning, by word vectors.

        embedding-average = cosine of the weighted averages of the two texts' word vectors
        embedding-extrema = cosine of the two vectors of per-dimension extremes
        embedding-greedy  = (m(response, reference) + m(reference, response)) / 2
        m(a, b)           = mean over the words of a of the largest cosine with a word of b, at least 0

    Only words with a vector count in the vector of a text, and words that are frequent in the training text weigh less
    in the average. With several references the best one counts.

    Papers: Liu et al. 2016, "How NOT To Evaluate Your Dialogue System", EMNLP; Forgues et al. 2014, "Bootstrapping
    Dialog Systems with Word Embeddings" (extrema); Rus and Lintean 2012, "A Comparison of Greedy and Optimal Assessment
    of Natural Language Student Input Using Word-to-Word Similarity Metrics", BEA (greedy).

    Edge cases: a text without a known word, or whose vector is zero, cannot be compared: the row is not scored. In the
    greedy matching words with a zero vector do not count, a negative cosine counts as 0, and a side that comes to
    exactly 0 leaves the row without a score. With `oov=unk` (`-m dialog-eval`) all of it as in dialog-eval; there a
    word2vec header or a short line in the vector file ends the run.
    """

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
    def bounds(self) -> Bounds:  # type: ignore[override]
        return (0.0 if self.by == "greedy" else -1.0, 1.0)

    @property
    def needs(self) -> frozenset[Input]:  # type: ignore[override]
        weighted = {inputs.TRAIN} if self.by == "average" else set()
        return frozenset({inputs.RESPONSE, inputs.REFERENCE, inputs.EMBEDDINGS} | weighted)

    def signature(self) -> Signature:
        plain = super().signature()
        return plain.with_fields(weight=SIF_WEIGHT) if self.by == "average" else plain

    def score(self, batch: Batch) -> Floats:
        owners = row_numbers(batch.lists(inputs.REFERENCE).offsets)
        if self.by == "greedy":
            values = compute_greedy_matches(batch, owners, self.tokenizer, self.oov)
        else:
            sides = (inputs.RESPONSE, inputs.REFERENCE)
            response, reference = (embed_texts(batch, need, self.by, self.tokenizer, self.oov) for need in sides)
            values = cosines(response, reference, owners)
        best = np.full(len(batch), -np.inf)
        np.fmax.at(best, owners, values)
        return np.where(np.isinf(best), np.nan, best)


@dataclass(frozen=True)
class Coherence(RowMetric):
    """Semantic similarity of the response and its context, by word vectors.

    Coherence: how close a response is in meaning to what it answers.

        coherence = cosine of the weighted averages of the word vectors of the context's last turn and of the response

    The average is that of `embedding-average`.

    A response that repeats its context is perfectly coherent by this measure: read it together with others.

    Paper: Xu et al. 2018, "Better Conversations by Modeling, Filtering, and Optimizing for Coherence and Diversity",
    EMNLP.

    Edge cases: a row without a context, a text without a known word, or one whose average is the zero vector, is not
    scored. With `oov=unk` (`-m dialog-eval`) the same as in dialog-eval.
    """

    family = "coherence"
    needs = frozenset({inputs.RESPONSE, inputs.CONTEXT, inputs.EMBEDDINGS, inputs.TRAIN})
    better = "higher"
    bounds = (-1.0, 1.0)
    definition = 2

    oov: Oov = "self"
    tokenizer: Tokenizer = DEFAULT

    def signature(self) -> Signature:
        plain = super().signature()
        return Signature(plain.metric, (("turns", "last"), *plain.fields)).with_fields(weight=SIF_WEIGHT)

    def score(self, batch: Batch) -> Floats:
        sides = (inputs.CONTEXT, inputs.RESPONSE)
        turns, response = (embed_texts(batch, need, "average", self.tokenizer, self.oov) for need in sides)
        contexts = batch.contexts()
        if not len(turns.counted):
            return np.full(len(batch), np.nan)
        last = np.maximum(contexts.ends - 1, 0)  # of a row without a context some turn, which does not count
        return np.where(contexts.ends > contexts.starts, cosines(turns, response, last), np.nan)


@dataclass(frozen=True)
class GreedyMatch(RowMetric):
    """Similarity of response and reference, word piece by word piece, by contextual embeddings; alias `bertscore`.

    Greedy matching of contextual vectors: BERTScore's formula on the shipped sentence encoder; also called `bertscore`.

        P = mean over word pieces of the response of the largest cosine with a piece of the reference
        R = mean over word pieces of the reference of the largest cosine with a piece of the response
        greedy-match = 2 P R / (P + R)

    The vector of a word piece is that of the encoder's last layer, which has read the whole text. It is not BERTScore:
    that one takes a middle layer of a larger model (RoBERTa) and often a baseline, so figures do not compare; the
    formula is the same, without weights by rarity and without rescaling. With several references the best one counts.

    What it is good for: paraphrases that share no word. What it is not: a test of facts. Names and numbers that differ
    cost little, and any two English sentences are rather close; read it next to its floors (`--baselines`).

    Paper: Zhang et al. 2020, "BERTScore: Evaluating Text Generation with BERT", ICLR.

    Edge cases: the marks of beginning and end are no pieces of their own, but a piece may be nearest to one, as in
    BERTScore; a negative cosine counts as 0, as it does there in a batch with longer texts. A text without a word piece
    scores 0; a row without any reference is not scored. Of a long text the first 128 pieces count.
    """

    family = "greedy-match"
    needs = frozenset({inputs.RESPONSE, inputs.REFERENCE, inputs.ENCODER})
    costly = True
    better = "higher"
    bounds = (0.0, 1.0)

    def score(self, batch: Batch) -> Floats:
        encoder: SentenceVectors = batch.resource(inputs.ENCODER)
        references = batch.lists(inputs.REFERENCE)
        here, there = list(batch.texts(inputs.RESPONSE)), list(references.values)
        vectors = _make_unit_vectors(encoder, [*here, *there])
        owners = row_numbers(references.offsets)
        best = np.full(len(here), np.nan)
        for row, reference in zip(owners.tolist(), there, strict=True):
            best[row] = np.fmax(best[row], match_greedily(vectors[here[row]], vectors[reference]))
        return best


def match_greedily(response: Floats, reference: Floats) -> float:
    """Return the F1 of two texts, from their unit vectors, the marks of beginning and end among them."""
    if len(response) < 3 or len(reference) < 3:
        return 0.0
    cosines = np.clip(response @ reference.T, 0, 1)
    precision, recall = cosines[1:-1].max(axis=1).mean(), cosines[:, 1:-1].max(axis=0).mean()
    return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


def _make_unit_vectors(encoder: SentenceVectors, texts: Sequence[str]) -> dict[str, Floats]:
    """Return the vectors of every different text, each of length 1."""
    values: dict[str, Floats] = {}
    for text, vectors in dict(zip(texts, encoder.encode_tokens(texts), strict=True)).items():
        wide = vectors.astype(np.float64)
        lengths = np.sqrt((wide * wide).sum(axis=1))[:, None]
        values[text] = wide / np.where(lengths == 0, 1, lengths)
    return values
