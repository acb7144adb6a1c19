"""BLEU formulas against nltk and sacreBLEU, for every method, order and kind of row."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import get_args

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.metrics.bleu_counts import NIST, BleuCounts, Method, log_precisions, sacre_bleu, weighted_bleu
from dialeval.text.tokenizers import tokenize
from dialeval.text.vocabulary import Vocabulary

Row = tuple[list[str], list[list[str]]]

WEIGHTS = [
    (1.0,),
    (0.5, 0.5),
    (1 / 3, 1 / 3, 1 / 3),
    (0.25, 0.25, 0.25, 0.25),
    (1.0, 0.0, 0.0, 0.0),
    (0.33, 0.33, 0.33, 0.0),
    (0.1, 0.2, 0.3, 0.4),
]

words = st.sampled_from([1, 2, 4, 40]).flatmap(lambda count: st.lists(st.integers(0, count).map(str), max_size=12))


@st.composite
def similar(draw: st.DrawFn) -> Row:
    """A response and references that share stretches of it, so that higher orders match."""
    response = draw(words)
    shared = st.integers(0, len(response)).map(lambda start: response[start:])
    references = st.tuples(words, shared, words).map(lambda parts: [word for part in parts for word in part])
    return response, draw(st.lists(references, min_size=1, max_size=3))


rows = st.lists(st.one_of(similar(), st.tuples(words, st.lists(words, min_size=1, max_size=3))), min_size=1, max_size=5)


def counts_of(pairs: Sequence[Row]) -> BleuCounts:
    vocabulary = Vocabulary()
    responses = tokenize(TextColumn.from_strings([" ".join(response) for response, _ in pairs]), vocabulary)
    lists = RaggedColumn.from_lists([[" ".join(text) for text in references] for _, references in pairs])
    return BleuCounts.of(responses, tokenize(lists.values, vocabulary), lists.offsets)


def by_nltk(response: list[str], references: list[list[str]], weights: Sequence[float], method: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(sentence_bleu(references, response, weights, getattr(SmoothingFunction(), f"method{method}")))
        except (AssertionError, IndexError):  # method 6: no trigram match, or fewer than three weights
            return float("nan")


@pytest.mark.parametrize("method", get_args(Method))
@given(pairs=rows, weights=st.sampled_from(WEIGHTS))
@settings(max_examples=60)
def test_every_method_scores_as_nltk(method: int, pairs: list[Row], weights: tuple[float, ...]) -> None:
    counts = counts_of(pairs)
    found = weighted_bleu(counts, log_precisions(counts, method, len(weights)), weights)
    expected = [by_nltk(response, references, weights, method) for response, references in pairs]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@given(pairs=rows)
@settings(max_examples=50)
def test_sacre_scores_as_sacrebleu(n: int, pairs: list[Row]) -> None:
    counts = counts_of(pairs)
    found = sacre_bleu(counts, log_precisions(counts, NIST), n)
    oracle = sacrebleu.BLEU(tokenize="none", effective_order=True, max_ngram_order=n)
    expected = []
    for response, references in pairs:
        texts = " ".join(response), [" ".join(reference) for reference in references]
        expected.append(oracle.sentence_score(*texts).score / 100)
        if n == 4:
            assert sacrebleu.sentence_bleu(*texts, tokenize="none").score / 100 == expected[-1]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)


def test_method_6_is_nan_exactly_without_a_trigram_match() -> None:
    counts = counts_of([(["a", "b", "c"], [["a", "b", "d"]]), (["a", "b", "c"], [["a", "b", "c"]]), (["a"], [["b"]])])
    scores = weighted_bleu(counts, log_precisions(counts, 6), (1.0,))
    np.testing.assert_array_equal(np.isnan(scores), [True, False, False])
    assert scores[2] == 0


def test_known_values() -> None:
    same = ["how", "are", "you", "today", "?"]
    counts = counts_of([(["yes"], [["yes"]]), (same, [same])])
    by_length = weighted_bleu(counts, log_precisions(counts, 4), (0.25,) * 4)
    assert by_length.tolist() == [1.0, 1.0]
    neighbors = weighted_bleu(counts, log_precisions(counts, 5), (1.0,))
    np.testing.assert_allclose(neighbors, [1.0, 4 / 3], rtol=1e-15)


@given(rows)
@settings(max_examples=30)
def test_a_row_scores_the_same_alone(pairs: list[Row]) -> None:
    for method in get_args(Method):
        counts = counts_of(pairs)
        together = weighted_bleu(counts, log_precisions(counts, method), (0.25,) * 4)
        for row, pair in enumerate(pairs):
            one = counts_of([pair])
            alone = weighted_bleu(one, log_precisions(one, method), (0.25,) * 4)
            np.testing.assert_array_equal(alone, together[row : row + 1])
