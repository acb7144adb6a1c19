"""ROUGE-L against the definition in plain Python, with rapidfuzz for the longest common subsequence."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.translate.meteor_score import meteor_score
from rapidfuzz.distance import LCSseq
from rouge_score.rouge_scorer import RougeScorer

import dialeval
from dialeval.metrics.rouge import RougeL, RougeScore, compute_longest_common
from dialeval.text.tokenizers import tokenize
from dialeval.text.vocabulary import Vocabulary
from metrics.test_bleu import batch_of
from text.scripts_of_the_world import texts

short_texts = st.lists(st.sampled_from("abcd"), max_size=9).map(" ".join)
long_texts = st.lists(st.sampled_from("abcdef"), max_size=200).map(" ".join)


def lcs(one: list[str], other: list[str]) -> int:
    """The textbook table, row by row."""
    row = [0] * (len(other) + 1)
    for word in one:
        above = row
        row = [0]
        for place, there in enumerate(other):
            row.append(above[place] + 1 if word == there else max(row[place], above[place + 1]))
    return row[-1]


def rouge_l(response: str, references: list[str], beta: float) -> float:
    """As coco-caption computes it, for texts that are not empty."""
    here, there = response.split(), [reference.split() for reference in references]
    if not here:
        return 0.0
    precision = max(lcs(here, reference) / len(here) for reference in there)
    recall = max(lcs(here, reference) / len(reference) if reference else 0.0 for reference in there)
    if not precision or not recall:
        return 0.0
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision)


@given(
    rows=st.lists(st.tuples(short_texts, st.lists(short_texts, min_size=1, max_size=3)), min_size=1),
    beta=st.sampled_from([0.0, 1.0, 1.2]),
)
def test_it_is_the_definition(rows: list[tuple[str, list[str]]], beta: float) -> None:
    batch = batch_of([response for response, _ in rows], [references for _, references in rows])
    expected = [rouge_l(response, references, beta) for response, references in rows]
    np.testing.assert_allclose(RougeL(beta=beta).score(batch), expected, rtol=1e-14)


@given(rows=st.lists(st.tuples(long_texts, st.lists(long_texts, max_size=2)), max_size=3))
def test_longest_common_subsequences_of_any_length(rows: list[tuple[str, list[str]]]) -> None:
    batch = batch_of([response for response, _ in rows], [references for _, references in rows])
    vocabulary = Vocabulary()
    lists = batch.lists(next(need for need in batch.columns if need == "reference"))
    responses = tokenize(batch.texts(next(iter(batch.columns))), vocabulary)
    found = compute_longest_common(responses, tokenize(lists.values, vocabulary), lists.offsets)
    pairs = [(response.split(), text.split()) for response, references in rows for text in references]
    assert found.tolist() == [LCSseq.similarity(one, other) for one, other in pairs]
    assert found.tolist() == [lcs(one, other) for one, other in pairs]


@pytest.mark.parametrize("length", [63, 64, 65, 128, 2000])
def test_whole_blocks_and_one_more(length: int) -> None:
    words = [str(number) for number in range(length)]
    same, turned = " ".join(words), " ".join(reversed(words))
    values = RougeL(beta=1).score(batch_of([same] * 3, [[same], [turned], [f"{words[-1]} behind"]]))
    assert values[0] == 1
    assert values[1] == pytest.approx(1 / length)
    assert values[2] == pytest.approx(2 / (length + 2)), "the last word, alone in a block, is found"


def test_what_cannot_be_scored() -> None:
    values = RougeL().score(batch_of(["", "a", "a", "", "a b"], [["a"], [""], [], [""], ["", "a"]]))
    np.testing.assert_allclose(values, [0, 0, np.nan, 0, rouge_l("a b", ["a"], 1.2)], rtol=1e-14)


# ROUGE of rouge-score, compared with that package.


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


# METEOR with exact matches, compared with nltk.


meteor_texts = st.lists(st.sampled_from(["a", "B", "b", "c", "d"]), max_size=9).map(" ".join)
IDENTITY = SimpleNamespace(stem=lambda word: word)
NO_SYNONYMS = SimpleNamespace(synsets=lambda word: [])


@given(st.lists(st.tuples(meteor_texts, st.lists(meteor_texts, min_size=1, max_size=3)), min_size=1, max_size=8))
@example([("the cat sat on the mat", ["on the mat sat the cat"]), ("a", ["b"])])
def test_it_is_meteor_of_nltk_without_stems_and_synonyms(rows: list[tuple[str, list[str]]]) -> None:
    responses, references = [list(column) for column in zip(*rows, strict=True)]
    scored = dialeval.evaluate(responses, references, metrics="meteor-exact")["system"]["meteor-exact"]
    expected = [
        meteor_score([text.split() for text in several], response.split(), stemmer=IDENTITY, wordnet=NO_SYNONYMS)
        for response, several in rows
    ]
    assert scored.scores is not None
    np.testing.assert_allclose(scored.scores, expected, rtol=1e-12, atol=1e-15)


def test_published_example() -> None:
    """Six words in the order of the reference: one chunk; the penalty is 0.5 / 6^3 (nltk's documentation)."""
    run = dialeval.evaluate(["the cat sat on the mat"], [["the cat sat on the mat"]], metrics="meteor-exact")
    assert run["system"]["meteor-exact"].mean == pytest.approx(1 - 0.5 / 6**3)
