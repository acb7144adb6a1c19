"""n-grams of resamples against rows that are really written one after the other."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.arrays import Ints, offsets_of
from dialeval.core.columns import TextColumn
from dialeval.core.contributions import ClusteredRows, Resamples, RowWords
from dialeval.text import resampled
from dialeval.text.resampled import ClusterGrams, NgramValues, ngram_totals, row_sums
from dialeval.text.vocabulary import Vocabulary

rows = st.lists(st.lists(st.sampled_from("abcd"), max_size=9), min_size=1, max_size=8)


def drawn(data: st.DataObject, texts: list[list[str]]) -> tuple[Ints, Ints]:
    """Clusters of the rows, and two resamples of them."""
    cuts = data.draw(st.lists(st.integers(0, len(texts)), max_size=5))
    offsets = np.unique([0, *cuts, len(texts)])
    counts = data.draw(st.lists(st.integers(0, 3), min_size=2 * len(offsets) - 2, max_size=2 * len(offsets) - 2))
    return offsets, np.array(counts, np.int64).reshape(2, -1)


def sample_of(texts: list[list[str]], offsets: Ints, counts: Ints) -> Resamples:
    words = RowWords.of(Vocabulary().split(TextColumn.from_strings([" ".join(words) for words in texts])))
    return Resamples(ClusteredRows({"words": words}, offsets), counts)


@given(rows, st.integers(1, 4), st.data())
def test_ngrams(texts: list[list[str]], n: int, data: st.DataObject) -> None:
    offsets, counts = drawn(data, texts)
    found = ngram_totals(sample_of(texts, offsets, counts), "words", n)
    for taken, totals in zip(counts, found.T, strict=True):
        times = np.repeat(taken, np.diff(offsets))
        expected: Counter[tuple[str, ...]] = Counter()
        for words, often in zip(texts, times.tolist(), strict=True):
            for at in range(len(words) - n + 1):
                expected[tuple(words[at : at + n])] += often
        assert sorted(totals[totals > 0].tolist()) == sorted(count for count in expected.values() if count)


def fields(grams: ClusterGrams) -> list[object]:
    return [grams.kinds.tolist(), grams.times.tolist(), grams.offsets.tolist(), grams.count, grams.heads.tolist()]


# Values of n-grams, against a dict and a loop.


@given(
    st.dictionaries(st.integers(0, 2**62), st.floats(allow_nan=False), max_size=20),
    st.lists(st.integers(0, 2**62), max_size=20),
    st.booleans(),
)
def test_values_are_found_by_key(table: dict[int, float], others: list[int], many: bool) -> None:
    keys = np.array(sorted(table), np.int64)
    values = NgramValues(keys, np.array([table[int(key)] for key in keys]), 2, Vocabulary())
    asked = [*others, *list(table)[::-1], *others]
    with pytest.MonkeyPatch.context() as patch:
        if many:
            patch.setattr(resampled, "_CACHED_KEYS", 0)
        found = values.look_up(np.array(asked, np.int64))
    np.testing.assert_array_equal(found, [table.get(key, np.nan) for key in asked])


@given(st.lists(st.lists(st.sampled_from([1.5, -2.0, math.nan]), max_size=5), max_size=6))
def test_rows_are_summed_without_what_is_not_known(rows: list[list[float]]) -> None:
    known = [[value for value in row if not math.isnan(value)] for row in rows]
    values = np.array([value for row in rows for value in row])
    sums, counts = row_sums(values, offsets_of(map(len, rows)))
    assert sums.tolist() == [sum(row) for row in known]
    assert counts.tolist() == [len(row) for row in known]
