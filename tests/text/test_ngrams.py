"""n-grams and their counts, against Counter."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import arrays
from dialeval.core.arrays import Ints, offsets_of
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.contributions import ClusteredRows, Resamples, RowWords
from dialeval.text import ngrams
from dialeval.text.ngrams import NgramColumn, NgramCounts, NgramValues, count_ngrams, row_sums
from dialeval.text.row_digests import digest_lists, digest_prompts
from dialeval.text.tokenizers import tokenize
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


TEXTS = st.lists(st.sampled_from(["", "a", "b", "ab", "hello there, how are you?", "é"]), max_size=5)


def _equal_as(digests: Any, keys: Sequence[object]) -> bool:
    """Whether two rows have the same digest exactly where they have the same key."""
    return all((digests[i] == digests[j]) == (keys[i] == keys[j]) for i in range(len(keys)) for j in range(len(keys)))


@given(st.lists(TEXTS, min_size=1, max_size=8))
def test_lists_have_one_digest_exactly_where_they_are_equal(rows: list[list[str]]) -> None:
    digests = digest_lists(RaggedColumn.from_lists(rows))
    assert (digests is None) == (not any(rows))
    if digests is None:
        return
    assert _equal_as(digests, rows)
    assert [digest == 0 for digest in digests] == [not row for row in rows]


@given(st.lists(TEXTS, min_size=1, max_size=8))
def test_without_roles_every_second_turn_from_the_end_is_the_users(rows: list[list[str]]) -> None:
    digests = digest_prompts(RaggedColumn.from_lists(rows))
    assert digests is None if not any(rows) else _equal_as(digests, [row[::-1][::2] for row in rows])


@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["user", "assistant", "tool"]))), min_size=1)
)
def test_with_roles_only_the_turns_of_the_user_count(rows: list[list[tuple[str, str]]]) -> None:
    texts, roles = ([[turn[part] for turn in row] for row in rows] for part in (0, 1))
    digests = digest_prompts(RaggedColumn.from_lists(texts), RaggedColumn.from_lists(roles))
    if digests is None:
        return
    asked = [[text for text, role in row if role == "user"] for row in rows]
    known = [at for at, row in enumerate(asked) if row]
    assert _equal_as(digests[known], [asked[at] for at in known])


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
    totals, different = count_ngrams(sample_of(texts, offsets, counts), "words", n)
    for taken, total, kinds in zip(counts, totals.tolist(), different.tolist(), strict=True):
        times = np.repeat(taken, np.diff(offsets))
        expected: Counter[tuple[str, ...]] = Counter()
        for words, often in zip(texts, times.tolist(), strict=True):
            for at in range(len(words) - n + 1):
                expected[tuple(words[at : at + n])] += often
        assert (total, kinds) == (sum(expected.values()), sum(count > 0 for count in expected.values()))


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
            patch.setattr(ngrams, "_CACHED_KEYS", 0)
        found = values.look_up(np.array(asked, np.int64))
    np.testing.assert_array_equal(found, [table.get(key, np.nan) for key in asked])


@given(st.lists(st.lists(st.sampled_from([1.5, -2.0, math.nan]), max_size=5), max_size=6))
def test_rows_are_summed_without_what_is_not_known(rows: list[list[float]]) -> None:
    known = [[value for value in row if not math.isnan(value)] for row in rows]
    values = np.array([value for row in rows for value in row])
    sums, counts = row_sums(values, offsets_of(map(len, rows)))
    assert sums.tolist() == [sum(row) for row in known]
    assert counts.tolist() == [len(row) for row in known]


texts = st.lists(st.text("abcd ", max_size=30), max_size=8)


def spill_twice(lines: list[str], n: int, vocabulary: Vocabulary) -> NgramCounts:
    tokens = tokenize(TextColumn.from_strings(lines), vocabulary)
    return NgramCounts.of(NgramColumn.of(tokens, n), vocabulary)


@given(texts, texts, st.integers(1, 4), st.integers(1, 5))
def test_merging_in_stretches(left: list[str], right: list[str], n: int, stretch: int) -> None:
    vocabulary = Vocabulary()
    both = spill_twice(left + right, n, vocabulary)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(arrays, "SPILLED_BYTES", 32)
        patched.setattr(ngrams, "_COMPARED_KEYS", stretch)
        merged = spill_twice(left, n, vocabulary).merge(spill_twice(right, n, vocabulary))
    np.testing.assert_array_equal(merged.keys, both.keys)
    np.testing.assert_array_equal(merged.counts, both.counts)
    assert merged.total == both.total


PEAK = """
import resource
import numpy as np
from dialeval.text.ngrams import NgramCounts
from dialeval.text.vocabulary import Vocabulary
words = Vocabulary(["x"])
def run(first, count):
    keys = np.arange(first, first + 3 * count, 3, dtype=np.int64)[:, None]
    return NgramCounts(2, words, keys, np.ones(count, np.int32))
def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(0, 10).merge(run(1, 10))
total = run(0, 5_000_000).merge(run(1, 5_000_000))  # 120 MB
before = peak()
total = total.merge(run(2, 1_000_000))
total = total.merge(total)
assert (total.types, total.total) == (11_000_000, 22_000_000)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in other units elsewhere")
def test_merging_large_counts_takes_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60_000_000
