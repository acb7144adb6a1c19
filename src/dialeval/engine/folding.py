"""The one route of every evaluation: sources -> chunks -> row blocks -> states -> estimates -> `Run`.

Rows in memory are a source as files are, cut into chunks of one batch each. What is different about them: their columns
are known before, and their items, contributions and texts stay in memory. Whether rows in files have references or
contexts is known only when all are read: metrics run as if they had, and those for which no row had what they need are
skipped in the end.

Facts are folded in a pass before the metrics; where the tokeniser is to be chosen by the texts, one before finds it
(`splitting`). States are exact, so estimates and signatures do not depend on how the
rows are cut nor on who folds them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dialeval.core.errors import DataError, SettingError, UnsavedRunError
from dialeval.core.files import workplace
from dialeval.core.intervals import IntervalChoice, Kind
from dialeval.core.needs import Need
from dialeval.core.notes import noted
from dialeval.core.result import TRAINED_ON, Run
from dialeval.core.version import __version__
from dialeval.data.rows.fields import FieldNames
from dialeval.data.rows.reading import check_number_of_systems
from dialeval.data.shards.blocks import row_blocks
from dialeval.data.shards.chunks import Chunk, cut_sources
from dialeval.data.shards.sources import Source
from dialeval.data.shards.versions import Versions
from dialeval.engine.dialogue_ids import with_dialogue_ids
from dialeval.engine.finishing import (
    FinishedSystem,
    finish_systems,
    item_parts,
    metric_warnings,
    signed,
    torn_dialogues,
)
from dialeval.engine.items import ItemStore, MemoryItems, PartItems
from dialeval.engine.job import ChunkResult, Engine, FactValues, Job, Opened, Stage, StateSums, System, SystemState
from dialeval.engine.plan import Plan, Planner
from dialeval.engine.resources import Resources, resource_warnings
from dialeval.engine.splitting import asks_for_choice, choice, looking, settled, unsplit_texts, watched
from dialeval.engine.threads import Threads
from dialeval.text.vocabulary import Vocabulary

BATCH_ROWS = 1 << 15
"""Rows of a batch: enough that a batch costs little, few enough that its arrays stay in the processor's cache."""

COSTLY_ROWS = 128
"""Rows of a batch at most where a costly metric runs, so that all threads get to work and the progress is seen."""

_DISK_THREADS = 4
_PEEKED_CHUNKS = 3
_PEEKED_ROWS = 256


class Done(NamedTuple):
    """How far a run is."""

    rows: int
    """Rows that are scored."""
    total: int | None
    """All rows, where their number is known."""
    share: float
    """Share of all work, from 0 to 1."""


Progress = Callable[[Done], None]


class Evaluation(NamedTuple):
    """A run, and each of its systems with its plan and the details that the plan asked for."""

    run: Run
    systems: Mapping[str, FinishedSystem]


@dataclass(frozen=True)
class Options:
    """How a run is done; none of it changes a digit but `t`, `confidence` and `intervals`, which make the intervals."""

    t: float | None = None
    confidence: float | None = None
    intervals: Kind | None = None
    """`clustered` unless given."""
    batch_rows: int = BATCH_ROWS
    threads: int | None = None
    engine: Engine | None = None
    """`Threads` unless given."""
    progress: Progress | None = None
    output: str | os.PathLike[str] | None = None
    """A folder to save a run of rows in files in; a run of rows in memory has all it takes to be saved later."""
    items: bool = True
    """Whether items of rows in files are saved."""
    resume: str | os.PathLike[str] | None = None
    """A folder in which the results of chunks are kept."""
    chunk_bytes: int | None = None
    force: bool = False
    """Whether a saved run of other files may be replaced."""

    @property
    def interval_choice(self) -> IntervalChoice:
        """Which intervals estimates get."""
        return IntervalChoice(self.intervals, self.t, self.confidence)


