"""Repeated trials of task agents: pass^k, pass@k, how often a verdict flips, and where its variance comes from.

Of a task that was tried n times and passed c times:

    pass^k = C(c, k) / C(n, k)               the chance that k of its trials, drawn without putting back, all pass
    pass@k = 1 - C(n - c, k) / C(n, k)       the chance that at least one of k such trials passes
    flips  = c * (n - c) / C(n, 2)           the chance that two of its trials, drawn likewise, do not agree

The value of a system is the mean over tasks: an unbiased estimate of the mean of p^k, or of 1 - (1 - p)^k, over the
population that the tasks were drawn from, p being the probability that a trial of the task passes. `pass-hat-1` is the
usual success rate, and how far `pass-hat-4` lies below it says how little a success can be relied on. A trial passes if
its reward is 1, within a millionth.

The interval is for other tasks of the same population, each with its own trials (Gaffke's, `stats/intervals.py`).
Values of tasks are between 0 and 1, and with hard tasks nearly all are 0: an interval from their standard error covers
the truth too seldom, and has no width where all tasks have the same value. More trials do not make up for few tasks.

The variance of a single verdict (passed or not) has two parts. With v = c * (n - c) / (n * (n - 1)) of each task and T
tasks of at least two trials:

    trial-variance = mean of v                                       chance within a task
    task-variance  = variance of c / n over tasks - mean of v / n    differences between tasks (n - 1 in the variance)

Both are unbiased, so that `task-variance` may be a little below 0; it has no interval. The squared standard error of
the success rate is about (task-variance + trial-variance / n) / T: only more tasks reduce the first part.

`reward` is the mean reward of trials and `trial-cost` the mean cost of those that give one; each trial counts once.

Papers: Yao et al. 2024, tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains (pass^k); Chen et
al. 2021, Evaluating Large Language Models Trained on Code (pass@k). The split of the variance is that of a one-way
random effects model, by unweighted means.

The same as tau-bench where all tasks were tried equally often. There n is that of the task that was tried most often,
so that a missing trial counts as failed; here n is the task's own, and a task that was tried less than k times is not
scored (`scored` says how many were), nor are `flips` and variances of a single trial. A trial without a reward is not
counted, and a warning says how many there are; its task is no new one. A task is a dialogue; its trials are rows or
chats with `trial` and `reward`, in any order. Where rows are read in chunks, the trials of a task may be in several of
them: estimates and intervals are the same, and there are no values of single tasks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import comb, inf, nan
from typing import Any, ClassVar

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.exact import Moments
from dialeval.core.fold import Estimate, Fact, Level, Metric, Partial, RowMetric

PASSED = 1.0
WITHIN = 1e-6
"""How far from 1 a reward may be and still count as passed, as in tau-bench."""
MOST_LISTED = 20_000
"""Trials of a system that a run lists one by one."""

Trial = Mapping[str, Any]
"""Task, trial, reward and, where known, parts of the reward, end and cost."""


def list_trials(batch: Batch) -> list[list[Trial]]:
    """Return the trials that begin in each row of a batch."""
    return [trials or [] for trials in batch.fields(inputs.TRIALS).values]


def count_trials(trials: Sequence[Trial]) -> tuple[int, int]:
    """Return how many trials have a reward, and how many of these passed."""
    rewards = [trial["reward"] for trial in trials if trial["reward"] is not None]
    return len(rewards), sum(abs(reward - PASSED) <= WITHIN for reward in rewards)


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Trials and passes by task; of dialogues that are no task only how many there are."""

    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    others: int = 0
    unjudged: int = 0
    """Trials without a reward."""

    def __add__(self, other: TaskCounts) -> TaskCounts:
        both = dict(self.counts)
        for task, (trials, passes) in other.counts.items():
            before = both.get(task, (0, 0))
            both[task] = before[0] + trials, before[1] + passes
        return TaskCounts(both, self.others + other.others, self.unjudged + other.unjudged)


@dataclass(frozen=True)
class TrialMetric(Metric[TaskCounts]):
    """A mean over tasks of one value that the number of their trials and passes gives."""

    subject = inputs.TRIALS
    level = Level.DIALOGUE
    needs = frozenset({inputs.TRIALS})
    bounds = (0.0, 1.0)

    @abstractmethod
    def value(self, trials: int, passes: int) -> float:
        """Return the value of a task; NaN where it was tried too seldom."""

    def empty(self) -> TaskCounts:
        return TaskCounts()

    def partial(self, batch: Batch) -> Partial[TaskCounts]:
        rows, ends = list_trials(batch), batch.dialogues.tolist()
        items = []
        counts: dict[str, tuple[int, int]] = {}
        others = unjudged = 0
        for start, stop in pairwise(ends):
            trials = [trial for row in rows[start:stop] for trial in row]
            n, c = count_trials(trials)
            others += not trials
            unjudged += len(trials) - n
            for task in dict.fromkeys(trial["task"] for trial in trials):
                before = counts.get(task, (0, 0))
                counts[task] = before[0] + n, before[1] + c
            items.append(self.value(n, c) if n and batch.whole else nan)
        return Partial(TaskCounts(counts, others, unjudged), {self.name: np.array(items, np.float64)})

    def finish(self, state: TaskCounts) -> Mapping[str, Estimate]:
        values = [self.value(n, c) if n else nan for n, c in state.counts.values()]
        return {self.name: _average_over_tasks(np.array([*values, *[nan] * state.others], np.float64))}

    def estimate_scores(self, key: str, items: Floats, dialogues: Ints | None) -> Estimate:
        return _average_over_tasks(items)

    def find_warnings(self, states: Sequence[TaskCounts]) -> Iterator[str]:
        without = sum(state.unjudged for state in states)
        if without:
            every = without + sum(n for state in states for n, _ in state.counts.values())
            yield f"trials without a reward, which are not counted: {without:,} of {every:,}"


