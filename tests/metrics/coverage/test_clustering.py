"""Groups made out of references: against a naive clustering, and what they mean."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core.arrays import Floats
from dialeval.lsdscc import SacreAligner, align_corpus
from dialeval.metrics.coverage.clustering import clusters


def naive(similarity: Floats, threshold: float) -> list[list[int]]:
    found = [[text] for text in range(len(similarity))]
    while len(found) > 1:
        means = {
            pair: np.mean([similarity[a, b] for a in found[pair[0]] for b in found[pair[1]]])
            for pair in itertools.combinations(range(len(found)), 2)
        }
        best = max(means, key=means.__getitem__)
        if means[best] < threshold:
            break
        found[best[0]] = sorted(found[best[0]] + found[best[1]])
        del found[best[1]]
    return found


@st.composite
def matrices(draw: st.DrawFn) -> Floats:
    size = draw(st.integers(0, 9))
    # Eighths, so that the means of both ways are equal and ties are ties; a seldom tie of thirds would be rounding.
    numbers = st.integers(0, 2**40).map(lambda number: number / 2**40)
    square = np.array([[draw(numbers) for _ in range(size)] for _ in range(size)]).reshape(size, size)
    symmetric: Floats = (square + square.T) / 2
    return symmetric


@given(matrices(), st.floats(0.05, 1))
@settings(max_examples=150)
def test_as_the_naive_clustering(similarity: Floats, threshold: float) -> None:
    assert clusters(similarity, threshold) == naive(similarity, threshold)


def test_ends_of_the_scale() -> None:
    same = np.ones((4, 4))
    assert clusters(same, 1.0) == [[0, 1, 2, 3]]
    assert clusters(np.eye(3), 0.5) == [[0], [1], [2]]
    assert clusters(np.full((3, 3), np.nan), 0.1) == [[0], [1], [2]]
    assert clusters(np.ones((0, 0)), 0.5) == []


def test_the_first_of_equally_similar_pairs_is_joined() -> None:
    similarity = np.array([[1, 0.6, 0], [0.6, 1, 0.6], [0, 0.6, 1]])
    assert clusters(similarity, 0.5) == [[0, 1], [2]]


def test_groups_do_not_depend_on_those_that_were_given() -> None:
    texts = ["the cat sat on the mat", "a dog barked", "the cat sat on a mat", "no", "one dog barked loudly"]
    hypotheses = [["the cat sat", "dog barked"]]
    flat, apart = (
        align_corpus(hypotheses, [groups], SacreAligner(), threshold=0.2)
        for groups in ([texts], [[text] for text in texts])
    )
    assert flat == apart
    assert flat[0].groups == (
        ("the cat sat on the mat", "the cat sat on a mat"),
        ("a dog barked", "one dog barked loudly"),
        ("no",),
    )
    assert flat[0].mds == pytest.approx(2 / 3)
    assert flat[0].pds == pytest.approx(4 / 5)


def test_every_query_is_grouped_by_itself() -> None:
    found = align_corpus([["a"], ["a"]], [[["a b", "a b"]], [["c", "a"]]], SacreAligner(), threshold=0.5)
    assert [row.groups for row in found] == [(("a b", "a b"),), (("c",), ("a",))]


def test_the_similarity_of_two_references_is_the_mean_of_both_ways() -> None:
    def aligner(text: Sequence[str], group: Sequence[Sequence[str]]) -> float:
        return {("a", "b"): 0.875, ("b", "a"): 0.375}.get((text[0], group[0][0]), 0.0)

    for threshold, groups in ((0.625, (("a", "b"),)), (0.63, (("a",), ("b",)))):
        (found,) = align_corpus([["a"]], [[["a"], ["b"]]], aligner, threshold=threshold)
        assert found.groups == groups
