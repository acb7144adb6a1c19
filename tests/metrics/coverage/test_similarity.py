"""The scores of pairs against plain loops, nltk and sacreBLEU."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from nltk.translate.nist_score import sentence_nist

from dialeval.core.arrays import Floats
from dialeval.metrics.coverage import coverage_kernel as kernel
from dialeval.metrics.coverage import similarity
from dialeval.metrics.coverage.comparison import Comparison
from dialeval.metrics.embedding.vectors import WordValues
from dialeval.resources.words import VectorTable
from dialeval.text.vocabulary import Vocabulary
from metrics.coverage.twins import Group, Query, Words, add_one_bleu, queries
from metrics.evaluated import Vectors

few = settings(max_examples=60)
corpora = st.lists(queries(), max_size=4)


def compared(corpus: list[Query]) -> Comparison:
    return Comparison.of_words([texts for texts, _ in corpus], [groups for _, groups in corpus], Vocabulary())


def pairs(corpus: list[Query]) -> list[tuple[Words, Group]]:
    return [pair for texts, groups in corpus for pair in itertools.product(texts, groups)]


@pytest.mark.parametrize("n", range(1, 9))
@given(corpus=corpora)
@few
def test_add_one_bleu_to_the_last_digit(n: int, corpus: list[Query]) -> None:
    found = similarity.add_one_scores(compared(corpus), n)
    assert found.tolist() == [add_one_bleu(*pair, n) for pair in pairs(corpus)]


@pytest.mark.parametrize("method", range(8))
@given(corpus=corpora)
@few
def test_bleu_as_nltk(method: int, corpus: list[Query]) -> None:
    smooth = getattr(SmoothingFunction(), f"method{method}")

    def by_nltk(hypothesis: Words, group: Group) -> float:
        try:
            return float(sentence_bleu(group, hypothesis, smoothing_function=smooth))
        except AssertionError:  # method 6 without a common trigram
            return math.nan

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [by_nltk(*pair) for pair in pairs(corpus)]
    np.testing.assert_allclose(similarity.nltk_scores(compared(corpus), method, 4), expected, rtol=1e-12)
    if method in (0, 1, 3):  # made of the same floats in the same way, so that ties are broken alike
        np.testing.assert_array_equal(similarity.nltk_scores(compared(corpus), method, 4), expected)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 8])
@given(corpus=corpora)
@few
def test_bleu_of_other_orders_as_nltk(n: int, corpus: list[Query]) -> None:
    smooth = SmoothingFunction().method3
    expected = [float(sentence_bleu(group, text, (1 / n,) * n, smooth)) for text, group in pairs(corpus)]
    np.testing.assert_array_equal(similarity.nltk_scores(compared(corpus), 3, n), expected)


@pytest.mark.parametrize("method", [5, 6, 7])
@pytest.mark.parametrize("n", [3, 5, 7])
@given(corpus=corpora)
@few
def test_smoothing_over_other_orders_as_nltk(n: int, method: int, corpus: list[Query]) -> None:
    smooth = getattr(SmoothingFunction(), f"method{method}")

    def by_nltk(hypothesis: Words, group: Group) -> float:
        try:
            return float(sentence_bleu(group, hypothesis, (1 / n,) * n, smooth))
        except AssertionError:  # method 6 without a common trigram
            return math.nan

    expected = [by_nltk(*pair) for pair in pairs(corpus)]
    np.testing.assert_allclose(similarity.nltk_scores(compared(corpus), method, n), expected, rtol=1e-12)


@pytest.mark.parametrize("n", range(1, 9))
@given(corpus=corpora)
@few
def test_nist_as_nltk(n: int, corpus: list[Query]) -> None:
    def by_nltk(hypothesis: Words, group: Group) -> float:
        try:
            return float(sentence_nist(group, hypothesis, n))
        except ZeroDivisionError:
            return math.nan

    expected = [by_nltk(*pair) for pair in pairs(corpus)]
    np.testing.assert_allclose(similarity.nist_scores(compared(corpus), n), expected, rtol=1e-12)


@given(corpus=corpora, n=st.integers(1, 7))
@few
def test_sacre_as_sacrebleu(corpus: list[Query], n: int) -> None:
    oracle = sacrebleu.BLEU(tokenize="none", effective_order=True, max_ngram_order=n)
    expected = [
        oracle.sentence_score(" ".join(text), [" ".join(reference) for reference in group]).score / 100
        for text, group in pairs(corpus)
    ]
    np.testing.assert_allclose(similarity.sacre_scores(compared(corpus), n), expected, rtol=1e-12)


@given(st.lists(st.floats(-1e6, 1e6) | st.floats(-1e-9, 1e-9) | st.sampled_from([1e16, -1e16, 1.0, 0.5]), max_size=5))
@settings(max_examples=300)
def test_sums_are_rounded_once(terms: list[float]) -> None:
    scratch = np.empty(6)
    assert kernel._sum(np.array([*terms, 0.0]), len(terms), scratch) == math.fsum(terms)


VECTORS = {"w1": (1.0, 0.5, -0.25), "w2": (-0.5, 2.0, 0.1), "w3": (0.0, 0.0, 0.0), "w4": (0.3, -0.3, 0.9)}


@given(corpus=corpora)
@few
def test_cosines_of_averages(corpus: list[Query]) -> None:
    def average(text: Words) -> Floats:
        known = [VECTORS[word] for word in text if word in VECTORS]
        return np.mean(known, axis=0) if known else np.zeros(3)

    def by_hand(hypothesis: Words, group: Group) -> float:
        cosines = []
        for reference in group:
            left, right = average(hypothesis), average(reference)
            if left.any() and right.any():
                cosines.append(left @ right / np.linalg.norm(left) / np.linalg.norm(right))
        return max(cosines, default=math.nan)

    comparison = compared(corpus)
    vocabulary = comparison.hypotheses.vocabulary
    assert isinstance(vocabulary, Vocabulary)
    values = WordValues.of(VectorTable(vocabulary, Vectors(VECTORS)), None, None)
    found = similarity.cosine_scores(comparison, values)
    np.testing.assert_allclose(found, [by_hand(*pair) for pair in pairs(corpus)], rtol=1e-9, atol=1e-12)


def test_groups_without_references_have_no_score() -> None:
    comparison = compared([([["a", "b"]], [[], [["a", "b"]]])])
    for scores in (
        similarity.add_one_scores(comparison, 4),
        similarity.nltk_scores(comparison, 3, 4),
        similarity.sacre_scores(comparison, 4),
        similarity.nist_scores(comparison, 2),
    ):
        assert np.isnan(scores).tolist() == [True, False]


def test_the_known_weakness_of_the_default() -> None:
    scores = similarity.add_one_scores(compared([([[], ["x"], ["x", "y"]], [[["a", "b", "c"]]])]), 4)
    assert scores.round(2).tolist() == [1.0, 0.84, 0.64]
    assert similarity.sacre_scores(compared([([[], ["x"]], [[["a"]]])]), 4).tolist() == [0, 0]
