"""Sums without rounding, against fractions."""

from __future__ import annotations

import math
import random
from decimal import Decimal
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


def test_all_bits_of_many_equal_values() -> None:
    """Every limb and every product of two is as large as it can be, in a chunk and one value more."""
    for value in (float(2**53 - 1), -float(2**53 - 1)):
        for count in (1 << 14, (1 << 14) + 1):
            total, squares = exact_sums(np.full(count, value))
            assert total == count * int(value) << UNIT_EXPONENT
            assert squares == count * int(value) ** 2 << (2 * UNIT_EXPONENT)
            found = Moments.of(np.full(count, value), np.array([0, count])).clusters
            assert found == {count: (1, total, total**2)}


def test_the_spread_has_all_digits_of_a_float() -> None:
    assert Moments.of(np.array([0.0, 1.0, 1.0])).std == float(Decimal(2).sqrt() / 3)
    assert Moments.of(np.array([1.0, 2.0, 4.0])).std == float(Decimal(14).sqrt() / 3)
    assert Moments() == Moments(0, 0, 0, 0, {})
    assert Moments.of(np.array([np.nan, np.nan])) == Moments(2, 0, 0, 0, {})


def test_which_rows_are_clusters() -> None:
    items = np.array([1.0, 2.0, np.nan, 4.0])
    unit = 1 << UNIT_EXPONENT
    alone = {1: (3, 7 * unit, 21 * unit**2)}
    assert Moments.of(items).clusters == alone
    assert Moments.of(items, np.arange(5)).clusters == alone, "every dialogue is one row"
    assert Moments.of(items, np.array([0, 2, 4])).clusters == {
        1: (1, 4 * unit, 16 * unit**2),
        2: (1, 3 * unit, 9 * unit**2),
    }
    assert Moments.of(items, np.array([0, 1, 2, 4])).clusters == alone
    assert Moments.of(items, np.array([0, 2, 3, 4])).clusters == {
        1: (1, 4 * unit, 16 * unit**2),
        2: (1, 3 * unit, 9 * unit**2),
    }
    both = Moments.of(items, np.array([0, 2, 4])) + Moments.of(items)
    assert (both.rows, both.scored, both.total, both.squares) == (8, 6, 14 * unit, 42 * unit**2)
    assert both.clusters == {1: (4, 11 * unit, 37 * unit**2), 2: (1, 3 * unit, 9 * unit**2)}


@pytest.mark.parametrize(
    ("plain", "is_valid"),
    [
        ((0, 0, 0, 0, {}), True),
        ((2, 2, 2, 2, {1: (2, 2, 2)}), True),
        ((3, 2, 2, 2, {}), True),
        ((1, 2, 2, 2, {1: (2, 2, 2)}), False),
        ((2, 2, 3, 4, {}), False),
        ((2, 2, 2, 2, {2: (1, 2, 3)}), False),
        ((2, 2, 2, 2, {2: (1, 2, 4)}), True),
        ((2, 2, 2, 2, {1: (2, 3, 4)}), False),
        ((2, -1, 0, 0, {}), False),
        ((0, 0, 0, 1, {}), True),
        ((0, 0, 1, 0, {}), False),
    ],
)
def test_sums_that_some_column_has(
    plain: tuple[int, int, int, int, dict[int, tuple[int, ...]]], is_valid: bool
) -> None:
    """The square of a sum is at most the sum of squares times their number."""
    if is_valid:
        assert Moments.from_plain(*plain) == Moments(*plain)
    else:
        with pytest.raises(InvalidError, match=r"^no values have these sums$"):
            Moments.from_plain(*plain)


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
