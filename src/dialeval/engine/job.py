"""A job: what it takes to fold a piece, wherever that is done.

`Job` is small and travels: metrics, the names of fields, the paths and digests of resources. `Place` is where a worker
does it: a vocabulary of its own and the resources over it, opened once and never sent. Of a piece it gives `Parts`, by
source and system the states and what else merges, and `PieceItems`, one value per row.

An error in a metric is traced to the row that causes it, so that it can be named and not only deplored.
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
from dialeval.core.errors import DataError, Fault, NeedError, SettingError
from dialeval.core.fingerprint import Fingerprint
from dialeval.core.fold import Fact, Level, Metric, Reduction
from dialeval.core.needs import Need
from dialeval.core.states import translated
from dialeval.data.rows.fields import FieldNames
from dialeval.data.rows.system import Rows
from dialeval.data.shards.blocks import Stretch, stretches
from dialeval.data.shards.chunks import Piece
from dialeval.engine.resources import open_resources
from dialeval.text.vocabulary import Vocabulary

MOST_WORDS = 1 << 22
"""A worker that has met so many more words than those of its first piece forgets them and starts anew."""

COLUMNS = (Need.REFERENCE, Need.CONTEXT)
"""What rows may carry beside their response."""

_NOT_A_ROWS_FAULT = (DataError, NeedError, SettingError, MemoryError)

Task: TypeAlias = Literal["facts", "metrics"]
System: TypeAlias = tuple[int, str]
"""The number of a source, and a system in it."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is known of one system's rows in a piece or in several: all of it merges."""

    rows: int
    dialogues: int
    states: tuple[Any, ...]
    prints: dict[str, Fingerprint] = field(default_factory=dict)
    """Fingerprints of columns, by need."""


Parts: TypeAlias = dict[System, Part]
PieceItems: TypeAlias = dict[System, dict[str, dict[str, Floats]]]
"""By system, level and key the values of the rows of one piece."""
Known: TypeAlias = Mapping[System, Mapping[Hashable, Any]]
"""The facts about each system."""


@dataclass(frozen=True, slots=True)
class ResourceFiles:
    """Where the resources lie, and what they should be."""

    train: str | None = None
    vocabulary: str | None = None
    embeddings: str | None = None
    judge: Any = None
    """A folder, or a judge that travels as the place where it lies."""
    digests: Mapping[Need, str] = field(default_factory=dict)
    """Those of the resources that the job uses."""

    def opened(self, vocabulary: Vocabulary) -> dict[Need, Any]:
        """The resources over the words of a vocabulary; a DataError where one is not what it should be."""
        found = open_resources(vocabulary, self.train, self.vocabulary, self.embeddings, self.judge)
        for need, digest in self.digests.items():
            if found[need].digest != digest:
                where = getattr(self, need.argument) or self.train or self.embeddings
                what = f"is not the {need} that the run began with"
                raise DataError(Fault(str(where), None, what, "keep it as it is, and the same on every machine"))
        return found


@dataclass(frozen=True)
class Job:
    """What has to be done to every piece."""

    metrics: tuple[Metric[Any], ...]
    files: ResourceFiles
    names: FieldNames
    batch_rows: int

    @property
    def facts(self) -> dict[Fact[Any, Any], frozenset[Need]]:
        """What must be known of all rows first, with the needs of the metric that asks."""
        return {fact: metric.needs | metric.wants for metric in self.metrics for fact in metric.facts}

    def folded(self, task: Task) -> Sequence[Fact[Any, Any]] | Sequence[Metric[Any]]:
        """What has states in a task."""
        return list(self.facts) if task == "facts" else self.metrics

    def merged(self, task: Task, several: Sequence[Parts]) -> Parts:
        """The parts of consecutive pieces as one."""
        sums: dict[System, PartSum] = {}
        for parts in several:
            for system, part in parts.items():
                sums.setdefault(system, PartSum(self.folded(task))).add(part)
        return {system: total.result() for system, total in sums.items()}


class PartSum:
    """Adds up the parts of one system as they come, in order."""

    def __init__(self, folded: Sequence[Any], vocabulary: Vocabulary | None = None) -> None:
        self._sums = [Reduction(each.merge, each.empty) for each in folded]
        self._vocabulary = Vocabulary() if vocabulary is None else vocabulary
        self.rows = self.dialogues = 0
        self.prints: dict[str, Fingerprint] = {}

    def add(self, part: Part) -> None:
        """Take one more part in."""
        for total, state in zip(self._sums, part.states, strict=True):
            # Moved while it is small: states over one vocabulary merge without being sorted again.
            total.add(translated(state, self._vocabulary))
        self.rows += part.rows
        self.dialogues += part.dialogues
        for need, print_ in part.prints.items():
            self.prints[need] = self.prints.get(need, Fingerprint()) + print_

    def result(self) -> Part:
        """Everything that was added."""
        return Part(self.rows, self.dialogues, tuple(total.result() for total in self._sums), self.prints)


@dataclass(frozen=True)
class _World:
    """Words, and what is known of them."""

    vocabulary: Vocabulary
    resources: Mapping[Need, Any]
    known: Known

    @classmethod
    def opened(cls, job: Job, known: Known) -> _World:
        vocabulary = Vocabulary()
        resources = job.files.opened(vocabulary)
        moved = {
            system: {fact: translated(value, vocabulary) for fact, value in facts.items()}
            for system, facts in known.items()
        }
        return cls(vocabulary, resources, moved)


