"""Sums without rounding, against fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.arrays import offsets_of
from dialeval.core.errors import DialevalError
from dialeval.core.exact import UNIT_EXPONENT, Moments, exact_sums
from dialeval.core.validation import InvalidError

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


def test_sums_from_a_file_are_those_of_some_values() -> None:
    """The largest float is one of them; anything above has no standard deviation that is a float."""
    largest = Moments.of(np.array([1.7976931348623157e308, -1.7976931348623157e308, 1.0]), np.array([0, 2, 3]))
    plain = (largest.rows, largest.scored, largest.total, largest.squares, largest.clusters)
    assert Moments.from_plain(*plain) == largest
    for at, changed in ((0, 2), (1, -1), (2, largest.total << 2000), (3, largest.squares << 8)):
        with pytest.raises(InvalidError):
            Moments.from_plain(*plain[:at], changed, *plain[at + 1 :])  # type: ignore[arg-type,call-arg]
