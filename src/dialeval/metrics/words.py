"""Word statistics of responses: length, entropy under the training text, KL divergence from the references."""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Lock
from typing import Literal

import numpy as np
import numpy.typing as npt

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ids, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.fingerprint import short_digest
from dialeval.core.fold import Fact, RowMetric
from dialeval.io.vectors import WordVectors
from dialeval.text.ngrams import (
    COUNTED_TEXTS,
    NgramColumn,
    NgramCounts,
    NgramValues,
    count_texts,
    ngram_counts,
    ngrams,
    row_sums,
)
from dialeval.text.tokenizers import DEFAULT, UNKNOWN, Oov, Tokenizer, tokenize, tokens
from dialeval.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Length(RowMetric):
    """Number of words in the response.

    Response length: the number of words of a response.

        length = number of tokens

    An empty response has length 0 and is scored: no answer is an answer of length zero. Length is the control for every
    other metric, since many of them move with it.

    The same as in dialog-eval.
    """

    family = "length"
    needs = frozenset({inputs.RESPONSE})
    bounds = (0.0, math.inf)

    tokenizer: Tokenizer = DEFAULT

    def score(self, batch: Batch) -> Floats:
        return tokens(batch, inputs.RESPONSE, self.tokenizer).lengths.astype(np.float64)


@dataclass(frozen=True)
class TrainEntropy(RowMetric):
    """How uncommon the words of the response are in the training text, in bits.

    Entropy of responses under the word distribution of the training text: how uncommon their words are.

        H(word)                  = -log2 p(word), p = share of the word in the training text
        per-unigram-entropy      = mean of H over the words of the response that occur in the training text
        utterance-unigram-entropy = sum of the same
        per-bigram-, utterance-bigram-entropy: the same over pairs of neighboring words and their shares

    High values mean rare words, not good answers: a response of nonsense that the training text happens to hold scores
    high. The value per utterance grows with length.

    Papers: Serban et al. 2017, "A Hierarchical Latent Variable Encoder-Decoder Model for Generating Dialogues", AAAI;
    Csáky et al. 2019, "Improving Neural Conversational Models with Entropy-Based Data Filtering", ACL.

    Edge cases: words (pairs) that the training text does not have are left out, so the utterance value is a sum over
    words of that text and not the word value times length. With `oov=unk` words outside the vocabulary (a list, word
    vectors, or else all words of the training text) count as `<unk>` in both texts; `<unk>` has a share only if the
    training text has such words. A response without a word (pair) of the training text is not scored.

    With `oov=unk` (`-m dialog-eval`) the same as in dialog-eval, which takes the source side of the training text.
    """

    family = "train-entropy"
    presets = {
        "per-unigram-entropy": {"n": 1, "per": "word"},
        "per-bigram-entropy": {"n": 2, "per": "word"},
        "utterance-unigram-entropy": {"n": 1, "per": "utterance"},
        "utterance-bigram-entropy": {"n": 2, "per": "utterance"},
    }
    needs = frozenset({inputs.RESPONSE, inputs.TRAIN})
    bounds = (0.0, math.inf)
    definition = 2

    n: Literal[1, 2] = 1
    per: Literal["word", "utterance"] = "word"
    oov: Oov = "self"
    tokenizer: Tokenizer = DEFAULT

    def score(self, batch: Batch) -> Floats:
        total, scored = batch.derive(("train entropy", self.n, self.oov, self.tokenizer), lambda: self._sum_bits(batch))
        if self.per == "utterance":
            return np.where(scored > 0, total, np.nan)
        with np.errstate(invalid="ignore"):  # 0 / 0: nothing of the response occurs in the training text
            return total / scored

    def _sum_bits(self, batch: Batch) -> tuple[Floats, Floats]:
        train: TrainText = batch.resource(inputs.TRAIN)
        column = ngrams(batch, inputs.RESPONSE, self.n, self.tokenizer, self.oov)
        bits = -np.log2(train.compute_shares(self.n, self.tokenizer, self.oov).look_up(column.keys))
        total, scored = row_sums(bits, column.offsets)
        return total, scored.astype(np.float64)


BothCounts = tuple[NgramCounts, NgramCounts]
"""The n-gram counts of responses and of references."""