def _average_over_tasks(items: Floats) -> Estimate:
    """Return the mean of the values of tasks, NaN marking a task without one, with what its interval is made of."""
    values, counts = np.unique(items[~np.isnan(items)], return_counts=True)
    made = Estimate.of_moments(replace(Moments.of(np.repeat(values, counts)), rows=len(items)))
    pairs = tuple(zip(values.tolist(), counts.tolist(), strict=True))
    return made if made.error is None else replace(made, error=replace(made.error, values=pairs))


@dataclass(frozen=True)
class PassHat(TrialMetric):
    """The chance that k trials of a task all pass (pass^k)."""

    family = "pass-hat"
    presets = {f"pass-hat-{k}": {"k": k} for k in (1, 2, 3, 4)}
    better = "higher"
    limits = {"k": (1, inf)}

    k: int = 1

    def value(self, trials: int, passes: int) -> float:
        return comb(passes, self.k) / comb(trials, self.k) if trials >= self.k else nan


@dataclass(frozen=True)
class PassAt(PassHat):
    """The chance that at least one of k trials of a task passes (pass@k)."""

    family = "pass-at"
    presets = {f"pass-at-{k}": {"k": k} for k in (1, 2, 3, 4)}

    def value(self, trials: int, passes: int) -> float:
        return 1 - comb(trials - passes, self.k) / comb(trials, self.k) if trials >= self.k else nan


@dataclass(frozen=True)
class Flips(TrialMetric):
    """The chance that two trials of a task do not agree on whether it is passed."""

    family = "flips"

    def value(self, trials: int, passes: int) -> float:
        return passes * (trials - passes) / comb(trials, 2) if trials > 1 else nan


@dataclass(frozen=True)
class TrialVariance(TrialMetric):
    """The variance of verdicts within a task: chance, which more trials average out."""

    family = "trial-variance"
    descriptive = True

    def value(self, trials: int, passes: int) -> float:
        return passes * (trials - passes) / (trials * (trials - 1)) if trials > 1 else nan


@dataclass(frozen=True)
class TaskVariance(TrialVariance):
    """The variance of pass rates between tasks, without what chance within tasks adds; more trials do not reduce it."""

    family = "task-variance"
    bounds = (-0.5, 1.0)

    def partial(self, batch: Batch) -> Partial[TaskCounts]:
        return Partial(super().partial(batch).state, {})

    def finish(self, state: TaskCounts) -> Mapping[str, Estimate]:
        pairs = [pair for _, pair in sorted(state.counts.items()) if pair[0] > 1]
        number, tasks = len(pairs), len(state.counts) + state.others
        if number < 2:
            return {self.name: Estimate(nan, nan, tasks, 0, corpus=True)}
        rates, chance = np.array([[c / n for n, c in pairs], [self.value(n, c) / n for n, c in pairs]])
        rates, squares, chance = (sum(sorted(column)) for column in (rates, rates**2, chance))
        mean = (squares - rates**2 / number) / (number - 1) - chance / number
        return {self.name: Estimate(float(mean), 0.0, tasks, number, corpus=True)}


@dataclass(frozen=True)
class TrialMean(RowMetric):
    """A mean over trials of a number that they give, in the row in which a trial begins."""

    subject = inputs.TRIALS
    needs = frozenset({inputs.TRIALS})
    number: ClassVar[str]

    def score(self, batch: Batch) -> Floats:
        by_row = [[trial[self.number] for trial in row if trial[self.number] is not None] for row in list_trials(batch)]
        return np.array([sum(numbers) / len(numbers) if numbers else nan for numbers in by_row], np.float64)


@dataclass(frozen=True)
class Reward(TrialMean):
    """The mean reward of trials."""

    family = "reward"
    better = "higher"
    number = "reward"


@dataclass(frozen=True)
class TrialCost(TrialMean):
    """The mean cost of trials, in the unit of the file."""

    family = "trial-cost"
    number = "cost"


@dataclass(frozen=True)
class TrialTable(Fact[tuple[Trial, ...], list[Trial]]):
    """Lists the trials of a system, the first `MOST_LISTED` by task and trial: a detail of a run."""

    def empty(self) -> tuple[Trial, ...]:
        return ()

    def gather(self, batch: Batch) -> tuple[Trial, ...]:
        return self.merge((), tuple(trial for row in list_trials(batch) for trial in row))

    def merge(self, left: tuple[Trial, ...], right: tuple[Trial, ...]) -> tuple[Trial, ...]:
        both = sorted((*left, *right), key=lambda trial: (_parse_name(trial["task"]), _parse_name(trial["trial"])))
        return tuple(both[:MOST_LISTED])

    def finish(self, state: tuple[Trial, ...]) -> list[Trial]:
        return list(state)


def _parse_name(name: str) -> tuple[int, str]:
    """Return a key that sorts numbers by their value, before other names."""
    return (int(name), "") if name.isdecimal() and len(name) < 18 else (1 << 62, name)
