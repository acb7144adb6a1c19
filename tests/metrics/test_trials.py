from __future__ import annotations

import gzip
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.analysis.values import cut
from dialeval.core.fold import Analytic
from dialeval.engine.intervals import IntervalChoice
from dialeval.metrics.trials import PassAt, PassHat, TaskCounts, TaskVariance, TrialVariance

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"

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
        assert estimate.scores is not None
        np.testing.assert_allclose(estimate.scores, expected, rtol=1e-12, equal_nan=True)
        scored = expected[~np.isnan(expected)]
        assert (estimate.units, estimate.scored) == (len(tasks), len(scored))
        if len(scored):
            assert estimate.mean == pytest.approx(scored.mean(), rel=1e-12)


def test_intervals_are_over_tasks() -> None:
    tasks = [[True, False, True], [True, True, True], [False, False, True], [False, False, False]] * 5
    estimate = dialeval.evaluate(rows(*tasks), metrics="pass-hat-1")["system"]["pass-hat-1"]
    assert estimate.mean == pytest.approx(0.5)
    assert estimate.units == 20
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
            made = IntervalChoice().add_interval(metric.estimate_scores(metric.name, items, None), metric.bounds)
            kept[passes.tobytes()] = made.interval
        low, high = kept[passes.tobytes()] or (1.0, 0.0)
        hits.append(low <= truth <= high)
    assert np.mean(hits) >= 0.94


def test_slices_have_the_interval_of_an_evaluation() -> None:
    tasks = [[True, False, True], [True, True, True], [False, False, True], [False, False, False]] * 3
    run = dialeval.evaluate(rows(*tasks), metrics="pass-hat,flips")["system"]
    alone = dialeval.evaluate(rows(*tasks[:5]), metrics="pass-hat,flips")["system"]
    table = run.table
    assert table is not None
    part = cut(run, np.flatnonzero(table.clusters < 5))
    for key, estimate in alone.items():
        assert part[key].interval == estimate.interval
        assert part[key].interval_by == estimate.interval_by


def test_a_reward_is_a_pass_where_it_is_one() -> None:
    rewards = [1.0, 1 - 1e-7, 0.99, 0.0]
    trials = [{"dialog_id": "t", "trial": n, "reward": reward, "response": "a"} for n, reward in enumerate(rewards)]
    run = dialeval.evaluate(trials, metrics="pass-hat-1,flips")["system"]
    assert run["pass-hat-1"].mean == 0.5
    assert run["flips"].mean == pytest.approx(4 / 6)


@given(st.lists(verdicts, min_size=1, max_size=4), st.integers(1, 4))
def test_pass_at_is_the_share_of_draws_of_which_one_passes(tasks: list[list[bool]], k: int) -> None:
    estimate = dialeval.evaluate(rows(*tasks), metrics=[PassAt(k)])["system"][PassAt(k).name]
    shares = np.array([mean([any(draw) for draw in combinations(tried, k)]) for tried in tasks])
    assert estimate.scores is not None
    np.testing.assert_allclose(estimate.scores, shares, rtol=1e-12, atol=1e-12, equal_nan=True)
    assert estimate.scored == np.count_nonzero(~np.isnan(shares))


@given(st.lists(verdicts, min_size=1, max_size=5))
def test_the_split_of_the_variance_is_that_of_unweighted_means(tasks: list[list[bool]]) -> None:
    system = dialeval.evaluate(rows(*tasks), metrics="task-variance,trial-variance")["system"]
    tried = [np.array(each, float) for each in tasks if len(each) > 1]
    within = [each.var(ddof=1) for each in tried]
    assert system["trial-variance"].mean == pytest.approx(np.mean(within) if within else np.nan, nan_ok=True)
    chance = np.mean([own / len(each) for own, each in zip(within, tried, strict=True)]) if tried else np.nan
    between = np.var([each.mean() for each in tried], ddof=1) - chance if len(tried) > 1 else np.nan
    assert system["task-variance"].mean == pytest.approx(between, nan_ok=True, abs=1e-12)
    assert system["task-variance"].scored == (len(tried) if len(tried) > 1 else 0)