@dataclass(frozen=True)
class LogRatios(Fact[BothCounts, NgramValues]):
    """log2(p / q) of every n-gram that both the references (p) and the responses (q) of all rows have."""

    n: int
    oov: Oov
    tokenizer: Tokenizer

    grows = True

    def empty(self) -> BothCounts:
        return NgramCounts.empty(self.n), NgramCounts.empty(self.n)

    def gather(self, batch: Batch) -> BothCounts:
        settings = (self.n, self.tokenizer, self.oov)
        return ngram_counts(batch, inputs.RESPONSE, *settings), ngram_counts(batch, inputs.REFERENCE, *settings)

    def merge(self, left: BothCounts, right: BothCounts) -> BothCounts:
        return left[0].merge(right[0]), left[1].merge(right[1])

    def split_state(self, state: BothCounts, parts: int) -> list[BothCounts]:
        return list(zip(state[0].split(parts), state[1].split(parts), strict=True))

    def close_part(self, state: BothCounts) -> BothCounts:
        """Return the n-grams that both have: those of one side alone have no ratio, and count for none."""
        keys, references, responses = state[1].intersect(state[0])
        form = (self.n, state[1].vocabulary, keys[:, None])
        return NgramCounts(*form, responses), NgramCounts(*form, references)

    def finish(self, state: BothCounts) -> NgramValues:
        keys, references, responses = state[1].intersect(state[0])
        ratios = references / max(int(references.sum(dtype=np.int64)), 1)
        ratios /= responses / max(int(responses.sum(dtype=np.int64)), 1)
        return NgramValues(keys, np.log2(ratios, out=ratios), self.n, state[1].vocabulary)


@dataclass(frozen=True)
class KlDivergence(RowMetric):
    """KL divergence of the word distribution of the responses from that of the references, in bits.

        unigram-kl-div = mean over the words w of the reference of log2(p(w) / q(w))

    where p and q are the fractions of w among the words of all references and all responses, limited to words that both
    have and made to sum to 1 again. bigram-kl-div is the same over pairs of neighboring words.

    So a row's value does not depend on the row's response, only on its reference and on the two distributions; the mean
    weights all references equally, whatever their length. It may be negative. Near 0 means that the responses as a
    whole use words as often as the references do; it says nothing of single responses.

    It has no confidence interval and is not tested: the distribution of the responses is a single statistic of all
    rows. Resampling rows or swapping dialogues between systems would change the references alone, and two equal systems
    that speak unlike the references would differ significantly, the more often the more data there are. The values also
    depend on how much text there is, so compare systems on equal numbers of responses.

    Paper: Csáky et al. 2019, "Improving Neural Conversational Models with Entropy-Based Data Filtering", ACL.

    Edge cases: with `oov=unk` words outside the vocabulary count as `<unk>` in the distributions. A word of the
    reference is looked up as it stands, so that unknown words of a row do not count, neither alone nor as the first
    word of a pair; the second word of a pair does count as `<unk>`. That is the way of dialog-eval, and `-m
    dialog-eval` sets it; the default, `oov=self`, has no such asymmetry. A row without a word (pair) that both
    distributions have is not scored. With several references all of them count.
    """

    family = "kl-div"
    presets = {"unigram-kl-div": {"n": 1}, "bigram-kl-div": {"n": 2}}
    needs = frozenset({inputs.RESPONSE, inputs.REFERENCE})
    better = "lower"
    definition = 2
    untestable = (
        "it is of the words of all responses together, so its sampling error cannot be estimated from per-row scores"
    )

    n: Literal[1, 2] = 1
    oov: Oov = "self"
    tokenizer: Tokenizer = DEFAULT

    @property
    def facts(self) -> tuple[LogRatios]:
        return (LogRatios(self.n, self.oov, self.tokenizer),)

    def score(self, batch: Batch) -> Floats:
        ratios: NgramValues = batch.fact(self.facts[0])
        column = self._list_looked_up(batch)
        total, scored = row_sums(ratios.look_up(column.keys), column.offsets[batch.lists(inputs.REFERENCE).offsets])
        with np.errstate(invalid="ignore"):  # 0 / 0: nothing of the reference is in both distributions
            return total / scored

    def _list_looked_up(self, batch: Batch) -> NgramColumn:
        """Return the n-grams of the references as they are looked up: only the second word of a pair may be `<unk>`."""
        plain = tokens(batch, inputs.REFERENCE, self.tokenizer)
        if self.n == 1:
            return NgramColumn.of(plain, 1)
        unified = tokens(batch, inputs.REFERENCE, self.tokenizer, self.oov)
        return NgramColumn.of_pairs(plain, unified)


