"""Workers fold chunks. Each has a vocabulary and the resources over it, opened once and never sent.

An exception inside a metric is traced to the row that causes it, so that the error can name it. `Threads` is the engine
of this process: its threads share one worker, since kernels release the lock of the interpreter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from dialeval.core.account import Account
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.columns import ColumnData, FieldColumn, RaggedColumn, SharedColumn, make_empty
from dialeval.core.contributions import BatchContributions
from dialeval.core.errors import DataError, NeedError, Problem, SettingError, collect_warnings
from dialeval.core.fingerprint import Fingerprint
from dialeval.core.fold import Fact, Level, Metric, Reduction, check_column, from_bytes, to_bytes, translate_state
from dialeval.core.inputs import Input
from dialeval.core.rowtable import PartWriter, RunPart
from dialeval.engine.plan import Plan
from dialeval.engine.resources import Resources
from dialeval.io.chunks import Chunk, FileChunk, MemoryChunk, RowBlock, read_blocks
from dialeval.io.rows import FieldNames, Rows
from dialeval.text.row_digests import digest_rows
from dialeval.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


# A job: what is done to every chunk, on whatever machine, and what results from a chunk.
#
# `Job` is small and is sent to workers: plans, field names, the paths and digests of resources. A `Worker` folds a
# chunk in one of two stages: first the corpus statistics ("facts") that metrics ask for, then the metrics. It returns
# by system a `SystemState` (what merges) and `SystemScores` (one value per row). An `Engine` gives chunks to workers.
#
# States that grow with the rows are merged by many workers at once: a worker splits the states of a chunk into parts
# (`core.fold.Fold.split_state`). Parts of the same number, of all chunks, hold the same n-grams, so one worker merges
# them without knowing the others, and closes the sum. Only that, a few numbers, is sent to the first process; all other
# states come there with their chunk, as they are small. The number of parts and workers changes no digit: counts are
# integers.

Stage: TypeAlias = Literal["facts", "metrics"]
System: TypeAlias = tuple[int, str]
"""The number of a source, and a system in it."""


@dataclass(frozen=True, slots=True)
class SystemState:
    """Everything that merges about some rows of one system."""

    rows: int
    states: tuple[Any, ...]
    """Those of `Job.list_folds`, in that order."""
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    """Of the columns of a file, by need."""
    notes: tuple[str, ...] = ()
    """What was guessed while the rows were read."""
    account: Account = field(default_factory=Account)
    missing: dict[str, int] = field(default_factory=dict)
    """By key: how many units should have a value and have none."""


@dataclass(frozen=True, slots=True)
class SystemScores:
    """The values of the rows of one system in a chunk, by level and key."""

    values: dict[str, dict[str, Floats]]
    contributions: tuple[Mapping[str, BatchContributions], ...] = ()
    """What the rows add to corpus values, by metric."""


@dataclass(frozen=True, slots=True)
class ChunkScores:
    """The items of a chunk: of rows in memory here, of rows in files in the workplace of the job, if it has one."""

    systems: dict[System, SystemScores] = field(default_factory=dict)
    parts: tuple[RunPart, ...] = ()
    """Files with items, and with what rows are, in order."""


SystemStates: TypeAlias = dict[System, SystemState]
FactValues: TypeAlias = Mapping[System, Mapping[Hashable, Any]]


class Context(NamedTuple):
    """What batches are scored with: words, the resources over them, and corpus statistics in terms of them."""

    vocabulary: Vocabulary
    resources: Mapping[Input, Any]
    facts: FactValues = {}

    def with_facts(self, facts: FactValues) -> Context:
        """Return the context with corpus statistics, translated to its words."""
        translated = {
            system: {fact: translate_state(value, self.vocabulary) for fact, value in values.items()}
            for system, values in facts.items()
        }
        return self._replace(facts=translated)


def open_context(resources: Resources) -> Context:
    """Open resources over a vocabulary without words."""
    vocabulary = Vocabulary()
    return Context(vocabulary, resources.open(vocabulary))


@dataclass(frozen=True)
class Job:
    """The work on every chunk."""

    plans: tuple[Plan, ...]
    """By source."""
    columns: tuple[frozenset[Input], ...]
    """By source: the columns that its rows have or may have."""
    resources: Resources
    names: FieldNames
    batch_rows: int
    workplace: str | None = None
    """A folder in which workers write the items of rows in files; None: nobody asks for them."""
    context: Context | None = None
    """What batches are scored with, if the job stays in this process, where resources are open already."""

    def list_facts(self, source: int) -> dict[Fact, frozenset[Input]]:
        """Return what must be known of all rows of a source first, with the needs of the metric that asks."""
        metrics = self.plans[source].folded
        return {fact: metric.needs | metric.wants for metric in metrics for fact in metric.facts}

    @property
    def stages(self) -> list[Stage]:
        """The stages it takes, each a pass over all rows."""
        asks = any(self.list_facts(source) for source in range(len(self.plans)))
        return ["facts", "metrics"] if asks else ["metrics"]

    def list_folds(self, stage: Stage, source: int) -> Sequence[Fact | Metric]:
        """Return the folds of a stage: metrics, then details."""
        plan = self.plans[source]
        return list(self.list_facts(source)) if stage == "facts" else [*plan.folded, *plan.details.values()]

    def pack(self, stage: Stage, states: SystemStates) -> bytes:
        """Write states as bytes; an error names the metric whose state cannot be written."""
        try:
            return to_bytes(states)
        except SettingError:
            for system, state in states.items():
                for fold, part in zip(self.list_folds(stage, system[0]), state.states, strict=True):
                    try:
                        to_bytes(part)
                    except SettingError as error:
                        raise SettingError(f"the metric {fold}: {error}") from None
            raise

    def unpack(self, stage: Stage, content: bytes) -> SystemStates:
        """Read what `pack` wrote: objects of the classes that empty states are made of, and no others."""
        folds = [fold for source in range(len(self.plans)) for fold in self.list_folds(stage, source)]
        states: SystemStates = from_bytes(content, SystemState(0, tuple(fold.empty() for fold in folds)))
        return states

    def grows(self, stage: Stage) -> bool:
        """Return whether a state of a stage grows with the rows."""
        return any(fold.grows for source in range(len(self.plans)) for fold in self.list_folds(stage, source))


class StateSums:
    """Sums of the states of systems, added in order.

    States of other workers refer to other words; they are translated into those of `vocabulary`.
    """

    def __init__(self, job: Job, stage: Stage, vocabulary: Vocabulary | None = None) -> None:
        self._job, self._stage, self._vocabulary = job, stage, vocabulary
        self._sums: dict[System, list[Reduction]] = {}
        self._totals: dict[System, SystemState] = {}
        """All but the states."""

    def expect(self, system: System) -> list[Reduction]:
        """Return the sums of a system, which may stay those of no rows."""
        if system not in self._sums:
            folds = self._job.list_folds(self._stage, system[0])
            self._sums[system] = [Reduction(fold.merge, fold.empty) for fold in folds]
            self._totals[system] = SystemState(0, ())
        return self._sums[system]

    def add(self, several: SystemStates) -> None:
        """Take in one more state of each system."""
        for system, state in several.items():
            for total, part in zip(self.expect(system), state.states, strict=True):
                # Translated while it is small: states over one vocabulary merge without being sorted again.
                total.add(part if self._vocabulary is None else translate_state(part, self._vocabulary))
            before = self._totals[system]
            prints = dict(before.fingerprints)
            for need, fingerprint in state.fingerprints.items():
                prints[need] = prints.get(need, Fingerprint()) + fingerprint
            notes = tuple(dict.fromkeys(before.notes + state.notes))
            account = before.account + state.account
            missing = dict(Counter(before.missing) + Counter(state.missing))
            self._totals[system] = SystemState(before.rows + state.rows, (), prints, notes, account, missing)

    def finish(self) -> SystemStates:
        """Return everything that was added, by system."""
        return {
            system: replace(total, states=tuple(reduction.result() for reduction in self._sums[system]))
            for system, total in self._totals.items()
        }


def cut_states(job: Job, stage: Stage, states: SystemStates, parts: int) -> tuple[SystemStates, list[SystemStates]]:
    """Return what is sent to the first process, and the parts of the states that grow."""
    rest: SystemStates = {}
    pieces: list[SystemStates] = [{} for _ in range(parts)]
    for system, state in states.items():
        pairs = list(zip(job.list_folds(stage, system[0]), state.states, strict=True))
        kept = tuple(fold.close_part(fold.empty()) if fold.grows else part for fold, part in pairs)
        rest[system] = replace(state, states=kept)
        cuts = [fold.split_state(part, parts) if fold.grows else [fold.empty()] * parts for fold, part in pairs]
        for number, piece in enumerate(pieces):
            piece[system] = SystemState(0, tuple(several[number] for several in cuts))
    return rest, pieces


def merge_states(job: Job, stage: Stage, several: Iterable[SystemStates], *, close: bool = False) -> SystemStates:
    """Merge states of several chunks over one vocabulary; `close` those that grow, when all chunks are merged."""
    sums = StateSums(job, stage, Vocabulary())
    for states in several:
        sums.add(states)
    merged = sums.finish()
    if not close:
        return merged
    for system, state in merged.items():
        pairs = zip(job.list_folds(stage, system[0]), state.states, strict=True)
        closed = tuple(fold.close_part(part) if fold.grows else part for fold, part in pairs)
        merged[system] = replace(state, states=closed)
    return merged


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The states of one or more consecutive chunks together, and the scores of each of them.

    `chunks` is empty for a hash partition of states that grow, merged over all chunks and closed.
    """

    chunks: tuple[int, ...]
    states: SystemStates
    items: tuple[ChunkScores, ...]