def run_sources(
    sources: Sequence[Source],
    planner: Planner,
    resources: Resources | None = None,
    options: Options | None = None,
    *,
    names: FieldNames | None = None,
    warnings: Sequence[str] = (),
    details: Mapping[str, Any] | None = None,
    opened: Opened | None = None,
    kept: MemoryItems | None = None,
) -> Evaluation:
    """Plan, fold and finish: what every evaluation ends in.

    `opened`: a vocabulary and the resources over it, where they are open already. `kept`: the chunks of rows in memory,
    with the results of those that were folded before.
    """
    resources, options, names = resources or Resources(ready={}), options or Options(), names or FieldNames()
    if options.batch_rows < 1 or (options.threads is not None and options.threads < 1):
        raise SettingError("batch_rows and threads are at least 1")
    intervals = options.interval_choice
    in_memory = all(source.rows is not None for source in sources)
    engine = options.engine or Threads(options.threads or os.cpu_count() or 1)
    if not engine.in_process:
        resources.require_paths()
    with noted() as notes:
        opened = opened or opened_over_no_words(resources)
    ready = frozenset(opened[1])
    job = make_job([source.columns for source in sources], planner, resources, names, options.batch_rows, opened)
    plans = job.plans
    if not engine.in_process:
        job = replace(job, opened=None)
    versions = Versions.of(sources)
    with versions.behind_errors():
        chunks = cut_sources(sources, job.batch_rows, options.chunk_bytes) if kept is None else kept.chunks
        with noted():  # whoever folds the chunks notes it again
            _refuse_missing_columns(planner, sources, chunks, names, ready)
    with ExitStack() as stack:
        stack.enter_context(engine)
        if asks_for_choice(plans):
            look = _Fold(replace(looking(job), keeps_items=False), engine, sources, chunks, versions, ItemStore(), None)
            planner = settled(planner, choice(look.run(), sources))
            job = replace(job, plans=tuple(planner(at, source.columns | ready) for at, source in enumerate(sources)))
        asked, job = job, with_dialogue_ids(watched(job))
        store = stack.enter_context(
            nullcontext(kept or MemoryItems(chunks)) if in_memory else _store(options, job, sources, chunks)
        )
        job = replace(job, keeps_items=store.keeps_items, workplace=store.workplace)
        totals = _Fold(job, engine, sources, chunks, versions, store, options.progress).run()
        check_number_of_systems(len(totals), sources[0].where if sources else "responses")
        systems = finish_systems(planner, asked, sources, totals, store, ready)
        results = {name: system.result(intervals) for name, system in systems.items()}
        notes |= {line: None for total in totals.values() for line in total.notes}
        warned = (*unsplit_texts(job, totals, sources), *metric_warnings(systems.values()))
        told = (*notes, *warned, *torn_dialogues(job, systems, chunks, store))
        known = {**(details or {}), **_trained_on(job, opened[1])}
        run = Run(results, __version__, (*warnings, *resource_warnings(opened[1]), *told), known)
        if options.output is not None and not in_memory:
            parts = item_parts(systems, chunks, store) if options.items else None
            try:
                run.save(options.output, parts, force=options.force)
            except DataError as error:
                raise UnsavedRunError(error.faults, run) from error
    return Evaluation(run, systems)


def opened_over_no_words(resources: Resources) -> Opened:
    """A vocabulary without a word, and the resources over it."""
    vocabulary = Vocabulary()
    return vocabulary, resources.opened(vocabulary)


def make_job(
    columns: Sequence[frozenset[Need]],
    planner: Planner,
    resources: Resources,
    names: FieldNames,
    batch_rows: int,
    opened: Opened,
) -> Job:
    """What is done in this process to every chunk of sources with such columns."""
    ready = frozenset(opened[1])
    plans = tuple(planner(number, own | ready) for number, own in enumerate(columns))
    costly = any(metric.costly for plan in plans for metric in plan.folded)
    rows = min(batch_rows, COSTLY_ROWS) if costly else batch_rows
    digests = _digests(plans, opened[1])
    return Job(plans, tuple(columns), replace(resources, digests=digests), names, rows, opened=opened)


def _digests(plans: Sequence[Plan], opened: Mapping[Need, Any]) -> dict[Need, str]:
    """The digests of the resources that metrics use."""
    used = dict.fromkeys(need for plan in plans for metric in plan.folded for need in signed(metric))
    return {need: opened[need].digest for need in used if need in opened}


def _trained_on(job: Job, opened: Mapping[Need, Any]) -> dict[str, dict[str, list[str]]]:
    """Return which rated rows the judges of a job learned from, as a detail of the run: by the digest of the judge."""
    judges = {digest: getattr(opened[need], "trained_on", ()) for need, digest in job.resources.digests.items()}
    known = {digest: list(rows) for digest, rows in judges.items() if rows}
    return {TRAINED_ON: known} if known else {}


