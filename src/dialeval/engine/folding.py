"""The one route of every evaluation: sources -> chunks -> row blocks -> states -> estimates -> `Run`.

Rows in memory are a source as files are, cut into chunks of one batch each. What is different about them: their columns
are known before, and their items, contributions and texts stay in memory. Whether rows in files have references or
contexts is known only when all are read: metrics run as if they had, and those for which no row had what they need are
skipped in the end.

Corpus statistics ("facts") are folded in a pass before the metrics; where the tokenizer is to be chosen by the texts, a
pass before that counts their scripts, and where the rates of all labels are asked for, one collects their names. States
are exact, so estimates and signatures depend neither on how the rows are cut into chunks nor on who folds them.
Estimates are signed and named here and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from dialeval.core import inputs
from dialeval.core.account import FAILURES
from dialeval.core.arrays import Floats, make_unscored_column, release
from dialeval.core.contributions import KEPT_ROWS, BatchContributions, Contributions, join_batches
from dialeval.core.errors import DataError, Problem, SettingError, UnsavedRunError, collect_warnings
from dialeval.core.files import force, make_workplace
from dialeval.core.fold import Estimate, Fact, Level, Metric
from dialeval.core.inputs import Input
from dialeval.core.result import JUDGE_SAMPLING, TRAINED_ON, Result, Run
from dialeval.core.rowtable import RowTable, RunPart
from dialeval.core.version import __version__
from dialeval.engine.intervals import IntervalChoice, IntervalKind
from dialeval.engine.plan import (
    EARLY_PASSES,
    TRIALS,
    Plan,
    Planner,
    warn_of_split_dialogues,
    warn_of_unsplit_texts,
    with_checks,
)
from dialeval.engine.resources import Resources
from dialeval.engine.worker import (
    ChunkResult,
    ChunkScores,
    Context,
    Engine,
    FactValues,
    Job,
    Stage,
    StateSums,
    System,
    SystemState,
    Threads,
    open_context,
)
from dialeval.io.chunks import Chunk, MemoryChunk, read_blocks, split_sources
from dialeval.io.gathering import no_rows
from dialeval.io.reading import check_number_of_systems
from dialeval.io.rows import FieldNames, Rows
from dialeval.io.sources import Source, Versions
from dialeval.text.row_digests import digest_rows
from dialeval.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

BATCH_ROWS = 1 << 15
"""Rows of a batch: enough that a batch costs little, few enough that its arrays stay in the processor's cache."""

_DISK_THREADS = 4
_PEEKED_CHUNKS = 3
_PEEKED_ROWS = 256


class Done(NamedTuple):
    """The progress of a run."""

    rows: int
    """Rows that are scored."""
    total: int | None
    """All rows, where their number is known."""
    share: float
    """Fraction of all work, from 0 to 1."""


Progress = Callable[[Done], None]


@dataclass(frozen=True)
class Options:
    """The options of a run; only `t`, `confidence` and `intervals` change a value of it."""

    t: float | None = None
    confidence: float | None = None
    intervals: IntervalKind | None = None
    """`clustered` unless given."""
    batch_rows: int = BATCH_ROWS
    threads: int | None = None
    engine: Engine | None = None
    """`Threads` unless given."""
    progress: Progress | None = None
    output: str | os.PathLike[str] | None = None
    """A folder to save a run of rows in files in; a run of rows in memory has all it takes to be saved later."""
    row_scores: bool = True
    """Whether scores of rows in files are saved."""
    chunk_bytes: int | None = None
    force: bool = False
    """Whether a saved run of other files may be replaced."""


# Stores of the per-row scores of chunks, until the run is complete.


class ItemStore:
    """A store that keeps nothing."""

    workplace: str | None = None
    """A folder in which workers write items; it is deleted when the store is closed."""

    def put(self, number: int, items: ChunkScores) -> None:
        """Keep the scores of a chunk."""

    def list_parts(self, number: int) -> Sequence[RunPart]:
        """Return the files with the items of a chunk, in order."""
        return ()

    def read_columns(self, system: System) -> Mapping[str, Floats]:
        """Return the items of all rows of a system by key, where they are in memory."""
        return {}

    def join_contributions(self, system: System) -> dict[str, Contributions]:
        """Return what the rows of a system add to corpus values, where that is kept."""
        return {}


