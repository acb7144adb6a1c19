"""evaluate(): inputs in, a `Run` out. Read, plan, fold, finish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from os import PathLike
from typing import Any

from dialeval.core.columns import Column
from dialeval.core.errors import SettingError
from dialeval.core.fold import DEFAULT_T, Metric
from dialeval.core.needs import Need
from dialeval.core.result import Result, Run
from dialeval.core.version import __version__
from dialeval.data.sources import attach, read_responses, read_texts
from dialeval.engine.local import BATCH_ROWS, digests_of, fold
from dialeval.engine.plan import make_plan
from dialeval.text.vocabulary import Vocabulary

Progress = Callable[[str, int, int], None]
"""Told the system, how many rows it has, and how many more of them are done."""


def evaluate(
    responses: Any,
    references: Any = None,
    contexts: Any = None,
    *,
    metrics: str | Iterable[str | Metric[Any]] | None = None,
    fields: Mapping[str, str] | None = None,
    t: float = DEFAULT_T,
    batch_rows: int = BATCH_ROWS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Run:
    """Score one or several systems.

    `responses`, `references`, `contexts`: a path, a list of texts, a table or column (Arrow, pandas, polars, Hugging
    Face), rows with those fields, or for responses a mapping of systems to any of these or a directory of files.
    `references` may hold a list of texts per row, or be a mapping of reference sets.
    `metrics`: names, families, metric objects; None: all that the inputs allow, the others being listed in
    `Run.skipped`. `fields` maps our field names to those of a file with rows (`{"response": "answer"}`).
    `t`: factor of the confidence t * std / sqrt(n).
    """
    if batch_rows < 1 or (threads is not None and threads < 1):
        raise SettingError("batch_rows and threads are at least 1")
    if not t > 0:
        raise SettingError(f"t is the factor of a confidence and above 0, not {t}")
    systems = read_responses(responses, fields)
    given = {Need.REFERENCE: references, Need.CONTEXT: contexts}
    for need, source in given.items():
        if source is not None:
            column = read_texts(source, need, fields)
            systems = [attach(rows, need, column, _called(source, need)) for rows in systems]

    plans = {rows.system: make_plan(metrics, frozenset(rows.columns)) for rows in systems}
    vocabulary = Vocabulary()
    digest_of = _Digests()
    results = {}
    for rows in systems:
        plan = plans[rows.system]
        used = {need for metric in plan.metrics for need in digests_of(metric)}
        estimates = fold(
            plan.metrics,
            rows,
            vocabulary,
            {need: digest_of(rows.columns[need]) for need in used},
            batch_rows=batch_rows,
            threads=threads,
            progress=None if progress is None else partial(progress, rows.system, len(rows)),
        )
        results[rows.system] = Result({key: est.with_confidence(t) for key, est in estimates.items()}, plan.skipped)
    return Run(results, __version__)


class _Digests:
    """Digests of columns, each column read once though several systems share it."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Column, str]] = {}  # the column is kept, so that its id stays its own

    def __call__(self, column: Column) -> str:
        if id(column) not in self._known:
            self._known[id(column)] = (column, column.digest)
        return self._known[id(column)][1]


def _called(source: Any, need: Need) -> str:
    """What to call an input in a message: its path, or the argument it came by."""
    return str(source) if isinstance(source, str | PathLike) else need.argument
