"""evaluate(): inputs in, a `Run` out. Read, plan, fold, finish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, Protocol

from dialeval.core.errors import SettingError
from dialeval.core.fold import DEFAULT_T, Metric
from dialeval.core.needs import Need
from dialeval.core.result import Result, Run
from dialeval.core.student import two_sided_t
from dialeval.core.version import __version__
from dialeval.data.lsdscc.hypotheses import EOS, holds_hypotheses, read_hypotheses
from dialeval.data.lsdscc.reference_groups import attach_groups, read_groups
from dialeval.data.rows.reading import attach, read_responses, read_texts
from dialeval.data.rows.system import Rows
from dialeval.engine.local import BATCH_ROWS, COSTLY_ROWS, Local, signed
from dialeval.engine.plan import make_plan
from dialeval.engine.resources import open_resources
from dialeval.text.vocabulary import Vocabulary

Progress = Callable[[str, int, int], None]
"""Told the system, how many rows it has, and how many more of them are done."""


def evaluate(
    responses: Any,
    references: Any = None,
    contexts: Any = None,
    *,
    reference_groups: Any = None,
    train: Any = None,
    vocabulary: Any = None,
    embeddings: Any = None,
    judge: Any = None,
    metrics: str | Iterable[str | Metric[Any]] | None = None,
    settings: Mapping[str, Mapping[str, object]] | None = None,
    fields: Mapping[str, str] | None = None,
    t: float | None = None,
    confidence: float | None = None,
    batch_rows: int = BATCH_ROWS,
    threads: int | None = None,
    progress: Progress | None = None,
    eos: str = EOS,
    alignments: bool = True,
    anchors: bool = False,
) -> Run:
    """Score one or several systems.

    `responses`, `references`, `contexts`: a path, a list of texts, a table or column (Arrow, pandas, polars, Hugging
    Face), rows with those fields, or for responses a mapping of systems to any of these or a directory of files.
    `references` may hold a list of texts per row, or be a mapping of reference sets.
    `reference_groups`: references in groups of one meaning each, a JSON file or a list with lists of texts per query;
    `responses` are then several per query: a list of lists, or files with `eos` between them. `Run.details` tells where
    each of them landed, unless `alignments` is False.
    `train`: the training text (source side), one text a line; `vocabulary`: known words, one a line, else those of the
    training text; `embeddings`: word vectors, a file or the name of an installed pack.
    `judge`: the folder of a judge for `adem` that `dialeval adem train` wrote, else the shipped one.
    `metrics`: names, families, metric objects; None: all that the inputs allow, the others being listed in
    `Run.skipped`. `settings` changes the defaults of a family (`{"bleu": {"smooth": 7}}`), `fields` maps our field
    names to those of a file with rows (`{"response": "answer"}`).
    `t`: factor of the confidence t * std / sqrt(n), 1.97 unless given; or `confidence`: the level of the interval, such
    as 0.95, by Student's distribution with n - 1 degrees of freedom.
    `anchors`: also score gold replies, shuffled gold, a constant and random training lines, as systems called
    `ceiling/...` and `floor/...`; `Run.details["anchors"]` tells where each system stands between them.
    """
    metrics = metrics if metrics is None or isinstance(metrics, str) else list(metrics)
    several = reference_groups is not None or holds_hypotheses(responses)
    systems = read_hypotheses(responses, eos) if several else read_responses(responses, fields)
    groups = None if reference_groups is None else read_groups(reference_groups)
    if groups is not None:
        systems = [attach_groups(rows, groups) for rows in systems]
    for need, source in {Need.REFERENCE: references, Need.CONTEXT: contexts}.items():
        if source is not None:
            column = read_texts(source, need, fields)
            systems = [attach(rows, need, column, _called(source, need)) for rows in systems]
    shared = Vocabulary()
    resources = open_resources(shared, train, vocabulary, embeddings, judge)
    beside = None
    if anchors:
        from dialeval.engine.anchors import make_anchors, with_standing

        beside = make_anchors(systems, resources[Need.TRAIN].texts if Need.TRAIN in resources else None)
    run = run_systems(
        systems if beside is None else [*systems, *beside.systems],
        shared,
        resources,
        metrics=metrics,
        settings=settings,
        t=t,
        confidence=confidence,
        batch_rows=batch_rows,
        threads=threads,
        progress=progress,
    )
    if beside is not None:
        available = frozenset({*systems[0].columns, *resources})
        return with_standing(run, beside, make_plan(metrics, available, settings).metrics)
    if groups is None:
        return run
    from dialeval.engine.alignments import with_alignments  # not needed to score responses, and slow to import

    return with_alignments(run, systems, groups, shared, resources, metrics, settings, table=alignments)


def run_systems(
    systems: Sequence[Rows],
    vocabulary: Vocabulary,
    resources: Mapping[Need, Any],
    *,
    metrics: str | Iterable[str | Metric[Any]] | None = None,
    settings: Mapping[str, Mapping[str, object]] | None = None,
    t: float | None = None,
    confidence: float | None = None,
    batch_rows: int = BATCH_ROWS,
    threads: int | None = None,
    progress: Progress | None = None,
    warnings: Sequence[str] = (),
) -> Run:
    """Plan, fold and finish systems that are read already: what every family of metrics ends in."""
    if batch_rows < 1 or (threads is not None and threads < 1):
        raise SettingError("batch_rows and threads are at least 1")
    factor = confidence_factor(t, confidence)
    plans = {rows.system: make_plan(metrics, frozenset({*rows.columns, *resources}), settings) for rows in systems}
    digest_of = _Digests()
    results, told = {}, list(warnings)
    for rows in systems:
        plan = plans[rows.system]
        given = {**rows.columns, **resources}
        used = {need for metric in plan.metrics.values() for need in signed(metric) if need in given}
        slow = any(metric.costly for metric in plan.metrics.values())
        most_rows = min(batch_rows, COSTLY_ROWS) if slow else batch_rows
        local = Local(rows, vocabulary, resources, most_rows, threads)
        estimates = local.fold(
            plan.metrics,
            {need: digest_of(given[need]) for need in used},
            None if progress is None else partial(progress, rows.system, len(rows)),
        )
        sure = {key: est.with_confidence(factor(est.scored)) for key, est in estimates.items()}
        table = rows.table(local.dialogues)
        told += _torn(rows.system, table.dialogues or ())
        results[rows.system] = Result(sure, plan.skipped, rows.where, table, local.contributions)
    return Run(results, __version__, tuple(told))


def _torn(system: str, dialogues: Sequence[str]) -> Iterator[str]:
    """A warning where the rows of a dialogue do not stand together, so that each part counts as a dialogue."""
    torn = [name for name, times in Counter(dialogues).items() if times > 1]
    if torn:
        what = f"rows of {len(torn)} dialogues of {system} do not stand together, such as those of {torn[0]!r}"
        yield f"{what}: each part counts as a dialogue, and intervals are too narrow; sort the rows by dialogue"


def confidence_factor(t: float | None, confidence: float | None) -> Callable[[int], float]:
    """The factor of the confidence for a number of scored rows."""
    if confidence is None:
        factor = DEFAULT_T if t is None else t
        if not factor > 0:
            raise SettingError(f"t is the factor of a confidence and above 0, not {factor}")
        return lambda _: factor
    if t is not None:
        raise SettingError("give t or a confidence level, not both")
    if not 0 < confidence < 1:
        raise SettingError(f"a confidence level lies between 0 and 1, such as 0.95; it is not {confidence}")
    return partial(two_sided_t, confidence)


class _HasDigest(Protocol):
    @property
    def digest(self) -> str: ...


class _Digests:
    """Digests of columns and resources, each made once though several systems share it."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[_HasDigest, str]] = {}  # the thing is kept, so that its id stays its own

    def __call__(self, given: _HasDigest) -> str:
        if id(given) not in self._known:
            self._known[id(given)] = (given, given.digest)
        return self._known[id(given)][1]


def _called(source: Any, need: Need) -> str:
    """What to call an input in a message: its path, or the argument it came by."""
    return str(source) if isinstance(source, str | PathLike) else need.argument
