"""Sums without rounding, against fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.core.arrays import Floats, offsets_of
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.contributions import (
    ClusteredRows,
    Resamples,
    RowSums,
    RowWords,
    from_arrow,
    join_batches,
    take_rows,
    to_arrow,
)
from dialeval.core.errors import DialevalError
from dialeval.core.exact import (
    UNIT_EXPONENT,
    BySize,
    Moments,
    add_by_size,
    exact_sums,
    formula_error,
    mean_error,
    merge_sums,
    sum_by_size,
)
from dialeval.engine import folding
from dialeval.text.vocabulary import Vocabulary

floats = st.floats(min_value=-1e100, max_value=1e100, allow_nan=False)
columns = st.lists(st.one_of(floats, st.just(math.nan)), max_size=50)


@given(st.lists(floats, min_size=1, max_size=50))
def test_sums_equal_fractions(values: list[float]) -> None:
    total, squares = exact_sums(np.array(values))
    assert Fraction(total, 1 << UNIT_EXPONENT) == sum(map(Fraction, values))
    assert Fraction(squares, 1 << (2 * UNIT_EXPONENT)) == sum(Fraction(value) ** 2 for value in values)


@pytest.mark.parametrize("value", [5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308])
def test_extreme_floats(value: float) -> None:
    assert Moments.of(np.array([value])).mean == value


def test_the_spread_of_extreme_values_is_a_number() -> None:
    assert Moments.of(np.array([1e300, -1e300])).std == 1e300
    assert Moments.of(np.array([1e-300, 3e-300])).std == pytest.approx(1e-300, rel=1e-15)


def test_many_rows_span_chunks() -> None:
    values = np.random.default_rng(1).normal(3.0, 1e-3, 50_000)
    moments = Moments.of(values)
    assert moments.mean == math.fsum(values) / len(values)
    assert moments.std == pytest.approx(values.std(), rel=1e-9)


@given(columns, columns, columns)
def test_merging_is_associative_and_commutative(a: list[float], b: list[float], c: list[float]) -> None:
    x, y, z = (Moments.of(np.array(part, np.float64)) for part in (a, b, c))
    whole = Moments.of(np.array([*a, *b, *c], np.float64))
    assert (x + y) + z == x + (y + z) == z + (y + x) == whole


@given(st.lists(st.lists(st.one_of(floats, st.just(math.nan)), min_size=1, max_size=6), max_size=12))
def test_sums_of_dialogues_equal_fractions(dialogues: list[list[float]]) -> None:
    expected: dict[int, list[Fraction]] = {}
    for values in dialogues:
        known = [Fraction(value) for value in values if not math.isnan(value)]
        if known:
            held = expected.setdefault(len(known), [Fraction(0)] * 3)
            expected[len(known)] = [a + b for a, b in zip(held, (1, sum(known), sum(known) ** 2), strict=True)]
    items = np.array([value for values in dialogues for value in values], np.float64)
    found = Moments.of(items, offsets_of(map(len, dialogues))).clusters
    assert {
        size: [count, Fraction(total, 1 << UNIT_EXPONENT), Fraction(squares, 1 << (2 * UNIT_EXPONENT))]
        for size, (count, total, squares) in found.items()
    } == expected


def test_a_long_dialogue_spans_chunks() -> None:
    values = np.random.default_rng(2).normal(-3.0, 1.0, 40_000)
    ((size, (count, total, squares)),) = Moments.of(values, np.array([0, 40_000])).clusters.items()
    assert (size, count) == (40_000, 1)
    assert Fraction(total, 1 << UNIT_EXPONENT) == sum(map(Fraction, values.tolist()))
    assert squares == total**2


@given(st.lists(floats, min_size=2, max_size=20), st.randoms())
def test_the_order_within_a_dialogue_changes_nothing(values: list[float], dice: random.Random) -> None:
    mixed = dice.sample(values, len(values))
    whole = np.array([0, len(values)])
    assert Moments.of(np.array(values), whole) == Moments.of(np.array(mixed), whole)


def test_equal_values_have_no_spread() -> None:
    assert Moments.of(np.full(1000, 0.1)).std == 0.0


def test_nan_counts_as_a_row_and_not_as_a_score() -> None:
    moments = Moments.of(np.array([1.0, np.nan, 3.0]))
    assert (moments.rows, moments.scored, moments.mean, moments.std) == (3, 2, 2.0, 1.0)


def test_nothing_scored() -> None:
    moments = Moments.of(np.array([np.nan]))
    assert math.isnan(moments.mean)
    assert math.isnan(moments.std)


def test_infinity_is_refused() -> None:
    with pytest.raises(DialevalError, match="infinite"):
        Moments.of(np.array([np.inf]))


# What rows bring: gathered over batches, saved and loaded equal, added up by cluster.


texts = st.lists(st.text("ab é", max_size=8), max_size=6)


def tokens(rows: list[str], vocabulary: Vocabulary) -> TokenColumn:
    return vocabulary.split(TextColumn.from_strings(rows))


def words(rows: RowWords) -> list[list[str]]:
    return [[rows.words[word] for word in rows.ids[a:b]] for a, b in zip(rows.offsets, rows.offsets[1:], strict=False)]


@given(texts, texts, st.booleans())
def test_batches_are_gathered_in_order_whatever_their_vocabulary(a: list[str], b: list[str], shared: bool) -> None:
    vocabulary = Vocabulary(["z", "b"])  # ids that do not start at 0
    parts = [tokens(a, vocabulary), tokens(b, vocabulary if shared else Vocabulary())]
    found = join_batches(parts)
    assert isinstance(found, RowWords)
    assert words(found) == [row.split() for row in [*a, *b]]
    assert found == RowWords.of(tokens([*a, *b], Vocabulary())), "numbered by first use, wherever they were met"


@given(texts, st.lists(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2), min_size=1, max_size=6))
def test_saved_statistics_load_equal(rows: list[str], sums: list[list[float]]) -> None:
    for one in (RowSums(np.array(sums)), RowWords.of(tokens([*rows, "a b"], Vocabulary()))):
        table = to_arrow({"x": one}, "system")
        assert from_arrow(table) == {"x": one}
        assert from_arrow(table.slice(1)) != {"x": one}


def test_a_run_with_statistics_is_saved_and_loaded(tmp_path: Path) -> None:
    run = dialeval.evaluate({"a": ["x y", "", "y"], "b": ["z"] * 3}, metrics="distinct,length")
    assert list(run["a"].contributions) == ["words/words.1/self"]
    assert dialeval.load(run.save(tmp_path)) == run
    other = dialeval.evaluate({"a": ["x y", "", "x"], "b": ["z"] * 3}, metrics="distinct,length")
    assert run["b"] == other["b"]
    assert run["a"] != other["a"]


def test_batches_and_threads_change_nothing() -> None:
    rows = [f"w{n % 7} w{n % 3} x" for n in range(100)]
    whole, cut = (
        dialeval.evaluate(rows, metrics="distinct", execution=dialeval.Execution(batch_rows=size, threads=2))
        for size in (1000, 7)
    )
    assert whole["system"].contributions == cut["system"].contributions


def test_very_many_rows_keep_no_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "KEPT_ROWS", 2)
    assert not dialeval.evaluate(["a", "b", "c"], metrics="distinct")["system"].contributions


@given(texts, st.data())
def test_those_of_some_rows_are_those_that_these_rows_would_have(rows: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(rows)), max_size=6))
    found = take_rows(RowWords.of(tokens([*rows, "a b"], Vocabulary())), np.array(chosen, np.int64))
    assert found == RowWords.of(tokens([[*rows, "a b"][row] for row in chosen], Vocabulary()))
    sums = RowSums(np.arange(2.0 * len(rows) + 2).reshape(-1, 2))
    assert take_rows(sums, np.array(chosen, np.int64)) == RowSums(sums.values[chosen].reshape(-1, 2))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(1, 3), st.integers(1, 4), st.integers(0, 99))
def test_totals_of_resamples_against_a_loop(sizes: list[int], width: int, resamples: int, seed: int) -> None:
    dice = np.random.default_rng(seed)
    values = dice.integers(-9, 9, (sum(sizes), width)).astype(np.float64)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    counts = dice.integers(0, 4, (resamples, len(sizes)))
    sample = Resamples(ClusteredRows({"n": RowSums(values)}, offsets), counts)
    expected = np.zeros((resamples, width))
    for resample, cluster in np.ndindex(*counts.shape):
        for row in range(offsets[cluster], offsets[cluster + 1]):
            expected[resample] += counts[resample, cluster] * values[row]
    assert sample.totals("n").tolist() == expected.tolist()
    assert len(sample) == resamples
    clusters = [values[start:stop].sum(axis=0).tolist() for start, stop in pairwise(offsets.tolist())]
    assert sample.rows.cluster_sums("n").tolist() == clusters


# Sums of clusters and the errors that they give, against the jackknife done by hand.


numbers = st.integers(-(10**6), 10**6)
clusters = st.lists(st.tuples(st.integers(0, 4), numbers, numbers), max_size=12)
"""Scored rows of each cluster, and two numbers of it."""


def summed(made: list[tuple[int, int, int]]) -> BySize:
    table = np.array(made, np.int64).reshape(-1, 3)
    return sum_by_size(table[:, 1:], table[:, 0])


@given(clusters)
def test_sums_and_products_by_the_size_of_clusters(made: list[tuple[int, int, int]]) -> None:
    expected: dict[int, list[int]] = {}
    for size, *own in made:
        if size:
            products = [one * other for one, other in combinations_with_replacement(own, 2)]
            held = expected.setdefault(size, [0] * 6)
            expected[size] = [a + b for a, b in zip(held, [1, *own, *products], strict=True)]
    assert summed(made) == {size: tuple(sums) for size, sums in expected.items()}


@given(clusters, clusters, clusters)
def test_merging_is_associative_and_commutative_of_clusters(
    a: list[tuple[int, int, int]], b: list[tuple[int, int, int]], c: list[tuple[int, int, int]]
) -> None:
    x, y, z = map(summed, (a, b, c))
    before = dict(x)
    assert (
        merge_sums(merge_sums(x, y), z)
        == merge_sums(x, merge_sums(y, z))
        == merge_sums(z, merge_sums(y, x))
        == summed([*a, *b, *c])
    )
    assert x == before, "neither argument is changed"


@pytest.mark.parametrize("large", [10**7 + 1, 10**8 + 1, 3 * 10**9 + 1])
def test_products_beyond_53_and_64_bits_are_exact(large: int) -> None:
    assert summed([(1, large, large), (1, large, -large)])[1] == (2, 2 * large, 0, 2 * large**2, 0, 2 * large**2)


def test_sizes_are_told_apart() -> None:
    lines = np.array([[1, 2], [3, 4], [5, 6], [7, 8]])
    assert add_by_size(lines, np.array([2, 0, 1, 2])) == {1: [1, 5, 6], 2: [2, 8, 10]}
    assert add_by_size(lines[:0], np.zeros(0, np.int64)) == {}


def jackknife(sums: Floats, sizes: Floats) -> float:
    """The standard error of a mean, from the means without one cluster each."""
    total, rows, count = sums.sum(), sizes.sum(), len(sums)
    without = (total - sums) / (rows - sizes)
    return math.sqrt((count - 1) / count * float(((without - total / rows) ** 2).sum()))


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-100, 100)), min_size=2, max_size=12))
def test_the_error_of_a_mean_is_the_jackknife(made: list[tuple[int, int]]) -> None:
    sizes, sums = (np.array(column, np.float64) for column in zip(*made, strict=True))
    table = np.array(made, np.int64)
    error = mean_error(sum_by_size(table[:, 1:], table[:, 0]), unit_exponent=0)
    assert error is not None
    assert error.error == pytest.approx(jackknife(sums, sizes), rel=1e-9, abs=1e-9)
    assert (error.clusters, error.scored) == (len(made), sizes.sum())
    assert error.over_dialogues == (max(sizes) > 1)
    assert error.freedom == pytest.approx(max(1.0, sizes.sum() ** 2 / (sizes**2).sum() - 1))


def test_rows_that_stand_alone_have_students_error() -> None:
    values = np.array([3, 1, 4, 1, 5])
    error = mean_error(sum_by_size(values[:, None], np.ones(5, np.int64)), unit_exponent=0)
    assert error is not None
    assert error.error == pytest.approx(values.std(ddof=1) / math.sqrt(5), rel=1e-15)
    assert error.freedom == 4


def test_one_cluster_has_no_error() -> None:
    one = summed([(3, 5, 7)])
    assert mean_error({3: (1, 5, 25)}, unit_exponent=0) is None
    assert formula_error(one, np.ones(2)) is None
    assert mean_error({}, unit_exponent=0) is None


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 100), st.integers(1, 100)), min_size=2, max_size=12))
def test_the_error_of_a_ratio_is_that_of_its_changes(made: list[tuple[int, int, int]]) -> None:
    sizes, found, all_ = (np.array(column, np.float64) for column in zip(*made, strict=True))
    ratio = found.sum() / all_.sum()
    gradient = np.array([1 / all_.sum(), -ratio / all_.sum()])
    changes = (gradient[0] * found + gradient[1] * all_) * sizes.sum() / (sizes.sum() - sizes)
    expected = math.sqrt((len(made) - 1) / len(made) * float((changes**2).sum()))
    error = formula_error(summed(made), gradient)
    assert error is not None
    assert error.error == pytest.approx(expected, rel=1e-6, abs=1e-6)
