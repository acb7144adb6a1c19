"""Sentence vectors: every text is encoded once, and not more are kept than is allowed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from dialeval.metrics.encoder import Encoder, SentenceVectors
from dialeval.metrics.encoder_files import Singles


class Counting(Encoder):
    """An encoder that counts what it is asked."""

    dimension = 3

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], ends: bool = False) -> Singles:
        self.asked += texts
        return np.array([[len(text), ends, 0.1] for text in texts], np.float32).reshape(-1, 3)


def test_every_text_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Counting()
    vectors = SentenceVectors(encoder)
    given, expected = ["a", "bb", "a", "ccc"], np.array([[size, 0, 0.1] for size in (1, 2, 1, 3)], np.float32)
    np.testing.assert_array_equal(vectors.of(given), expected)
    np.testing.assert_array_equal(vectors.of([*given, "dddd"])[:4], expected)
    assert encoder.asked == ["a", "bb", "ccc", "dddd"]
    vectors.of(["a"], ends=True)
    assert encoder.asked[4:] == ["a"], "the end of a text is another text"
    assert vectors.of([]).shape == (0, 3)
    monkeypatch.setattr("dialeval.metrics.encoder.MOST_KEPT", 5)
    vectors.of(["e"])
    vectors.of(["a"])
    assert encoder.asked[5:] == ["e", "a"], "nothing is kept where it would be too much"