class Engine(AbstractContextManager["Engine"]):
    """A way to fold chunks; the states are the same to the last digit whichever is used.

    It is used in a `with` block, at the end of which it releases what it holds.
    """

    in_process = False
    """Whether chunks are folded in this process, so that what is open here need not be opened again."""

    def __exit__(self, *_error: object) -> None:
        return None

    @abstractmethod
    def fold(self, job: Job, facts: FactValues, stage: Stage, chunks: Mapping[int, Chunk]) -> Iterator[ChunkResult]:
        """Yield the results of numbered chunks, in order, and then those of parts, if states were cut."""


MOST_WORDS = 1 << 22
"""A worker that has met this many more words than those of its first chunk starts again with an empty vocabulary."""

_NOT_A_ROWS_PROBLEM = (DataError, NeedError, SettingError, MemoryError)

Work = TypeVar("Work")
Folded = TypeVar("Folded")


class _MetricError(Exception):
    """An exception inside a metric, which is its cause, with the name of the metric."""

    def __init__(self, metric: str) -> None:
        super().__init__(metric)
        self.metric = metric


class Worker:
    """What folds chunks in one process; several threads may use it at once."""

    def __init__(self, job: Job, facts: FactValues | None = None) -> None:
        self.job = job
        self._context = job.context or self._open_context()
        self._batches: dict[MemoryChunk, Batch] = {}
        self._first_words: int | None = None
        self.learn(facts or {})

    def _open_context(self) -> Context:
        with collect_warnings():  # the run has collected the warnings about resources
            return open_context(self.job.resources)

    def learn(self, facts: FactValues) -> None:
        """Take in the corpus statistics that metrics ask for."""
        self._facts = facts
        self._context = self._context.with_facts(facts)

    def fold(self, stage: Stage, chunk: Chunk) -> tuple[SystemStates, ChunkScores]:
        """Return the states and the items of a chunk."""
        context = self._context
        if self._first_words is not None and len(context.vocabulary) > self._first_words + MOST_WORDS:
            # Nothing is lost by that: states hold their words.
            self._context = context = self._open_context().with_facts(self._facts)
            self._first_words = None
        fold = _ChunkFold(self.job, stage, chunk, context)
        with collect_warnings() as notes:
            for block in read_blocks(chunk, self.job.names, self.job.batch_rows):
                for rows in block.rows():
                    fold.add(block, rows, self._make_batch(fold, rows), tuple(notes))
        if self._first_words is None and isinstance(chunk, FileChunk):
            # The words of resources and corpus statistics are known by now, and would be known again.
            self._first_words = len(context.vocabulary)
        return fold.finish()

    def _make_batch(self, fold: _ChunkFold, rows: Rows) -> Batch:
        """Return the batch of some rows; keep that of a whole source between stages, to tokenize texts once."""
        chunk = fold.chunk
        if not isinstance(chunk, MemoryChunk) or not chunk.only:
            return fold.make_batch(rows)
        batch = self._batches.pop(chunk, None) or fold.make_batch(rows)
        if fold.stage == "facts":
            self._batches[chunk] = batch
        return batch


