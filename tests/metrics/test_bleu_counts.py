"""BLEU counts: both kernels against each other, a naive twin and nltk, at every length around the switch."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import closest_ref_length, modified_precision

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import ColumnData, RaggedColumn, TextColumn
from dialeval.core.inputs import Input
from dialeval.metrics import bleu_counts as kernel
from dialeval.metrics.bleu_counts import NO_REFERENCE, count_ngram_matches, match_long
from dialeval.text.tokenizers import DEFAULT, tokens
from dialeval.text.vocabulary import Vocabulary

Row = tuple[list[str], list[list[str]]]
"""The words of a response and of its references."""


def texts(longest: int) -> st.SearchStrategy[list[str]]:
    """Texts of few different words, so that n-grams repeat."""
    return st.sampled_from([1, 2, 5, 30]).flatmap(
        lambda words: st.lists(st.integers(1, words).map(lambda number: f"w{number}"), max_size=longest)
    )


@st.composite
def around_the_switch(draw: st.DrawFn) -> Row:
    """Texts with lengths near `SHORT`, near one step of the comparison, or up to 150, that share much."""
    size = st.one_of(st.integers(60, 68), st.integers(14, 18), st.integers(0, 150))
    base = [*draw(texts(12)), "x"]
    response = [*base * 150][: draw(size)]
    references = [[*draw(texts(3)), *base * 150][: draw(size)] for _ in range(draw(st.integers(0, 3)))]
    return response, references


rows = st.lists(st.one_of(st.tuples(texts(14), st.lists(texts(14), max_size=4)), around_the_switch()), max_size=6)


def batch_of(pairs: Sequence[Row]) -> Batch:
    responses = TextColumn.from_strings([" ".join(response) for response, _ in pairs])
    references = RaggedColumn.from_lists([[" ".join(text) for text in texts] for _, texts in pairs])
    columns: dict[Input, ColumnData] = {inputs.RESPONSE: responses, inputs.REFERENCE: references}
    return Batch(len(pairs), columns, Vocabulary(), np.arange(len(pairs) + 1))


def grams(text: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))


def naive_matches(response: list[str], references: list[list[str]]) -> list[int]:
    matches = []
    for n in range(1, kernel.ORDERS + 1):
        most: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            most |= grams(reference, n)
        matches.append((grams(response, n) & most).total())
    return matches


def by_long(batch: Batch) -> list[list[int]]:
    matches = np.full((len(batch), kernel.ORDERS), -1, np.int64, order="F")
    lists = batch.lists(inputs.REFERENCE).offsets
    match_long(
        np.arange(len(batch)), tokens(batch, inputs.RESPONSE), tokens(batch, inputs.REFERENCE, DEFAULT), lists, matches
    )
    found: list[list[int]] = matches.tolist()
    return found


@given(rows)
@settings(max_examples=200)
def test_both_kernels_count_like_the_naive_twin(pairs: list[Row]) -> None:
    batch = batch_of(pairs)
    counts = count_ngram_matches(batch, DEFAULT)
    expected = [naive_matches(*pair) for pair in pairs]
    assert counts.matches.tolist() == expected
    assert by_long(batch) == expected
    assert counts.response_lengths.tolist() == [len(response) for response, _ in pairs]
    totals = [[grams(response, n).total() for n in range(1, kernel.ORDERS + 1)] for response, _ in pairs]
    assert counts.totals.tolist() == totals


@given(rows)
@settings(max_examples=60)
def test_counts_and_closest_lengths_are_those_of_nltk(pairs: list[Row]) -> None:
    counts = count_ngram_matches(batch_of(pairs), DEFAULT)
    for row, (response, references) in enumerate(pairs):
        if not references:
            assert counts.reference_lengths[row] == NO_REFERENCE
            continue
        assert counts.reference_lengths[row] == closest_ref_length(references, len(response))
        for n in range(1, kernel.ORDERS + 1):
            precision = modified_precision(references, response, n)
            assert counts.matches[row, n - 1] == precision.numerator
            assert max(1, counts.totals[row, n - 1]) == precision.denominator


@pytest.mark.parametrize("size", [kernel.SHORT - 1, kernel.SHORT, kernel.SHORT + 1])
@pytest.mark.parametrize("other", [0, 1, kernel.SHORT, kernel.SHORT + 1])
@pytest.mark.parametrize("words", [1, 2, 1000])
def test_every_side_of_the_switch(size: int, other: int, words: int) -> None:
    texts = [[f"w{i % words}" for i in range(length)] for length in (size, other)]
    for response, reference in itertools.permutations(texts):
        batch = batch_of([(response, [reference, reference[: other // 2]])])
        expected = [naive_matches(response, [reference])]
        assert count_ngram_matches(batch, DEFAULT).matches.tolist() == expected == by_long(batch)


def test_a_row_does_not_see_the_rows_before_it() -> None:
    long = ["a", "b"] * 100
    pairs: list[Row] = [
        (long, [long]),
        (["a"], [["b"]]),
        (long, [["c"] * 70]),
        (["a"], []),
        ([], [["a"]]),
        (["a"], [[]]),
    ]
    for order in itertools.permutations(pairs, 4):
        counts = count_ngram_matches(batch_of(order), DEFAULT)
        assert counts.matches.tolist() == [naive_matches(*pair) for pair in order]


def test_a_text_of_a_million_words_takes_linear_time() -> None:
    size = 1_000_000
    # Every second word is the same: all bigrams of one parity end in it, which a poor hash would pile up.
    response = ["the" if i % 2 else f"w{i}" for i in range(size)]
    counts = count_ngram_matches(batch_of([(response, [response[: size // 2]])]), DEFAULT)
    assert counts.matches.tolist() == [[size // 2 - n for n in range(kernel.ORDERS)]]


def test_the_closest_of_equally_near_lengths_is_the_shorter() -> None:
    response = ["a"] * 4
    lengths = itertools.permutations([["a"] * 5, ["a"] * 3, ["a"] * 8])
    counts = count_ngram_matches(batch_of([(response, list(references)) for references in lengths]), DEFAULT)
    assert set(counts.reference_lengths.tolist()) == {3}


def test_an_empty_reference_may_be_the_closest() -> None:
    for references in itertools.permutations([[], ["a"] * 4, ["a"] * 9]):
        counts = count_ngram_matches(batch_of([(["a"] * size, list(references)) for size in (0, 1, 2, 3)]), DEFAULT)
        assert counts.reference_lengths.tolist() == [0, 0, 0, 4]
