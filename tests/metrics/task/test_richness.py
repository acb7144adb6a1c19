"""Richness by hand and against what one writes first."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.metrics.task.richness import conditional_entropy, entropy, segment_ratio, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NAME isn't nice.", ["name", "isnt", "nice"]),
        ("", [""]),
        ("- yes", ["", "yes"]),
        ("a , b", ["a", "b"]),
        ("10: 00 #", ["10", "00", "#"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert list(words_of(text)) == words


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=160))
def test_segments(words: list[str]) -> None:
    cut = [words[start : start + 50] for start in range(0, len(words), 50)]
    whole = [part for part in cut if len(part) == 50] if len(words) > 50 else [words]
    assert segment_ratio(words) == pytest.approx(np.mean([len(set(part)) / len(part) for part in whole]))


def test_richness_by_hand() -> None:
    words: Counter[tuple[str, ...]] = Counter({("a",): 2, ("b",): 1, ("c",): 1})
    pairs: Counter[tuple[str, ...]] = Counter({("a", "b"): 1, ("a", "c"): 1})
    assert entropy(words) == 1.5
    assert conditional_entropy(words, pairs) == 0.5
