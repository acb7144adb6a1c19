"""n-grams and their counts, against Counter."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.columns import TextColumn
from dialeval.text import ngrams
from dialeval.text.ngrams import NgramColumn, NgramCounts
from dialeval.text.vocabulary import Vocabulary

rows_of_words = st.lists(st.lists(st.sampled_from(["a", "b", "c", "dd"]), max_size=9), max_size=6)
orders = st.integers(1, 5)
Grams = list[list[tuple[str, ...]]]


def naive(rows: list[list[str]], n: int) -> Grams:
    return [[tuple(row[start : start + n]) for start in range(len(row) - n + 1)] for row in rows]


def counted(rows: list[list[str]], n: int, vocabulary: Vocabulary) -> NgramCounts:
    tokens = vocabulary.split(TextColumn.from_strings([" ".join(row) for row in rows]))
    return NgramCounts.of(NgramColumn.of(tokens, n), vocabulary)


def spelled(counts: NgramCounts) -> Counter[tuple[str, ...]]:
    return Counter(
        {
            tuple(counts.vocabulary.words(gram)): int(count)
            for gram, count in zip(counts.grams, counts.counts, strict=True)
        }
    )


@given(rows_of_words, orders)
def test_columns_hold_the_ngrams_of_every_row(rows: list[list[str]], n: int) -> None:
    vocabulary = Vocabulary()
    column = NgramColumn.of(vocabulary.split(TextColumn.from_strings([" ".join(row) for row in rows])), n)
    grams = [tuple(vocabulary.words(gram)) for gram in column.decode(column.keys)]
    expected = naive(rows, n)
    assert grams == list(chain.from_iterable(expected))
    assert column.offsets.tolist() == [0, *(sum(map(len, expected[: k + 1])) for k in range(len(rows)))]
    assert column.count_distinct().tolist() == [len(set(row)) for row in expected]


@given(rows_of_words, orders)
def test_numbers_are_those_of_numpy(rows: list[list[str]], n: int) -> None:
    tokens = Vocabulary().split(TextColumn.from_strings([" ".join(row) for row in rows]))
    column = NgramColumn.of(tokens, n)
    given_keys = column.keys.copy()
    for own, expected in zip(column.number_keys(), np.unique(given_keys, return_inverse=True), strict=True):
        assert own.tolist() == expected.tolist()
    assert column.keys.tolist() == given_keys.tolist()


@given(rows_of_words, orders)
def test_counts_equal_counter(rows: list[list[str]], n: int) -> None:
    counts = counted(rows, n, Vocabulary())
    expected = Counter(chain.from_iterable(naive(rows, n)))
    assert spelled(counts) == expected
    assert (counts.types, counts.total) == (len(expected), sum(expected.values()))


@given(rows_of_words, rows_of_words, rows_of_words, orders, st.tuples(st.booleans(), st.booleans()))
def test_merging_adds_up_wherever_the_parts_were_counted(
    a: list[list[str]], b: list[list[str]], c: list[list[str]], n: int, own: tuple[bool, bool]
) -> None:
    shared = Vocabulary(["zz", "c"])
    parts = [
        counted(a, n, shared),
        counted(b, n, Vocabulary() if own[0] else shared),
        counted(c, n, Vocabulary() if own[1] else shared),
    ]
    if own[0]:
        parts[1] = pickle.loads(pickle.dumps(parts[1]))
    expected = Counter(chain.from_iterable(naive([*a, *b, *c], n)))
    first, second, third = parts
    assert spelled(first.merge(second).merge(third)) == expected
    assert spelled(third.merge(first.merge(second))) == expected
    assert spelled(NgramCounts.empty(n).merge(first)) == spelled(first) == spelled(first.merge(NgramCounts.empty(n)))


def test_a_pickle_carries_only_the_words_it_uses() -> None:
    vocabulary = Vocabulary([f"other{number}" for number in range(1000)])
    counts = pickle.loads(pickle.dumps(counted([["a", "b"]], 2, vocabulary)))
    assert list(counts.vocabulary.column()) == ["a", "b"]


def test_counts_take_the_wider_type_only_where_they_must() -> None:
    vocabulary = Vocabulary(["a"])
    large = NgramCounts(1, vocabulary, np.array([[0]]), np.array([2**31 - 1], np.int32))
    assert large.counts.dtype == np.int32
    merged = large.merge(large)
    assert merged.counts.tolist() == [2**32 - 2]
    assert merged.merge(large).total == 3 * (2**31 - 1)
    one = NgramCounts(1, vocabulary, np.array([[0]]), np.array([1], np.int32))
    assert large.merge(one).counts.dtype == np.int64
    fits = NgramCounts(1, vocabulary, np.array([[0]]), np.array([2**31 - 2], np.int32)).merge(one)
    assert (fits.counts.dtype.name, fits.total) == ("int32", 2**31 - 1)


# Kernels with keys of any size, against NumPy.

keys_of_any_size = st.lists(
    st.one_of(st.integers(0, 300), st.integers(0, 2**62), st.integers(0, 62).map(lambda bit: 1 << bit)), max_size=40
)


@given(keys_of_any_size)
def test_keys_of_any_size_are_counted_and_numbered(keys: list[int]) -> None:
    column = NgramColumn(1, np.array(keys, np.int64), np.array([0, len(keys)]), None)
    unique, numbers, counts = np.unique(column.keys, return_inverse=True, return_counts=True)
    assert [each.tolist() for each in column.counts()] == [unique.tolist(), counts.tolist()]
    assert [each.tolist() for each in column.number_keys()] == [unique.tolist(), numbers.tolist()]
    assert column.count_distinct().tolist() == [len(unique)]


# Hashes, against whole numbers of Python: digests of saved runs are made of them, so that they never change.


# Plain arrays of a file.


# Several counts.


@given(rows_of_words, rows_of_words, st.integers(1, 2), st.integers(1, 4), st.booleans())
def test_ngrams_that_two_have(a: list[list[str]], b: list[list[str]], n: int, stretch: int, own: bool) -> None:
    shared = Vocabulary(["zz", "c"])
    left, right = counted(a, n, shared), counted(b, n, Vocabulary() if own else shared)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ngrams, "_COMPARED_KEYS", stretch)
        keys, here, there = left.intersect(right)
    one, other = spelled(left), spelled(right)
    grams = [tuple(shared.words(gram)) for gram in NgramCounts(n, shared, keys[:, None], here).grams]
    assert list(zip(grams, here.tolist(), there.tolist(), strict=True)) == [
        (gram, one[gram], other[gram]) for gram in one if gram in other
    ]
