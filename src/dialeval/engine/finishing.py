"""Finishing a run: the states of each system become estimates, which are signed and named here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, cast

from dialeval.core.errors import DataError, Fault
from dialeval.core.fold import Estimate, Metric
from dialeval.core.intervals import IntervalChoice
from dialeval.core.needs import Need
from dialeval.core.result import Result
from dialeval.core.rowtable import ItemPart, RowTable
from dialeval.data.rows.gathering import no_rows
from dialeval.data.rows.system import Rows
from dialeval.data.shards.chunks import Chunk
from dialeval.data.shards.sources import Source
from dialeval.engine.dialogue_ids import DialogueIds
from dialeval.engine.items import ItemStore
from dialeval.engine.job import Job, System, SystemState
from dialeval.engine.plan import Plan, Planner
from dialeval.text.row_digests import digest_rows


def signed(metric: Metric[Any]) -> list[Need]:
    """The needs whose digests stand in a metric's signature: all but its subject, which is what is compared."""
    return sorted((metric.needs | metric.wants) - {metric.subject})


@dataclass(frozen=True)
class FinishedSystem:
    """A system when all its rows are folded."""

    source: Source
    system: System
    plan: Plan
    job: Job
    state: SystemState
    digests: Mapping[Need, str]
    """Of the columns and resources that stand in signatures."""
    store: ItemStore

    @cached_property
    def states(self) -> dict[Metric[Any], Any]:
        """The state of each metric."""
        folded = self.job.plans[self.system[0]].folded
        return dict(zip(folded, self.state.states, strict=False))  # details follow the metrics

    @cached_property
    def results(self) -> dict[str, Mapping[str, Estimate]]:
        """The results of each metric by its name, under the keys that the metric gives them."""
        return {name: metric.finish(self.states[metric]) for name, metric in self.plan.metrics.items()}

    def result(self, intervals: IntervalChoice) -> Result:
        """The estimates, signed and named, with what is known of the rows."""
        columns = self.store.columns(self.system)
        estimates: dict[str, Estimate] = {}
        for name, results in self.results.items():
            metric = self.plan.metrics[name]
            data = {need.value: self.digests[need] for need in signed(metric) if need in self.digests}
            signature = metric.signature().with_fields(**data, **metric.known_as(self.states[metric]))
            for key, shown in self.plan.shown(name, results).items():
                estimate = replace(results[key], items=columns.get(key), level=metric.level, signature=signature)
                estimates[shown] = intervals.added_to(estimate, metric.bounds_of(key))
        rows = None if self.source.rows is None else self.rows
        contributions = self.store.contributions(self.system)
        return Result(estimates, self.plan.skipped, self.source.where, rows, contributions, self.source.role)

    @cached_property
    def rows(self) -> RowTable:
        """What the rows are, of a source in memory."""
        rows = cast("Rows", self.source.rows)
        return replace(rows.table(), digests=digest_rows(rows.columns))

    def details(self) -> dict[str, Any]:
        """What the details of the plan came to."""
        first = len(self.job.plans[self.system[0]].folded)
        folds = self.plan.details.items()
        return {name: fold.finish(self.state.states[first + at]) for at, (name, fold) in enumerate(folds)}


def finish_systems(
    planner: Planner,
    job: Job,
    sources: Sequence[Source],
    totals: Mapping[System, SystemState],
    store: ItemStore,
    resources: frozenset[Need],
) -> dict[str, FinishedSystem]:
    """Every system by the name it is shown under."""
    finished: dict[str, FinishedSystem] = {}
    digest_of = cache(lambda column: str(column.digest))  # several systems share a column
    for name, system in _named(sources, totals).items():
        number, source, state = system[0], sources[system[0]], totals[system]
        plan = job.plans[number]
        if source.rows is not None:
            asked = {need for metric in plan.folded for need in signed(metric)}
            columns = {need: digest_of(column) for need, column in source.rows.columns.items() if need in asked}
        else:
            read = {Need(need): each for need, each in state.fingerprints.items() if each.texts}
            columns = {need: each.digest for need, each in read.items()}
            # What rows really had may be less than what they might have had.
            plan = planner(number, frozenset({Need.RESPONSE, *columns, *resources}))
        finished[name] = FinishedSystem(source, system, plan, job, state, {**job.resources.digests, **columns}, store)
    return finished


def metric_warnings(systems: Iterable[FinishedSystem]) -> Iterator[str]:
    """Yield what metrics warn of, each for all systems together; floors and ceilings are left out."""
    states: dict[Metric[Any], list[Any]] = {}
    for system in systems:
        if system.source.role == "system":
            for metric, state in system.states.items():
                states.setdefault(metric, []).append(state)
    for metric, several in states.items():
        yield from metric.warnings(several)


def _named(sources: Sequence[Source], totals: Iterable[System]) -> dict[str, System]:
    """The systems by the names they are shown under, in the order of the arguments and of their appearance."""
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
            raise DataError(Fault(source.where, None, what, remedy))
        names[name] = system
    return names


def item_parts(
    finished: Mapping[str, FinishedSystem], chunks: Sequence[Chunk], store: ItemStore
) -> Iterator[tuple[ItemPart, Mapping[str, str]]]:
    """The files with the items of all chunks, in order, and what their systems are called in the run."""
    for number, chunk in enumerate(chunks):
        names = {end.system[1]: name for name, end in finished.items() if end.system[0] == chunk.source}
        for part in store.parts(number):
            yield part, names


def torn_dialogues(
    job: Job, finished: Mapping[str, FinishedSystem], chunks: Sequence[Chunk], store: ItemStore
) -> Iterator[str]:
    """A warning where the rows of a dialogue do not stand together, so that each part counts as a dialogue."""
    for system, end in finished.items():
        for fold, state in zip(job.folds("metrics", end.system[0]), end.state.states, strict=True):
            if isinstance(fold, DialogueIds) and (torn := fold.finish(state)):
                example = torn.named(_dialogue_ids(end, chunks, store))
                what = f"rows of {torn.dialogues} dialogues of {system} do not stand together"
                what += "" if example is None else f", such as those of {example!r}"
                yield f"{what}: each part counts as a dialogue, and intervals are too narrow; sort the rows by dialogue"


def _dialogue_ids(end: FinishedSystem, chunks: Sequence[Chunk], store: ItemStore) -> Iterator[list[str]]:
    """The ids of a system's dialogues, some at a time, where they are kept."""
    if end.source.rows is not None:
        yield [name for name in end.rows.dialogues or () if name]
    for number, chunk in enumerate(chunks):
        for part in store.parts(number) if chunk.source == end.system[0] else ():
            if part.kind == "rows":
                yield part.dialogue_ids(end.system[1])
