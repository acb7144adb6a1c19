"""Distinct-n, against its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.contributions import ClusteredRows, Resamples, RowWords
from dialeval.core.exact import Moments
from dialeval.metrics.distinct import Distinct
from dialeval.metrics.registry import registry
from dialeval.text.ngrams import NgramTotals
from dialeval.text.vocabulary import Vocabulary

responses = st.lists(st.lists(st.sampled_from("abcd"), max_size=8), min_size=1, max_size=8)


def grams(words: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]


@given(responses, st.integers(1, 4))
def test_equals_its_definition(rows: list[list[str]], n: int) -> None:
    run = dialeval.evaluate(
        [" ".join(row) for row in rows], metrics=[f"distinct(n={n})", f"distinct(n={n},per=response)"]
    )["system"]
    corpus, single = run.values()
    every = [gram for row in rows for gram in grams(row, n)]
    each = [len(set(found)) / len(found) if (found := grams(row, n)) else math.nan for row in rows]
    assert corpus.items is not None
    np.testing.assert_array_equal(corpus.items, each)
    assert corpus.scored == single.scored == sum(not math.isnan(value) for value in each)
    if every:
        assert corpus.mean == len(set(every)) / len(every)
        assert single.mean == pytest.approx(np.nanmean(each), rel=1e-12)
    else:
        assert math.isnan(corpus.mean)
        assert math.isnan(single.mean)


def test_tokens_count_as_they_are_whatever_the_vocabulary_is() -> None:
    given: dict[str, Any] = {"train": ["a b"], "vocabulary": ["a"], "metrics": ["distinct-1", "distinct(n=1,oov=unk)"]}
    plain, unified = dialeval.evaluate(["a c", "d e"], **given)["system"].values()
    assert (plain.mean, unified.mean) == (4 / 4, 2 / 4)
    alone = dialeval.evaluate(["a c", "d e"], metrics="distinct-1")["system"]["distinct-1"]
    assert (alone.mean, alone.signature) == (plain.mean, plain.signature)


def test_the_group_of_the_original_counts_unknown_tokens_as_one() -> None:
    run = dialeval.evaluate(["a c", "d e"], vocabulary=["a"], metrics="dialog-eval")["system"]
    assert run["distinct-1"].mean == 2 / 4


def test_a_corpus_value_has_no_spread_over_rows() -> None:
    estimate = dialeval.evaluate(["a a", "a b"], metrics="distinct-1", intervals="rows")["system"]["distinct-1"]
    assert (estimate.mean, estimate.std, estimate.confidence, estimate.interval) == (0.5, 0.0, 0.0, None)


def test_what_is_declared() -> None:
    metric = Distinct()
    assert metric == Distinct(2, "corpus", "self", "words.1")
    assert [str(each) for each in registry().select("distinct")] == ["distinct-1", "distinct-2"]
    assert (metric.counts_kinds, metric.descriptive, metric.grows) == (True, True, True)
    assert (metric.bounds, metric.definition, Distinct(1).n) == ((0.0, 1.0), 2, 1)


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_parts_of_a_state_have_different_ngrams(parts: int) -> None:
    texts = TextColumn.from_strings(["a b a b c", "c d", "", "b a b"])
    metric = Distinct(2)
    made = metric.partial(Batch(4, {inputs.RESPONSE: texts}, Vocabulary(), np.array([0, 2, 4])))
    np.testing.assert_array_equal(made.items["distinct-2"], [3 / 4, 1, np.nan, 1])
    split = [metric.close_part(part) for part in metric.split_state(made.state, parts)]
    assert len(split) == parts
    assert [part.moments for part in split] == [made.state.moments, *[Moments()] * (parts - 1)]
    total = split[0]
    for part in split[1:]:
        total = metric.merge(total, part)
    assert total.ngrams == NgramTotals(4, 7)
    [estimate] = metric.finish(total).values()
    assert (estimate.mean, estimate.rows, estimate.scored, estimate.corpus) == (4 / 7, 4, 3, True)


def test_resamples_are_of_repeated_responses() -> None:
    words = RowWords.of(Vocabulary().split(TextColumn.from_strings(["a b a", "b c", "", "c"])))
    rows = ClusteredRows({"words/words.1/self": words}, np.array([0, 1, 3, 4]))
    counts = np.array([[1, 1, 1], [0, 2, 1], [0, 0, 3], [0, 0, 0]])
    np.testing.assert_array_equal(Distinct(1).score_resamples(Resamples(rows, counts)), [3 / 6, 2 / 5, 1 / 3, np.nan])
    np.testing.assert_array_equal(Distinct(2).score_resamples(Resamples(rows, counts)), [3 / 3, 1 / 2, np.nan, np.nan])


def test_n_grams_that_are_longer_than_any_text() -> None:
    """However long, also with each shorter length next to it."""
    lengths = (*range(3, 200), 10**6)
    metrics = ",".join(f"distinct(n={n})" for n in lengths)
    run = dialeval.evaluate(["a b c", "a b", ""], metrics=metrics)["system"]
    assert [run[f"distinct(n={n})"].scored for n in lengths] == [1] + [0] * (len(lengths) - 1)
