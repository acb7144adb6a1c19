from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.core.errors import SettingError
from dialeval.metrics.task.trials import Flips, PassHat

verdicts = st.lists(st.booleans(), min_size=1, max_size=8)


def rows(*tasks: list[bool]) -> list[dict[str, object]]:
    """Trials as tau-bench writes them: all tasks for the first time, then all for the second, and so on."""
    return [
        {
            "task_id": task,
            "trial": trial,
            "reward": float(tried[trial]),
            "traj": [{"role": "assistant", "content": "a"}],
        }
        for trial in range(max(map(len, tasks)))
        for task, tried in enumerate(tasks)
        if trial < len(tried)
    ]


@given(st.lists(verdicts, min_size=1, max_size=4), st.integers(1, 4))
def test_pass_hat_is_the_share_of_draws_that_all_pass(tasks: list[list[bool]], k: int) -> None:
    run = dialeval.evaluate(rows(*tasks), metrics=[PassHat(k), "flips"])["system"]
    shares = [np.mean([all(draw) for draw in combinations(tried, k)]) if len(tried) >= k else np.nan for tried in tasks]
    differing = [np.mean([a != b for a, b in combinations(tried, 2)]) if len(tried) > 1 else np.nan for tried in tasks]
    for estimate, expected in ((run[PassHat(k).name], shares), (run["flips"], differing)):
        np.testing.assert_allclose(estimate.items, expected, rtol=1e-12, equal_nan=True)
        scored = np.array(expected)[~np.isnan(expected)]
        assert (estimate.rows, estimate.scored) == (len(tasks), len(scored))
        if len(scored):
            assert estimate.mean == pytest.approx(scored.mean(), rel=1e-12)


def test_intervals_are_over_tasks() -> None:
    tasks = [[True, False, True], [True, True, True], [False, False, True], [False, False, False]] * 5
    estimate = dialeval.evaluate(rows(*tasks), metrics="pass-hat-1")["system"]["pass-hat-1"]
    assert estimate.mean == pytest.approx(0.5)
    assert estimate.rows == 20
    assert estimate.interval is not None
    low, high = estimate.interval
    error = np.std([2 / 3, 1, 1 / 3, 0] * 5, ddof=1) / 20**0.5
    assert high - low == pytest.approx(2 * 2.093 * error, rel=1e-3), "Student's factor of 19 degrees"


def test_a_reward_is_a_pass_where_it_is_one() -> None:
    rewards = [1.0, 1 - 1e-7, 0.99, 0.0]
    trials = [{"dialog_id": "t", "trial": n, "reward": reward, "response": "a"} for n, reward in enumerate(rewards)]
    run = dialeval.evaluate(trials, metrics="pass-hat-1,flips")["system"]
    assert (run["pass-hat-1"].mean, run["flips"].mean) == (0.5, pytest.approx(4 / 6))


def test_settings() -> None:
    with pytest.raises(SettingError, match="at least one"):
        PassHat(0)
    assert str(PassHat(2)) == "pass-hat-2"
    assert np.isnan(Flips().value(1, 1))
