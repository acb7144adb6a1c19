"""Word statistics of responses: length, entropy under the training text, KL divergence from the references."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch, Need
from dialeval.core.fold import Fact, RowMetric
from dialeval.metrics.word_resources import TrainText
from dialeval.text.ngrams import NgramColumn, NgramCounts, ngram_counts, ngrams
from dialeval.text.resampled import NgramValues, row_sums
from dialeval.text.tokenizers import DEFAULT, Oov, Tokenizer, tokens


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
    presets = {"length": {}}
    needs = frozenset({Need.RESPONSE})
    bounds = (0.0, math.inf)

    tokenizer: Tokenizer = DEFAULT

    def score(self, batch: Batch) -> Floats:
        return tokens(batch, Need.RESPONSE, self.tokenizer).lengths.astype(np.float64)


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
    needs = frozenset({Need.RESPONSE, Need.TRAIN})
    bounds = (0.0, math.inf)
    definition = 2

    n: Literal[1, 2] = 1
    per: Literal["word", "utterance"] = "word"
    oov: Oov = "self"
    tokenizer: Tokenizer = DEFAULT

    def score(self, batch: Batch) -> Floats:
        total, scored = batch.derived(("train entropy", self.n, self.oov, self.tokenizer), lambda: self._sums(batch))
        if self.per == "utterance":
            return np.where(scored > 0, total, np.nan)
        with np.errstate(invalid="ignore"):  # 0 / 0: nothing of the response occurs in the training text
            return total / scored

    def _sums(self, batch: Batch) -> tuple[Floats, Floats]:
        train: TrainText = batch.resource(Need.TRAIN)
        column = ngrams(batch, Need.RESPONSE, self.n, self.tokenizer, self.oov)
        bits = -np.log2(train.shares(self.n, self.tokenizer, self.oov).of_keys(column.keys))
        total, scored = row_sums(bits, column.offsets)
        return total, scored.astype(np.float64)


@dataclass(frozen=True, slots=True)
class BothCounts:
    """The n-gram counts of responses and references."""

    responses: NgramCounts
    references: NgramCounts


@dataclass(frozen=True)
class LogRatios(Fact[BothCounts, NgramValues]):
    """log2(p / q) of every n-gram that both the references (p) and the responses (q) of all rows have."""

    n: int
    oov: Oov
    tokenizer: Tokenizer

    def empty(self) -> BothCounts:
        return BothCounts(NgramCounts.empty(self.n), NgramCounts.empty(self.n))

    def gather(self, batch: Batch) -> BothCounts:
        return BothCounts(
            ngram_counts(batch, Need.RESPONSE, self.n, self.tokenizer, self.oov),
            ngram_counts(batch, Need.REFERENCE, self.n, self.tokenizer, self.oov),
        )

    def merge(self, left: BothCounts, right: BothCounts) -> BothCounts:
        return BothCounts(left.responses.merge(right.responses), left.references.merge(right.references))

    grows = True

    def cut(self, state: BothCounts, parts: int) -> list[BothCounts]:
        sides = zip(state.responses.cut(parts), state.references.cut(parts), strict=True)
        return [BothCounts(*pair) for pair in sides]

    def closed(self, state: BothCounts) -> BothCounts:
        """Return the n-grams that both have: those of one side alone have no ratio, and count for none."""
        keys, references, responses = state.references.shared(state.responses)
        vocabulary = state.references.vocabulary
        return BothCounts(
            NgramCounts(self.n, vocabulary, keys[:, None], responses),
            NgramCounts(self.n, vocabulary, keys[:, None], references),
        )

    def finish(self, state: BothCounts) -> NgramValues:
        keys, references, responses = state.references.shared(state.responses)
        ratios = references / max(int(references.sum(dtype=np.int64)), 1)
        ratios /= responses / max(int(responses.sum(dtype=np.int64)), 1)
        return NgramValues(keys, np.log2(ratios, out=ratios), self.n, state.references.vocabulary)


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
    needs = frozenset({Need.RESPONSE, Need.REFERENCE})
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
        column = self._looked_up(batch)
        total, scored = row_sums(ratios.of_keys(column.keys), column.offsets[batch.lists(Need.REFERENCE).offsets])
        with np.errstate(invalid="ignore"):  # 0 / 0: nothing of the reference is in both distributions
            return total / scored

    def _looked_up(self, batch: Batch) -> NgramColumn:
        """Return the n-grams of the references as they are looked up: only the second word of a pair may be `<unk>`."""
        plain = tokens(batch, Need.REFERENCE, self.tokenizer)
        if self.n == 1:
            return NgramColumn.of(plain, 1)
        unified = tokens(batch, Need.REFERENCE, self.tokenizer, self.oov)
        return NgramColumn.pairs(plain, unified)
