"""evaluate_shards(): shards of any number in, a `Run` out; no more of them in memory than a few pieces.

The same plan, fold and finish as `evaluate`, over pieces (`data.pieces`) instead of whole files, by whichever engine:
threads, processes, a cluster. Facts are folded in a pass before the metrics. States are exact, so the estimates and
signatures equal those of `evaluate` to the last digit.

Items do not stay in memory: with `output` they are written to `items.parquet` as one would save a run, else they are
dropped. Whether rows carry references or contexts is known only when all are read; metrics run as if they did, and
those for which no row had what they need are skipped then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.fold import Estimate, Level, Metric
from dialeval.core.itemfile import Block, Blocks
from dialeval.core.needs import Need
from dialeval.core.result import Result, Run
from dialeval.core.version import __version__
from dialeval.data.formats.opening import LINES, format_of
from dialeval.data.rows.fields import FieldNames, kind_of
from dialeval.data.rows.gathering import no_rows
from dialeval.data.shards.blocks import stretches
from dialeval.data.shards.chunks import Piece, cut
from dialeval.data.shards.sources import Source, find_sources
from dialeval.engine.evaluate import confidence_factor
from dialeval.engine.job import COLUMNS, Engine, Folded, Job, Known, Part, PartSum, ResourceFiles, System, Task
from dialeval.engine.journal import Journal, Shelf, stamps
from dialeval.engine.local import BATCH_ROWS, signed
from dialeval.engine.plan import Plan, make_plan
from dialeval.engine.threads import Threads
from dialeval.text.vocabulary import Vocabulary


class Done(NamedTuple):
    """How far a run is."""

    rows: int
    """Rows that are scored."""
    share: float
    """Share of all work, from 0 to 1."""


Progress = Callable[[Done], None]

_PEEKED_PIECES = 3
_PEEKED_ROWS = 256


def evaluate_shards(
    responses: Any,
    references: Any = None,
    contexts: Any = None,
    *,
    train: Any = None,
    vocabulary: Any = None,
    embeddings: Any = None,
    judge: Any = None,
    metrics: str | Iterable[str | Metric[Any]] | None = None,
    settings: Mapping[str, Mapping[str, object]] | None = None,
    fields: Mapping[str, str] | None = None,
    t: float | None = None,
    confidence: float | None = None,
    shards: bool = False,
    engine: Engine | None = None,
    output: str | os.PathLike[str] | None = None,
    items: bool = True,
    resume: str | os.PathLike[str] | None = None,
    batch_rows: int = BATCH_ROWS,
    piece_bytes: int | None = None,
    details: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Score systems whose responses lie in any number of files, in batches with bounded memory.

    `responses`, `references`, `contexts`: paths, patterns such as `logs/2026-*.jsonl`, folders, or addresses that
    fsspec knows (s3://...); a mapping names systems. A pattern is one system; a folder one system per file, or with
    `shards` one system. The other inputs are those of `dialeval.evaluate`, resources by their paths.
    `engine`: `Threads` (the default), `Processes` or `Cluster`. `output`: a folder for the run and, unless `items` is
    False, its items; `details` are saved with them.
    `resume`: a folder in which finished pieces are kept, to go on after a run that was broken off.
    """
    asked = metrics if metrics is None or isinstance(metrics, str) else list(metrics)
    if batch_rows < 1:
        raise SettingError("batch_rows is at least 1")
    factor = confidence_factor(t, confidence)
    sources = find_sources(responses, references, contexts, shards)
    names = FieldNames.of(fields)
    files = _resource_files(train, vocabulary, embeddings, judge)
    opened = files.opened(Vocabulary())
    resources = frozenset(opened)
    pieces = cut(sources, piece_bytes)
    plan = make_plan(asked, frozenset({Need.RESPONSE, *_columns(sources), *resources}), settings)
    _refuse_what_nobody_carries(asked, settings, sources, pieces, names, resources)
    planned = tuple(dict.fromkeys(plan.metrics.values()))
    used = {need for metric in planned for need in metric.needs | metric.wants if need in resources}
    job = Job(planned, replace(files, digests={need: opened[need].digest for need in used}), names, batch_rows)
    del opened
    with ExitStack() as stack:
        shelf: Shelf = stack.enter_context(_shelf(resume, job, sources, pieces))
        workers = stack.enter_context(engine or Threads())
        stream = _Stream(job, workers, pieces, shelf, progress, keep_items=items and output is not None)
        totals = stream.run()
        found = _named(sources, totals)
        results: dict[str, Result] = {}
        shown: dict[str, dict[str, str]] = {}
        for name, system in found.items():
            own = make_plan(asked, _available(totals[system], resources), settings)
            estimates, shown[name] = _estimates(own, job, totals[system])
            sure = {key: estimate.with_confidence(factor(estimate.scored)) for key, estimate in estimates.items()}
            results[name] = Result(sure, own.skipped, sources[system[0]].where)
        run = Run(results, __version__, details=details or {})
        if output is not None:
            run.save(output, stream.blocks(run, found, shown) if items else None)
    return run