class MemoryItems(ItemStore):
    """A store of items in memory, a column per system and key."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = [chunk for chunk in chunks if isinstance(chunk, MemoryChunk)]
        self._sizes: dict[System, tuple[int, int]] = {}
        for chunk in self._chunks:
            dialogues = len(chunk.rows.dialogue_offsets()) - 1
            ends = (chunk.first_row + len(chunk.rows), chunk.first_dialogue + dialogues)
            self._sizes[chunk.source, chunk.rows.system] = ends
        self._columns: dict[System, dict[str, Floats]] = {}
        self._contributions: dict[System, dict[str, list[BatchContributions]]] = {}

    def put(self, number: int, items: ChunkScores) -> None:
        chunk = self._chunks[number]
        for system, values_of_system in items.systems.items():
            columns, (rows, dialogues) = self._columns.setdefault(system, {}), self._sizes[system]
            for level, values in values_of_system.values.items():
                is_turn = level == Level.TURN.value
                first, size = (chunk.first_row, rows) if is_turn else (chunk.first_dialogue, dialogues)
                for key, column in values.items():
                    if key not in columns:  # where a chunk has no values for a key, they stay NaN
                        columns[key] = make_unscored_column(size)
                    part = columns[key][first : first + len(column)]
                    part[:] = column
                    release(part)
            if rows <= KEPT_ROWS:
                parts = self._contributions.setdefault(system, {})
                # Those of one name are the same for every metric.
                named = {name: added for by_name in values_of_system.contributions for name, added in by_name.items()}
                for name, added in named.items():
                    parts.setdefault(name, []).append(added)

    def read_columns(self, system: System) -> Mapping[str, Floats]:
        return self._columns.get(system, {})

    def join_contributions(self, system: System) -> dict[str, Contributions]:
        return {name: join_batches(parts) for name, parts in self._contributions.get(system, {}).items()}


class PartItems(ItemStore):
    """A store of the files that workers wrote; threads wait for the disk while further chunks are folded."""

    def __init__(self, workplace: Path, threads: ThreadPoolExecutor) -> None:
        self.workplace, self._threads = str(workplace), threads
        self._parts: dict[int, tuple[RunPart, ...]] = {}

    def put(self, number: int, items: ChunkScores) -> None:
        self._parts[number] = items.parts
        for part in items.parts:
            if isinstance(part.place, str):
                self._threads.submit(force, Path(part.place))

    def list_parts(self, number: int) -> Sequence[RunPart]:
        return self._parts[number]


@dataclass(frozen=True)
class FinishedSystem:
    """A system when all its rows are folded."""

    source: Source
    system: System
    plan: Plan
    states: Mapping[Metric, Any]
    checks: Sequence[tuple[str, Fact, object]]
    """The details of the plan and the checks of all rows, each with its name and state."""
    digests: Mapping[Input, str]
    """Of the columns and resources that are in signatures."""
    store: ItemStore
    total: SystemState
    """Everything else that merges about its rows."""

    @cached_property
    def rows(self) -> RowTable:
        """The table of the rows of a source in memory."""
        rows = cast("Rows", self.source.rows)
        return replace(rows.table(), digests=digest_rows(rows.columns))

    def make_result(self, intervals: IntervalChoice) -> Result:
        """Return the estimates, signed and named, with the table of the rows."""
        columns = self.store.read_columns(self.system)
        estimates: dict[str, Estimate] = {}
        for name, metric in self.plan.metrics.items():
            results = metric.finish(self.states[metric])
            data = {str(need): self.digests[need] for need in list_signed_needs(metric) if need in self.digests}
            signature = metric.signature().with_fields(**data, **metric.list_other_signatures(self.states[metric]))
            for key, label in self.plan.name_results(name, results).items():
                estimate = replace(results[key], scores=columns.get(key), level=metric.level, signature=signature)
                estimate = replace(estimate, missing=self.total.missing.get(key, 0))
                estimates[label] = intervals.add_interval(estimate, metric.bounds_of(key))
        rows = None if self.source.rows is None else self.rows
        contributions = self.store.join_contributions(self.system)
        place = (self.source.where, rows, contributions, self.source.role)
        return Result(estimates, self.plan.skipped, *place, self.total.account if self.total.account.due else None)

    def split_variances(self) -> dict[str, object]:
        """Return, by metric, how much of the variance of its scores is the sampling of a judge."""
        splits = {name: metric.split_variance(self.states[metric]) for name, metric in self.plan.metrics.items()}
        return {name: split for name, split in splits.items() if split is not None}

    def finish_details(self) -> dict[str, Any]:
        """Return the results of the details that the plan asked for."""
        return {name: fold.finish(state) for name, fold, state in self.checks if name in self.plan.details}

    def list_dialogue_ids(self, chunks: Sequence[Chunk]) -> Iterator[list[str]]:
        """Yield the ids of its dialogues, some at a time, where they are kept."""
        if self.source.rows is not None:
            yield [name for name in self.rows.dialogues or () if name]
        for number, chunk in enumerate(chunks):
            for part in self.store.list_parts(number) if chunk.source == self.system[0] else ():
                if part.kind == "rows":
                    yield part.dialogue_ids(self.system[1])


class Evaluation(NamedTuple):
    """A run, and each of its systems with its plan and the details that the plan asked for."""

    run: Run
    systems: Mapping[str, FinishedSystem]


def run_sources(
    sources: Sequence[Source],
    planner: Planner,
    resources: Resources | None = None,
    options: Options | None = None,
    *,
    names: FieldNames | None = None,
    warnings: Sequence[str] = (),
    details: Mapping[str, object] | None = None,
    context: Context | None = None,
) -> Evaluation:
    """Plan, fold and finish: what every evaluation ends in.

    `context`: a vocabulary and the resources over it, where they are open already.
    """
    resources, options, names = resources or Resources(ready={}), options or Options(), names or FieldNames()
    if options.batch_rows < 1 or (options.threads is not None and options.threads < 1):
        raise SettingError("batch_rows and threads are at least 1")
    intervals = IntervalChoice(options.intervals, options.t, options.confidence)
    in_memory = all(source.rows is not None for source in sources)
    engine = options.engine or Threads(options.threads or os.cpu_count() or 1)
    if not engine.in_process:
        resources.require_paths()
    with collect_warnings() as notes:
        context = context or open_context(resources)
    asked = frozenset([*names.columns, *([inputs.SCORES] if names.scores else [])])
    columns = [source.columns if source.rows is not None else source.columns | asked for source in sources]
    ready = frozenset(context.resources)
    settings = (columns, resources, names, options.batch_rows, context, engine.in_process)
    job, versions = make_job(planner, *settings), Versions.of(sources)
    with versions.report_changes():
        chunks = split_sources(sources, job.batch_rows, options.chunk_bytes)
        if not in_memory:
            _refuse_missing_columns(planner, sources, chunks, names, ready)
    with ExitStack() as stack:
        stack.enter_context(engine)
        asking = stack.enter_context(ExitStack())
        if inputs.LLM in ready:
            asking.enter_context(context.resources[inputs.LLM])

        details = dict(details or {})
        for make_pass in EARLY_PASSES:
            early = make_pass(job.plans)
            if not early.facts:
                continue
            plan = Plan({}, details={str(number): fact for number, fact in enumerate(early.facts)})
            ahead = replace(job, plans=(plan,) * len(sources))
            states = _Passes(ahead, engine, sources, chunks, versions, ItemStore()).run().items()
            real = [state.states for system, state in states if sources[system[0]].role == "system"]
            with collect_warnings() as more:
                values = {
                    fact: fact.finish(reduce(fact.merge, (state[number] for state in real), fact.empty()))
                    for number, fact in enumerate(early.facts)
                }
                planner, chosen = early.settle(planner, values)
                job = make_job(planner, *settings)
            details |= chosen
            notes |= more
        store = stack.enter_context(_open_store(options, chunks, in_memory))
        job = replace(job, workplace=store.workplace)
        totals = _Passes(job, engine, sources, chunks, versions, store, options.progress).run()
        asking.close()  # raises where a language model answered nothing
        check_number_of_systems(len(totals), sources[0].where if sources else "responses")
        systems = _finish_systems(planner, job, sources, totals, store, ready)
        results = {name: system.make_result(intervals) for name, system in systems.items()}
        if any(system.plan.unasked for system in systems.values()) and not _leave_out_failures(results.values()):
            results = {
                name: replace(result, estimates={key: estimate for key, estimate in result.items() if key != FAILURES})
                for name, result in results.items()
            }
        notes |= {line: None for total in totals.values() for line in total.notes}
        needs = [need for need in (inputs.EMBEDDINGS, inputs.LLM) if need in ready]
        of_resources = [line for need in needs for line in context.resources[need].warnings]
        lines = (*warnings, *of_resources, *notes, *dict.fromkeys(_find_warnings(systems, chunks)))
        judges = {digest: context.resources[need] for need, digest in job.resources.digests.items()}
        training_rows = {digest: list(getattr(judge, "trained_on", ())) for digest, judge in judges.items()}
        tables: dict[str, dict[str, object]] = {
            TRAINED_ON: {digest: rows for digest, rows in training_rows.items() if rows},
            TRIALS: {name: end.finish_details()[TRIALS] for name, end in systems.items() if TRIALS in end.plan.details},
            JUDGE_SAMPLING: {name: splits for name, end in systems.items() if (splits := end.split_variances())},
        }
        details |= {name: table for name, table in tables.items() if table}
        run = Run(results, __version__, lines, details)
        if options.output is not None and not in_memory:
            parts = _list_item_parts(systems, chunks, store) if options.row_scores else None
            try:
                run.save(options.output, parts, force=options.force)
            except DataError as error:
                raise UnsavedRunError(error.problems, run) from error
    return Evaluation(run, systems)


def list_signed_needs(metric: Metric) -> list[Input]:
    """Return the needs whose digests a signature has: all but responses and its subject, which are what is compared."""
    return sorted((metric.needs | metric.wants) - {metric.subject, inputs.RESPONSE})


def make_job(
    planner: Planner,
    columns: Sequence[frozenset[Input]],
    resources: Resources,
    names: FieldNames,
    batch_rows: int,
    context: Context,
    in_process: bool = True,
) -> Job:
    """Make the job of a planner for sources with such columns."""
    ready = context.resources
    plans = [planner(number, available | frozenset(ready)) for number, available in enumerate(columns)]
    metrics = [metric for plan in plans for metric in plan.folded]
    rows = min([batch_rows, *(metric.costly_rows for metric in metrics if metric.costly)])
    used = dict.fromkeys(need for metric in metrics for need in list_signed_needs(metric) if need in ready)
    resources = replace(resources, digests={need: ready[need].digest for need in used})
    plans = [with_checks(plan) for plan in plans]
    return Job(tuple(plans), tuple(columns), resources, names, rows, context=context if in_process else None)


def _refuse_missing_columns(
    planner: Planner, sources: Sequence[Source], chunks: Sequence[Chunk], names: FieldNames, resources: frozenset[Input]
) -> None:
    """Look into a few chunks of each file, so that a metric that was named and lacks its column is refused now."""
    for number in range(len(sources)):
        of_source = [chunk for chunk in chunks if chunk.source == number]
        columns: set[Input] = set()
        with collect_warnings():  # whoever folds the chunks collects these notes again
            for chunk in of_source[:: max(1, len(of_source) // _PEEKED_CHUNKS)]:
                for block in read_blocks(chunk, names, _PEEKED_ROWS):
                    columns |= {need for rows in block.rows() for need in rows.columns}
                    break
        if columns:
            planner(number, frozenset(columns) | resources)


@contextmanager
def _open_store(options: Options, chunks: Sequence[Chunk], in_memory: bool) -> Iterator[ItemStore]:
    """Open the store for the items of rows."""
    if in_memory:
        yield MemoryItems(chunks)
    elif options.output is not None and options.row_scores:  # they are written where the run is saved
        from concurrent.futures import ThreadPoolExecutor

        with make_workplace(options.output) as place, ThreadPoolExecutor(_DISK_THREADS) as threads:
            yield PartItems(place, threads)
    else:
        yield ItemStore()


@dataclass
class _Passes:
    """The passes over all chunks of a run."""

    job: Job
    engine: Engine
    sources: Sequence[Source]
    chunks: Sequence[Chunk]
    versions: Versions
    store: ItemStore
    progress: Progress | None = None
    _work: int = 0
    _rows: int = 0

    def run(self) -> dict[System, SystemState]:
        """Return the states of all chunks together, by system; corpus statistics are folded before the metrics."""
        facts: dict[System, dict[Hashable, object]] = {}
        totals: dict[System, SystemState] = {}
        for stage in self.job.stages:
            # States of one process are over one vocabulary, but for a few where its worker starts again with another.
            sums = StateSums(self.job, stage, None if self.engine.in_process else Vocabulary())
            for number, source in enumerate(self.sources):
                if source.rows is not None:
                    sums.expect((number, source.rows.system))
            for result in self._fold_chunks(stage, facts):
                sums.add(result.states)
                self._report(stage, result)
            totals = sums.finish()
            if stage == "facts":
                for system, total in totals.items():
                    pairs = zip(self.job.list_facts(system[0]), total.states, strict=True)
                    facts[system] = {fact: fact.finish(state) for fact, state in pairs}
        return totals

    def _fold_chunks(self, stage: Stage, facts: FactValues) -> Iterator[ChunkResult]:
        """Yield the result of every chunk in order.

        Raises:
            DataError: A file is no longer what it was before any of it was read.
        """
        with self.versions.report_changes():
            for result in self.engine.fold(self.job, facts, stage, dict(enumerate(self.chunks))):
                self.versions.refuse_changed(path for number in result.chunks for path in self.chunks[number].paths)
                for number, items in zip(result.chunks, result.items, strict=True) if stage == "metrics" else ():
                    self.store.put(number, items)
                yield result

    def _report(self, stage: Stage, result: ChunkResult) -> None:
        self._work += sum(self.chunks[number].size for number in result.chunks)
        if stage == "metrics":
            self._rows += sum(state.rows for state in result.states.values())
        if self.progress is not None:
            everything = max(1, sum(chunk.size for chunk in self.chunks)) * len(self.job.stages)
            counts = [len(source.rows) for source in self.sources if source.rows is not None]
            total = sum(counts) if len(counts) == len(self.sources) else None
            self.progress(Done(self._rows, total, self._work / everything))


def _finish_systems(
    planner: Planner,
    job: Job,
    sources: Sequence[Source],
    totals: Mapping[System, SystemState],
    store: ItemStore,
    resources: frozenset[Input],
) -> dict[str, FinishedSystem]:
    """Return every system by the name it is shown under."""
    finished: dict[str, FinishedSystem] = {}
    totals = _refuse_silent_systems(sources, _drop_empty_systems(totals))
    failed = {inputs.OUTCOME} if any(_has_failures(total) for total in totals.values()) else set()
    digest_of = cache(lambda column: str(column.digest))  # several systems share a column
    for name, system in _name_systems(sources, totals).items():
        number, source, state = system[0], sources[system[0]], totals[system]
        metrics, checks = job.plans[number].folded, job.plans[number].details
        if source.rows is not None:
            available = source.columns
            asked = {need for metric in metrics for need in list_signed_needs(metric)}
            columns = {need: digest_of(column) for need, column in source.rows.columns.items() if need in asked}
        else:
            columns = {
                Input(need): fingerprint.digest for need, fingerprint in state.fingerprints.items() if fingerprint.texts
            }
            # What rows really had may be less than what they might have had.
            available = frozenset({inputs.RESPONSE, *columns, *failed})
        plan = planner(number, available | resources)
        states = dict(zip(metrics, state.states, strict=False))  # details follow the metrics
        details = [
            (*check, fingerprint)
            for check, fingerprint in zip(checks.items(), state.states[len(metrics) :], strict=True)
        ]
        digests = {**job.resources.digests, **columns}
        finished[name] = FinishedSystem(source, system, plan, states, details, digests, store, state)
    return finished


def _leave_out_failures(results: Collection[Result]) -> bool:
    """Return whether systems are compared by a metric that does not score every reply that failed."""
    several = sum(result.role == "system" for result in results) > 1
    failed = any(FAILURES in result and result[FAILURES].mean for result in results)
    return several and failed and any(one.scored < one.units for result in results for one in result.values())


def _has_failures(state: SystemState) -> bool:
    """Return whether a reply of a system in files failed."""
    outcomes = state.fingerprints.get(inputs.OUTCOME)
    return outcomes is not None and bool(outcomes.texts)


def _drop_empty_systems(totals: Mapping[System, SystemState]) -> dict[System, SystemState]:
    """Return the systems that have rows; what was left out where there are none is counted in the first of a source."""
    kept = {system: state for system, state in totals.items() if state.rows}
    for system, state in totals.items():
        first = next((one for one in kept if one[0] == system[0]), None)
        if not state.rows and first is not None and system not in kept:
            kept[first] = replace(kept[first], account=kept[first].account + state.account)
    return kept


def _refuse_silent_systems(sources: Sequence[Source], totals: dict[System, SystemState]) -> dict[System, SystemState]:
    """Refuse a system without a single reply, of which the input does not say that it was asked for one."""
    for (number, _), state in totals.items():
        account = state.account
        if account.without_reply and account.without_reply == account.due and "reply" not in account.fields:
            what = f"holds {account.describe()}: it may be the requests, without what came back"
            remedy = "give the log with the replies; or, if none came, write null as the response of each row"
            raise DataError(Problem(sources[number].where, None, what, remedy))
    return totals


def _name_systems(sources: Sequence[Source], totals: Iterable[System]) -> dict[str, System]:
    """Return systems by the names they are shown under, in the order of the arguments and of their appearance."""
    ordered = sorted(totals, key=lambda system: system[0])
    for number, source in enumerate(sources):
        if not any(system[0] == number for system in ordered):
            raise DataError(no_rows(source.where))
    names: dict[str, System] = {}
    for system in ordered:
        source = sources[system[0]]
        together = [other for other in ordered if sources[other[0]].argument == source.argument]
        name = system[1] if source.name is None else source.name if len(together) == 1 else f"{source.name}/{system[1]}"
        if name in names:
            what = f"the system {name!r} is also in {sources[names[name][0]].where}"
            remedy = "rename one, or name them: NAME=PATH on the command line, {name: path} in Python"
            raise DataError(Problem(source.where, None, what, remedy))
        names[name] = system
    return names


def _find_warnings(systems: Mapping[str, FinishedSystem], chunks: Sequence[Chunk]) -> Iterator[str]:
    """Yield the warnings of checks and metrics, most for all systems together; floors and ceilings are left out."""
    checks = {name: [(fold, state) for _, fold, state in end.checks] for name, end in systems.items()}
    real = [name for name, system in systems.items() if system.source.role == "system"]
    yield from warn_of_unsplit_texts(checks[name] for name in real)
    states: dict[Metric, list[object]] = {}
    for name in real:
        for metric, state in systems[name].states.items():
            states.setdefault(metric, []).append(state)
    for metric, several in states.items():
        yield from metric.find_warnings(several)
    yield from warn_of_split_dialogues(checks, lambda name: systems[name].list_dialogue_ids(chunks))


def _list_item_parts(
    systems: Mapping[str, FinishedSystem], chunks: Sequence[Chunk], store: ItemStore
) -> Iterator[tuple[RunPart, Mapping[str, str]]]:
    """Yield the files with the items of all chunks, in order, and what their systems are called in the run."""
    for number, chunk in enumerate(chunks):
        names = {end.system[1]: name for name, end in systems.items() if end.system[0] == chunk.source}
        for part in store.list_parts(number):
            yield part, names
