"""Reference labels against the rule as the original's document words it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dialeval.metrics.breakdown import hard_reference, lenient_reference, shares
from suites.breakdown.naive import references

counts = st.tuples(*[st.integers(0, 30)] * 3).filter(any)


@given(st.lists(counts, min_size=1), st.sampled_from([-1.0, 0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 1.1]))
def test_both_references_are_the_naive_ones(rows: list[tuple[int, int, int]], threshold: float) -> None:
    share = shares(np.array(rows, np.float64))
    expected = [references(row, threshold) for row in rows]
    found = zip(hard_reference(share, threshold), lenient_reference(share, threshold), strict=True)
    assert [(int(hard), int(lenient)) for hard, lenient in found] == expected


def test_the_example_of_the_original_document() -> None:
    share = shares(np.array([[2.0, 3.0, 5.0]]))
    assert hard_reference(share, 0.5)[0] == 2
    assert hard_reference(share, 0.51)[0] == 0