class _ChunkFold:
    """The fold over the rows of one chunk in one stage."""

    def __init__(self, job: Job, stage: Stage, chunk: Chunk, context: Context) -> None:
        self.stage, self.chunk, self._context = stage, chunk, context
        self._plan, self._columns = job.plans[chunk.source], job.columns[chunk.source]
        self._facts, self._folds = job.list_facts(chunk.source), job.list_folds(stage, chunk.source)
        self._in_memory = isinstance(chunk, MemoryChunk)
        self._sums = StateSums(job, stage)
        self._items: dict[System, SystemScores] = {}
        saves_items = not self._in_memory and stage == "metrics"
        self._writer = PartWriter(job.workplace) if saves_items and job.workplace is not None else None

    def make_batch(self, rows: Rows) -> Batch:
        """Make a batch that has all columns of the source; rows that lack one have no text in it."""
        columns: dict[Input, ColumnData] = dict(rows.columns)
        for need in self._columns - columns.keys():
            columns[need] = make_empty(need, len(rows))
        context, dialogues = self._context, rows.dialogue_offsets()
        ids, whole = rows.ids(dialogues), self._in_memory
        return Batch(len(rows), columns, context.vocabulary, dialogues, context.resources, ids=ids, whole=whole)

    def add(self, block: RowBlock, rows: Rows, batch: Batch, notes: tuple[str, ...]) -> None:
        """Fold one more batch, the rows of a system in a block, with the notes of the reader so far."""
        system = (self.chunk.source, rows.system)
        if not len(rows):  # of rows that were all left out there is only an account
            empty = tuple(fold.empty() for fold in self._folds)
            self._sums.add({system: SystemState(0, empty, notes=notes, account=rows.account)})
            return
        try:
            state, items = self._score(batch, rows.system)
        except _MetricError as error:
            raise self._trace(block, error) from error.__cause__
        self._sums.add({system: replace(state, notes=notes, account=rows.account)})
        if self._in_memory:  # a chunk of rows in memory is one batch
            self._items[system] = items
        elif self._writer is not None:
            places = replace(rows.places(batch.dialogues), digests=digest_rows(rows.columns))
            self._writer.add(rows.system, items.values, places)
        if not (isinstance(self.chunk, MemoryChunk) and self.chunk.only):
            for column in batch.columns.values():
                column.release()

    def finish(self) -> tuple[SystemStates, ChunkScores]:
        """Return the states and items of all batches."""
        return self._sums.finish(), ChunkScores(self._items, () if self._writer is None else self._writer.finish())

    def _score(self, batch: Batch, system: str) -> tuple[SystemState, SystemScores]:
        """Fold one batch. An exception inside a metric is raised with its name; errors of dialeval pass as they are."""
        scored = "a metric"
        values: dict[str, dict[str, Floats]] = {}
        states, contributions = [], []
        missing = Counter[str]()
        try:
            if self.stage == "facts":
                facts = tuple(fact.gather(batch.restrict_to(needs)) for fact, needs in self._facts.items())
                return SystemState(len(batch), facts), SystemScores({})
            batch = replace(batch, facts=self._context.facts.get((self.chunk.source, system), {}))
            for metric in self._plan.folded:
                scored = metric.name
                partial = metric.partial(batch.restrict_to(metric.needs | metric.wants))
                rows = len(batch) if metric.level is Level.TURN else len(batch.dialogues) - 1
                for key, column in partial.scores.items():
                    check_column(key, column, rows, f"{metric.level.value}s")
                    missing[key] += metric.count_missing(column, batch)
                states.append(partial.state)
                contributions.append(partial.contributions)
                if self._in_memory:
                    values.setdefault(metric.level.value, {}).update(partial.scores)
                elif self._writer is not None:  # what is in memory is named at the end
                    names = [name for name, planned in self._plan.metrics.items() if planned == metric]
                    labels = [pair for name in names for pair in self._plan.name_results(name, partial.scores).items()]
                    values.setdefault(metric.level.value, {}).update(
                        {name: partial.scores[key] for key, name in labels}
                    )
            scored = "a metric"
            states += [detail.gather(batch) for detail in self._plan.details.values()]
        except _NOT_A_ROWS_PROBLEM:
            raise
        except Exception as error:
            raise _MetricError(scored) from error
        if self._in_memory:  # a column in memory has its digest as a whole
            state = SystemState(len(batch), tuple(states), missing=dict(missing))
            return state, SystemScores(values, tuple(contributions))
        kinds = (RaggedColumn, SharedColumn, FieldColumn)
        lists = {need: column for need, column in batch.columns.items() if isinstance(column, kinds)}
        fingerprints = {str(need): column.fingerprint for need, column in lists.items()}
        return SystemState(len(batch), tuple(states), fingerprints, missing=dict(missing)), SystemScores(values)

    def _trace(self, block: RowBlock, error: _MetricError) -> DataError:
        """Find the first row that cannot be scored, by halving."""

        def fails(start: int, stop: int) -> bool:
            try:
                for rows in block.rows(start, stop):
                    self._score(self.make_batch(rows), rows.system)
            except Exception as other:  # a metric that fails for another row does not count
                return isinstance(other, _MetricError) and other.metric == error.metric
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
        why = error.__cause__
        rows = "this row" if stop - start == 1 else f"these {stop - start} rows together"
        cause = f"{error.metric} cannot score {rows} ({type(why).__name__}: {why})"
        return DataError(Problem(block.where, block.line(start), cause, "leave it out, or score without the metric"))


