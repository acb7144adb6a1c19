"""The points of a metric at each level, divided by a power of two, and why there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dialeval.analysis.matching import NoPointsError, RatedRows, keep_common_rows, make_points
from dialeval.core.arrays import Floats

NAN = float("nan")
ROWS = RatedRows(
    systems=["a", "b", "c"],
    system=np.array([0, 0, 1, 1, 2, -1]),
    dialogue=np.array([0, 0, 0, 1, 1, 1]),
    human=np.array([1.0, 2.0, 3.0, 5.0, NAN, 4.0]),
    whole=np.array([False, False, False, True, False, False]),
    metrics={"m": np.array([2.0, 4.0, NAN, 1.0, 7.0, 3.0])},
)


@pytest.mark.parametrize(
    ("change", "level", "n", "reason"),
    [
        ({"of_dialogues": frozenset({"m"})}, "turn", 0, "scores dialogues"),
        ({"metrics": {"m": np.full(6, NAN)}}, "turn", 0, "no rated row could be scored"),
        ({"whole": np.ones(6, np.bool_)}, "turn", 0, "whole dialogues were rated"),
        ({"system": np.full(6, -1)}, "system", 0, "no rated row names its system"),
        ({"human": np.full(6, NAN)}, "dialogue", 0, "no row has both values"),
        ({}, "system", 2, "2 systems cannot be correlated; 3 can"),
        ({"metrics": {"m": np.ones(6)}}, "turn", 4, "the metric gives the same value to every row"),
        ({"human": np.ones(6)}, "turn", 4, "all human scores are the same"),
    ],
)
def test_no_points_have_a_reason(change: dict[str, object], level: str, n: int, reason: str) -> None:
    rows = replace(ROWS, **change)  # type: ignore[arg-type]
    with pytest.raises(NoPointsError, match=reason) as raised:
        make_points(rows, "m", level)
    assert raised.value.n == n


@given(hnp.arrays(np.float64, (4, 12), elements=st.sampled_from([1.0, 2.0, 5.0, NAN])))
def test_all_metrics_that_are_kept_have_the_same_rows(values: Floats) -> None:
    human, *metrics = values
    rows = RatedRows(
        ["a"],
        np.zeros(12, np.int64),
        np.arange(12),
        human,
        np.zeros(12, np.bool_),
        dict(zip("xyz", metrics, strict=True)),
    )
    found, left_out, told = keep_common_rows(rows)
    scored = {key: ~np.isnan(human) & ~np.isnan(column) for key, column in rows.metrics.items()}
    kept = [key for key in scored if key not in left_out and scored[key].any()]
    common = np.all([scored[key] for key in kept], axis=0) if kept else np.zeros(12, np.bool_)
    for key in kept:
        np.testing.assert_array_equal(found.metrics[key], np.where(common, rows.metrics[key], NAN))
    for key in left_out:
        assert np.isnan(found.metrics[key]).all()
    rated = np.any(list(scored.values()), axis=0)
    assert 4 * common.sum() >= rated.sum() or not kept
    assert bool(told) == bool(left_out) or common.sum() < rated.sum()
