"""Greedy matching of contextual vectors: BERTScore's formula on the shipped sentence encoder.

    P = mean over word pieces of the response of the largest cosine with a piece of the reference
    R = mean over word pieces of the reference of the largest cosine with a piece of the response
    greedy-match = 2 P R / (P + R)

The vector of a word piece is that of the encoder's last layer, which has read the whole text. It is not BERTScore: that
one takes a middle layer of a larger model (RoBERTa) and often a baseline, so figures do not compare; the formula is the
same, without weights by rarity and without rescaling. With several references the best one counts.

What it is good for: paraphrases that share no word. What it is not: a test of facts. Names and numbers that differ cost
little, and any two English sentences are rather close; read it beside its floors (`--anchors`).

Paper: Zhang et al. 2020, "BERTScore: Evaluating Text Generation with BERT", ICLR.

Edge cases: the marks of beginning and end are no pieces of their own, but a piece may be nearest to one, as in
BERTScore; a negative cosine counts as 0, as it does there in a batch with longer texts. A text without a word piece
scores 0; a row without any reference is not scored. Of a long text the first 128 pieces count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dialeval.core.arrays import Floats, row_numbers
from dialeval.core.batch import Batch, Need
from dialeval.core.fold import RowMetric
from dialeval.metrics.encoder import ShippedEncoder


@dataclass(frozen=True)
class GreedyMatch(RowMetric):
    """Closeness of response and reference, word piece by word piece, by vectors in context (BERTScore's formula)."""

    family = "greedy-match"
    presets = {"greedy-match": {}}
    needs = frozenset({Need.RESPONSE, Need.REFERENCE, Need.ENCODER})
    costly = True
    better = "higher"
    bounds = (0.0, 1.0)

    def score(self, batch: Batch) -> Floats:
        encoder: ShippedEncoder = batch.resource(Need.ENCODER)
        references = batch.lists(Need.REFERENCE)
        here, there = list(batch.texts(Need.RESPONSE)), list(references.values)
        vectors = _unit_vectors(encoder, [*here, *there])
        owners = row_numbers(references.offsets)
        best = np.full(len(here), np.nan)
        for row, reference in zip(owners.tolist(), there, strict=True):
            best[row] = np.fmax(best[row], matched(vectors[here[row]], vectors[reference]))
        return best


def matched(response: Floats, reference: Floats) -> float:
    """Return the F1 of two texts, from their unit vectors, the marks of beginning and end among them."""
    if len(response) < 3 or len(reference) < 3:
        return 0.0
    cosines = np.clip(response @ reference.T, 0, 1)
    precision, recall = cosines[1:-1].max(axis=1).mean(), cosines[:, 1:-1].max(axis=0).mean()
    return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


def _unit_vectors(encoder: ShippedEncoder, texts: Sequence[str]) -> dict[str, Floats]:
    """Return the vectors of every different text, each of length 1."""
    found: dict[str, Floats] = {}
    for text, vectors in dict(zip(texts, encoder.token_vectors(texts), strict=True)).items():
        wide = vectors.astype(np.float64)
        lengths = np.sqrt((wide * wide).sum(axis=1))[:, None]
        found[text] = wide / np.where(lengths == 0, 1, lengths)
    return found
