"""Where hypotheses land, and the three figures that follow."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.lsdscc import BleuAligner, NLTKNistAligner, SacreAligner, align_corpus, compute_score_on_hypothesis_set
from dialeval.metrics.coverage import comparison as comparison_module
from dialeval.metrics.coverage.alignment import align
from dialeval.metrics.coverage.comparison import Comparison
from dialeval.text.vocabulary import Vocabulary
from metrics.coverage.twins import Query, add_one_bleu, figures, queries


@given(st.lists(queries(), max_size=5), st.sampled_from([1, 7, 1 << 16]))
@settings(max_examples=60)
def test_as_the_plain_loop_however_it_is_cut(corpus: list[Query], part: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison_module, "PART_PAIRS", part)
        pairs = Comparison.of_words([texts for texts, _ in corpus], [groups for _, groups in corpus], Vocabulary())
        found = align(pairs, BleuAligner())
    expected = [figures(query, partial(add_one_bleu, n=4)) for query in corpus]
    assert [list(row.aligned) for row in found.table()] == [best for best, _, _, _ in expected]
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
