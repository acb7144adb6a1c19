"""Richness by hand and against what one writes first."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.columns import TextColumn
from dialeval.core.contributions import ClusteredRows, Resamples, join_batches
from dialeval.core.errors import NeedError
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
    assert {(estimate(of, ROWS).rows, estimate(of, ROWS).scored) for of in expected} == {(5, 4)}  # type: ignore[arg-type]


def test_a_response_that_is_said_twice_counts_twice() -> None:
    twice = [*ROWS, *ROWS]
    assert estimate("entropy", twice).mean == pytest.approx(estimate("entropy", ROWS).mean)
    assert estimate("num-bigrams", twice).mean == estimate("num-bigrams", ROWS).mean
    assert estimate("msttr", twice).mean == 7 / 20
    assert math.isnan(estimate("entropy", [Row("d1", None)]).mean)


def test_segments_follow_the_order_of_the_file() -> None:
    many = " ".join(map(str, range(49)))
    rows = [Row("d1", many, position=1), Row("d2", "0", position=2), Row("d3", "[name] [name]", position=0)]
    assert estimate("msttr", rows).mean == (1 + 48) / 50
    assert estimate("msttr", [*rows[:2]]).mean == 49 / 50


@pytest.mark.parametrize("of", ["entropy", "cond-entropy", "num-unigrams", "num-bigrams", "num-trigrams"])
def test_a_resample_is_an_evaluation_of_its_rows(of: Of) -> None:
    metric = Richness(of=of)
    found = Place(WORLD, ROWS).scored(metric, ROWS).contributions
    clusters = ClusteredRows({name: join_batches([part]) for name, part in found.items()}, np.arange(len(ROWS) + 1))
    counts = np.array([[1, 1, 1, 1, 1], [2, 1, 0, 0, 1], [0, 3, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 2, 0, 0]])
    taken = [[row for row, times in zip(ROWS, each, strict=True) for _ in range(times)] for each in counts.tolist()]
    expected = [estimate(of, rows).mean for rows in taken]
    np.testing.assert_allclose(metric.score_resamples(Resamples(clusters, counts)), expected, rtol=1e-12, atol=1e-12)


def test_msttr_is_not_resampled() -> None:
    none = ClusteredRows({}, np.arange(2))
    with pytest.raises(NeedError, match="reach over the ends of dialogues"):
        Richness(of="msttr").score_resamples(Resamples(none, np.ones((1, 1), np.int64)))
    assert not Place(WORLD, ROWS).scored(Richness(of="msttr"), ROWS).contributions


def test_only_msttr_has_a_direction() -> None:
    assert Richness(of="msttr").better == "higher"
    assert Richness(of="entropy").better is None
