"""Rank correlations of metrics: equal to scipy's, NaN where there is nothing to correlate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dialeval.analysis.metric_correlation import rank_correlations, ranks
from dialeval.core.arrays import Floats

VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.just(math.nan))
COLUMNS = st.integers(3, 40).flatmap(lambda rows: arrays(np.float64, (3, rows), elements=VALUES))


@given(COLUMNS)
def test_every_pair_is_scipys_over_the_rows_that_both_have(columns: Floats) -> None:
    stats = pytest.importorskip("scipy.stats")
    matrix = rank_correlations({str(at): column for at, column in enumerate(columns)})
    assert np.array_equal(matrix, matrix.T, equal_nan=True)
    for one in range(3):
        assert matrix[one, one] == 1
        for two in range(one):
            both = np.isfinite(columns[one]) & np.isfinite(columns[two])
            left, right = columns[one][both], columns[two][both]
            if both.sum() < 3 or len(set(left)) < 2 or len(set(right)) < 2:
                assert math.isnan(matrix[one, two])
            else:
                assert matrix[one, two] == pytest.approx(stats.spearmanr(left, right).statistic, abs=1e-9)


def test_equal_values_share_their_rank() -> None:
    assert ranks(np.array([5.0, 1.0, 5.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
