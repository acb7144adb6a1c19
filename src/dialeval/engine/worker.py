"""A worker folds chunks: it has a vocabulary and the resources over it, opened once and never sent.

An exception inside a metric is traced to the row that causes it, so that the error can name it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from dialeval.core.batch import Batch
from dialeval.core.columns import Column, RaggedColumn, SharedColumn
from dialeval.core.errors import DataError, Fault, NeedError, SettingError
from dialeval.core.fold import Level, check_column
from dialeval.core.notes import noted
from dialeval.core.rowtable import PartWriter, RowTable, join_items
from dialeval.core.states import translated
from dialeval.data.rows.system import no_texts
from dialeval.data.shards.blocks import RowBlock, row_blocks
from dialeval.data.shards.chunks import Chunk, FileChunk, MemoryChunk
from dialeval.engine.job import (
    ChunkItems,
    FactValues,
    Job,
    Stage,
    StateSums,
    SystemItems,
    SystemState,
    SystemStates,
)
from dialeval.text.row_digests import digest_rows
from dialeval.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dialeval.core.arrays import Floats
    from dialeval.core.fold import Metric, Partial
    from dialeval.core.needs import Need
    from dialeval.data.rows.system import Rows

MOST_WORDS = 1 << 22
"""A worker that has met this many more words than those of its first chunk starts again with an empty vocabulary."""

_NOT_A_ROWS_FAULT = (DataError, NeedError, SettingError, MemoryError)


@dataclass(frozen=True)
class _Context:
    """What batches are scored with: words, the resources over them, and facts in terms of them."""

    vocabulary: Vocabulary
    resources: Mapping[Need, Any]
    facts: FactValues = field(default_factory=dict)

    @classmethod
    def open(cls, job: Job) -> _Context:
        vocabulary = Vocabulary()
        with noted():  # told where the run began
            return cls(vocabulary, job.resources.opened(vocabulary))

    def with_facts(self, facts: FactValues) -> _Context:
        values = {
            system: {fact: translated(value, self.vocabulary) for fact, value in values.items()}
            for system, values in facts.items()
        }
        return replace(self, facts=values)


class _MetricError(Exception):
    """What went wrong inside a metric, with its name; the cause is the exception itself."""

    def __init__(self, metric: str) -> None:
        super().__init__(metric)
        self.metric = metric


@contextmanager
def _named(metric: Metric[Any]) -> Iterator[None]:
    """Exceptions inside of a metric with its name; errors of ours have said what they mean."""
    try:
        yield
    except _NOT_A_ROWS_FAULT:
        raise
    except Exception as error:
        raise _MetricError(metric.name) from error


def _check_items(metric: Metric[Any], partial: Partial[Any], batch: Batch) -> None:
    """An error for items that are not one number for each row or dialogue."""
    rows = len(batch) if metric.level is Level.TURN else len(batch.dialogues) - 1
    for key, values in partial.items.items():
        check_column(key, values, rows, f"{metric.level}s")


class Worker:
    """Folds chunks; several threads may do so at once."""

    def __init__(self, job: Job, facts: FactValues | None = None) -> None:
        self.job = job
        self._context = _Context.open(job) if job.opened is None else _Context(*job.opened)
        self._batches: dict[MemoryChunk, Batch] = {}
        self._first_words: int | None = None
        self.learn(facts or {})

    def learn(self, facts: FactValues) -> None:
        """Take in the facts that metrics ask for."""
        self._facts = facts
        self._context = self._context.with_facts(facts)

    def fold(self, stage: Stage, chunk: Chunk) -> tuple[SystemStates, ChunkItems]:
        """The states and the items of a chunk."""
        context = self._context
        if self._first_words is not None and len(context.vocabulary) > self._first_words + MOST_WORDS:
            # Nothing is lost by that: states take their words along.
            self._context = context = _Context.open(self.job).with_facts(self._facts)
            self._first_words = None
        fold = _Fold(self.job, stage, chunk, context)
        with noted() as notes:
            for block in row_blocks(chunk, self.job.names, self.job.batch_rows):
                for rows in block.rows():
                    fold.add(block, rows, self._batch(fold, rows), tuple(notes))
        if self._first_words is None and isinstance(chunk, FileChunk):
            # The words of resources and facts are known by now, and would be known again.
            self._first_words = len(context.vocabulary)
        return fold.result()

    def _batch(self, fold: _Fold, rows: Rows) -> Batch:
        """The batch of some rows; that of a whole source is kept between stages, so that texts are split once."""
        chunk = fold.chunk
        if not isinstance(chunk, MemoryChunk) or not chunk.only:
            return fold.batch(rows)
        batch = self._batches.pop(chunk, None) or fold.batch(rows)
        if fold.stage == "facts":
            self._batches[chunk] = batch
        return batch


class _Fold:
    """The folding of one chunk in one stage."""

    def __init__(self, job: Job, stage: Stage, chunk: Chunk, context: _Context) -> None:
        self.stage, self.chunk, self._context = stage, chunk, context
        self._plan, self._columns, self._facts = (
            job.plans[chunk.source],
            job.columns[chunk.source],
            job.facts(chunk.source),
        )
        self._in_memory = isinstance(chunk, MemoryChunk)
        self._keeps_items = self._in_memory or job.keeps_items
        self._sums = StateSums(job, stage)
        self._items: dict[str, list[SystemItems]] = {}
        writes = self._keeps_items and not self._in_memory and stage == "metrics" and job.workplace is not None
        self._writer = PartWriter(cast("str", job.workplace)) if writes else None

    def batch(self, rows: Rows) -> Batch:
        """A batch that has all columns: where rows carry no reference at all, every row has none."""
        columns: dict[Need, Column] = dict(rows.columns)
        for need in self._columns - columns.keys():
            columns[need] = no_texts(len(rows))
        context, dialogues = self._context, rows.dialogue_offsets()
        return Batch(len(rows), columns, context.vocabulary, dialogues, context.resources, ids=rows.ids(dialogues))

    def add(self, block: RowBlock, rows: Rows, batch: Batch, notes: tuple[str, ...]) -> None:
        """Fold one more batch, the rows of a system in a block, with what was noted by then."""
        system = rows.system
        try:
            state, items = self._scored(batch, system)
        except _NOT_A_ROWS_FAULT:
            raise
        except Exception as error:
            raise self._traced(block, error) from (error.__cause__ if isinstance(error, _MetricError) else error)
        if self._keeps_items and not self._in_memory and self.stage == "metrics":
            items = replace(items, places=replace(rows.places(batch.dialogues), digests=digest_rows(rows.columns)))
        self._sums.add({(self.chunk.source, system): replace(state, notes=notes)})
        if self._writer is None:
            self._items.setdefault(system, []).append(items)
        else:
            self._writer.add(system, items.values, items.places)
        if not (isinstance(self.chunk, MemoryChunk) and self.chunk.only):
            for column in batch.columns.values():
                column.release()

    def result(self) -> tuple[SystemStates, ChunkItems]:
        """The states and items of all batches."""
        items = {(self.chunk.source, system): joined_items(batches) for system, batches in self._items.items()}
        return self._sums.result(), ChunkItems(items, () if self._writer is None else self._writer.parts())

    def _scored(self, batch: Batch, system: str) -> tuple[SystemState, SystemItems]:
        if self.stage == "facts":
            facts = tuple(fact.gather(batch.only(needs)) for fact, needs in self._facts.items())
            return SystemState(len(batch), facts), SystemItems({})
        batch = replace(batch, facts=self._context.facts.get((self.chunk.source, system), {}))
        values: dict[str, dict[str, Floats]] = {}
        states, contributions = [], []
        for metric in self._plan.folded:
            with _named(metric):
                partial = metric.partial(batch.only(metric.needs | metric.wants))
                _check_items(metric, partial, batch)
            states.append(partial.state)
            values.setdefault(metric.level.value, {}).update(self._shown(metric, partial.items))
            contributions.append(partial.contributions)
        states += [detail.gather(batch) for detail in self._plan.details.values()]
        if self._in_memory:  # a column in memory has its digest as a whole
            return SystemState(len(batch), tuple(states)), SystemItems(values, tuple(contributions))
        kinds = (RaggedColumn, SharedColumn)
        lists = {need: column for need, column in batch.columns.items() if isinstance(column, kinds)}
        fingerprints = {need.value: column.fingerprint for need, column in lists.items()}
        return SystemState(len(batch), tuple(states), fingerprints), SystemItems(values if self._keeps_items else {})

    def _shown(self, metric: Metric[Any], items: Mapping[str, Floats]) -> Mapping[str, Floats]:
        """Items under the keys that are shown, as they are saved; those in memory get their names in the end."""
        if self._in_memory:
            return items
        names = [name for name, each in self._plan.metrics.items() if each == metric]
        return {shown: items[key] for name in names for key, shown in self._plan.shown(name, items).items()}

    def _traced(self, block: RowBlock, error: Exception) -> DataError:
        """The fault of the first row that cannot be scored, found by halving."""

        def fails(start: int, stop: int) -> bool:
            try:
                for rows in block.rows(start, stop):
                    self._scored(self.batch(rows), rows.system)
            except Exception as found:  # a metric that fails for another row does not count
                return getattr(found, "metric", None) == which
            return False

        which = getattr(error, "metric", None)
        start, stop = 0, len(block)
        while stop - start > 1:
            middle = (start + stop) // 2
            if fails(start, middle):
                stop = middle
            elif fails(middle, stop):
                start = middle
            else:
                break
        why = error.__cause__ if isinstance(error, _MetricError) else error
        rows = "this row" if stop - start == 1 else f"these {stop - start} rows together"
        cause = f"{which or 'a metric'} cannot score {rows} ({type(why).__name__}: {why})"
        return DataError(Fault(block.where, block.line(start), cause, "leave it out, or score without the metric"))


def joined_items(batches: Sequence[SystemItems]) -> SystemItems:
    """The items of batches, one below the other."""
    levels = dict.fromkeys(level for items in batches for level in items.values)
    values = {
        level: join_items([items.values[level] for items in batches if level in items.values]) for level in levels
    }
    places = [items.places for items in batches if items.places is not None]
    contributions = tuple(each for items in batches for each in items.contributions)
    return SystemItems(values, contributions, RowTable.joined(places) if places else None)
