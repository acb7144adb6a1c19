"""Coherence: how close a response is in meaning to what it answers.

    coherence = cosine of the weighted averages of the word vectors of the context's last turn and of the response

The average is that of `embedding-average` (see `vectors`). `turns=all` takes the words of the whole context instead of
its last turn; for a file with one line of context per response the two are the same.

A response that repeats its context is perfectly coherent by this measure: read it together with others.

Paper: Xu et al. 2018, "Better Conversations by Modeling, Filtering, and Optimizing for Coherence and Diversity", EMNLP.

Edge cases: a row without a context, a text without a known word, or one whose average is the zero vector, is not
scored. With `oov=unk` (`-m dialog-eval`) the same as in dialog-eval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch, Need
from dialeval.core.fold import RowMetric
from dialeval.core.signature import Signature
from dialeval.metrics import embedding as _kernel
from dialeval.metrics.embedding import SIF_WEIGHT, TextVectors, cosines, text_vectors
from dialeval.text.tokenizers import DEFAULT, Oov, Tokenizer


@dataclass(frozen=True)
class Coherence(RowMetric):
    """Closeness of the response in meaning to what it answers."""

    family = "coherence"
    presets = {"coherence": {}}
    needs = frozenset({Need.RESPONSE, Need.CONTEXT, Need.EMBEDDINGS, Need.TRAIN})
    better = "higher"
    bounds = (-1.0, 1.0)
    definition = 2

    turns: Literal["last", "all"] = "last"
    oov: Oov = "self"
    tokenizer: Tokenizer = DEFAULT

    @property
    def wants(self) -> frozenset[Need]:
        return frozenset({Need.VOCABULARY}) if self.oov == "unk" else frozenset()

    def signature(self) -> Signature:
        return super().signature().with_fields(weight=SIF_WEIGHT)

    def score(self, batch: Batch) -> Floats:
        sides = (Need.CONTEXT, Need.RESPONSE)
        turns, response = (text_vectors(batch, need, "average", self.tokenizer, self.oov) for need in sides)
        contexts = batch.contexts()
        if self.turns == "all":
            return cosines(_join_texts(turns, contexts.starts, contexts.ends), response, np.arange(len(batch)))
        if not len(turns.counted):
            return np.full(len(batch), np.nan)
        last = np.maximum(contexts.ends - 1, 0)  # of a row without a context some turn, which does not count
        return np.where(contexts.ends > contexts.starts, cosines(turns, response, last), np.nan)


def _join_texts(turns: TextVectors, starts: Ints, ends: Ints) -> TextVectors:
    """Return one average for all texts of each row: averages weighted by their numbers of words."""
    vectors, counted = np.empty((len(starts), turns.vectors.shape[1])), np.empty(len(starts), np.int64)
    _kernel.sums_of_texts(turns.vectors, turns.counted, starts, ends, vectors, counted)
    return TextVectors(vectors / np.maximum(counted, 1)[:, None], counted)
