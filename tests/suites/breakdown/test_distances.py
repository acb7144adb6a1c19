"""JS divergence and squared error against the formulas in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.metrics.breakdown import BreakdownDistance
from laws.breakdown import NAN, WORLD, Row
from laws.worlds import Place
from suites.breakdown.naive import GROUPS, distance


@given(
    st.tuples(*[st.one_of(st.floats(1e-9, 1), st.just(0.0))] * 3),
    st.tuples(*[st.integers(0, 30)] * 3).filter(any),
)
def test_distances_are_the_formulas(p: tuple[float, float, float], counts: tuple[int, int, int]) -> None:
    row = Row(0.0, p, counts)
    q = [count / sum(counts) for count in counts]
    for measure in ("jsd", "mse"):
        for grouping, groups in GROUPS.items():
            metric = BreakdownDistance(measure, grouping)  # type: ignore[arg-type]
            (found,) = Place(WORLD, [row]).scored(metric, [row]).items[metric.name]
            left, right = ([sum(side[code] for code in group) for group in groups] for side in (p, q))
            assert found == pytest.approx(distance(measure, left, right), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("probabilities", [(-0.1, 0.6, 0.5), (NAN, 0.5, 0.5), (math.inf, 0.0, 0.0), (1e300, 0.0, 0.0)])
def test_what_is_no_probability_is_not_scored(probabilities: tuple[float, float, float]) -> None:
    row = Row(0.0, probabilities)
    for name in BreakdownDistance.presets:
        metric = BreakdownDistance(**BreakdownDistance.presets[name])  # type: ignore[arg-type]
        (found,) = Place(WORLD, [row]).scored(metric, [row]).items[name]
        assert np.isnan(found)
