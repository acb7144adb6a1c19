from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

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


def mean(draws: list[bool]) -> float:
    return sum(draws) / len(draws) if draws else float("nan")


@given(st.lists(verdicts, min_size=1, max_size=4), st.integers(1, 4))
def test_pass_hat_is_the_share_of_draws_that_all_pass(tasks: list[list[bool]], k: int) -> None:
    run = dialeval.evaluate(rows(*tasks), metrics=[PassHat(k), "flips"])["system"]
    shares = np.array([mean([all(draw) for draw in combinations(tried, k)]) for tried in tasks])
    differing = np.array([mean([a != b for a, b in combinations(tried, 2)]) for tried in tasks])
    for estimate, expected in ((run[PassHat(k).name], shares), (run["flips"], differing)):
        assert estimate.items is not None
        np.testing.assert_allclose(estimate.items, expected, rtol=1e-12, equal_nan=True)
        scored = expected[~np.isnan(expected)]
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
    assert run["pass-hat-1"].mean == 0.5
    assert run["flips"].mean == pytest.approx(4 / 6)


def test_settings() -> None:
    with pytest.raises(SettingError, match="at least one"):
        PassHat(0)
    assert str(PassHat(2)) == "pass-hat-2"
    assert np.isnan(Flips().value(1, 1))


def test_rows_in_chunks_have_no_trials_and_the_message_says_so(tmp_path: Path) -> None:
    row = {"dialog_id": "a", "trial": 0, "reward": 1, "response": "done"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    assert dialeval.evaluate(tmp_path / "rows.jsonl", metrics="pass-hat-1")["rows"]["pass-hat-1"].mean == 1
    with pytest.raises(dialeval.NeedError, match="read at once and not in chunks"):
        dialeval.evaluate(tmp_path / "rows.jsonl", metrics="pass-hat-1", shards=True)
