"""n-grams and their counts, against Counter."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.arrays import Ids
from dialeval.core.columns import TextColumn
from dialeval.core.validation import InvalidError
from dialeval.text import ngrams
from dialeval.text.ngrams import NgramColumn, NgramCounts, NgramTotals, count_texts, hash_column
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


def test_distinct_keys_of_rows_that_fill_their_table() -> None:
    rows = [[number * number % size for number in range(size)] for size in range(1, 130)]
    rows += [list(range(size)) for size in (127, 128, 0, 1, 7, 8)]
    offsets = np.cumsum([0, *map(len, rows)])
    column = NgramColumn(1, np.array(list(chain.from_iterable(rows))), offsets, None)
    assert column.count_distinct().tolist() == [len(set(row)) for row in rows]


# Hashes, against whole numbers of Python: digests of saved runs are made of them, so that they never change.

MASK = (1 << 64) - 1
ODD = 0x9E3779B97F4A7C15


def mixed(value: int) -> int:
    """The finalizer of SplitMix64."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def hashed(word: str) -> int:
    data, total = word.encode(), ODD
    for start in range(0, len(data), 8):
        total = mixed(total ^ int.from_bytes(data[start : start + 8], "big")) + ODD & MASK
    return mixed(total ^ len(data))


def test_hashes_of_words() -> None:
    words = ["", *("abcdefghijklmnopq"[:size] for size in range(1, 18)), "\x00", "\x00\x00", "é", "\U0001f600" * 9]
    assert hash_column(TextColumn.from_strings(words)).tolist() == [hashed(word) for word in words]
    assert hashed("") == 0xE220A8397B1DCDAF  # the first number of SplitMix64 with seed 0


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("parts", [1, 2, 7, 300])
def test_the_part_of_an_ngram_depends_on_its_words_alone(n: int, parts: int) -> None:
    words = [f"w{number * number % 50}" for number in range(80)]
    counts = counted([words, words[::2]], n, Vocabulary(["zz", "w4"]))
    expected: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(parts)]
    for gram, count in spelled(counts).items():
        total = ODD
        for word in gram:
            total = mixed(total ^ hashed(word)) + ODD & MASK
        expected[(mixed(total) & 0xFFFFFFFF) * parts >> 32][gram] = count
    found = counts.split(parts)
    assert [spelled(part) for part in found] == expected
    assert [part.n for part in found] == [n] * parts
    merged = found[0]
    for part in found[1:]:
        merged = merged.merge(part)
    assert spelled(merged) == spelled(counts)


# Plain arrays of a file.


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_plain_arrays_and_back(n: int) -> None:
    counts = counted([["a", "dd", "c", "a", "dd", "c", "a", "b"]], n, Vocabulary(["zz", "c"]))
    plain = counts.to_plain()
    assert plain[0] == n
    again = NgramCounts.from_plain(*plain)
    assert spelled(again) == spelled(counts)
    assert again.vocabulary is not counts.vocabulary
    order, data, lengths, keys, numbers = plain
    for bad in (keys[::-1], np.repeat(keys[:1], len(keys), axis=0), np.vstack((keys[1::-1], keys[2:]))):
        with pytest.raises(InvalidError, match="out of order"):
            NgramCounts.from_plain(order, data, lengths, bad, numbers)


def plain_bigrams(**changes: object) -> NgramCounts:
    """Counts of `a bb` and `bb a`, but for the changes."""
    parts: dict[str, object] = {
        "n": 2,
        "data": np.frombuffer(b"abb", np.uint8),
        "lengths": np.array([1, 2]),
        "keys": np.array([[1], [1 << 32]]),
        "counts": np.array([3, 1], np.int32),
    }
    return NgramCounts.from_plain(*{**parts, **changes}.values())  # type: ignore[arg-type]


def test_plain_bigrams() -> None:
    assert spelled(plain_bigrams()) == {("a", "bb"): 3, ("bb", "a"): 1}
    assert spelled(plain_bigrams(counts=np.array([2, 1], np.int64))) == {("a", "bb"): 2, ("bb", "a"): 1}
    assert spelled(plain_bigrams(n=1, keys=np.array([[0], [1]]))) == {("a",): 3, ("bb",): 1}
    none, no_keys = np.array([], np.int64), np.empty((0, 1), np.int64)
    nothing = plain_bigrams(data=np.array([], np.uint8), lengths=none, keys=no_keys, counts=none)
    assert (nothing.types, nothing.total, nothing.counts.dtype.name) == (0, 0, "int64")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": np.zeros(3, np.int8)}, "holds int8 of shape"),
        ({"lengths": np.array([1, 2], np.int32)}, "holds int32 of shape"),
        ({"keys": np.zeros((2, 2), np.int64)}, "holds int64 of shape"),
        ({"n": 3}, "holds int64 of shape"),
        ({"counts": np.ones(3, np.int32)}, "holds int32 of shape"),
        ({"counts": np.ones(2, np.float64)}, "no n-grams have these counts"),
        ({"counts": np.array([1, 0], np.int32)}, "no n-grams have these counts"),
        ({"n": 0, "keys": np.empty((2, 0), np.int64)}, "no n-grams have these counts"),
        ({"lengths": np.array([4, -1])}, "words have other lengths"),
        ({"lengths": np.array([1, 1])}, "words have other lengths"),
        ({"lengths": np.array([2**62, 2**62, 2**62, 2**62 + 3])}, "words have other lengths"),
        ({"keys": np.array([[1], [2 << 32]])}, "words that are not there"),
        ({"keys": np.array([[1], [1 << 32 | 2]])}, "words that are not there"),
        ({"keys": np.array([[1], [-1 << 32]])}, "words that are not there"),
        ({"n": 1}, "words that are not there"),
        ({"n": 1, "keys": np.array([[0], [2]])}, "words that are not there"),
        ({"data": np.frombuffer(b"aaa", np.uint8), "lengths": np.array([1, 1, 1])}, "words are repeated"),
        ({"keys": np.array([[1], [1]])}, "out of order"),
        ({"keys": np.array([[1 << 32], [1]])}, "out of order"),
    ],
)
def test_plain_arrays_that_are_no_counts(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        plain_bigrams(**changes)


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


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_texts_are_counted_in_parts(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngrams, "COUNTED_TEXTS", size)
    texts = TextColumn.from_strings(["a b", "b a b", "", "C c", "a"])
    vocabulary = Vocabulary()
    expected = {("a", "b"): 2, ("b", "a"): 1, ("C", "c"): 1}
    assert spelled(count_texts(texts, vocabulary, 2, "words.1", None)) == expected

    def unify(ids: Ids) -> Ids:
        return np.zeros_like(ids)

    assert spelled(count_texts(texts, vocabulary, 2, "words.1", unify)) == {("a", "a"): 4}
    assert spelled(count_texts(texts, vocabulary, 1, "lower-words.1", None)) == {("a",): 3, ("b",): 3, ("c",): 2}
    assert count_texts(texts.slice(0, 0), vocabulary, 3, "words.1", None).to_plain()[0] == 3


def test_totals_add_up() -> None:
    assert NgramTotals() == NgramTotals(0, 0)
    assert NgramTotals(2, 7).merge(NgramTotals(3, 11)) == NgramTotals(5, 18)