class Place:
    """Where pieces are folded; several threads may do so at once."""

    def __init__(self, job: Job, known: Known | None = None) -> None:
        self.job = job
        self._known = known or {}
        self._world = _World.opened(job, self._known)
        self._first_words: int | None = None

    def fold(self, task: Task, piece: Piece) -> tuple[Parts, PieceItems]:
        """The parts and the items of a piece."""
        world = self._world
        if self._first_words is not None and len(world.vocabulary) > self._first_words + MOST_WORDS:
            # States take their words along, so nothing is lost by that.
            self._world = world = _World.opened(self.job, self._known)
            self._first_words = None
        work = _Work(self.job, task, piece, world)
        for stretch in stretches(piece, self.job.names, self.job.batch_rows):
            work.add(stretch)
        if self._first_words is None:  # those of resources and facts are there by now, and would be there again
            self._first_words = len(world.vocabulary)
        return work.result()


class _Work:
    """The folding of one piece."""

    def __init__(self, job: Job, task: Task, piece: Piece, world: _World) -> None:
        self._job, self._task, self._piece, self._world = job, task, piece, world
        self._sums: dict[System, PartSum] = {}
        self._items: dict[System, list[tuple[dict[str, int], dict[str, dict[str, Floats]]]]] = {}

    def add(self, stretch: Stretch) -> None:
        """Fold one more stretch."""
        for rows in stretch.rows():
            system = (self._piece.source, rows.system)
            batch = self._batch(rows)
            try:
                states, items = self._scored(batch, system)
            except _NOT_A_ROWS_FAULT:
                raise
            except Exception as error:
                raise self._traced(stretch, error) from error
            part = Part(len(rows), len(batch.dialogues) - 1, states, self._prints(batch))
            folded = self._job.folded(self._task)
            self._sums.setdefault(system, PartSum(folded, self._world.vocabulary)).add(part)
            sizes = {Level.TURN.value: part.rows, Level.DIALOGUE.value: part.dialogues}
            self._items.setdefault(system, []).append((sizes, items))

    def result(self) -> tuple[Parts, PieceItems]:
        """What has come of it."""
        parts = {system: total.result() for system, total in self._sums.items()}
        return parts, {system: _below_each_other(batches) for system, batches in self._items.items()}

    def _batch(self, rows: Rows) -> Batch:
        """A batch that has all columns: where rows carry no reference at all, every row has none."""
        none = RaggedColumn(TextColumn.from_strings([]), np.zeros(len(rows) + 1, np.int64))
        columns: dict[Need, Column] = {need: rows.columns.get(need, none) for need in COLUMNS}
        offsets = rows.dialogue_offsets()
        return Batch(len(rows), {**columns, **rows.columns}, self._world.vocabulary, offsets, self._world.resources)

    def _prints(self, batch: Batch) -> dict[str, Fingerprint]:
        if self._task == "facts":
            return {}
        lists = {need: column for need, column in batch.columns.items() if isinstance(column, RaggedColumn)}
        return {need.value: column.fingerprint for need, column in lists.items()}

    def _scored(self, batch: Batch, system: System) -> tuple[tuple[Any, ...], dict[str, dict[str, Floats]]]:
        if self._task == "facts":
            return tuple(fact.gather(batch.only(needs)) for fact, needs in self._job.facts.items()), {}
        batch = replace(batch, facts=self._world.known.get(system, {}))
        items: dict[str, dict[str, Floats]] = {}
        states = []
        for metric in self._job.metrics:
            partial = metric.partial(batch.only(metric.needs | metric.wants))
            states.append(partial.state)
            items.setdefault(metric.level.value, {}).update(partial.items)
        return tuple(states), items

    def _traced(self, stretch: Stretch, error: Exception) -> DataError:
        """The fault of the first row that cannot be scored, found by halving."""

        def fails(start: int, stop: int) -> bool:
            try:
                for rows in stretch.rows(start, stop):
                    self._scored(self._batch(rows), (self._piece.source, rows.system))
            except Exception:
                return True
            return False

        start, stop = 0, len(stretch)
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
        return DataError(Fault(stretch.where, stretch.line(start), cause, "leave it out, or score without the metric"))


def _below_each_other(
    batches: Sequence[tuple[Mapping[str, int], Mapping[str, Mapping[str, Floats]]]],
) -> dict[str, dict[str, Floats]]:
    """The items of batches as one; NaN where a batch lacks a key."""
    found: dict[str, dict[str, Floats]] = {}
    keys = {(level, key): None for _, items in batches for level, columns in items.items() for key in columns}
    for level, key in keys:
        parts = [items.get(level, {}).get(key, np.full(sizes[level], np.nan)) for sizes, items in batches]
        found.setdefault(level, {})[key] = np.concatenate(parts)
    return found


@dataclass(frozen=True, slots=True)
class Folded:
    """The parts of one or more consecutive pieces together, and the items of each of them."""

    pieces: tuple[int, ...]
    parts: Parts
    items: tuple[PieceItems, ...]


class Engine(ABC):
    """Folds pieces somewhere; whatever it is made of, the parts are the same to the last digit.

    It is used in a `with` block, which gives back what it holds.
    """

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @abstractmethod
    def each(self, job: Job, known: Known, task: Task, pieces: Mapping[int, Piece], alone: bool) -> Iterator[Folded]:
        """What comes of numbered pieces, in order; `alone`: each by itself and not merged with its neighbours."""
