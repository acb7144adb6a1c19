"""Values of n-grams, against a dict and a loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.arrays import offsets_of
from dialeval.text import resampled
from dialeval.text.resampled import NgramValues, row_sums
from dialeval.text.vocabulary import Vocabulary


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
        found = values.of_keys(np.array(asked, np.int64))
    np.testing.assert_array_equal(found, [table.get(key, np.nan) for key in asked])


@given(st.lists(st.lists(st.sampled_from([1.5, -2.0, math.nan]), max_size=5), max_size=6))
def test_rows_are_summed_without_what_is_not_known(rows: list[list[float]]) -> None:
    known = [[value for value in row if not math.isnan(value)] for row in rows]
    values = np.array([value for row in rows for value in row])
    sums, counts = row_sums(values, offsets_of(map(len, rows)))
    assert sums.tolist() == [sum(row) for row in known]
    assert counts.tolist() == [len(row) for row in known]
