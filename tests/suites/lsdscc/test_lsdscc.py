"""The interface of the LSDSCC program: what it takes, what it refuses, and what it leaves out of its means."""

from __future__ import annotations

import logging
import math
import re
import subprocess
import sys
from typing import Any

import pytest

from dialeval.core.errors import DataError
from dialeval.lsdscc import HypothesisSet, NLTKNistAligner, ReferenceSet, compute_score_on_corpus
from dialeval.sample_data import folder
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses

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
