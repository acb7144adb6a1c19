"""Trials: rows that say how an attempt at a task went, put together by task.

A row or chat with `trial` and `reward` is one trial of the task that its `dialog_id` names. Programs write trial after
trial, so that the rows of a task stand apart: they are brought together here, tasks in the order in which they appear.
The counts of a task (trials, and passes among them) stand in its first row. A trial without a reward was not judged: it
is not counted, and its rows stay those of its task. A trial in which the agent says nothing,
such as one that crashed, is an empty response: else its task might be in no row, and be missing among the failed ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dialeval.core.columns import NumberColumn
from dialeval.core.notes import note
from dialeval.data.formats.records import RowObject, kind_of

if TYPE_CHECKING:
    from dialeval.core.arrays import Ints
    from dialeval.data.rows.fields import FieldReader

PASSED = 1.0
WITHIN = 1e-6
"""How far from 1 a reward may be and still count as passed, as in tau-bench."""


_Task: TypeAlias = tuple[str | None, str | None]
"""The system of a row, and its task."""


class Trials:
    """The trials of all tasks, noted while rows are read."""

    def __init__(self) -> None:
        self.counts: dict[_Task, list[int]] = {}
        self.without_reward = 0
        self._met: set[tuple[_Task, str]] = set()

    def note(self, reader: FieldReader, row: RowObject, system: str | None, task: str | None) -> bool:
        """Whether a row is a trial, which is counted; a fault where it is there already, or its reward is no number."""
        names = reader.names
        if row.get(names.trial) is None:
            return False
        if row.get(names.reward) is None:
            self.without_reward += 1
            return False
        trial, reward = reader.identifier(row, names.trial), _number(row[names.reward])
        if reward is None:
            reader.fault(f"{names.reward} is {kind_of(row[names.reward])}", "make it a number; 1 is a pass")
        if reward is None or trial is None:
            return False
        if task is None:
            reader.fault(f"is {names.trial} {trial} of no task", "name the task: dialog_id, or --field dialog_id=NAME")
            return False
        if ((system, task), trial) in self._met:
            reader.fault(f"{names.trial} {trial} of {task} is there twice", "number the trials of a task")
        self._met.add(((system, task), trial))
        counts = self.counts.setdefault((system, task), [0, 0])
        counts[0] += 1
        counts[1] += abs(reward - PASSED) <= WITHIN
        return True

    def warn(self, where: str) -> None:
        """Warn of trials without a reward where others have one."""
        if self.counts and self.without_reward:
            every = self.without_reward + sum(trials for trials, _ in self.counts.values())
            note(f"{where}: trials without a reward, which are not counted: {self.without_reward} of {every}")

    def column(self, systems: Sequence[str | None], tasks: Sequence[str | None]) -> NumberColumn:
        """The counts of each task in its first row; NaN in the others."""
        counts = np.full((len(tasks), 2), np.nan)
        for at, key in enumerate(_firsts(systems, tasks)):
            if key is not None and key in self.counts:
                counts[at] = self.counts[key]
        return NumberColumn(counts)

    def order(self, systems: Sequence[str | None], tasks: Sequence[str | None]) -> Ints:
        """The order of rows in which those of a task stand together; a row without a task stands alone."""
        first: dict[_Task, int] = {}
        keys = zip(systems, tasks, strict=True)
        groups = [at if key[1] is None else first.setdefault(key, at) for at, key in enumerate(keys)]
        return np.argsort(np.array(groups, np.int64), kind="stable")


def _firsts(systems: Sequence[str | None], tasks: Sequence[str | None]) -> Iterator[_Task | None]:
    """The task of each row that is the first of it; None for the others."""
    met: set[_Task] = set()
    for key in zip(systems, tasks, strict=True):
        yield None if key in met else key
        met.add(key)


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and number - number == 0 else None
