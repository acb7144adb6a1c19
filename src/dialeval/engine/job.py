"""A job: what is done to every chunk, on whatever machine, and what results from a chunk.

`Job` is small and is sent to workers: plans, field names, the paths and digests of resources. A `Worker` folds a chunk
in one of two stages: first the corpus statistics ("facts") that metrics ask for, then the metrics. It returns by system
a `SystemState` (what merges) and `SystemItems` (one value per row). An `Engine` gives chunks to workers.

States that grow with the rows are merged by many workers at once: a worker cuts the states of a chunk into parts
(`core.fold.Fold.cut`). Parts of the same number, of all chunks, hold the same n-grams, so one worker merges them
without knowing the others, and closes the sum. Only that, a few numbers, comes to the first process; all other states
come there with their chunk, as they are small. The number of parts and workers changes no digit: counts are integers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from dialeval.core.arrays import Floats
from dialeval.core.contributions import BatchContributions
from dialeval.core.fingerprint import Fingerprint
from dialeval.core.fold import Fact, Metric, Reduction
from dialeval.core.needs import Need
from dialeval.core.rowtable import ItemPart
from dialeval.core.states import translated
from dialeval.data.formats.records import FieldNames
from dialeval.data.shards.chunks import Chunk
from dialeval.engine.plan import Plan
from dialeval.engine.resources import Resources
from dialeval.text.vocabulary import Vocabulary

Stage: TypeAlias = Literal["facts", "metrics"]
System: TypeAlias = tuple[int, str]
"""The number of a source, and a system in it."""
Opened: TypeAlias = tuple[Vocabulary, Mapping[Need, Any]]
"""A vocabulary, and the resources over its words."""


@dataclass(frozen=True, slots=True)
class SystemState:
    """Everything that merges about some rows of one system."""

    rows: int
    states: tuple[Any, ...]
    """Those of `Job.folds`, in that order."""
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    """Of the columns of a file, by need."""
    notes: tuple[str, ...] = ()
    """What was guessed while the rows were read."""


@dataclass(frozen=True, slots=True)
class SystemItems:
    """The values of the rows of one system in a chunk, by level and key."""

    values: dict[str, dict[str, Floats]]
    contributions: tuple[Mapping[str, BatchContributions], ...] = ()
    """What the rows add to corpus values, by metric."""


@dataclass(frozen=True, slots=True)
class ChunkItems:
    """The items of a chunk: of rows in memory here, of rows in files in the workplace of the job, if it has one."""

    systems: dict[System, SystemItems] = field(default_factory=dict)
    parts: tuple[ItemPart, ...] = ()
    """Files with items, and with what rows are, in order."""


SystemStates: TypeAlias = dict[System, SystemState]
FactValues: TypeAlias = Mapping[System, Mapping[Hashable, Any]]


@dataclass(frozen=True)
class Job:
    """What is done to every chunk."""

    plans: tuple[Plan, ...]
    """By source."""
    columns: tuple[frozenset[Need], ...]
    """By source: the columns that its rows have or may have."""
    resources: Resources
    names: FieldNames
    batch_rows: int
    workplace: str | None = None
    """A folder in which workers write the items of rows in files; None: nobody asks for them."""
    opened: Opened | None = None
    """A vocabulary and the resources over it, if the job stays in this process, where they are open already."""

    def facts(self, source: int) -> dict[Fact[Any, Any], frozenset[Need]]:
        """Return what must be known of all rows of a source first, with the needs of the metric that asks."""
        metrics = self.plans[source].folded
        return {fact: metric.needs | metric.wants for metric in metrics for fact in metric.facts}

    @property
    def stages(self) -> list[Stage]:
        """The stages it takes, each a pass over all rows."""
        asks = any(self.facts(source) for source in range(len(self.plans)))
        return ["facts", "metrics"] if asks else ["metrics"]

    def folds(self, stage: Stage, source: int) -> Sequence[Fact[Any, Any] | Metric[Any]]:
        """Return what has a state in a stage; metrics before details."""
        plan = self.plans[source]
        return list(self.facts(source)) if stage == "facts" else [*plan.folded, *plan.details.values()]

    def no_rows(self, stage: Stage) -> SystemState:
        """Return a state of no rows, with an object of every class that states of a stage are made of."""
        folds = [fold for source in range(len(self.plans)) for fold in self.folds(stage, source)]
        return SystemState(0, tuple(fold.empty() for fold in folds), {"": Fingerprint()})

    def grows(self, stage: Stage) -> bool:
        """Return whether a state of a stage grows with the rows."""
        return any(fold.grows for source in range(len(self.plans)) for fold in self.folds(stage, source))


class StateSums:
    """Adds up the states of systems as they come, in order.

    States of other workers refer to other words; they are translated into those of `vocabulary`.
    """

    def __init__(self, job: Job, stage: Stage, vocabulary: Vocabulary | None = None) -> None:
        self._job, self._stage, self._vocabulary = job, stage, vocabulary
        self._sums: dict[System, list[Reduction[Any]]] = {}
        self._totals: dict[System, SystemState] = {}
        """All but the states."""

    def expect(self, system: System) -> list[Reduction[Any]]:
        """Return the sums of a system, which may stay those of no rows."""
        if system not in self._sums:
            folds = self._job.folds(self._stage, system[0])
            self._sums[system] = [Reduction(fold.merge, fold.empty) for fold in folds]
            self._totals[system] = SystemState(0, ())
        return self._sums[system]

    def add(self, several: SystemStates) -> None:
        """Take in one more state of each system."""
        for system, state in several.items():
            for total, each in zip(self.expect(system), state.states, strict=True):
                # Translated while it is small: states over one vocabulary merge without being sorted again.
                total.add(each if self._vocabulary is None else translated(each, self._vocabulary))
            before = self._totals[system]
            prints = dict(before.fingerprints)
            for need, fingerprint in state.fingerprints.items():
                prints[need] = prints.get(need, Fingerprint()) + fingerprint
            notes = tuple(dict.fromkeys(before.notes + state.notes))
            self._totals[system] = SystemState(before.rows + state.rows, (), prints, notes)

    def result(self) -> SystemStates:
        """Return everything that was added, by system."""
        return {
            system: replace(total, states=tuple(each.result() for each in self._sums[system]))
            for system, total in self._totals.items()
        }


def cut_states(job: Job, stage: Stage, states: SystemStates, parts: int) -> tuple[SystemStates, list[SystemStates]]:
    """Return what goes to the first process, and the parts of the states that grow."""
    rest: SystemStates = {}
    pieces: list[SystemStates] = [{} for _ in range(parts)]
    for system, state in states.items():
        pairs = list(zip(job.folds(stage, system[0]), state.states, strict=True))
        kept = tuple(fold.closed(fold.empty()) if fold.grows else each for fold, each in pairs)
        rest[system] = replace(state, states=kept)
        cuts = [fold.cut(each, parts) if fold.grows else [fold.empty()] * parts for fold, each in pairs]
        for number, piece in enumerate(pieces):
            piece[system] = SystemState(0, tuple(several[number] for several in cuts))
    return rest, pieces


def merge_states(job: Job, stage: Stage, several: Iterable[SystemStates], *, close: bool = False) -> SystemStates:
    """Merge states of several chunks over one vocabulary; `close` those that grow, when all chunks are merged."""
    sums = StateSums(job, stage, Vocabulary())
    for states in several:
        sums.add(states)
    merged = sums.result()
    if not close:
        return merged
    return {
        system: replace(state, states=tuple(map(_close, job.folds(stage, system[0]), state.states)))
        for system, state in merged.items()
    }


def _close(fold: Fact[Any, Any] | Metric[Any], state: Any) -> Any:
    return fold.closed(state) if fold.grows else state


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The states of one or more consecutive chunks together, and the items of each of them.

    Without a chunk it is what was merged of all of them: a closed part of states that grow.
    """

    chunks: tuple[int, ...]
    states: SystemStates
    items: tuple[ChunkItems, ...]


class Engine(ABC):
    """Folds chunks somewhere; whatever it is made of, the states are the same to the last digit.

    It is used in a `with` block, at the end of which it releases what it holds.
    """

    in_process = False
    """Whether chunks are folded in this process, so that what is open here need not be opened again."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    @abstractmethod
    def fold(
        self, job: Job, facts: FactValues, stage: Stage, chunks: Mapping[int, Chunk], alone: bool
    ) -> Iterator[ChunkResult]:
        """Yield the results of numbered chunks, in order, and then those of parts, if states were cut.

        `alone`: each chunk by itself, not merged with its neighbours and not cut.
        """
