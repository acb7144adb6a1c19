"""Alignment: scores of pairs against nltk and sacreBLEU, where hypotheses land."""

from __future__ import annotations

import itertools
import logging
import math
import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from nltk.translate.nist_score import sentence_nist

from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError, SettingError
from dialeval.lsdscc import (
    BleuAligner,
    EmbeddingAligner,
    HypothesisSet,
    NLTKBleuAligner,
    NLTKNistAligner,
    ReferenceSet,
    SacreAligner,
    align_corpus,
    compute_score_on_corpus,
    compute_score_on_hypothesis_set,
)
from dialeval.metrics.embedding import WordValues
from dialeval.metrics.words import VectorTable
from dialeval.sample_data import folder
from dialeval.suites.lsdscc import alignment
from dialeval.suites.lsdscc.alignment import GroupComparison, align, to_aligner
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses
from dialeval.text.vocabulary import Vocabulary
from laws.responses import FewVectors
from metrics.evaluated import Vectors
from suites.lsdscc.twins import Group, Query, Words, add_one_bleu, figures, queries, words

few, many = settings(max_examples=60), settings(max_examples=150)
corpora = st.lists(queries(), max_size=4)


def compared(corpus: list[Query]) -> GroupComparison:
    return GroupComparison.of_words([texts for texts, _ in corpus], [groups for _, groups in corpus])


def pairs(corpus: list[Query]) -> list[tuple[Words, Group]]:
    return [pair for texts, groups in corpus for pair in itertools.product(texts, groups)]


@given(corpus=corpora, n=st.integers(1, 8))
@many
def test_add_one_bleu_to_the_last_digit(corpus: list[Query], n: int) -> None:
    found = BleuAligner(n).scores(compared(corpus))
    assert found.tolist() == [add_one_bleu(*pair, n) for pair in pairs(corpus)]


@pytest.mark.parametrize("method", range(8))
@given(corpus=corpora)
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
    np.testing.assert_allclose(NLTKBleuAligner(method, 4).scores(compared(corpus)), expected, rtol=1e-12)
    if method in (0, 1, 3):  # made of the same floats in the same way, so that ties are broken alike
        np.testing.assert_array_equal(NLTKBleuAligner(method, 4).scores(compared(corpus)), expected)


@given(corpus=corpora, n=st.sampled_from([1, 2, 3, 5, 6, 8]))
@many
def test_bleu_of_other_orders_as_nltk(corpus: list[Query], n: int) -> None:
    smooth = SmoothingFunction().method3
    expected = [float(sentence_bleu(group, text, (1 / n,) * n, smooth)) for text, group in pairs(corpus)]
    np.testing.assert_array_equal(NLTKBleuAligner(3, n).scores(compared(corpus)), expected)


@pytest.mark.parametrize("method", [5, 6, 7])
@given(corpus=corpora, n=st.sampled_from([3, 5, 7]))
@few
def test_smoothing_over_other_orders_as_nltk(method: int, corpus: list[Query], n: int) -> None:
    smooth = getattr(SmoothingFunction(), f"method{method}")

    def by_nltk(hypothesis: Words, group: Group) -> float:
        try:
            return float(sentence_bleu(group, hypothesis, (1 / n,) * n, smooth))
        except AssertionError:  # method 6 without a common trigram
            return math.nan

    expected = [by_nltk(*pair) for pair in pairs(corpus)]
    np.testing.assert_allclose(NLTKBleuAligner(method, n).scores(compared(corpus)), expected, rtol=1e-12)


@given(corpus=corpora, n=st.integers(1, 8))
@many
def test_nist_as_nltk(corpus: list[Query], n: int) -> None:
    def by_nltk(hypothesis: Words, group: Group) -> float:
        try:
            return float(sentence_nist(group, hypothesis, n))
        except ZeroDivisionError:
            return math.nan

    expected = [by_nltk(*pair) for pair in pairs(corpus)]
    np.testing.assert_allclose(NLTKNistAligner(n).scores(compared(corpus)), expected, rtol=1e-12)


@given(corpus=corpora, n=st.integers(1, 7))
@few
def test_sacre_as_sacrebleu(corpus: list[Query], n: int) -> None:
    oracle = sacrebleu.BLEU(tokenize="none", effective_order=True, max_ngram_order=n)
    expected = [
        oracle.sentence_score(" ".join(text), [" ".join(reference) for reference in group]).score / 100
        for text, group in pairs(corpus)
    ]
    np.testing.assert_allclose(SacreAligner(n).scores(compared(corpus)), expected, rtol=1e-12)


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
    found = EmbeddingAligner(values).scores(comparison)
    np.testing.assert_allclose(found, [by_hand(*pair) for pair in pairs(corpus)], rtol=1e-9, atol=1e-12)


