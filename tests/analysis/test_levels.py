"""The points of a metric at each level, divided by a power of two, and why there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dialeval.analysis.matching import RatedRows
from dialeval.analysis.metric_ranking import (
    NoPointsError,
    collect_points,
    find_used_rows,
    keep_common_rows,
    make_points,
)
from dialeval.core.arrays import Floats
from dialeval.stats.correlation import Points

NAN = float("nan")
ROWS = RatedRows(
    systems=["a", "b", "c"],
    system=np.array([0, 0, 1, 1, 2, -1]),
    dialogue=np.array([0, 0, 0, 1, 1, 1]),
    human=np.array([1.0, 2.0, 3.0, 5.0, NAN, 4.0]),
    whole=np.array([False, False, False, True, False, False]),
    metrics={"m": np.array([2.0, 4.0, NAN, 1.0, 7.0, 3.0])},
)


def test_rows_need_both_values_and_what_the_level_asks() -> None:
    assert find_used_rows(ROWS, "m", "turn").tolist() == [0, 1, 5]
    assert find_used_rows(ROWS, "m", "dialogue").tolist() == [0, 1, 3, 5]
    assert find_used_rows(ROWS, "m", "system").tolist() == [0, 1, 3]


def test_a_turn_is_a_point() -> None:
    points = make_points(ROWS, "m", "turn")
    assert isinstance(points, Points)
    assert ((8 * points.first).tolist(), (8 * points.second).tolist()) == ([2, 4, 3], [1, 2, 4])  # divided by 8
    assert points.clusters.tolist() == [0, 0, 1]


def test_a_dialogue_of_a_system_is_the_mean_of_its_rows() -> None:
    points = collect_points(ROWS, "m", find_used_rows(ROWS, "m", "dialogue"), "dialogue")
    assert sorted(zip(points.first.tolist(), points.second.tolist(), points.clusters.tolist(), strict=True)) == [
        (1.0 / 8, 5.0 / 8, 1),
        (3.0 / 8, 1.5 / 8, 0),
        (3.0 / 8, 4.0 / 8, 1),
    ]


def test_a_system_is_the_mean_of_its_rows() -> None:
    rows = replace(ROWS, human=np.arange(6.0), metrics={"m": np.array([1.0, 3.0, 4.0, 4.0, 9.0, 0.0])})
    points = make_points(rows, "m", "system")
    assert points.clusters.tolist() == [0, 1, 2]
    means = Points(np.array([2.0, 4.0, 9.0]), np.array([0.5, 2.5, 4.0]), np.arange(3))
    assert points.correlate() == pytest.approx(means.correlate())


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


@pytest.mark.parametrize("factor", [2.0**1000, 2.0**-1070])
def test_the_size_of_a_metric_changes_nothing(factor: float) -> None:
    values = np.array([1.0, 3.0, 4.0, 4.0, 9.0, 0.0])
    rows = replace(ROWS, human=np.arange(6.0), whole=np.zeros(6, np.bool_))
    for level in ("turn", "dialogue", "system"):
        plain, extreme = (
            make_points(replace(rows, metrics={"m": values * by}), "m", level).correlate() for by in (1.0, factor)
        )
        np.testing.assert_array_equal(extreme, plain)


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
