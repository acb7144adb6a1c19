"""Dialogue ids: whether the rows of every dialogue stand together, counted beside the metrics.

Intervals take the rows of a dialogue that stand together for one cluster. An id that comes back later makes a second
cluster of the same dialogue, which is to be told. The ids of all dialogues are kept as 64-bit hashes, sorted: the ids
themselves would take several times the space. A state like that grows with the rows, so it is cut by ranges of hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.fold import Fact
from dialeval.core.gate import UnfitError, check_array
from dialeval.engine.job import Job
from dialeval.text.ngrams import Hashes, word_hashes


def _none() -> Hashes:
    return np.empty(0, np.uint64)


@dataclass(frozen=True, eq=False, slots=True)
class SeenIds:
    """The hashes of ids in ascending order, and of those that came back."""

    hashes: Hashes = field(default_factory=_none)
    torn: Hashes = field(default_factory=_none)
    closed: int = 0
    """How many more came back, in parts that are closed."""

    @classmethod
    def from_plain(cls, hashes: Hashes, torn: Hashes, closed: int) -> SeenIds:
        """Ids out of a file; UnfitError where they are none."""
        for array in (hashes, torn):
            check_array(array, np.uint64, (None,))
            if (array[1:] <= array[:-1]).any():
                raise UnfitError("hashes of dialogues are out of order")
        if type(closed) is not int or closed < 0:
            raise UnfitError("no dialogues came back this often")
        return cls(hashes, torn, closed)


class TornDialogues(NamedTuple):
    """Dialogues whose rows do not stand together."""

    dialogues: int
    example: int
    """The hash of the id of one of them."""

    def named(self, ids: Iterable[Sequence[str]]) -> str | None:
        """That id, where it is among the given ones."""
        for some in ids:
            found = np.flatnonzero(word_hashes(TextColumn.from_strings(some)) == np.uint64(self.example))
            if len(found):
                return some[int(found[0])]
        return None


@dataclass(frozen=True)
class DialogueIds(Fact[SeenIds, TornDialogues | None]):
    """Which dialogues have rows that do not stand together."""

    grows = True

    def empty(self) -> SeenIds:
        return SeenIds()

    def gather(self, batch: Batch) -> SeenIds:
        if batch.ids is None:
            return SeenIds()
        hashes, counts = np.unique(word_hashes(batch.ids), return_counts=True)
        return SeenIds(hashes, hashes[counts > 1])

    def merge(self, left: SeenIds, right: SeenIds) -> SeenIds:
        both = np.concatenate((left.hashes, right.hashes))
        both.sort(kind="stable")  # two ascending runs
        again = np.zeros(len(both), np.bool_)
        again[1:] = both[1:] == both[:-1]
        torn = np.unique(np.concatenate((left.torn, right.torn, both[again])))
        return SeenIds(both[~again], torn, left.closed + right.closed)

    def cut(self, state: SeenIds, parts: int) -> list[SeenIds]:
        edges = np.array([(number << 64) // parts for number in range(1, parts)], np.uint64)
        hashes, torn = (np.split(every, np.searchsorted(every, edges)) for every in (state.hashes, state.torn))
        return [SeenIds(*part) for part in zip(hashes, torn, strict=True)]

    def closed(self, state: SeenIds) -> SeenIds:
        """How many came back; one of them stays as an example."""
        return SeenIds(torn=state.torn[:1], closed=state.closed + len(state.torn[1:]))

    def finish(self, state: SeenIds) -> TornDialogues | None:
        return TornDialogues(state.closed + len(state.torn), int(state.torn[0])) if len(state.torn) else None


def with_dialogue_ids(job: Job) -> Job:
    """The job with a fold that keeps the ids of dialogues, behind all others."""
    plans = (replace(plan, details={**plan.details, "dialogue ids": DialogueIds()}) for plan in job.plans)
    return replace(job, plans=tuple(plans))