def test_groups_without_references_have_no_score() -> None:
    comparison = compared([([["a", "b"]], [[], [["a", "b"]]])])
    for scores in (
        BleuAligner(4).scores(comparison),
        NLTKBleuAligner(3, 4).scores(comparison),
        SacreAligner(4).scores(comparison),
        NLTKNistAligner(2).scores(comparison),
    ):
        assert np.isnan(scores).tolist() == [True, False]


def test_the_known_weakness_of_the_default() -> None:
    scores = BleuAligner(4).scores(compared([([[], ["x"], ["x", "y"]], [[["a", "b", "c"]]])]))
    assert scores.round(2).tolist() == [1.0, 0.84, 0.64]
    assert SacreAligner(4).scores(compared([([[], ["x"]], [[["a"]]])])).tolist() == [0, 0]


HYPOTHESES = [text.split() for text in ("the cat sat on the mat", "a dog", "no")]
GROUPS = [[text.split() for text in group] for group in (["the cat sat"], ["a dog barked", "one dog"], ["never"])]
reference_groups = st.lists(words(), min_size=1, max_size=3)


@pytest.mark.parametrize("method", range(8))
@given(hypothesis=words(), group=reference_groups)
@settings(max_examples=40)
def test_smoothing_functions_are_called_as_nltk_calls_them(method: int, hypothesis: Words, group: Group) -> None:
    smooth = getattr(SmoothingFunction(epsilon=0.25, alpha=3, k=4), f"method{method}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = sentence_bleu(group, hypothesis, smoothing_function=smooth)
        except AssertionError:
            return
        assert NLTKBleuAligner(smooth)(hypothesis, group) == pytest.approx(expected, rel=1e-12)


@given(hypothesis=words(), group=reference_groups)
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
        lambda: SacreAligner(-1),
        lambda: NLTKBleuAligner(8),
        lambda: NLTKBleuAligner(n=-1),
        lambda: NLTKBleuAligner(n=101),
        lambda: NLTKBleuAligner("method1"),  # type: ignore[arg-type]
        lambda: to_aligner("bleu"),
    ],
)
def test_what_cannot_be(make: Any) -> None:
    with pytest.raises(SettingError):
        make()


def as_words(comparison: GroupComparison) -> list[tuple[Words, Group]]:
    """Every pair in words."""
    texts, groups = comparison.hypotheses.words(), comparison.list_groups()
    pairs = zip(comparison.pair_hypotheses.tolist(), comparison.pair_groups.tolist(), strict=True)
    return [(texts[text], groups[group]) for text, group in pairs]


@given(st.lists(queries(), max_size=5), st.sampled_from([1, 7, 1 << 16]))
@settings(max_examples=60)
def test_pairs_in_order_however_they_are_cut(corpus: list[Query], most: int) -> None:
    expected = [pair for texts, groups in corpus for pair in itertools.product(texts, groups)]
    whole = compared(corpus)
    assert as_words(whole) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "PART_PAIRS", most)
        parts = list(whole.split())
    assert [pair for part in parts for pair in as_words(part)] == expected
    assert [text for part in parts for text in part.hypotheses.words()] == whole.hypotheses.words()
    assert all(len(part.lists) == 2 or len(part.pair_groups) <= most for part in parts)
    for part in parts:
        ends = [(each[0], each[-1]) for each in (part.lists, part.groups, part.group_lists)]
        assert ends == [(0, len(part.hypotheses)), (0, len(part.references)), (0, len(part.groups) - 1)]
        assert len(part.lists) == len(part.group_lists)


@given(st.lists(queries(), max_size=5), st.sampled_from([1, 7, 1 << 16]))
@settings(max_examples=60)
def test_as_the_plain_loop_however_it_is_cut(corpus: list[Query], part: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "PART_PAIRS", part)
        pairs = compared(corpus)
        found = align(pairs, BleuAligner())
    expected = [figures(query, partial(add_one_bleu, n=4)) for query in corpus]
    assert [list(row.aligned) for row in found.list_queries()] == [best for best, _, _, _ in expected]
    np.testing.assert_allclose(found.mds, [mds for _, mds, _, _ in expected], rtol=1e-15)
    np.testing.assert_allclose(found.pds, [pds for _, _, pds, _ in expected], rtol=1e-15)
    np.testing.assert_allclose(found.max_bleu, [score for _, _, _, score in expected], rtol=1e-14)


def test_the_first_of_equal_groups() -> None:
    (row,) = align_corpus([["a b", "c"]], [[["x"], ["a b"], ["a b"], ["c"]]])
    assert row.aligned == (1, 3)
    assert row.unreached == (0, 2)
    assert (row.mds, row.pds) == (0.5, 0.5)


def test_what_is_like_nothing_lands_in_the_first_group_or_nowhere() -> None:
    hypotheses, groups = [["nothing like it at all"]], [[["a b"], ["c d"]]]
    (original,) = align_corpus(hypotheses, groups)
    assert (original.aligned, original.mds) == ((0,), 0.5)
    (sacre,) = align_corpus(hypotheses, groups, SacreAligner())
    assert (sacre.aligned, sacre.scores, sacre.unreached) == ((None,), (0.0,), (0, 1))
    assert (sacre.mds, sacre.pds, sacre.max_bleu) == (0, 0, 0)


