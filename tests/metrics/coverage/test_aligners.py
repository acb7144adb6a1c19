"""Aligners in plain Python: the documented ones, nltk's smoothing functions, anything that can be called."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from dialeval.core.errors import SettingError
from dialeval.lsdscc import (
    BleuAligner,
    EmbeddingAligner,
    NLTKBleuAligner,
    NLTKNistAligner,
    SacreAligner,
    compute_score_on_hypothesis_set,
)
from dialeval.metrics.coverage.aligners import as_aligner
from laws.responses import FewVectors
from metrics.coverage.twins import Group, Words, add_one_bleu, words

HYPOTHESES = [text.split() for text in ("the cat sat on the mat", "a dog", "no")]
GROUPS = [[text.split() for text in group] for group in (["the cat sat"], ["a dog barked", "one dog"], ["never"])]
groups = st.lists(words(), min_size=1, max_size=3)


@pytest.mark.parametrize("method", range(8))
def test_smoothing_functions_of_nltk_are_recognised(method: int) -> None:
    given_ = NLTKBleuAligner(getattr(SmoothingFunction(), f"method{method}"))
    assert given_.method == method
    left, right = (
        compute_score_on_hypothesis_set(HYPOTHESES, GROUPS, aligner) for aligner in (given_, NLTKBleuAligner(method))
    )
    assert repr(left) == repr(right)


def test_other_constants_are_not_taken_for_the_papers() -> None:
    assert NLTKBleuAligner(SmoothingFunction(epsilon=0.5).method1).method is None
    assert NLTKBleuAligner(lambda p_n, **_: p_n).method is None
    assert NLTKBleuAligner().method == 0


@pytest.mark.parametrize("method", range(8))
@given(hypothesis=words(), group=groups)
@settings(max_examples=40)
def test_other_smoothing_functions_are_called_as_nltk_calls_them(method: int, hypothesis: Words, group: Group) -> None:
    smooth = getattr(SmoothingFunction(epsilon=0.25, alpha=3, k=4), f"method{method}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = sentence_bleu(group, hypothesis, smoothing_function=smooth)
        except AssertionError:
            return
        assert NLTKBleuAligner(smooth)(hypothesis, group) == pytest.approx(expected, rel=1e-12)


@given(hypothesis=words(), group=groups)
@settings(max_examples=40)
def test_an_aligner_scores_one_hypothesis_and_one_group(hypothesis: Words, group: Group) -> None:
    for n in (3, 7, 100):
        assert BleuAligner(n)(hypothesis, group) == add_one_bleu(hypothesis, group, n)


def test_any_callable_is_an_aligner() -> None:
    seen: list[tuple[Sequence[str], Sequence[Sequence[str]]]] = []

    def shared(hypothesis: Sequence[str], group: Sequence[Sequence[str]]) -> float:
        seen.append((hypothesis, group))
        return max(len(set(hypothesis) & set(reference)) for reference in group)

    found = compute_score_on_hypothesis_set(HYPOTHESES, GROUPS, shared)
    assert found == (2 / 3, 3 / 4, (4 / 1 * 0 + 3 + 2 + 0) / 3)
    assert seen[:2] == [(HYPOTHESES[0], GROUPS[0]), (HYPOTHESES[0], GROUPS[1])]


def test_words_with_blanks_are_words() -> None:
    assert BleuAligner(1)(["New York"], [["New", "York"]]) == 0.5
    assert BleuAligner(1)(["New York"], [["New York"]]) == 1.0


def test_word_vectors() -> None:
    aligner = EmbeddingAligner(FewVectors())
    near = aligner(["the", "cat"], [["cat", "the"], ["日本"]])
    assert near == pytest.approx(1.0)
    assert math.isnan(aligner(["unknown"], [["the"]]))
    found = compute_score_on_hypothesis_set(["the", "cat"], [["the the"], ["cat"], ["日本"]], aligner)
    assert found == pytest.approx((2 / 3, 2 / 3, 1.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: BleuAligner(101),
        lambda: NLTKNistAligner(-1),
        lambda: SacreAligner(0),
        lambda: NLTKBleuAligner(8),
        lambda: NLTKBleuAligner(n=101),
        lambda: NLTKBleuAligner("method1"),  # type: ignore[arg-type]
        lambda: as_aligner("bleu"),
    ],
)
def test_what_cannot_be(make: Any) -> None:
    with pytest.raises(SettingError):
        make()


def test_zero_means_four_as_in_the_original() -> None:
    assert BleuAligner(0) == BleuAligner(4) == BleuAligner()
