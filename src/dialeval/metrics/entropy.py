"""Entropy of responses under the word distribution of the training text: how uncommon their words are.

    H(word)                  = -log2 p(word), p = share of the word in the training text
    per-unigram-entropy      = mean of H over the words of the response that occur in the training text
    utterance-unigram-entropy = sum of the same
    per-bigram-, utterance-bigram-entropy: the same over pairs of neighboring words and their shares

High values mean rare words, not good answers: a response of nonsense that the training text happens to hold scores
high. The value per utterance grows with length.

Papers: Serban et al. 2017, "A Hierarchical Latent Variable Encoder-Decoder Model for Generating Dialogues", AAAI; Csáky
et al. 2019, "Improving Neural Conversational Models with Entropy-Based Data Filtering", ACL.

Edge cases: words (pairs) that the training text does not have are left out, so the utterance value is a sum over known
words and not the word value times length. With `oov=unk` words outside the vocabulary (a list, word vectors, or else
all words of the training text) count as `<unk>` in both texts; `<unk>` has a share only if the training text has such
words. A response without a word (pair) of the training text is not scored.

With `oov=unk` (`-m dialog-eval`) the same as in dialog-eval, which takes the source side of the training text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch, Need
from dialeval.core.fold import RowMetric
from dialeval.metrics.word_resources import TrainText
from dialeval.text.ngrams import ngrams
from dialeval.text.resampled import row_sums
from dialeval.text.tokenizers import DEFAULT, Oov, Tokenizer


@dataclass(frozen=True)
class TrainEntropy(RowMetric):
    """How uncommon the words of the response are in the training text, in bits."""

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

    @property
    def wants(self) -> frozenset[Need]:
        return frozenset({Need.VOCABULARY}) if self.oov == "unk" else frozenset()

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