def test_groups_count_by_their_references_in_pds() -> None:
    found = compute_score_on_hypothesis_set(["a b"], [["a b", "a c", "a d"], ["e f"]])
    assert found == (0.5, 0.75, 1.0)


def test_queries_that_cannot_be_scored() -> None:
    groups = [["a b"], ["c d e"]]
    unscored = [
        (["a b"], [["a"], []], BleuAligner()),
        (["a b"], [], BleuAligner()),
        ([], [["a"], []], BleuAligner()),
        ([], [[]], BleuAligner()),
        ([], [], BleuAligner()),
        (["a b", "a"], groups, NLTKNistAligner(2)),
        (["a b"], [["a b"], [""]], NLTKNistAligner(2)),
    ]
    for hypotheses, references, aligner in unscored:
        assert np.isnan(compute_score_on_hypothesis_set(hypotheses, references, aligner)).all()
    (row,) = align_corpus([["a b", "a"]], [groups], NLTKNistAligner(2))
    assert row.aligned == (0, None)
    assert math.isnan(row.scores[1])


def test_no_hypotheses_cover_nothing() -> None:
    mds, pds, max_bleu = compute_score_on_hypothesis_set([], [["a b"], ["c"]])
    assert (mds, pds) == (0, 0)
    assert math.isnan(max_bleu)


def test_plain_data_for_json() -> None:
    (row,) = align_corpus([["a b", "zz"]], [[["a b", "a c"], ["d"]]], SacreAligner())
    assert row.to_dict(["x", "y"]) == {
        "mds": 0.5,
        "pds": pytest.approx(2 / 3),
        "max-bleu": 0.5,
        "hypotheses": [{"group": "x", "score": 1.0}, {"group": None, "score": 0.0}],
        "groups": [
            {"group": "x", "references": ["a b", "a c"], "hypotheses": 1},
            {"group": "y", "references": ["d"], "hypotheses": 0},
        ],
        "unreached": ["y"],
    }
    (nan,) = align_corpus([["a"]], [[["a b"]]], NLTKNistAligner(2))
    assert nan.to_dict()["mds"] is None
    assert nan.to_dict()["hypotheses"] == [{"group": None, "score": None}]


# The interface of the LSDSCC program: what it takes, what it refuses, and what it leaves out of its means.


def test_nltk_is_not_imported() -> None:
    code = (
        "import sys; from dialeval.lsdscc import *; "
        "compute_score_on_hypothesis_set([['a']], [[['a']]], NLTKBleuAligner(3)); "
        "compute_score_on_hypothesis_set([['a']], [[['a']]], NLTKNistAligner(1)); "
        "print('nltk' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_means_are_over_scored_queries(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = compute_score_on_corpus([["a b"], ["a"]], [[["a b"]], [["a b"]]], NLTKNistAligner(2))
    assert found.mds == 1
    assert "1 of 2 queries cannot be scored" in caplog.text
    assert math.isnan(compute_score_on_corpus([["a"]], [[["a b"]]], NLTKNistAligner(2)).mds)


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([["a"]], [], "1 hypothesis sets and 0 reference sets"),
        ([], [], "holds no queries"),
        ([[["a", 1.5]]], [[["a"]]], "a number where a word is expected"),
    ],
)
def test_unequal_and_empty_corpora_are_refused(hypotheses: Any, references: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        compute_score_on_corpus(hypotheses, references)


# The sampled answers of the shipped sample: complete, aligned, tokenized, and different as their names say.


HERE = folder() / "lsdscc"


def test_files_are_aligned_and_in_lower_case_with_blanks_around_punctuation() -> None:
    groups = ReferenceSet.load_json_corpus(HERE / "groups.json")
    texts = [" ".join(words) for query in groups for group in query for words in group]
    for name in ("varied", "safe"):
        corpus = HypothesisSet.load_corpus(HERE / f"{name}.txt")
        assert len(corpus) == len(groups)
        assert {len(hypotheses) for hypotheses in corpus} == {3}
        texts += [" ".join(words) for hypotheses in corpus for words in hypotheses]
    for text in texts:
        assert text == text.lower()
        assert not re.search(r"\w[.,?!]|[.,?!]\w", text)


def test_systems_differ_as_their_names_say() -> None:
    run = evaluate_hypotheses(
        {name: HERE / f"{name}.txt" for name in ("varied", "safe")},
        reference_groups=HERE / "groups.json",
        settings={"coverage": {"aligner": "sacre"}},
    )
    assert run["varied"]["mds"].mean > 1.5 * run["safe"]["mds"].mean
    assert run["varied"]["max-bleu"].mean > 2 * run["safe"]["max-bleu"].mean
