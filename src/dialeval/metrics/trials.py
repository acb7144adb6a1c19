"""Repeated trials of task agents: pass^k, and how often a verdict flips.

Of a task that was tried n times and passed c times:

    pass^k = C(c, k) / C(n, k)               the chance that k of its trials, drawn without putting back, all pass
    flips  = c * (n - c) / C(n, 2)           the chance that two of its trials, drawn likewise, do not agree

The value of a system is the mean over tasks: an unbiased estimate of the mean of p^k over the population that the
tasks were drawn from, p being the probability that a trial of the task passes. `pass-hat-1` is the usual success rate,
and how far `pass-hat-4` lies below it says how little a success can be relied on. A trial passes if its reward is 1,
within a millionth.

The interval is for other tasks of the same population, each with its own trials (Gaffke's, `stats/intervals.py`).
Values of tasks are between 0 and 1, and with hard tasks nearly all are 0: an interval from their standard error covers
the truth too seldom, and has no width where all tasks have the same value. More trials do not make up for few tasks.

Paper: Yao et al. 2024, tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains (pass^k).

The same as tau-bench where all tasks were tried equally often. There n is that of the task that was tried most often,
so that a missing trial counts as failed; here n is the task's own, and a task that was tried less than k times is not
scored (`scored` says how many were), nor is `flips` of a single trial. A task is a dialogue; its trials are rows or
chats with `trial` and `reward`, in any order, all at hand: rows that are read in chunks have no trials.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import comb, nan

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch, Need
from dialeval.core.errors import SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import Estimate, Level, Metric, Partial
from dialeval.core.validation import InvalidError


@dataclass(frozen=True, slots=True)
class TaskValues:
    """How many tasks there are, and how many have each value; tasks without a value are in `tasks` only."""

    tasks: int = 0
    counts: Mapping[float, int] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Floats) -> TaskValues:
        """Count the values of tasks, where NaN marks a task without one."""
        values, counts = np.unique(items[~np.isnan(items)], return_counts=True)
        return cls(len(items), dict(zip(values.tolist(), counts.tolist(), strict=True)))

    @classmethod
    def from_plain(cls, tasks: int, counts: Mapping[float, int]) -> TaskValues:
        """Check values that were read from a file; InvalidError where no tasks have them."""
        whole = all(type(value) is float and type(count) is int and count > 0 for value, count in counts.items())
        if not whole or not all(0 <= value <= 1 for value in counts) or sum(counts.values()) > tasks:
            raise InvalidError("no tasks have these values")
        return cls(tasks, counts)

    def __add__(self, other: TaskValues) -> TaskValues:
        both = Counter(self.counts)
        both.update(other.counts)
        return TaskValues(self.tasks + other.tasks, dict(both))

    def estimate(self) -> Estimate:
        """Return the mean over tasks, with what its interval is made of."""
        values = tuple(sorted(self.counts.items()))
        moments = Moments.of(np.repeat([value for value, _ in values], [count for _, count in values]).astype(float))
        made = Estimate.of_moments(replace(moments, rows=self.tasks))
        return made if made.error is None else replace(made, error=replace(made.error, values=values))


@dataclass(frozen=True)
class TrialMetric(Metric[TaskValues]):
    """A mean over tasks of one value that the number of their trials and passes gives."""

    subject = Need.TRIALS
    level = Level.DIALOGUE
    needs = frozenset({Need.TRIALS})
    bounds = (0.0, 1.0)

    @abstractmethod
    def value(self, trials: int, passes: int) -> float:
        """Return the value of a task; NaN where it was tried too seldom."""

    def empty(self) -> TaskValues:
        return TaskValues()

    def partial(self, batch: Batch) -> Partial[TaskValues]:
        counts = batch.numbers(Need.TRIALS)[batch.dialogues[:-1]].tolist()  # the first row of a task has its counts
        items = np.array([self.value(int(n), int(c)) if n == n else nan for n, c in counts], np.float64)
        return Partial(TaskValues.of(items), {self.name: items})

    def merge(self, left: TaskValues, right: TaskValues) -> TaskValues:
        return left + right

    def finish(self, state: TaskValues) -> Mapping[str, Estimate]:
        return {self.name: state.estimate()}

    def estimate_of_items(self, key: str, items: Floats, dialogues: Ints | None) -> Estimate:
        return TaskValues.of(items).estimate()


@dataclass(frozen=True)
class PassHat(TrialMetric):
    """The chance that k trials of a task all pass (pass^k)."""

    family = "pass-hat"
    presets = {f"pass-hat-{k}": {"k": k} for k in (1, 2, 3, 4)}
    better = "higher"

    k: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 1:
            raise SettingError(f"k is {self.k}; at least one trial must pass")

    def value(self, trials: int, passes: int) -> float:
        return comb(passes, self.k) / comb(trials, self.k) if trials >= self.k else nan


@dataclass(frozen=True)
class Flips(TrialMetric):
    """The chance that two trials of a task do not agree on whether it is passed."""

    family = "flips"
    presets = {"flips": {}}

    def value(self, trials: int, passes: int) -> float:
        return passes * (trials - passes) / comb(trials, 2) if trials > 1 else nan