@pytest.mark.parametrize(("a", "b"), [(0.3, 4.0), (2.0, 2.0), (1e6, 1e6)])
@pytest.mark.parametrize("unequal", [False, True])
def test_the_split_of_the_variance_is_unbiased(a: float, b: float, unequal: bool) -> None:
    """Tasks of Beta(a, b), 40 of them: estimates are right on average, whether tasks are tried equally often or not."""
    random, metric = np.random.default_rng(17), (TaskVariance(), TrialVariance())
    p = a / (a + b)
    truth = p * (1 - p) / (a + b + 1), a * b / ((a + b) * (a + b + 1))  # Var(p), and the mean of p (1 - p)
    found = []
    for _ in range(600):
        trials = random.integers(2, 9, 40) if unequal else np.full(40, 4)
        passes = random.binomial(trials, random.beta(a, b, 40))
        counts = {str(task): (int(n), int(c)) for task, (n, c) in enumerate(zip(trials, passes, strict=True))}
        found.append([each.finish(TaskCounts(counts))[each.name].mean for each in metric])
    errors = np.std(found, axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(np.mean(found, axis=0) - truth) < 4 * errors)
    assert sum(truth) == pytest.approx(p * (1 - p)), "the two parts are the variance of a verdict"


def chats(seed: int, tasks: int, trials: int, lengths: int = 3) -> list[dict[str, Any]]:
    """Trials of an agent as tau2-bench writes them, trial after trial, with conversations of any length."""
    random = np.random.default_rng(seed)
    turn = [{"role": "user", "content": "and then?"}, {"role": "assistant", "content": f"as said {seed}"}]
    return [
        {
            "id": f"{seed}-{task}-{trial}",
            "task_id": str(task),
            "trial": trial,
            "reward_info": {
                "reward": float(random.random() < task / tasks),
                "reward_breakdown": {"DB": 1.0, "NL": 0.5},
            },
            "termination_reason": "user_stop" if task else "max_steps",
            "agent_cost": 0.5,
            "messages": turn * int(random.integers(1, lengths + 1)),
        }
        for trial in range(trials)
        for task in range(tasks)
    ]


def write(path: Path, simulations: list[dict[str, Any]], agent: str = "") -> Path:
    info = {"agent_info": {"implementation": "llm_agent", "llm": agent}}
    tasks = sorted({each["task_id"] for each in simulations})
    path.write_text(json.dumps({"info": info, "tasks": [{"id": task} for task in tasks], "simulations": simulations}))
    return path


NAMES = "pass-hat,pass-at,flips,task-variance,trial-variance,reward,trial-cost"


@pytest.mark.parametrize("lines", [1, 7, 1000])
def test_streamed_runs_have_the_same_estimates(tmp_path: Path, lines: int) -> None:
    simulations = chats(3, 9, 4)
    simulations[5]["reward_info"] = None
    for part in range(0, len(simulations), lines):
        text = "".join(json.dumps(each) + "\n" for each in simulations[part : part + lines])
        (tmp_path / f"log-{part:04}.jsonl").write_text(text)
    whole = dialeval.evaluate(simulations, metrics=NAMES)
    streamed = dialeval.evaluate(tmp_path / "log-*.jsonl", metrics=NAMES)
    assert streamed.warnings[0] == whole.warnings[0] == "trials without a reward, which are not counted: 1 of 36"
    for key, estimate in whole["system"].items():
        other = streamed["log"][key]
        assert (other.mean, other.scored) == (estimate.mean, estimate.scored), key
        if key not in ("reward", "trial-cost"):  # means over trials, whose tasks are apart here
            assert (other.interval, other.units) == (estimate.interval, estimate.units), key
    assert streamed.details["trials"]["log"] == whole.details["trials"]["system"]


def test_four_agents_are_compared_by_task(tmp_path: Path) -> None:
    """Agents with other numbers of turns and of trials, their tasks in another order, and a trial without a reward."""
    for seed, trials in enumerate((4, 4, 3, 2)):
        simulations = chats(seed, 12, trials)
        if seed == 1:
            simulations = simulations[::-1]
            simulations[0]["reward_info"] = None
        write(tmp_path / f"{seed}.json", simulations, f"model-{seed}")
    run = dialeval.evaluate(tmp_path, metrics="pass-hat-1,pass-hat-2,reward,length")
    assert list(run) == [f"llm_agent/model-{seed}" for seed in range(4)]
    for result in run.values():
        assert (result["pass-hat-2"].units, result["pass-hat-2"].scored) == (12, 12)
        assert result["pass-hat-2"].interval is not None
    found = dialeval.compare(run, metrics=["pass-hat-1", "pass-hat-2"])
    for design in found.designs.values():
        assert (design.name, design.unit, design.common, design.by) == ("paired", "dialogues", 12, "ids")
    by_task = {seed: {} for seed in range(4)}  # type: dict[int, dict[str, list[float]]]
    for seed, trials in enumerate((4, 4, 3, 2)):
        given = chats(seed, 12, trials)
        for each in given[:-1] if seed == 1 else given:
            by_task[seed].setdefault(each["task_id"], []).append(each["reward_info"]["reward"])
    means = {seed: np.mean([np.mean(rewards) for rewards in tasks.values()]) for seed, tasks in by_task.items()}
    for row in found.differences:
        if row.key == "pass-hat-1":
            seed = int(row.system[-1])
            assert row.difference == pytest.approx(means[seed] - means[0])


