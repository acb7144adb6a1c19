"""What a run of several hypotheses per query tells beside its figures: where each hypothesis landed, and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dialeval.core.batch import Batch
from dialeval.core.columns import RaggedColumn
from dialeval.core.fold import Metric
from dialeval.core.needs import Need
from dialeval.core.result import Run
from dialeval.data.lsdscc.reference_groups import Groups
from dialeval.data.rows.system import Rows
from dialeval.engine.plan import make_plan
from dialeval.metrics.coverage.coverage import Coverage
from dialeval.metrics.coverage.guard import short_hypotheses
from dialeval.text.vocabulary import Vocabulary

ALIGNMENTS = "alignments"
"""Where a run holds the table: by system a list with an entry per query."""

_ONE_GROUP = (
    "no query has more than one group of references, so that mds and pds say nothing; group them, or have them grouped "
    "by their similarity: coverage(threshold=...), --auto-groups on the command line"
)


def with_alignments(
    run: Run,
    systems: Sequence[Rows],
    groups: Groups,
    vocabulary: Vocabulary,
    resources: Mapping[Need, Any],
    metrics: str | Iterable[str | Metric[Any]] | None = None,
    settings: Mapping[str, Mapping[str, object]] | None = None,
    *,
    table: bool = True,
) -> Run:
    """The run with warnings about short hypotheses and, with `table`, the alignments of its first coverage metric."""
    found: dict[str, Any] = {}
    warnings: list[str | None] = []
    for rows in systems:
        plan = make_plan(metrics, frozenset({*rows.columns, *resources}), settings)
        metric = next((each for each in plan.metrics.values() if isinstance(each, Coverage)), None)
        if metric is None:
            continue
        hypotheses = rows.columns[Need.HYPOTHESES]
        if not metric.threshold and len(groups.column.groups) - 1 <= len(rows):
            warnings.append(_ONE_GROUP)
        if metric.aligner == "bleu" and isinstance(hypotheses, RaggedColumn):
            warnings.append(short_hypotheses(rows.system, hypotheses, metric.n))
        if table:
            found[rows.system] = alignment_table(rows, groups, vocabulary, resources, metric)
    details = {**run.details, ALIGNMENTS: found} if found else run.details
    return replace(run, details=details, warnings=tuple(dict.fromkeys([*run.warnings, *filter(None, warnings)])))


def alignment_table(
    rows: Rows, groups: Groups, vocabulary: Vocabulary, resources: Mapping[Need, Any], metric: Coverage
) -> list[dict[str, Any]]:
    """Per query: its figures, the group and score of every hypothesis, the groups, and those that nobody reached."""
    batch = Batch(len(rows), rows.columns, vocabulary, rows.dialogue_offsets(), resources)
    found = metric.alignment(batch.only(metric.needs | metric.wants)).table()
    texts = batch.lists(Need.HYPOTHESES)
    table = []
    for number, (query, said) in enumerate(zip(found, texts, strict=True)):
        # Groups that were made here have no names, so they are called by their numbers.
        entry = query.to_dict(None if metric.threshold else groups.names[number])
        for hypothesis, text in zip(entry["hypotheses"], said, strict=True):
            hypothesis["text"] = text.strip()
        table.append({"query": groups.queries[number], **entry})
    return table
