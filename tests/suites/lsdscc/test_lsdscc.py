"""The interface of the LSDSCC program: what it takes, what it refuses, and what it leaves out of its means."""

from __future__ import annotations

import logging
import math
import subprocess
import sys
from typing import Any

import pytest

from dialeval.core.errors import DataError
from dialeval.lsdscc import HypothesisSet, NLTKNistAligner, ReferenceSet, compute_score_on_corpus

HYPOTHESES = [text.split() for text in ("the cat sat on the mat", "a dog", "no")]
GROUPS = [[text.split() for text in group] for group in (["the cat sat"], ["a dog barked", "one dog"], ["never"])]


def test_nltk_is_not_imported() -> None:
    code = (
        "import sys; from dialeval.lsdscc import *; "
        "compute_score_on_hypothesis_set([['a']], [[['a']]], NLTKBleuAligner(3)); "
        "compute_score_on_hypothesis_set([['a']], [[['a']]], NLTKNistAligner(1)); "
        "print('nltk' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_shapes_of_every_kind() -> None:
    plain = compute_score_on_corpus([HYPOTHESES], [GROUPS])
    wrapped = compute_score_on_corpus([HypothesisSet(HYPOTHESES)], [ReferenceSet(GROUPS)])
    texts = compute_score_on_corpus(
        [[" ".join(text) for text in HYPOTHESES]], [[[" ".join(text) for text in group] for group in GROUPS]]
    )
    tuples = compute_score_on_corpus((tuple(map(tuple, HYPOTHESES)),), (tuple(map(tuple, GROUPS)),))
    assert plain == wrapped == texts == tuples
    assert plain._fields == ("mds", "pds", "max_bleu")


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
