"""chrF against sacreBLEU, per response and for the corpus."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from dialeval.core.errors import SettingError
from dialeval.metrics.chrf import Chrf
from dialeval.metrics.registry import registry
from metrics.test_bleu import batch_of

words = st.text("aAb(.,é日\U0001f600", min_size=1, max_size=6)
texts = st.lists(words, max_size=8).map(" ".join)
rows_of_texts = st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=3)), min_size=1, max_size=5)
Rows = list[tuple[str, list[str]]]


@given(
    rows=rows_of_texts,
    n=st.sampled_from([1, 2, 6, 8, 9]),
    word_order=st.sampled_from([0, 1, 2, 5, 6]),
    beta=st.sampled_from([1, 2, 3]),
    lower=st.booleans(),
)
def test_single_responses_are_sacrebleus(rows: Rows, n: int, word_order: int, beta: int, lower: bool) -> None:
    metric = Chrf(n=n, words=word_order, beta=beta, lower=lower)
    oracle = CHRF(char_order=n, word_order=word_order, beta=beta, lowercase=lower)
    partial = metric.partial(batch_of([response for response, _ in rows], [texts for _, texts in rows]))
    expected = [oracle.sentence_score(response, references).score / 100 for response, references in rows]
    np.testing.assert_allclose(partial.scores[metric.name], expected, rtol=1e-13, atol=1e-15)


@given(rows=st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=6), word_order=st.integers(0, 2))
def test_the_corpus_is_sacrebleus(rows: list[tuple[str, str, str]], word_order: int) -> None:
    metric = Chrf(words=word_order, per="corpus")
    state = metric.partial(batch_of([row[0] for row in rows], [row[1:] for row in rows])).state
    responses, *references = (list(side) for side in zip(*rows, strict=True))
    oracle = CHRF(word_order=word_order)
    expected = oracle.corpus_score(responses, references).score / 100
    estimate = metric.finish(state)[metric.name]
    assert metric.list_other_signatures(state)["sacrebleu"] == f"chrF2{'+' * word_order}|{oracle.get_signature()}"
    assert estimate.corpus
    assert estimate.mean == pytest.approx(expected, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize(("copies", "others"), [(300, 250), (3, 30_000), (30_000, 3), (20_000, 20_001)])
def test_a_long_text(copies: int, others: int) -> None:
    response, reference = "abcdefg hij " * copies, "abcd efghij! é" * others
    assert_sacrebleus([(response, reference)], words=2)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257])
@pytest.mark.parametrize("letters", ["a", "abc", "aé日\U0001f600\U0010ffff"])
def test_texts_about_as_long_as_the_integers_whose_bits_are_their_places(size: int, letters: str) -> None:
    dice = np.random.default_rng(size)
    several = ["".join(dice.choice(list(letters), size + int(more))) for more in dice.integers(-1, 2, 4)]
    assert_sacrebleus([(one, other) for one in several for other in several])


def test_a_pair_does_not_see_the_places_of_those_before() -> None:
    dice = np.random.default_rng(1)
    several = ["".join(dice.choice(list("abcdé "), int(size))) for size in dice.integers(0, 400, 200)]
    assert_sacrebleus(list(pairwise(several)))


def assert_sacrebleus(pairs: list[tuple[str, str]], words: int = 0) -> None:
    metric, oracle = Chrf(words=words), CHRF(word_order=words)
    partial = metric.partial(batch_of([one for one, _ in pairs], [[other] for _, other in pairs]))
    expected = [oracle.sentence_score(one, [other]).score / 100 for one, other in pairs]
    np.testing.assert_allclose(partial.scores[metric.name], expected, rtol=1e-13, atol=1e-15)


def test_what_cannot_be_scored() -> None:
    partial = Chrf().partial(batch_of(["", "a", "a", "a", ""], [["a"], [""], [], ["a"], []]))
    np.testing.assert_array_equal(partial.scores["chrf"], [0, 0, np.nan, 1, np.nan])
    assert (partial.state.moments.rows, partial.state.moments.scored) == (5, 3)


def test_names_and_settings() -> None:
    assert [str(Chrf()), str(Chrf(words=2))] == ["chrf", "chrf(words=2)"]
    assert registry().parse("chrf(n=4,lower=true,per=corpus)") == Chrf(n=4, lower=True, per="corpus")
    for settings in ({"n": 0}, {"n": -1}, {"words": -1}, {"beta": -1.0}, {"beta": float("nan")}, {"per": "row"}):
        with pytest.raises(SettingError):
            Chrf(**settings)
    assert Chrf(n=0, words=1).words == 1
    assert Chrf() == Chrf(6, 0, 2.0, "response", False)
    assert (Chrf().bounds, Chrf(n=3, words=2).width, Chrf(beta=0.0).beta) == ((0.0, 1.0), 17, 0.0)
    with pytest.raises(SettingError, match=r"^chrf counts n-grams of some order; n=0 with words=0 is not possible$"):
        Chrf(n=0)
    batch = batch_of(["a b"], [["a b"]])
    assert Chrf().list_other_signatures(Chrf().partial(batch).state) == {}
