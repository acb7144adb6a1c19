"""Richness by hand and against what one writes first."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.columns import TextColumn
from dialeval.core.fold import Estimate
from dialeval.suites.multiwoz.richness import Of, Richness, conditional_entropy, entropy, segment_ratio, split_words
from dialeval.text.ngrams import NgramColumn, NgramCounts
from dialeval.text.tokenizers import tokenize
from dialeval.text.vocabulary import Vocabulary
from laws.task import WORLD, Row
from laws.worlds import Place


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
    assert list(split_words(text)) == words


@given(st.lists(st.integers(0, 5), min_size=1, max_size=160))
def test_segments(words: list[int]) -> None:
    cut = [words[start : start + 50] for start in range(0, len(words), 50)]
    whole = [part for part in cut if len(part) == 50] if len(words) > 50 else [words]
    assert segment_ratio(np.array(words, np.int32)) == pytest.approx(
        np.mean([len(set(part)) / len(part) for part in whole])
    )


def test_richness_by_hand() -> None:
    vocabulary = Vocabulary()
    split = tokenize(TextColumn.from_strings(["a b", "a c"]), vocabulary)
    words, pairs = (NgramCounts.of(NgramColumn.of(split, n), vocabulary) for n in (1, 2))
    assert entropy(words) == 1.5
    assert conditional_entropy(words, pairs) == 0.5


ROWS = [
    Row("d1", "Yes", position=3),
    Row("d2", "[name] is nice, is it", position=1),
    Row("d3", None),
    Row("d1", "", position=2),
    Row("d3", "no, it is", position=0),
]
RESPONSES = ["no it is", "name is nice is it", "", "yes"]
"""The words of the responses that are there, in the order of the file."""


def estimate(of: Of, rows: list[Row]) -> Estimate:
    metric = Richness(of=of)
    return metric.finish(Place(WORLD, rows).scored(metric, rows).state)[metric.name]


def test_every_value_by_hand() -> None:
    words = [text.split(" ") for text in RESPONSES]
    counts = Counter(word for text in words for word in text)
    bits = [count / 10 * math.log2(10 / count) for count in counts.values()]
    # "it" begins one pair of two, "is" two different ones of three; the others are always followed by the same word
    # or by none.
    following = [(1 / 10) * math.log2(2), *[(1 / 10) * math.log2(3)] * 2]
    expected = {
        "num-unigrams": 7,
        "num-bigrams": 6,
        "num-trigrams": 4,
        "avg-lengths": 2.5,
        "entropy": sum(bits),
        "cond-entropy": sum(following),
        "msttr": 7 / 10,
    }
    assert {of: estimate(of, ROWS).mean for of in expected} == pytest.approx(expected)  # type: ignore[arg-type]
    assert {(estimate(of, ROWS).units, estimate(of, ROWS).scored) for of in expected} == {(5, 4)}  # type: ignore[arg-type]


def test_only_msttr_has_a_direction() -> None:
    assert Richness(of="msttr").better == "higher"
    assert Richness(of="entropy").better is None
