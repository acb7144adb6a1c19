"""A tally: metrics that remember. Rows are added as they come, and the scores can be computed at any time.

    tally = dialeval.metric("bleu-4,distinct-2")
    for batch in loader:
        tally.update(generate(batch), batch["references"])
    tally.compute()["bleu-4"].mean

A tally keeps its rows; `compute` evaluates all of them by the route of every evaluation (`folding.run_sources`). So it
gives what `dialeval.evaluate` gives for all rows together, to the last digit, with the same signatures. Resources are
opened once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from dialeval.core.arguments import checked
from dialeval.core.batch import Need
from dialeval.core.errors import SettingError, collect_warnings
from dialeval.core.fold import IntervalKind
from dialeval.core.result import Result, Run
from dialeval.engine.evaluate import Inputs
from dialeval.engine.folding import Options, make_job, run_sources
from dialeval.engine.plan import Asked, Planner, Settings, names_of, planner
from dialeval.engine.resources import Resources, WordChoice
from dialeval.engine.worker import Context, Job, open_context
from dialeval.io.rows import FieldNames, Rows
from dialeval.io.sources import memory_sources
from dialeval.text.tokenizers import Tokenizer


class Tally:
    """Metrics of one system that accumulate rows; `dialeval.metric` makes one.

    It can be pickled, sent to another process and merged there. Resources are sent as paths, or whole where they are
    objects in memory.

    Examples:
        >>> import dialeval
        >>> tally = dialeval.metric("distinct-1")
        >>> tally.update(["yes yes", "no"])
        >>> tally
        <Tally: distinct-1, 2 rows>
        >>> round(tally.compute()["distinct-1"].mean, 3)
        0.667
    """

    def __init__(
        self,
        metrics: Asked,
        resources: Resources,
        options: Options,
        *,
        system: str = "system",
        settings: Settings | None = None,
        tokenizer: Tokenizer | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        self._asked = metrics if metrics is None or isinstance(metrics, str) else tuple(names_of(metrics))
        self._settings, self._tokenizer, self._fields = settings, tokenizer, fields
        self._resources, self._options, self._system = resources, options, system
        self.reset()

    @property
    def _planner(self) -> Planner:
        return planner(self._asked, self._settings, self._tokenizer, len(self))

    @cached_property
    def _context(self) -> Context:
        return open_context(self._resources)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_context"}

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __repr__(self) -> str:
        asked = self._asked if isinstance(self._asked, str) else ",".join(map(str, self._asked or ["default"]))
        return f"<Tally: {asked}, {len(self):,} row{'' if len(self) == 1 else 's'}>"

    def reset(self) -> None:
        """Remove all rows."""
        self._parts: list[Rows] = []
        self._notes: dict[str, None] = {}

    @checked
    def update(self, responses: Any, references: Any = None, contexts: Any = None) -> None:
        """Add rows of one system.

        Args:
            responses: The responses, as `dialeval.evaluate` takes them: a list of texts, rows, a table or a path.
            references: Their references; rows of a call without them have none.
            contexts: Their dialogue contexts; likewise.

        Raises:
            SettingError: The rows are of several systems, or are repeated trials of tasks.
        """
        with collect_warnings() as notes:
            systems, _ = Inputs(responses, references, contexts, fields=self._fields).read()
        if len(systems) > 1:
            names = ", ".join(rows.system for rows in systems)
            raise SettingError(f"a tally measures one system, and these rows are of {names}; make a tally for each")
        if Need.TRIALS in systems[0].columns:
            raise SettingError("how often a task was tried is known of all rows together; use dialeval.evaluate")
        self.add(systems[0])
        self._notes |= notes

    def add(self, rows: Rows) -> None:
        """Add rows that are columns already.

        Args:
            rows: The rows of one system.
        """
        if len(rows):
            self._make_job(self._columns | frozenset(rows.columns))  # refuses a metric that lacks a column
            self._parts.append(replace(rows, system=self._system).placed(len(self)))

    @property
    def _columns(self) -> frozenset[Need]:
        return frozenset(need for rows in self._parts for need in rows.columns)

    def _make_job(self, columns: frozenset[Need]) -> Job:
        """Make the job for rows with some columns; NeedError where a metric lacks one."""
        rows = self._options.batch_rows
        return make_job(self._planner, [columns], self._resources, FieldNames(), rows, self._context)

    @checked
    def merge(self, other: Tally) -> None:
        """Add the rows of another tally of the same metrics after these; the other one is not changed.

        Args:
            other: A tally of the same metrics and resources.

        Raises:
            SettingError: It has other metrics or resources.
        """
        if not len(other):
            return
        columns = self._columns | other._columns
        mine, theirs = self._make_job(columns), other._make_job(columns)
        if (mine.plans[0].folded, mine.resources.digests) != (theirs.plans[0].folded, theirs.resources.digests):
            what = "other metrics or other resources"
            raise SettingError(f"{other!r} cannot be merged into {self!r}: it has {what}; use the same in both")
        before, own = len(self), 0
        for rows in list(other._parts):
            self._parts.append(replace(rows, system=self._system).placed(before, own))
            own += len(rows)
        self._notes |= other._notes

    def compute(self) -> Result:
        """Compute the estimates of all rows so far.

        Returns:
            What `dialeval.evaluate` returns for these rows, by metric.
        """
        return self.run()[self._system]

    def run(self) -> Run:
        """Compute the run of all rows so far, with its warnings, to compare, log, save or report it.

        Returns:
            A run of one system.

        Raises:
            SettingError: There are no rows yet.
        """
        if not len(self):
            raise SettingError("there are no rows yet; call update first")
        # A dialogue may continue from one part to the next: offsets are found again.
        self._parts = [replace(Rows.joined(self._parts), offsets=None)]
        sources, notes = memory_sources(self._parts), tuple(self._notes)
        given = (self._planner, self._resources, self._options)
        return run_sources(sources, *given, warnings=notes, context=self._context).run


@checked
def metric(
    metrics: Asked,
    *,
    train: Any = None,
    vocabulary: Any = None,
    vectors: Any = None,
    in_vocabulary: WordChoice | None = None,
    judge_dir: Any = None,
    settings: Settings | None = None,
    tokenizer: Tokenizer | None = None,
    fields: Mapping[str, str] | None = None,
    t: float | None = None,
    confidence: float | None = None,
    intervals: IntervalKind | None = None,
    threads: int | None = None,
    system: str = "system",
) -> Tally:
    """Make metrics that accumulate rows: `update` with rows as they come, `compute` at any time.

    Args:
        metrics: Names in a comma-separated text or a list, families, metric objects, functions made by
            `metric_of_rows`.
        train: The training text; see `dialeval.evaluate`, as for all that follow.
        vocabulary: The in-vocabulary words.
        vectors: Word vectors.
        in_vocabulary: Which words count as in-vocabulary.
        judge_dir: The folder of a trained judge.
        settings: Settings of metric families.
        tokenizer: The tokenizer of metrics that name none.
        fields: The names of fields in the input, by ours.
        t: The factor of `intervals="rows"`.
        confidence: The confidence level of the intervals.
        intervals: How intervals are computed.
        threads: The number of threads.
        system: The name of the system in the run.

    Returns:
        A `Tally` without rows. Its `compute` returns what `dialeval.evaluate` returns for all rows together, to the
        last digit.

    Raises:
        SettingError: A metric or a setting does not exist.

    Examples:
        >>> import dialeval
        >>> tally = dialeval.metric("length")
        >>> tally.update(["yes", "no thanks"])
        >>> tally.update(["see you at nine"])
        >>> tally.compute()["length"]
        <Estimate 2.333 [0, 6.128], 3 turns>
    """
    resources = Resources(train, vocabulary, vectors, judge_dir, in_vocabulary)
    options = Options(t=t, confidence=confidence, intervals=intervals, threads=threads)
    more: dict[str, Any] = {"system": system, "settings": settings, "tokenizer": tokenizer, "fields": fields}
    return Tally(metrics, resources, options, **more)
