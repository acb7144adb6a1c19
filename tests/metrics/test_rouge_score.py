"""ROUGE of rouge-score, compared with that package."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import Tokenizer

from dialeval.core.errors import SettingError
from dialeval.metrics.registry import registry
from dialeval.metrics.rouge import RougeL, RougeScore
from metrics.test_bleu import batch_of
from text.scripts_of_the_world import texts

KINDS = {"1": "rouge1", "2": "rouge2", "l": "rougeL"}
WORDS = ["The", "cat", "sat", "on", "a", "mat.", "don't", "x-1"]
few_words = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
Rows = list[tuple[str, list[str]]]


class Blanks(Tokenizer):  # type: ignore[misc]
    def tokenize(self, text: str) -> list[str]:
        return text.split()


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


def test_long_texts() -> None:
    check([("the cat sat " * 60, ["the cat sat on a mat " * 40, "x"]), ("a b c d " * 30, ["d c b a " * 30])])


def test_another_tokenizer() -> None:
    oracle = RougeScorer(["rouge2"], tokenizer=Blanks())
    response, reference = "今天 天气 很 好 。", "今天 天气 不 好 。"
    found = RougeScore(of="2", tokenizer="words.1").score(batch_of([response], [[reference]]))
    assert found[0] == pytest.approx(oracle.score(reference, response)["rouge2"].fmeasure, rel=1e-14)


def test_rouge_l_with_beta_1_and_one_reference_is_the_same() -> None:
    batch = batch_of(["The cat sat.", "a b"], [["the cat, it sat"], ["b a c"]])
    ours = RougeL(beta=1.0, tokenizer="rouge").score(batch)
    np.testing.assert_allclose(ours, RougeScore().score(batch), rtol=1e-14)


def test_what_cannot_be_scored() -> None:
    batch = batch_of(["", "a", "a", "a", "。"], [["a"], [""], [], ["a"], ["。"]])
    np.testing.assert_array_equal(RougeScore(of="1").score(batch), [0, 0, np.nan, 1, 0])
    np.testing.assert_array_equal(RougeScore(of="2").score(batch), [0, 0, np.nan, 0, 0])
    np.testing.assert_array_equal(RougeScore().score(batch), [0, 0, np.nan, 1, 0])


def test_names_and_settings() -> None:
    assert [str(RougeScore(of=of)) for of in KINDS] == ["rouge-score-1", "rouge-score-2", "rouge-score-l"]  # type: ignore[arg-type]
    assert registry().parse("rouge-score(of=2,tokenizer=zh)") == RougeScore(of="2", tokenizer="zh")
    with pytest.raises(SettingError, match="of="):
        RougeScore(of="3")  # type: ignore[arg-type]
    assert (RougeScore(), RougeScore().bounds) == (RougeScore("l", "rouge"), (0.0, 1.0))
