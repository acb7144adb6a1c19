from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.analysis.values import cut
from dialeval.core.errors import SettingError
from dialeval.core.fold import Analytic, IntervalChoice
from dialeval.core.validation import InvalidError
from dialeval.metrics.trials import Flips, PassHat, TaskCounts

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
    drawn = np.random.default_rng(1).dirichlet(np.ones(21), size=200_000)
    weighted = drawn @ np.array([2 / 3, 1, 1 / 3, 0] * 5 + [1])
    high = np.quantile(weighted, 0.975)
    assert estimate.interval == pytest.approx((1 - high, high), abs=1e-3), "Gaffke's, symmetric around one half"
    how = estimate.interval_by
    assert isinstance(how, Analytic)
    assert (how.method, how.over, how.clusters, how.t) == ("gaffke", "dialogues", 20, None)


def test_tasks_with_equal_values_have_an_interval_with_a_width() -> None:
    estimate = dialeval.evaluate(rows(*[[True, False, True, False]] * 5), metrics="pass-hat-1")["system"]["pass-hat-1"]
    unseen = 1 - 0.025 ** (1 / 5)  # the weight of what was not observed, exceeded in 2.5% of cases
    assert estimate.interval == pytest.approx((0.5 - 0.5 * unseen, 0.5 + 0.5 * unseen), rel=1e-9)


def test_a_single_task_has_no_interval() -> None:
    assert dialeval.evaluate(rows([True, False]), metrics="pass-hat-1")["system"]["pass-hat-1"].interval is None


@pytest.mark.parametrize("k", [1, 4])
def test_intervals_cover_the_population_of_hard_tasks(k: int) -> None:
    """50 tasks of 8 trials: intervals of Student covered 88 and 61% for k of 1 and 4."""
    random, metric, kept = np.random.default_rng(29), PassHat(k), dict[bytes, tuple[float, float] | None]()
    truth, hits = float(np.prod([(0.3 + i) / (4.3 + i) for i in range(k)])), []  # the mean of p^k for p of Beta(0.3, 4)
    for _ in range(120):
        passes = np.sort(random.binomial(8, random.beta(0.3, 4, size=50)))
        if passes.tobytes() not in kept:
            items = np.array([metric.value(8, int(each)) for each in passes])
            made = IntervalChoice().added_to(metric.estimate_of_items(metric.name, items, None), metric.bounds)
            kept[passes.tobytes()] = made.interval
        low, high = kept[passes.tobytes()] or (1.0, 0.0)
        hits.append(low <= truth <= high)
    assert np.mean(hits) >= 0.94


def test_slices_have_the_interval_of_an_evaluation() -> None:
    tasks = [[True, False, True], [True, True, True], [False, False, True], [False, False, False]] * 3
    run = dialeval.evaluate(rows(*tasks), metrics="pass-hat,flips")["system"]
    alone = dialeval.evaluate(rows(*tasks[:5]), metrics="pass-hat,flips")["system"]
    table = run.rows
    assert table is not None
    part = cut(run, np.flatnonzero(table.clusters < 5))
    for key, estimate in alone.items():
        assert part[key].interval == estimate.interval
        assert part[key].interval_by == estimate.interval_by


def test_counts_of_tasks_out_of_a_file_are_checked() -> None:
    state = TaskCounts({"a": (3, 2)}, 1, 0)
    assert TaskCounts.from_plain(state.counts, state.others, state.unjudged) == state
    wrong: list[tuple[dict[Any, Any], Any, Any]] = [
        ({"a": (1, 2)}, 0, 0),
        ({"a": (-1, -1)}, 0, 0),
        ({"a": (1.0, 1)}, 0, 0),
        ({}, -1, 0),
        ({}, 0, "1"),
    ]
    for parts in wrong:
        with pytest.raises(InvalidError, match="no tasks"):
            TaskCounts.from_plain(*parts)


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
