"""How long conversations go well: the curve, the test, and the units that both are over."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.analysis.survival import estimate_curve, log_rank
from dialeval.core.errors import SettingError

TREATED = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
FAILED = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
"""Remissions in weeks of the 6-MP trial (Freireich and others 1963), the textbook example; PLACEBO has no censoring."""


def test_the_curve_and_the_test_are_those_of_lifelines() -> None:
    """The numbers are what lifelines 0.30.3 gave for these data."""
    curve = estimate_curve(np.array(TREATED), np.array(FAILED, bool))
    at_10 = curve.turns.index(10)
    assert curve.survival[at_10] == pytest.approx(0.7529411764705878, abs=1e-12)
    assert (curve.low[at_10], curve.high[at_10]) == pytest.approx((0.5031995107999564, 0.8893618351692651), abs=1e-12)
    assert curve.survival[-1] == pytest.approx(0.44817927170868327, abs=1e-12)
    assert (curve.low[-1], curve.high[-1]) == pytest.approx((0.18805200595923233, 0.6801426284952412), abs=1e-12)
    assert curve.median == 23
    times, failed = np.array(TREATED + PLACEBO), np.array(FAILED + [1] * 21, bool)
    z, p = log_rank(times, failed, np.arange(42) >= 21)
    assert z**2 == pytest.approx(16.792940989216547, abs=1e-10)
    assert p == pytest.approx(4.168809109334538e-05, rel=1e-10)


def test_clusters_of_one_change_no_interval_and_copies_change_it_as_they_should() -> None:
    """A conversation that is there three times by one user says no more than once."""
    rng = np.random.default_rng(1)
    times, failed = rng.integers(1, 9, 60), rng.random(60) < 0.5
    plain = estimate_curve(times, failed)
    alone = estimate_curve(times, failed, np.arange(60))
    assert alone.low == pytest.approx(plain.low, abs=1e-12)
    three_times, three_failed, users = np.repeat(times, 3), np.repeat(failed, 3), np.repeat(np.arange(60), 3)
    together = estimate_curve(three_times, three_failed, users)
    assert together.low == pytest.approx(plain.low, abs=1e-12)
    assert together.survival == pytest.approx(plain.survival)
    second = np.arange(60) >= 30
    z = log_rank(times, failed, second, np.arange(60))[0]
    assert log_rank(three_times, three_failed, np.repeat(second, 3), users)[0] == pytest.approx(z)


@pytest.mark.parametrize("users", [40, 80])
def test_clustered_intervals_cover(users: int) -> None:
    """Users differ, each has five conversations: without clusters the interval misses too often."""
    hits = {True: 0, False: 0}
    hazard = np.array([0.05, 0.4])
    truth = float(np.mean((1 - hazard) ** 4))
    for seed in range(200):
        rng = np.random.default_rng(seed)
        own = np.repeat(rng.choice(hazard, users), 5)
        times = rng.geometric(own)
        failed, times = times <= 8, np.minimum(times, 8)
        for clustered in hits:
            curve = estimate_curve(times, failed, np.repeat(np.arange(users), 5) if clustered else None)
            at = curve.turns.index(4)
            hits[clustered] += curve.low[at] <= truth <= curve.high[at]
    assert hits[True] / 200 >= 0.91
    assert hits[False] / 200 < hits[True] / 200


def rows_of(failures: list[int | None], turns: int = 4, **more: Any) -> list[dict[str, Any]]:
    """Conversations with an empty reply at a turn, from 1, or without."""
    return [
        {
            "dialog_id": f"d{at}",
            "turn": turn,
            "context": [f"prompt {at} {turn}"],
            "response": "" if failure is not None and turn + 1 >= failure else f"reply {at}",
            **{name: value(at) for name, value in more.items()},
        }
        for at, failure in enumerate(failures)
        for turn in range(turns)
    ]


def test_crashed_bots_fail_at_the_turn_of_the_first_empty_reply() -> None:
    old, new = [None, None, 4, None] * 10, [1, 2, None, 2] * 10
    run = dialeval.evaluate({"old": rows_of(old), "new": rows_of(new)}, metrics=["failure-rate", "length"])
    survival = dialeval.estimate_survival(run)
    first, second = survival.systems
    assert (first.failed, second.failed, first.conversations) == (10, 30, 40)
    assert second.curve.survival == pytest.approx((0.75, 0.25, 0.25))
    assert (second.curve.median, first.curve.median) == (2, None)
    assert second.paired
    assert second.earlier
    assert second.adjusted_p < 0.001
    assert math.isnan(first.p)
    with pytest.raises(SettingError, match="no range"):
        dialeval.estimate_survival(run, "length")
    assert dialeval.estimate_survival(run, "length", above=1).systems[0].failed == 40


def test_users_are_clusters_where_they_are_named() -> None:
    failures = [1 if at // 5 % 2 else None for at in range(40)]
    run = dialeval.evaluate(
        {"bot": rows_of(failures, user=lambda at: f"u{at // 5}")}, metrics="failure-rate", keep="user"
    )
    plain, clustered = (dialeval.estimate_survival(run, cluster=name).systems[0].curve for name in (None, "user"))
    assert plain.survival == clustered.survival
    assert clustered.high[0] - clustered.low[0] > 1.8 * (plain.high[0] - plain.low[0])
