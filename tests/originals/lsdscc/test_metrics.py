"""The stand-in for `lsdscc.metrics`, and what the package `lsdscc` has of it."""

from __future__ import annotations

from dialeval.originals import lsdscc
from dialeval.originals.lsdscc import metrics


def test_the_names_are_in_the_module_and_in_the_package() -> None:
    assert lsdscc.__version__ == "0.3.6"
    for name in ("LSDSCCScore", "compute_score_on_corpus", "compute_score_on_hypothesis_set"):
        assert name in lsdscc.__all__
        assert getattr(lsdscc, name) is getattr(metrics, name)


def test_scores_are_a_named_tuple() -> None:
    score = metrics.compute_score_on_hypothesis_set([["a"]], [[["a"]]])
    assert type(score) is metrics.LSDSCCScore
    assert score == (1.0, 1.0, 1.0)
    assert repr(score) == "LSDSCCScore(mds=1.0, pds=1.0, max_bleu=1.0)"
