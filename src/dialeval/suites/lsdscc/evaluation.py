"""Evaluate several hypotheses per query: the scores, the group that each hypothesis is aligned with, and warnings.

The scores of the LSDSCC program for lists of words, as `dialeval.lsdscc` offers them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from msgspec import Struct, convert

from dialeval.core import inputs
from dialeval.core.arrays import Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Problem, collect_warnings
from dialeval.core.exact import Moments
from dialeval.core.fold import Fact, Metric
from dialeval.core.inputs import Input
from dialeval.core.result import Run, check_folder
from dialeval.engine import baselines as common
from dialeval.engine.evaluate import Execution, make_options
from dialeval.engine.folding import Options, run_sources
from dialeval.engine.intervals import IntervalKind
from dialeval.engine.plan import Asked, Plan, Planner, Settings, make_planner
from dialeval.engine.resources import Data, Resources
from dialeval.io.opening import PathSource
from dialeval.io.rows import EOS, Rows
from dialeval.io.sources import wrap_systems
from dialeval.io.vectors import WordVectors
from dialeval.reports import markup
from dialeval.suites.lsdscc.alignment import (
    Aligner,
    CorpusAlignment,
    GroupComparison,
    QueryAlignment,
    align,
    to_aligner,
)
from dialeval.suites.lsdscc.data import GroupedColumn, Groups, HypothesisSet, ReferenceSet, iterate, read_with_groups
from dialeval.suites.lsdscc.metrics import Coverage, warn_of_short
from dialeval.text.tokenizers import Tokenizer

ALIGNMENTS = "alignments"
"""Where a run holds the table: by system a list with an entry per query."""

_ONE_GROUP = "no query has more than one group of references, so mds and pds are not informative; group them"

Aligned = tuple[tuple[QueryAlignment, list[str]], ...]
"""The alignment of each query, with its hypotheses."""


@dataclass(frozen=True)
class QueryAlignments(Fact[Aligned, Aligned]):
    """The alignment that a coverage metric looks at; the batch makes it once for both."""

    metric: Coverage

    def empty(self) -> Aligned:
        return ()

    def gather(self, batch: Batch) -> Aligned:
        queries = self.metric.align_batch(batch.restrict_to(self.metric.needs | self.metric.wants)).list_queries()
        return tuple(zip(queries, batch.lists(inputs.HYPOTHESES), strict=True))

    def change_metric(self, change: Callable[[Metric], Metric]) -> QueryAlignments:
        return QueryAlignments(cast("Coverage", change(self.metric)))


def make_baselines(systems: Sequence[Rows], groups: Groups) -> common.Baselines:
    """Return floors and ceilings over the queries of reference groups.

    `ceiling/gold` answers with the first reference of each group, compared with the others of the group, or with itself
    where it is the only one; `floor/shuffled-gold` with those of another query; `floor/constant` with one sentence.
    """
    common.check_names(rows.system for rows in systems)
    every = [groups.column.list_groups(row) for row in range(len(groups.column))]
    gold = RaggedColumn.from_lists([[group[0] for group in row if group] for row in every])
    left = [group[len(group) > 1 :] for row in every for group in row]
    texts = TextColumn.from_strings([text for group in left for text in group])
    others = GroupedColumn.of(texts, list(map(len, left)), list(map(len, every)))
    order = common.derangement(np.arange(len(every) + 1), common.SEED)
    constant = RaggedColumn.from_lists([[common.CONSTANT_RESPONSE]] * len(every))
    columns = [(common.GOLD, gold, others), (common.CONSTANT, constant, groups.column)]
    if order is not None:
        columns.insert(1, (common.SHUFFLED, gold.take(order), groups.column))
    needs = inputs.HYPOTHESES, inputs.REFERENCE_GROUPS
    made = [Rows(name, dict(zip(needs, pair, strict=True)), where=name) for name, *pair in columns]
    left_out = {common.SHUFFLED: "there is one query"} if order is None else {}
    return common.Baselines(made, left_out, systems[0].system)


def evaluate_hypotheses(
    hypotheses: object,
    reference_groups: object = None,
    *,
    metrics: Asked = None,
    settings: Settings | None = None,
    tokenizer: Tokenizer | None = None,
    train: Data | None = None,
    vectors: PathSource | WordVectors | None = None,
    confidence: float | None = None,
    intervals: IntervalKind | float | None = None,
    baselines: bool = False,
    eos: str | None = EOS,
    alignments: bool = True,
    output: str | os.PathLike[str] | None = None,
    execution: Execution | None = None,
) -> Run:
    """Score several hypotheses per query, with intervals, signatures and one value per query.

    Args:
        hypotheses: The hypotheses of a system: a file in which `eos` separates those of a line, or a list of lists of
            texts; a mapping of system names to these; or a folder with a file per system.
        reference_groups: References in groups of one meaning each: a JSON file, or for each query a list of lists of
            texts. None: metrics that need none.
        metrics: The metrics; None: those of LSDSCC.
        settings: Settings of metric families that differ from their defaults.
        tokenizer: The tokenizer of every metric that counts tokens and names none itself.
        train: Text whose frequent words weigh less under the aligner `embedding`.
        vectors: Word vectors for the aligner `embedding`.
        confidence: The confidence level of the intervals, 0.95 unless given.
        intervals: As for `dialeval.evaluate`.
        baselines: Also score floors and a ceiling made of the groups.
        eos: The text between several hypotheses on one line; None: a line is one hypothesis.
        alignments: Keep in `Run.details` which group each hypothesis is aligned with.
        output: A folder to save the run in.
        execution: How the work is done: `dialeval.Execution(...)`.

    Returns:
        The scores of every system.

    Raises:
        DataError: An input cannot be read; every problem is listed.

    Examples:
        >>> from dialeval.lsdscc import evaluate
        >>> run = evaluate([["at nine", "no idea"]], [[["at nine", "nine"], ["I do not know"]]], metrics="mds")
        >>> run["system"]["mds"].mean
        0.5
    """
    execution = execution or Execution()
    if output is not None:
        check_folder(output, hypotheses, reference_groups, train, vectors)
    with collect_warnings() as notes:
        systems, groups = read_with_groups(hypotheses, reference_groups, eos)
    planner = make_planner(metrics, settings, tokenizer, sum(map(len, systems)))
    resources, options = Resources(train, vectors=vectors), make_options(execution, confidence, intervals)
    if groups is None:
        run = run_sources(wrap_systems(systems), planner, resources, options).run
    else:
        run = evaluate_groups(systems, groups, planner, resources, options, table=alignments, baselines=baselines)
    run = replace(run, details={**run.details, **(execution.details or {})}, warnings=(*notes, *run.warnings))
    if output is not None:
        run.save(output, force=execution.force)
    return run


def evaluate_groups(
    systems: Sequence[Rows],
    groups: Groups,
    planner: Planner,
    resources: Resources,
    options: Options,
    *,
    table: bool,
    baselines: bool = False,
) -> Run:
    """Score hypotheses; with `table`, `Run.details` holds the alignments of the first coverage metric."""
    made = make_baselines(systems, groups) if baselines else None

    def with_alignments(number: int, available: frozenset[Input]) -> Plan:
        plan = planner(number, available)
        metric = _find_coverage(plan)
        return replace(plan, details={ALIGNMENTS: QueryAlignments(metric)}) if table and metric is not None else plan

    run, evaluated = common.run_with_baselines(systems, made, with_alignments, resources, options)
    warnings: list[str] = []
    tables: dict[str, object] = {}
    for rows in (*systems, *(made.systems if made else ())):
        metric = _find_coverage(evaluated[rows.system].plan)
        if metric is None:
            continue
        hypotheses = rows.columns[inputs.HYPOTHESES]
        if len(groups.column.groups) - 1 <= len(rows):
            warnings.append(_ONE_GROUP)
        if metric.aligner == "bleu" and isinstance(hypotheses, RaggedColumn) and rows in systems:
            warnings += filter(None, [warn_of_short(rows.system, hypotheses, metric.n)])
        if table:
            tables[rows.system] = _list_alignments(evaluated[rows.system].finish_details()[ALIGNMENTS], groups)
    details = {**run.details, ALIGNMENTS: tables} if tables else run.details
    return replace(run, details=details, warnings=tuple(dict.fromkeys([*run.warnings, *warnings])))


def _find_coverage(plan: Plan) -> Coverage | None:
    """Return the first coverage metric of a plan."""
    return next((metric for metric in plan.metrics.values() if isinstance(metric, Coverage)), None)


def _list_alignments(aligned: Aligned, groups: Groups) -> list[dict[str, object]]:
    """Return for each query its scores, the group and score of every hypothesis, and the groups."""
    table = []
    for number, (query, hypotheses) in enumerate(aligned):
        entry = query.to_dict(groups.names[number])
        for hypothesis, text in zip(entry["hypotheses"], hypotheses, strict=True):
            hypothesis["text"] = text.strip()
        table.append({"query": groups.queries[number], **entry})
    return table


# Alignments in a saved run and in the rows of its report: the query, its references by group, the hypotheses.

DIGITS = 4


class AlignedHypothesis(Struct):
    """A hypothesis and the group of references that it is aligned with."""

    group: str | None
    score: float | None
    text: str


class ReferenceGroup(Struct):
    """A group of references."""

    group: str
    references: list[str]


class SavedAlignment(Struct):
    """An entry of the detail `alignments`: one query."""

    query: str | None
    mds: float | None
    hypotheses: list[AlignedHypothesis]
    groups: list[ReferenceGroup]
    unreached: list[str]


class AlignmentDetails(Struct):
    """The alignments of a saved run, by system."""

    alignments: dict[str, list[SavedAlignment]] = {}


def explain_rows(
    systems: Collection[str], rows: Ints, *, details: Mapping[str, object], number: Callable[[str], int]
) -> dict[str, object]:
    """Return the alignments of some rows for the page, texts by their numbers; nothing for systems without any."""
    tables = convert(details, AlignmentDetails).alignments
    if not all(rows.max(initial=0) < len(tables.get(system, ())) for system in systems):
        return {}
    mine = [[tables[system][row] for row in rows.tolist()] for system in systems]
    places = [{group.group: at for at, group in enumerate(entry.groups)} for entry in mine[0]]
    return {
        "context": [[] if entry.query is None else [number(entry.query)] for entry in mine[0]],
        "reference": [[number(text) for group in entry.groups for text in group.references] for entry in mine[0]],
        "groups": [
            [[number(group.group), list(map(number, group.references))] for group in entry.groups] for entry in mine[0]
        ],
        "landed": [
            [
                [
                    # The text of an answer, the place of its group, and how similar it is to that group.
                    [
                        number(hypothesis.text),
                        here.get(hypothesis.group),
                        None if hypothesis.score is None else round(hypothesis.score, DIGITS),
                    ]
                    for hypothesis in entry.hypotheses
                ]
                for entry, here in zip(entries, places, strict=True)
            ]
            for entries in mine
        ],
    }


def describe_reached_groups(run: Run) -> str:
    """Return a line per system: how many groups its answers reached."""
    counts = {
        system: (sum(len(entry.groups) for entry in table), sum(len(entry.unreached) for entry in table))
        for system, table in convert(run.details, AlignmentDetails).alignments.items()
    }
    lines = (f"{markup.name(system)} {every - lost:,} of {every:,}" for system, (every, lost) in counts.items())
    about = "Each answer lands in the group of references that it is most similar to. Groups that were reached: "
    return markup.note(f"{about}{', '.join(lines)}.") if counts else ""


# The interface of the LSDSCC program.

_LOG = logging.getLogger("dialeval.lsdscc")


class LSDSCCScore(NamedTuple):
    """The three scores of LSDSCC of a hypothesis set, or their means over a corpus; NaN where there is none.

    Attributes:
        mds: Mean diversity score: the fraction of reference groups that hypotheses cover.
        pds: Probabilistic diversity score: the fraction of references in these groups.
        max_bleu: The mean similarity of a hypothesis to its group.

    Examples:
        >>> from dialeval.lsdscc import compute_score_on_hypothesis_set
        >>> compute_score_on_hypothesis_set(["tea please"], [["tea please"], ["coffee"]])
        LSDSCCScore(mds=0.5, pds=0.5, max_bleu=1.0)
    """

    mds: float
    pds: float
    max_bleu: float


def compute_score_on_hypothesis_set(
    hypothesis_set: object, reference_set: object, aligner: Aligner | None = None
) -> LSDSCCScore:
    """Compute the scores of one query.

    Args:
        hypothesis_set: The hypotheses: texts or lists of words.
        reference_set: The reference groups: lists of texts or of lists of words.
        aligner: The similarity of a hypothesis and a reference group: one of the aligners of this module, or a function
            of a hypothesis and a group. None: `BleuAligner()`.

    Returns:
        The three scores.

    Raises:
        DataError: The hypotheses or references have another form.

    Examples:
        >>> from dialeval.lsdscc import compute_score_on_hypothesis_set
        >>> compute_score_on_hypothesis_set(["tea please", "coffee"], [["tea please", "some tea"], ["coffee"]]).mds
        1.0
    """
    (query,) = _align([hypothesis_set], [reference_set], aligner).list_queries()
    return LSDSCCScore(query.mds, query.pds, query.max_bleu)


def compute_score_on_corpus(
    hypothesis_corpus: Sequence[object],
    reference_corpus: Sequence[object],
    aligner: Aligner | None = None,
) -> LSDSCCScore:
    """Compute the means of the scores over all queries that can be scored; a log message counts the others.

    Args:
        hypothesis_corpus: A hypothesis set per query.
        reference_corpus: A reference set per query.
        aligner: The similarity of a hypothesis and a reference group: one of the aligners of this module, or a function
            of a hypothesis and a group. None: `BleuAligner()`.

    Returns:
        The three means.

    Raises:
        DataError: There are no queries, or the two corpora have different numbers of them.

    Examples:
        >>> from dialeval.lsdscc import compute_score_on_corpus
        >>> references = [[["tea please"], ["coffee"]], [["no thanks"]]]
        >>> compute_score_on_corpus([["tea please"], ["no thanks"]], references)
        LSDSCCScore(mds=0.75, pds=0.75, max_bleu=1.0)
    """
    aligned = _align(hypothesis_corpus, reference_corpus, aligner)
    if unscored := int(np.isnan(aligned.mds).sum()):
        _LOG.warning("%d of %d queries cannot be scored and are left out of the means", unscored, len(aligned.mds))
    return LSDSCCScore(*(Moments.of(values).mean for values in (aligned.mds, aligned.pds, aligned.max_bleu)))


def align_corpus(
    hypothesis_corpus: Sequence[object],
    reference_corpus: Sequence[object],
    aligner: Aligner | None = None,
) -> list[QueryAlignment]:
    """Align every hypothesis with a reference group.

    Args:
        hypothesis_corpus: A hypothesis set per query.
        reference_corpus: A reference set per query.
        aligner: The similarity of a hypothesis and a reference group: one of the aligners of this module, or a function
            of a hypothesis and a group. None: `BleuAligner()`.

    Returns:
        The alignment of each query.

    Raises:
        DataError: There are no queries, or the two corpora have different numbers of them.

    Examples:
        >>> from dialeval.lsdscc import align_corpus
        >>> alignment = align_corpus([["some coffee"]], [[["tea please"], ["coffee"]]])[0]
        >>> alignment.aligned, alignment.unreached
        ((1,), (0,))
    """
    return _align(hypothesis_corpus, reference_corpus, aligner).list_queries()


def _align(hypotheses: Iterable[object], references: Iterable[object], aligner: Aligner | None) -> CorpusAlignment:
    left = [one if isinstance(one, HypothesisSet) else HypothesisSet(one) for one in iterate(hypotheses, "corpus")]
    right = [one if isinstance(one, ReferenceSet) else ReferenceSet(one) for one in iterate(references, "corpus")]
    if len(left) != len(right):
        what = f"{len(left)} hypothesis sets and {len(right)} reference sets"
        raise DataError(Problem("corpus", None, what, "give one of each per query"))
    if not left:
        raise DataError(Problem("corpus", None, "holds no queries", "give at least one"))
    return align(GroupComparison.of_words(left, right), to_aligner(aligner))