# Facts about the words of an evaluation: their vectors, whether they are in the vocabulary, and how often they occur
# in the training text.
#
# Each is an array over the ids of the evaluation's shared vocabulary and grows with it: only words that occur are ever
# looked up. All of it may be used by several threads at once.

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

    def collect_arrays(self) -> tuple[Ints, Floats]:
        """Return `rows` and `matrix` for every word that has occurred so far."""
        with self._lock:
            start, stop = len(self._rows), len(self._vocabulary)
            if start < stop:
                words = self._vocabulary.column().slice(start, stop)
                vectors, hit = self._vectors.vectors_for(list(words))
                self._rows = np.concatenate((self._rows, np.where(hit, self._used + np.cumsum(hit) - 1, -1)))
                self._append(vectors[hit])
            return self._rows, self._matrix[: self._used]

    def _append(self, vectors: Floats) -> None:
        """Append rows to the matrix; it is doubled when it is full, and views of the old one stay valid."""
        used = self._used + len(vectors)
        if used > len(self._matrix):
            larger = np.empty((max(2 * len(self._matrix), used), self._matrix.shape[1]))
            larger[: self._used] = self._matrix[: self._used]
            self._matrix = larger
        self._matrix[self._used : used] = vectors
        self._lengths = np.concatenate((self._lengths, np.sqrt((vectors * vectors).sum(axis=1))))
        self._used = used

    def compute_lengths(self) -> tuple[Ints, Floats, Floats]:
        """Return `rows`, `matrix` and the norm of each row; a word with a zero vector counts as one without."""
        rows, matrix = self.collect_arrays()
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
        self._listed = collect_words(listed, tokenizer) if isinstance(listed, TextColumn) else listed
        self._others: dict[Tokenizer, KnownWords] = {}
        self._unknown = vocabulary.add(TextColumn.from_strings([UNKNOWN]))[0]
        self._mask: Mask = np.empty(0, np.bool_)
        self._lock = Lock()

    @property
    def digest(self) -> str:
        """Which words are known, for signatures."""
        listed = self._listed.column().digest if self._listed else ""
        return short_digest(f"{listed} {self._vectors.digest if self._vectors else ''}")

    def with_tokenizer(self, tokenizer: Tokenizer) -> KnownWords:
        """Return the words that are known to a tokenizer: others where they are those of the training text."""
        if tokenizer == self._tokenizer or not isinstance(self._given, TextColumn):
            return self
        with self._lock:
            if tokenizer not in self._others:
                self._others[tokenizer] = KnownWords(self._vocabulary, self._given, self._vectors, tokenizer)
            return self._others[tokenizer]

    def find_known(self) -> Mask:
        """Return whether each word that has occurred so far is known."""
        with self._lock:
            start, stop = len(self._mask), len(self._vocabulary)
            if start < stop:
                listed = np.zeros(stop - start, np.bool_)
                if self._listed is not None:
                    listed |= self._listed.find(self._vocabulary.column().slice(start, stop)) >= 0
                if self._vectors is not None:
                    listed |= self._vectors.collect_arrays()[0][start:stop] >= 0
                self._mask = np.concatenate((self._mask, listed))
            return self._mask

    def replace_unknown(self, ids: Ids) -> Ids:
        """Return the ids with that of `<unk>` for every word that is not known."""
        return np.where(self.find_known()[ids], ids, self._unknown).astype(np.int32, copy=False)


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

    def compute_shares(self, n: int, tokenizer: Tokenizer, oov: Oov) -> NgramValues:
        """Return the relative frequency of each n-gram of one or two words."""
        key = (n, tokenizer, oov)
        with self._lock:
            if key not in self._shares:
                unified = self._known.with_tokenizer(tokenizer).replace_unknown if oov == "unk" else None
                counts = count_texts(self.texts, self._vocabulary, n, tokenizer, unified)
                shares = counts.counts / max(counts.total, 1)
                self._shares[key] = NgramValues(counts.keys[:, 0], shares, n, self._vocabulary)
            return self._shares[key]


def collect_words(texts: TextColumn, tokenizer: Tokenizer) -> Vocabulary:
    """Return every word of some texts."""
    vocabulary = Vocabulary()
    for start in range(0, len(texts), COUNTED_TEXTS):
        tokenize(texts.slice(start, start + COUNTED_TEXTS), vocabulary, tokenizer)
    return vocabulary
