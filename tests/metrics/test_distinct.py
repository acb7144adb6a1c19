"""Distinct-n, against its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval

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


def test_n_grams_that_are_longer_than_any_text() -> None:
    """However long, also with each shorter length next to it."""
    lengths = (*range(3, 200), 10**6)
    metrics = ",".join(f"distinct(n={n})" for n in lengths)
    run = dialeval.evaluate(["a b c", "a b", ""], metrics=metrics)["system"]
    assert [run[f"distinct(n={n})"].scored for n in lengths] == [1] + [0] * (len(lengths) - 1)