@pytest.mark.skipif(not LOGS.is_dir(), reason=f"no logs of other programs in {LOGS}")
def test_real_trials_of_tau_bench() -> None:
    path = LOGS / "tau-bench" / "gpt-4o-airline-20-tasks.json.gz"
    given = json.loads(gzip.decompress(path.read_bytes()))
    by_task: dict[int, list[bool]] = {}
    for trial in given:
        by_task.setdefault(trial["task_id"], []).append(trial["reward"] == 1)
    run = dialeval.evaluate(path, metrics="pass-hat,pass-at,reward,call-exact")
    (system,) = run.values()
    for k in range(1, 5):
        draws = [[list(draw) for draw in combinations(tried, k)] for tried in by_task.values()]
        assert system[f"pass-hat-{k}"].mean == pytest.approx(np.mean([mean([all(d) for d in own]) for own in draws]))
        assert system[f"pass-at-{k}"].mean == pytest.approx(np.mean([mean([any(d) for d in own]) for own in draws]))
    assert (system["pass-hat-1"].units, system["reward"].scored) == (20, 80)
    assert system["reward"].mean == np.mean([trial["reward"] for trial in given])
    assert system["call-exact"].scored == 80


@pytest.mark.skipif(not LOGS.is_dir(), reason=f"no logs of other programs in {LOGS}")
def test_real_agents_of_tau2_bench_are_compared_by_task() -> None:
    run = dialeval.evaluate(LOGS / "tau2-bench", metrics="pass-hat-1,pass-hat-2,trial-cost")
    found = dialeval.compare(run)
    (design,) = found.designs.values()
    assert (design.name, design.common, design.whole) == ("paired", 10, True), "different numbers of turns"
    for result in run.values():
        assert (result["pass-hat-1"].mean, result["pass-hat-2"].mean) == (0.6, 0.5)
        assert result["trial-cost"].scored == 20
    trials = run.details["trials"]["retry_agent/gemini/gemini-2.5-flash"]
    assert len(trials) == 20
    assert {trial["end"] for trial in trials} == {"user_stop"}
    assert {part for trial in trials for part in trial["parts"]} == {"DB", "COMMUNICATE"}


def test_differences_of_tasks_have_an_interval_with_a_width_that_stays_within_bounds() -> None:
    tasks = [[True, True, True, True]] * 4 + [[False, False, False, True]] * 4
    given = {"a": rows(*tasks), "b": rows(*tasks[:-1], [False, False, False])}
    run = dialeval.evaluate(given, metrics="pass-hat-1,pass-hat-4,pass-at-2")
    for row in dialeval.compare(run).differences:
        assert row.interval is not None
        low, high = row.interval
        assert row.interval_by == "tango"
        assert -1 <= low < row.difference < high <= 1
        assert high - low > 0.1, "eight tasks that hardly differ say little about the next one"


def test_intervals_of_differences_cover() -> None:
    """25 tasks of 3 trials, two agents: 95% intervals of the difference of pass^2 contain the truth often enough."""
    random, hits = np.random.default_rng(8), []
    for _ in range(60):
        easy = random.beta(0.5, 0.5, 25)
        chances = {"a": easy, "b": easy * 0.8}
        given = {
            name: rows(*[[bool(random.random() < chance) for _ in range(3)] for chance in own.tolist()])
            for name, own in chances.items()
        }
        (row,) = dialeval.compare(dialeval.evaluate(given, metrics="pass-hat-2"), resamples=50, trials=50).differences
        assert row.interval is not None
        hits.append(row.interval[0] <= 0.375 * (0.64 - 1) <= row.interval[1])  # the mean of p^2 is 3/8
    assert np.mean(hits) >= 0.93