def _refuse_missing_columns(
    planner: Planner, sources: Sequence[Source], chunks: Sequence[Chunk], names: FieldNames, resources: frozenset[Need]
) -> None:
    """Look into a few chunks of each file, so that a metric that was named and lacks its column is refused now."""
    for number, source in enumerate(sources):
        own = [] if source.rows is not None else [chunk for chunk in chunks if chunk.source == number]
        columns: set[Need] = set()
        for chunk in own[:: max(1, len(own) // _PEEKED_CHUNKS)]:
            for block in row_blocks(chunk, names, _PEEKED_ROWS):
                columns |= {need for rows in block.rows() for need in rows.columns}
                break
        if columns:
            planner(number, frozenset(columns) | resources)


def _store(
    options: Options, job: Job, sources: Sequence[Source], chunks: Sequence[Chunk]
) -> AbstractContextManager[ItemStore]:
    """Where the items of rows in files go."""
    if options.resume is not None:
        from dialeval.engine.journal import Journal

        return Journal.opened(options.resume, job, sources, chunks)
    return _parts_in(options.output) if options.output is not None and options.items else nullcontext(ItemStore())


@contextmanager
def _parts_in(output: str | os.PathLike[str]) -> Iterator[PartItems]:
    """A store of items that are written where the run is saved."""
    from concurrent.futures import ThreadPoolExecutor

    with workplace(output) as place, ThreadPoolExecutor(_DISK_THREADS) as threads:
        yield PartItems(place, threads)


@dataclass
class _Fold:
    """The passes over all chunks of a run."""

    job: Job
    engine: Engine
    sources: Sequence[Source]
    chunks: Sequence[Chunk]
    versions: Versions
    store: ItemStore
    progress: Progress | None
    _work: int = 0
    _rows: int = 0

    def run(self) -> dict[System, SystemState]:
        """The states of all chunks together, by system."""
        facts: dict[System, dict[Hashable, Any]] = {}
        if "facts" in self.job.stages:
            for system, total in self._totals("facts", {}).items():
                pairs = zip(self.job.facts(system[0]), total.states, strict=True)
                facts[system] = {fact: fact.finish(state) for fact, state in pairs}
        return self._totals("metrics", facts)

    def _totals(self, stage: Stage, facts: FactValues) -> dict[System, SystemState]:
        # States of one process are over one vocabulary, but for a few where its worker starts again with another; those
        # that were kept may be of other processes.
        store = self.store
        one = self.engine.in_process and not store.keeps_states and not store.finished(stage)
        sums = StateSums(self.job, stage, None if one else Vocabulary())
        for number, source in enumerate(self.sources):
            if source.rows is not None:
                sums.expect((number, source.rows.system))
        for result in self._results(stage, facts):
            sums.add(result.states)
            self._report(stage, result)
        return sums.result()

    def _results(self, stage: Stage, facts: FactValues) -> Iterator[ChunkResult]:
        """The result of every chunk in order, of this run or of one before."""
        kept = self.store.finished(stage)
        missing = {number: chunk for number, chunk in enumerate(self.chunks) if number not in kept}
        new = self.engine.fold(self.job, facts, stage, missing, self.store.keeps_states) if missing else ()
        following = 0
        for result in self._of_one_version(new):
            if result.chunks:
                yield from self._kept(stage, following, result.chunks[0])
                following = result.chunks[-1] + 1
            for number, items in zip(result.chunks, result.items, strict=True):
                self.store.put(stage, number, result.states, items)
            yield result
        yield from self._kept(stage, following, len(self.chunks))

    def _of_one_version(self, results: Iterable[ChunkResult]) -> Iterator[ChunkResult]:
        """The same results; DataError if a file is no longer what it was before any of it was read."""
        with self.versions.behind_errors():
            for result in results:
                self.versions.refuse_changed(path for number in result.chunks for path in self.chunks[number].paths)
                yield result

    def _kept(self, stage: Stage, start: int, stop: int) -> Iterator[ChunkResult]:
        return (ChunkResult((number,), self.store.states(stage, number), ()) for number in range(start, stop))

    def _report(self, stage: Stage, result: ChunkResult) -> None:
        self._work += sum(self.chunks[number].size for number in result.chunks)
        if stage == "metrics":
            self._rows += sum(state.rows for state in result.states.values())
        if self.progress is not None:
            everything = max(1, sum(chunk.size for chunk in self.chunks)) * len(self.job.stages)
            known = [len(source.rows) for source in self.sources if source.rows is not None]
            total = sum(known) if len(known) == len(self.sources) else None
            self.progress(Done(self._rows, total, self._work / everything))
