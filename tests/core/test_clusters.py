"""Sums of clusters and the errors that they give, against the jackknife done by hand."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.arrays import Floats
from dialeval.core.exact import BySize, add_by_size, formula_error, mean_error, merge_sums, sum_by_size

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
def test_merging_is_associative_and_commutative(
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