class Threads(Engine):
    """An engine of threads of this process, over one vocabulary."""

    in_process = True

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._worker: Worker | None = None

    def __exit__(self, *_: object) -> None:
        self._worker = None

    def fold(self, job: Job, facts: FactValues, stage: Stage, chunks: Mapping[int, Chunk]) -> Iterator[ChunkResult]:
        if self._worker is None or self._worker.job is not job:
            self._worker = Worker(job)
        worker = self._worker
        worker.learn(facts)
        if self._threads == 1 or len(chunks) == 1:  # no pool to start, and no switching between threads
            for number, chunk in chunks.items():
                states, items = worker.fold(stage, chunk)
                yield ChunkResult((number,), states, (items,))
            return
        from concurrent.futures import ThreadPoolExecutor

        with (
            ThreadPoolExecutor(self._threads) as pool,
            closing(map_in_order(pool, self._threads, partial(worker.fold, stage), chunks)) as folded,
        ):
            for number, (states, items) in folded:
                yield ChunkResult((number,), states, (items,))


def map_in_order(
    pool: ThreadPoolExecutor, threads: int, fold: Callable[[Work], Folded], chunks: Mapping[int, Work]
) -> Generator[tuple[int, Folded], None, None]:
    """Yield what threads make of numbered chunks or parts, in that order; a few are begun ahead."""
    ahead: deque[tuple[int, Future[Folded]]] = deque()
    waiting = iter(chunks.items())
    try:
        while True:
            while len(ahead) <= 2 * threads and (following := next(waiting, None)) is not None:
                number, chunk = following
                ahead.append((number, pool.submit(fold, chunk)))
            if not ahead:
                return
            number, future = ahead.popleft()
            yield number, future.result()
    finally:
        for _, future in ahead:
            future.cancel()
