"""Evaluating several hypotheses per query: the figures, where each hypothesis landed, and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dialeval.core.batch import Batch
from dialeval.core.columns import RaggedColumn
from dialeval.core.fold import Fact
from dialeval.core.needs import Need
from dialeval.core.result import Run
from dialeval.data.lsdscc.data import Groups
from dialeval.data.rows.system import Rows
from dialeval.data.shards.sources import memory_sources
from dialeval.engine.folding import Options, run_sources
from dialeval.engine.plan import Plan, Planner
from dialeval.engine.resources import Resources
from dialeval.metrics.coverage.alignment import QueryAlignment
from dialeval.metrics.coverage.coverage import Coverage, warn_of_short

ALIGNMENTS = "alignments"
"""Where a run holds the table: by system a list with an entry per query."""

_ONE_GROUP = (
    "no query has more than one group of references, so that mds and pds say nothing; group them, or have them grouped "
    "by their similarity: coverage(threshold=...), --auto-groups on the command line"
)

Aligned = tuple[tuple[QueryAlignment, list[str]], ...]
"""The alignment of each query, with its hypotheses."""


@dataclass(frozen=True)
class QueryAlignments(Fact[Aligned, Aligned]):
    """The alignment that a coverage metric looks at; the batch makes it once for both."""

    metric: Coverage

    def empty(self) -> Aligned:
        return ()

    def gather(self, batch: Batch) -> Aligned:
        queries = self.metric.alignment(batch.only(self.metric.needs | self.metric.wants)).table()
        return tuple(zip(queries, batch.lists(Need.HYPOTHESES), strict=True))

    def merge(self, left: Aligned, right: Aligned) -> Aligned:
        return left + right

    def finish(self, state: Aligned) -> Aligned:
        return state


def evaluate_groups(
    systems: Sequence[Rows], groups: Groups, planner: Planner, resources: Resources, options: Options, *, table: bool
) -> Run:
    """Score hypotheses; with `table`, `Run.details` holds the alignments of the first coverage metric."""

    def with_alignments(number: int, available: frozenset[Need]) -> Plan:
        plan = planner(number, available)
        metric = _coverage(plan)
        return replace(plan, details={ALIGNMENTS: QueryAlignments(metric)}) if table and metric is not None else plan

    evaluation = run_sources(memory_sources(systems), with_alignments, resources, options)
    warnings: list[str] = []
    tables: dict[str, Any] = {}
    for rows in systems:
        metric = _coverage(evaluation.systems[rows.system].plan)
        if metric is None:
            continue
        hypotheses = rows.columns[Need.HYPOTHESES]
        if not metric.threshold and len(groups.column.groups) - 1 <= len(rows):
            warnings.append(_ONE_GROUP)
        if metric.aligner == "bleu" and isinstance(hypotheses, RaggedColumn):
            warnings += filter(None, [warn_of_short(rows.system, hypotheses, metric.n)])
        if table:
            tables[rows.system] = _table(evaluation.systems[rows.system].details()[ALIGNMENTS], groups, metric)
    run = evaluation.run
    details = {**run.details, ALIGNMENTS: tables} if tables else run.details
    return replace(run, details=details, warnings=tuple(dict.fromkeys([*run.warnings, *warnings])))


def _coverage(plan: Plan) -> Coverage | None:
    """The first coverage metric of a plan."""
    return next((metric for metric in plan.metrics.values() if isinstance(metric, Coverage)), None)


def _table(aligned: Aligned, groups: Groups, metric: Coverage) -> list[dict[str, Any]]:
    """Per query: its figures, the group and score of every hypothesis, the groups, and those that no one reached."""
    table = []
    for number, (query, hypotheses) in enumerate(aligned):
        # Groups that were made here have no names, so they are called by their numbers.
        entry = query.to_dict(None if metric.threshold else groups.names[number])
        for hypothesis, text in zip(entry["hypotheses"], hypotheses, strict=True):
            hypothesis["text"] = text.strip()
        table.append({"query": groups.queries[number], **entry})
    return table
