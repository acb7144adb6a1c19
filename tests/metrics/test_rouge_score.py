"""ROUGE of rouge-score, compared with that package."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from dialeval.metrics.rouge import RougeScore
from metrics.test_bleu import batch_of
from text.scripts_of_the_world import texts

KINDS = {"1": "rouge1", "2": "rouge2", "l": "rougeL"}
WORDS = ["The", "cat", "sat", "on", "a", "mat.", "don't", "x-1"]
few_words = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
Rows = list[tuple[str, list[str]]]


def check(rows: Rows) -> None:
    oracle = RougeScorer(list(KINDS.values()))
    batch = batch_of([response for response, _ in rows], [references for _, references in rows])
    expected = [oracle.score_multi(references, response) for response, references in rows]
    for of, name in KINDS.items():
        found = RougeScore(of=of).score(batch)  # type: ignore[arg-type]
        np.testing.assert_allclose(found, [each[name].fmeasure for each in expected], rtol=1e-13)


@given(rows=st.lists(st.tuples(few_words, st.lists(few_words, min_size=1, max_size=3)), min_size=1, max_size=5))
@settings(max_examples=200)
def test_it_is_rouge_score(rows: Rows) -> None:
    check(rows)


@given(rows=st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=2)), min_size=1, max_size=4))
def test_it_is_rouge_score_on_any_script(rows: Rows) -> None:
    check(rows)
