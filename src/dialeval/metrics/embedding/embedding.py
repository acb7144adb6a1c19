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
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.fold import Bounds, RowMetric
from dialeval.core.needs import Need
from dialeval.core.ragged import row_numbers
from dialeval.core.signature import Signature
from dialeval.metrics.embedding.vectors import SIF_WEIGHT, cosines, greedy_matches, text_vectors
from dialeval.text.tokenise import DEFAULT, Oov, Tokeniser


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
    tokeniser: Tokeniser = DEFAULT

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
            values = greedy_matches(batch, owners, self.tokeniser, self.oov)
        else:
            sides = (Need.RESPONSE, Need.REFERENCE)
            response, reference = (text_vectors(batch, need, self.by, self.tokeniser, self.oov) for need in sides)
            values = cosines(response, reference, owners)
        best = np.full(len(batch), -np.inf)
        np.fmax.at(best, owners, values)
        return np.where(np.isinf(best), np.nan, best)
