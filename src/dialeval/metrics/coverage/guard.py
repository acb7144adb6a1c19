"""The guard against the default aligner's known weakness: it gives short hypotheses a high score, right or wrong.

    floor of a hypothesis of L words = exp(mean over orders i <= n of log(1 / (max(0, L - i + 1) + 1)))

is what the aligner gives it without a single word in common: 1.0 for none, 0.84 for one word, 0.64 for two, 0.30 for
four, 0.07 for fifteen. Where the floors of a system's hypotheses have a mean of `HIGH_FLOOR` or more, short hypotheses
dominate, and its figures say little about what was said.
"""

from __future__ import annotations

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import RaggedColumn
from dialeval.text.tokenise import tokenise
from dialeval.text.vocabulary import Vocabulary

HIGH_FLOOR = 0.3
"""The floor of four words: above it an answer of four wrong words would be a good one."""

LOOKED_AT = 10_000
"""Hypotheses that are looked at, evenly spread over all: enough for a mean."""


def floors(lengths: Ints, n: int) -> Floats:
    """What the default aligner gives to hypotheses of some lengths at least."""
    ngrams = np.maximum(lengths[:, None] - np.arange(n), 0)
    mean: Floats = np.exp(-np.log(ngrams + 1.0).mean(axis=1))
    return mean


def short_hypotheses(system: str, hypotheses: RaggedColumn, n: int) -> str | None:
    """The warning for a system whose hypotheses are so short that the default aligner cannot tell good from bad."""
    texts = hypotheses.values
    if not len(texts):
        return None
    step = -(-len(texts) // LOOKED_AT)
    lengths = tokenise(texts.take(np.arange(0, len(texts), step)), Vocabulary()).lengths
    floor = float(floors(lengths, n).mean())
    if floor < HIGH_FLOOR:
        return None
    return (
        f"{system}: short hypotheses dominate (a median of {np.median(lengths):g} words): without one word in common "
        f"the aligner `bleu` would still give them {floor:.2f} on average; trust `sacre` or `embedding` more"
    )