def _columns(sources: Sequence[Source]) -> set[Need]:
    """The columns that the sources have or may have."""
    beside = [[need for need, _ in shard.beside] for source in sources for shard in source.shards]
    rows = any(format_of(shard.path) != LINES for source in sources for shard in source.shards)
    return {need for needs in beside for need in needs} | (set(COLUMNS) if rows else set())


def _resource_files(train: Any, vocabulary: Any, embeddings: Any, judge: Any) -> ResourceFiles:
    """The resources by path."""
    paths: dict[str, str | None] = {}
    for name, given in {"train": train, "vocabulary": vocabulary, "embeddings": embeddings}.items():
        if given is not None and not isinstance(given, str | os.PathLike):
            raise SettingError(
                f"{name}: {kind_of(given)} lies in the memory of this process; save it to a file, so that every "
                "worker can open it"
            )
        paths[name] = None if given is None else os.fspath(given)
    return ResourceFiles(paths["train"], paths["vocabulary"], paths["embeddings"], judge)


def _refuse_what_nobody_carries(
    asked: Any,
    settings: Mapping[str, Mapping[str, object]] | None,
    sources: Sequence[Source],
    pieces: Sequence[Piece],
    names: FieldNames,
    resources: frozenset[Need],
) -> None:
    """Look into a few pieces of each source, so that a metric that was named and lacks its column is told now."""
    for number in range(len(sources)):
        own = [piece for piece in pieces if piece.source == number]
        looked_at = own[:: max(1, len(own) // _PEEKED_PIECES)]
        there: set[Need] = set()
        for piece in looked_at:
            for stretch in stretches(piece, names, _PEEKED_ROWS):
                there |= {need for rows in stretch.rows() for need in rows.columns}
                break
        if there:
            make_plan(asked, frozenset(there) | resources, settings)


def _shelf(
    resume: str | os.PathLike[str] | None, job: Job, sources: Sequence[Source], pieces: Sequence[Piece]
) -> AbstractContextManager[Shelf]:
    if resume is None:
        return Shelf.opened()
    shards = [shard for source in sources for shard in source.shards]
    beside = [file for shard in shards for _, files in shard.beside for file in files]
    manifest = {
        "dialeval": __version__,
        "metrics": {str(metric): str(metric.signature()) for metric in job.metrics},
        "resources": {need.value: digest for need, digest in job.files.digests.items()},
        "fields": {name: getattr(job.names, name) for name in FieldNames.__dataclass_fields__},
        "systems": {str(number): source.system for number, source in enumerate(sources)},
        "inputs": stamps([*(shard.path for shard in shards), *beside]),
        "pieces": [[str(piece), *(str(span) for _, spans in piece.beside for span in spans)] for piece in pieces],
    }
    return Journal.taken_up(resume, job, manifest)


@dataclass
class _Stream:
    """The passes over all pieces of a run."""

    job: Job
    engine: Engine
    pieces: Sequence[Piece]
    shelf: Shelf
    progress: Progress | None
    keep_items: bool
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    _worked: int = 0
    _rows: int = 0

    def run(self) -> dict[System, Part]:
        """The parts of all pieces together, by system."""
        known: Known = {}
        if self.job.facts:
            totals = self._pass("facts", {})
            known = {
                system: {fact: fact.finish(state) for fact, state in zip(self.job.facts, part.states, strict=True)}
                for system, part in totals.items()
            }
        return self._pass("metrics", known)

    def _pass(self, task: Task, known: Known) -> dict[System, Part]:
        sums: dict[System, PartSum] = {}
        for folded in self._folded(task, known):
            for system, part in folded.parts.items():
                sums.setdefault(system, PartSum(self.job.folded(task), self.vocabulary)).add(part)
            self._tell(task, folded)
        return {system: total.result() for system, total in sums.items()}

    def _folded(self, task: Task, known: Known) -> Iterator[Folded]:
        """Every piece in order, folded now or before."""
        kept = self.shelf.finished(task)
        missing = {number: piece for number, piece in enumerate(self.pieces) if number not in kept}
        new = self.engine.each(self.job, known, task, missing, self.shelf.keeps_states) if missing else ()
        at = 0
        for folded in new:
            yield from self._kept(task, at, folded.pieces[0])
            if self.shelf.keeps_states or (self.keep_items and task == "metrics"):
                for number, items in zip(folded.pieces, folded.items, strict=True):
                    self.shelf.put(task, number, folded.parts, items)
            yield folded
            at = folded.pieces[-1] + 1
        yield from self._kept(task, at, len(self.pieces))

    def _kept(self, task: Task, start: int, stop: int) -> Iterator[Folded]:
        return (Folded((number,), self.shelf.parts(task, number), ()) for number in range(start, stop))

    def _tell(self, task: Task, folded: Folded) -> None:
        self._worked += sum(self.pieces[number].size for number in folded.pieces)
        if task == "metrics":
            self._rows += sum(part.rows for part in folded.parts.values())
        if self.progress is not None:
            self.progress(Done(self._rows, self._worked / self._everything))

    @cached_property
    def _everything(self) -> int:
        """The bytes of all pieces, in every pass."""
        return max(1, sum(piece.size for piece in self.pieces)) * (2 if self.job.facts else 1)

    def blocks(
        self, run: Run, systems: Mapping[str, System], shown: Mapping[str, Mapping[str, str]]
    ) -> Iterator[Blocks]:
        """The items of every system and level, in order; `shown` gives the keys of results to those of metrics."""
        for name, system in systems.items():
            names = {inner: outer for outer, inner in shown[name].items()}
            levels = {estimate.level for estimate in run[name].values()}
            for level in filter(levels.__contains__, Level):
                yield name, level, self._blocks_of(system, level, names)

    def _blocks_of(self, system: System, level: Level, names: Mapping[str, str]) -> Iterator[Block]:
        for number, piece in enumerate(self.pieces):
            if piece.source == system[0]:
                items = self.shelf.items(number).get(system, {}).get(level.value, {})
                yield {names[key]: values for key, values in items.items() if key in names}


def _available(part: Part, resources: frozenset[Need]) -> frozenset[Need]:
    """What the rows of a system have, and the resources."""
    columns = {Need(need) for need, print_ in part.prints.items() if print_.texts}
    return frozenset({Need.RESPONSE, *columns, *resources})


def _estimates(plan: Plan, job: Job, part: Part) -> tuple[dict[str, Estimate], dict[str, str]]:
    """The estimates of a system by the names they are shown under, and the keys that metrics give them."""
    digests = {**job.files.digests, **{Need(need): print_.digest for need, print_ in part.prints.items()}}
    available = _available(part, frozenset(job.files.digests))
    found: dict[str, Estimate] = {}
    keys: dict[str, str] = {}
    for name, metric in plan.metrics.items():
        data = {need.value: digests[need] for need in signed(metric) if need in available}
        signature = metric.signature().with_fields(**data)
        for key, estimate in metric.finish(part.states[job.metrics.index(metric)]).items():
            shown = name if key == metric.name else key
            found[shown] = replace(estimate, level=metric.level, signature=signature)
            keys[shown] = key
    return found, keys


def _named(sources: Sequence[Source], found: Iterable[System]) -> dict[str, System]:
    """The systems by the names they are shown under, in the order of the arguments and of their appearance."""
    ordered = sorted(found, key=lambda system: system[0])
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
            raise DataError(Fault(source.where, None, what, remedy))
        names[name] = system
    return names
