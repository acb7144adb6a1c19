"""A job: what every chunk is folded by, wherever that is done.

`Job` is small and travels to workers: metrics, field names, the paths and digests of resources. `Worker` folds chunks.
It has a vocabulary and the resources over it, opened once and never sent. For a chunk it returns by system a
`SystemState` (states and what else merges) and `SystemItems` (one value per row). An `Engine` gives chunks to workers.

Rows are folded in one or two stages: first the facts that metrics ask for, then the metrics.

An exception inside a metric is traced to the row that causes it, so that the error can name it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Literal, TypeAlias

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.columns import Column, RaggedColumn, TextColumn
from dialeval.core.contributions import BatchContributions
from dialeval.core.errors import DataError, Fault, NeedError, SettingError
from dialeval.core.fingerprint import Fingerprint
from dialeval.core.fold import Fact, Level, Metric, Reduction
from dialeval.core.needs import Need
from dialeval.core.states import translated
from dialeval.data.rows.fields import FieldNames
from dialeval.data.rows.system import Rows
from dialeval.data.shards.blocks import RowBlock, row_blocks
from dialeval.data.shards.chunks import Chunk, FileChunk, MemoryChunk
from dialeval.engine.plan import Plan
from dialeval.engine.resources import Resources
from dialeval.text.vocabulary import Vocabulary

MOST_WORDS = 1 << 22
"""A worker that has met this many more words than those of its first chunk starts again with an empty vocabulary."""

_NOT_A_ROWS_FAULT = (DataError, NeedError, SettingError, MemoryError)

Stage: TypeAlias = Literal["facts", "metrics"]
System: TypeAlias = tuple[int, str]
"""The number of a source, and a system in it."""


@dataclass(frozen=True, slots=True)
class SystemState:
    """Everything that merges about some rows of one system."""

    rows: int
    dialogues: int
    states: tuple[Any, ...]
    """Those of `Job.folds`, in that order."""
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    """Of the columns of a file, by need."""


@dataclass(frozen=True, slots=True)
class SystemItems:
    """The values of the rows of one system in a chunk, by level and key, and what the rows add to corpus values."""

    values: dict[str, dict[str, Floats]]
    contributions: tuple[Mapping[str, BatchContributions], ...] = ()
    """By metric and batch; only of rows in memory."""


SystemStates: TypeAlias = dict[System, SystemState]
ChunkItems: TypeAlias = dict[System, SystemItems]
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
    vocabulary: Vocabulary | None = None
    opened: Mapping[Need, Any] | None = None
    """Of a job that stays in this process: the vocabulary and the resources over it that are open already."""

    def facts(self, source: int) -> dict[Fact[Any, Any], frozenset[Need]]:
        """What must be known of all rows of a source first, with the needs of the metric that asks."""
        metrics = self.plans[source].metrics.values()
        return {fact: metric.needs | metric.wants for metric in metrics for fact in metric.facts}

    @property
    def stages(self) -> list[Stage]:
        """The stages it takes, each a pass over all rows."""
        asks = any(self.facts(source) for source in range(len(self.plans)))
        return ["facts", "metrics"] if asks else ["metrics"]

    def folds(self, stage: Stage, source: int) -> Sequence[Fact[Any, Any] | Metric[Any]]:
        """What has a state in a stage; metrics before details."""
        if stage == "facts":
            return list(self.facts(source))
        return [*self.plans[source].folded, *self.plans[source].details.values()]

    def merged(self, stage: Stage, several: Sequence[SystemStates]) -> SystemStates:
        """The states of consecutive chunks as one."""
        sums: dict[System, StateSum] = {}
        words = Vocabulary()
        for states in several:
            for system, state in states.items():
                sums.setdefault(system, StateSum(self.folds(stage, system[0]), words)).add(state)
        return {system: total.result() for system, total in sums.items()}


class StateSum:
    """Adds up the states of one system as they come, in order.

    States of several workers refer to different words; they are translated into those of `vocabulary`.
    """

    def __init__(self, folds: Sequence[Any], vocabulary: Vocabulary | None = None) -> None:
        self._sums = [Reduction(each.merge, each.empty) for each in folds]
        self._vocabulary = vocabulary
        self._rows = self._dialogues = 0
        self._fingerprints: dict[str, Fingerprint] = {}

    def add(self, state: SystemState) -> None:
        """Take one more state in."""
        for total, each in zip(self._sums, state.states, strict=True):
            # Translated while it is small: states over one vocabulary merge without being sorted again.
            total.add(each if self._vocabulary is None else translated(each, self._vocabulary))
        self._rows += state.rows
        self._dialogues += state.dialogues
        for need, fingerprint in state.fingerprints.items():
            self._fingerprints[need] = self._fingerprints.get(need, Fingerprint()) + fingerprint

    def result(self) -> SystemState:
        """Everything that was added."""
        states = tuple(total.result() for total in self._sums)
        return SystemState(self._rows, self._dialogues, states, self._fingerprints)


@dataclass(frozen=True)
class _Context:
    """What batches are scored with: words, the resources over them, and facts in terms of them."""

    vocabulary: Vocabulary
    resources: Mapping[Need, Any]
    facts: FactValues = field(default_factory=dict)

    @classmethod
    def open(cls, job: Job) -> _Context:
        if job.vocabulary is not None and job.opened is not None:
            return cls(job.vocabulary, job.opened)
        vocabulary = Vocabulary()
        return cls(vocabulary, job.resources.opened(vocabulary))

    def with_facts(self, facts: FactValues) -> _Context:
        values = {
            system: {fact: translated(value, self.vocabulary) for fact, value in values.items()}
            for system, values in facts.items()
        }
        return replace(self, facts=values)


class Worker:
    """Folds chunks; several threads may do so at once."""

    def __init__(self, job: Job, facts: FactValues | None = None) -> None:
        self.job = job
        self._facts = facts or {}
        self._context = _Context.open(job).with_facts(self._facts)
        self._batches: dict[MemoryChunk, Batch] = {}
        self._first_words: int | None = None

    def learn(self, facts: FactValues) -> None:
        """Take in the facts that metrics ask for."""
        self._facts = facts
        self._context = self._context.with_facts(facts)

    def fold(self, stage: Stage, chunk: Chunk) -> tuple[SystemStates, ChunkItems]:
        """The states and the items of a chunk."""
        context = self._context
        if self._first_words is not None and len(context.vocabulary) > self._first_words + MOST_WORDS:
            # Nothing is lost by that: states take their words along.
            fresh = replace(self.job, vocabulary=None, opened=None)
            self._context = context = _Context.open(fresh).with_facts(self._facts)
            self._first_words = None
        fold = _ChunkFold(self.job, stage, chunk.source, context, in_memory=isinstance(chunk, MemoryChunk))
        for block in row_blocks(chunk, self.job.names, self.job.batch_rows):
            for rows in block.rows():
                batch = self._batch(fold, stage, chunk, rows)
                fold.add(block, rows.system, batch)
                if not (isinstance(chunk, MemoryChunk) and chunk.only):
                    for column in batch.columns.values():
                        column.release()
        if self._first_words is None and isinstance(chunk, FileChunk):
            # The words of resources and facts are known by now, and would be known again.
            self._first_words = len(context.vocabulary)
        return fold.result()

    def _batch(self, fold: _ChunkFold, stage: Stage, chunk: Chunk, rows: Rows) -> Batch:
        """The batch of some rows; that of a whole source is kept between stages, so that texts are split once."""
        if not isinstance(chunk, MemoryChunk) or not chunk.only:
            return fold.batch(rows)
        batch = self._batches.pop(chunk, None) or fold.batch(rows)
        if stage == "facts":
            self._batches[chunk] = batch
        return batch


class _ChunkFold:
    """The folding of one chunk in one stage."""

    def __init__(self, job: Job, stage: Stage, source: int, context: _Context, in_memory: bool) -> None:
        self._stage, self._source, self._context, self._in_memory = stage, source, context, in_memory
        self._plan, self._columns = job.plans[source], job.columns[source]
        self._facts, self._folds = job.facts(source), job.folds(stage, source)
        self._sums: dict[System, StateSum] = {}
        self._items: dict[System, list[tuple[dict[str, int], SystemItems]]] = {}

    def batch(self, rows: Rows) -> Batch:
        """A batch that has all columns: where rows carry no reference at all, every row has none."""
        columns: dict[Need, Column] = dict(rows.columns)
        for need in self._columns - columns.keys():
            columns[need] = RaggedColumn(TextColumn.from_strings([]), np.zeros(len(rows) + 1, np.int64))
        context = self._context
        return Batch(len(rows), columns, context.vocabulary, rows.dialogue_offsets(), context.resources)

    def add(self, block: RowBlock, name: str, batch: Batch) -> None:
        """Fold one more batch, the rows of a system in a block."""
        system = (self._source, name)
        try:
            states, items = self._scored(batch, system)
        except _NOT_A_ROWS_FAULT:
            raise
        except Exception as error:
            raise self._traced(block, error) from error
        state = SystemState(len(batch), len(batch.dialogues) - 1, states, self._fingerprints(batch))
        self._sums.setdefault(system, StateSum(self._folds)).add(state)
        sizes = {Level.TURN.value: state.rows, Level.DIALOGUE.value: state.dialogues}
        self._items.setdefault(system, []).append((sizes, items))

    def result(self) -> tuple[SystemStates, ChunkItems]:
        """The states and items of all batches."""
        states = {system: total.result() for system, total in self._sums.items()}
        return states, {system: _joined(batches) for system, batches in self._items.items()}

    def _fingerprints(self, batch: Batch) -> dict[str, Fingerprint]:
        """Those of the columns of a file; a column in memory has its digest as a whole."""
        if self._stage == "facts" or self._in_memory:
            return {}
        lists = {need: column for need, column in batch.columns.items() if isinstance(column, RaggedColumn)}
        return {need.value: column.fingerprint for need, column in lists.items()}

    def _scored(self, batch: Batch, system: System) -> tuple[tuple[Any, ...], SystemItems]:
        if self._stage == "facts":
            return tuple(fact.gather(batch.only(needs)) for fact, needs in self._facts.items()), SystemItems({})
        batch = replace(batch, facts=self._context.facts.get(system, {}))
        values: dict[str, dict[str, Floats]] = {}
        states, contributions = [], []
        for metric in self._plan.folded:
            partial = metric.partial(batch.only(metric.needs | metric.wants))
            states.append(partial.state)
            values.setdefault(metric.level.value, {}).update(partial.items)
            contributions.append(partial.contributions)
        states += [detail.gather(batch) for detail in self._plan.details.values()]
        return tuple(states), SystemItems(values, tuple(contributions) if self._in_memory else ())

    def _traced(self, block: RowBlock, error: Exception) -> DataError:
        """The fault of the first row that cannot be scored, found by halving."""

        def fails(start: int, stop: int) -> bool:
            try:
                for rows in block.rows(start, stop):
                    self._scored(self.batch(rows), (self._source, rows.system))
            except Exception:
                return True
            return False

        start, stop = 0, len(block)
        while stop - start > 1:
            middle = (start + stop) // 2
            if fails(start, middle):
                stop = middle
            elif fails(middle, stop):
                start = middle
            else:
                break
        what = f"a metric cannot score {'this row' if stop - start == 1 else f'these {stop - start} rows together'}"
        cause = f"{what} ({type(error).__name__}: {error})"
        return DataError(Fault(block.where, block.line(start), cause, "leave it out, or score without the metric"))


def _joined(batches: Sequence[tuple[Mapping[str, int], SystemItems]]) -> SystemItems:
    """The items of batches, one below the other; NaN where a batch lacks a key."""
    if len(batches) == 1:
        return batches[0][1]
    values: dict[str, dict[str, Floats]] = {}
    keys = {(level, key): None for _, items in batches for level, columns in items.values.items() for key in columns}
    for level, key in keys:
        parts = [items.values.get(level, {}).get(key, np.full(sizes[level], np.nan)) for sizes, items in batches]
        values.setdefault(level, {})[key] = np.concatenate(parts)
    return SystemItems(values, tuple(each for _, items in batches for each in items.contributions))


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The states of one or more consecutive chunks together, and the items of each of them."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @abstractmethod
    def fold(
        self, job: Job, facts: FactValues, stage: Stage, chunks: Mapping[int, Chunk], alone: bool
    ) -> Iterator[ChunkResult]:
        """The results of numbered chunks, in order; `alone`: each by itself and not merged with its neighbours."""
