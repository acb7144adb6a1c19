"""Response length."""

from __future__ import annotations

import math

import dialeval
from dialeval.metrics.words import Length


def test_counts_words_and_an_empty_response_has_none() -> None:
    estimate = dialeval.evaluate(["one two", "", " \t", "naïve\u00a0café — ok"], metrics=["length"])["system"]["length"]
    assert estimate.items is not None
    assert estimate.items.tolist() == [2.0, 0.0, 0.0, 4.0]
    assert (estimate.mean, estimate.rows, estimate.scored) == (1.5, 4, 4)
    assert (Length().bounds, Length().tokenizer) == ((0.0, math.inf), "words.1")
