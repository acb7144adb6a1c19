"""Repeated trials of task agents: pass^k, and how often a verdict flips.

Of a task that was tried n times and passed c times:

    pass^k = C(c, k) / C(n, k)               the chance that k of its trials, drawn without putting back, all pass
    flips  = c * (n - c) / C(n, 2)           the chance that two of its trials, drawn likewise, do not agree

The value of a system is the mean over tasks; the interval is over tasks. `pass-hat-1` is the usual success rate, and
how far `pass-hat-4` lies below it says how little a success can be relied on. A trial passes if its reward is 1, within
a millionth.

Paper: Yao et al. 2024, tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains (pass^k).

The same as tau-bench where all tasks were tried equally often. There n is that of the task that was tried most often,
so that a missing trial counts as failed; here n is the task's own, and a task that was tried less than k times is not
scored (`scored` says how many were), nor is `flips` of a single trial. A task is a dialogue; its trials are rows or
chats with `trial` and `reward`, in any order, all at hand: rows that are read in chunks have no trials.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import comb, nan

import numpy as np

from dialeval.core.batch import Batch
from dialeval.core.errors import SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import Estimate, Level, Metric, Partial
from dialeval.core.needs import Need


@dataclass(frozen=True)
class TrialMetric(Metric[Moments]):
    """A mean over tasks of one value that the number of their trials and passes gives."""

    subject = Need.TRIALS
    level = Level.DIALOGUE
    needs = frozenset({Need.TRIALS})
    bounds = (0.0, 1.0)

    @abstractmethod
    def value(self, trials: int, passes: int) -> float:
        """The value of a task; NaN where it was tried too seldom."""

    def empty(self) -> Moments:
        return Moments()

    def partial(self, batch: Batch) -> Partial[Moments]:
        counts = batch.numbers(Need.TRIALS)[batch.dialogues[:-1]].tolist()  # the first row of a task has its counts
        items = np.array([self.value(int(n), int(c)) if n == n else nan for n, c in counts], np.float64)
        return Partial(Moments.of(items), {self.name: items})

    def merge(self, left: Moments, right: Moments) -> Moments:
        return left + right

    def finish(self, state: Moments) -> Mapping[str, Estimate]:
        return {self.name: Estimate.of_moments(state, self.bounds)}


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
