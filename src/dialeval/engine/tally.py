"""A tally: metrics that remember. Rows are added as they come, and the figures can be had at any time.

    tally = dialeval.metric("bleu-4,distinct-2")
    for batch in loader:
        tally.update(generate(batch), batch["references"])
    tally.compute()["bleu-4"].mean

It is an evaluation whose chunks come one after the other. `update` folds its rows as a chunk of rows in memory, and
keeps what the worker returned: states, items and contributions, beside the rows. `compute` takes the route of every
evaluation (`folding.run_sources`) with all chunks folded before. So it gives what `dialeval.evaluate` gives for all
rows together, to the last digit, with the same signatures.

One rule for what cannot be folded row by row: if a metric must know all rows before it looks at one (a fact, as for KL
divergence, or the tokeniser "auto"), the tally keeps its rows, and folds all of them in `compute`.

Rows of a dialogue that stand together count as one dialogue, also over several calls of `update`: the last dialogue
waits for its end. A dialogue must not be divided among tallies that are merged; a warning of the run says where it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dialeval.core.arguments import checked
from dialeval.core.contributions import apart, gathered
from dialeval.core.errors import SettingError
from dialeval.core.intervals import Kind
from dialeval.core.needs import Need
from dialeval.core.notes import noted
from dialeval.data.rows.fields import FieldNames
from dialeval.data.rows.system import Rows
from dialeval.data.shards.chunks import MemoryChunk, cut_sources
from dialeval.data.shards.sources import memory_sources
from dialeval.engine.evaluate import Inputs
from dialeval.engine.folding import BATCH_ROWS, Options, make_job, open_over_no_words, run_sources
from dialeval.engine.job import ChunkItems, Job, Opened, Stage, StateSums, SystemItems, SystemState, SystemStates
from dialeval.engine.plan import Asked, Settings, asks_for_choice, names_of, planner
from dialeval.engine.resources import Resources, WordChoice
from dialeval.engine.stores import MemoryItems
from dialeval.engine.worker import Threads, join_batch_items
from dialeval.text.tokenise import Tokeniser

if TYPE_CHECKING:
    from dialeval.core.result import Result, Run


@dataclass(frozen=True, eq=False, slots=True)
class _Part:
    """Some rows, and what a worker made of them; None where they are folded in `compute`."""

    rows: Rows
    folded: tuple[SystemState, SystemItems] | None = None
    rank: int | None = None
    """How often parts were joined to this one; None where its state may refer to the words of another process."""

    def sent(self) -> _Part:
        """The same for another process: contributions with their words, as states have them."""
        if self.folded is None:
            return self
        state, items = self.folded
        contributions = tuple({name: apart(each) for name, each in part.items()} for part in items.contributions)
        return _Part(self.rows, (state, replace(items, contributions=contributions)))

    def placed(self, before: int, own: int, system: str) -> _Part:
        """The same behind the rows of another tally."""
        return replace(self, rows=replace(self.rows.placed(before, own), system=system))


def _join(parts: list[_Part], job: Job) -> None:
    """Join the last parts as long as they are of equal rank: n updates leave log n parts, and cost log n joins each."""
    while len(parts) > 1 and parts[-1].rank is not None and parts[-1].rank == parts[-2].rank:
        both = parts[-2:]
        system = (0, both[0].rows.system)
        sums, folded = StateSums(job, "metrics"), [part.folded for part in both if part.folded is not None]
        for state, _ in folded:
            sums.add({system: state})
        items = join_batch_items([items for _, items in folded])
        by_name = [{name: part for each in one.contributions for name, part in each.items()} for _, one in folded]
        contributions = {name: gathered([each[name] for each in by_name]) for name in by_name[0]}
        rows, items = Rows.joined([part.rows for part in both]), replace(items, contributions=(contributions,))
        parts[-2:] = [_Part(rows, (sums.result()[system], items), parts[-1].rank + 1)]


class _KeptItems(MemoryItems):
    """The parts of a tally as chunks, those that are folded with their results."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts
        super().__init__(list(_chunks(parts)))
        for number, part in enumerate(parts):
            if part.folded is not None:
                super().put("metrics", number, {}, ChunkItems({(0, part.rows.system): part.folded[1]}))

    def finished(self, stage: Stage) -> set[int]:
        parts = enumerate(self._parts) if stage == "metrics" else ()
        return {number for number, part in parts if part.folded is not None}

    def states(self, stage: Stage, number: int) -> SystemStates:
        part = self._parts[number]
        return {} if part.folded is None else {(0, part.rows.system): part.folded[0]}


def _chunks(parts: Sequence[_Part]) -> Iterator[MemoryChunk]:
    rows = dialogues = 0
    for part in parts:
        yield MemoryChunk(0, part.rows, rows, dialogues, only=len(parts) == 1)
        rows += len(part.rows)
        dialogues += len(part.rows.dialogue_offsets()) - 1


class Tally:
    """Metrics of one system that remember the rows they were given; `dialeval.metric` makes one.

    It can be pickled, sent to another process and merged there. Resources go along as paths, or whole where they are
    objects in memory.
    """

    def __init__(
        self,
        metrics: Asked,
        resources: Resources,
        options: Options,
        *,
        system: str = "system",
        settings: Settings | None = None,
        tokeniser: Tokeniser | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        self._asked = metrics if metrics is None or isinstance(metrics, str) else tuple(names_of(metrics))
        self._settings, self._tokeniser = settings, tokeniser
        self._resources, self._options, self._system = resources, options, system
        self._fields = fields
        self.reset()
        self._open()

    def _open(self) -> None:
        """Make what belongs to this process."""
        self._planner = planner(self._asked, self._settings, self._tokeniser)
        self._engine = Threads(self._options.threads or os.cpu_count() or 1)
        self._opened: Opened | None = None
        self._job: Job | None = None

    def __getstate__(self) -> dict[str, Any]:
        here = {"_planner", "_engine", "_opened", "_job"}
        kept = {name: value for name, value in vars(self).items() if name not in here}
        return {**kept, "_parts": [part.sent() for part in self._parts]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def __len__(self) -> int:
        return self._rows

    def __repr__(self) -> str:
        asked = self._asked if isinstance(self._asked, str) else ",".join(map(str, self._asked or ["all"]))
        return f"<Tally: {asked}, {len(self):,} row{'' if len(self) == 1 else 's'}>"

    def reset(self) -> None:
        """Forget all rows."""
        self._parts: list[_Part] = []
        self._waiting: Rows | None = None
        self._rows = 0
        self._notes: dict[str, None] = {}
        self._columns: frozenset[Need] = frozenset()
        self._job = None

    @checked
    def update(self, responses: Any, references: Any = None, contexts: Any = None) -> None:
        """Add rows of one system, given as for `dialeval.evaluate`: lists of texts, rows, tables, paths.

        Where rows of a later call have no references or contexts, these rows have none; columns that a metric reads and
        that the first call did not have are refused.
        """
        with noted() as notes:
            systems, _ = Inputs(responses, references, contexts, fields=self._fields).read()
        if len(systems) > 1:
            names = ", ".join(rows.system for rows in systems)
            raise SettingError(f"a tally measures one system, and these rows are of {names}; make a tally for each")
        if Need.TRIALS in systems[0].columns:
            raise SettingError("how often a task was tried is known of all rows together; use dialeval.evaluate")
        self.add(systems[0])
        self._notes |= notes

    def add(self, rows: Rows) -> None:
        """Add rows that are columns already."""
        if not len(rows):
            return
        rows = replace(rows, system=self._system).placed(self._rows)
        job = self._job_with(frozenset(rows.columns))
        added = len(rows)
        if self._waiting is not None:
            rows = _continued(self._waiting, replace(rows, dialogues=rows.names(self._rows)))
        whole, waiting = _cut_last_dialogue(rows)
        for part in self._folded(whole, job):
            self._parts.append(part)
            _join(self._parts, job)
        self._waiting, self._rows, self._job = waiting, self._rows + added, job
        self._columns |= frozenset(rows.columns)

    def _job_with(self, columns: frozenset[Need]) -> Job:
        """What is done to rows with some columns; an error where the rows before were not scored with these."""
        if self._opened is None:
            self._opened = open_over_no_words(self._resources)
        if self._job is not None and columns <= self._job.columns[0]:
            return self._job
        known, rows = self._columns, self._options.batch_rows
        job = make_job(self._planner, [known | columns], self._resources, FieldNames(), rows, self._opened)
        if self._rows:
            before = self._planner(0, known | frozenset(self._opened[1]))
            if job.plans[0].folded != before.folded or _read(job) & (columns - known):
                new = ", ".join(need.argument for need in sorted(columns - known))
                raise SettingError(f"these rows have {new}, and those before had none; give them from the first on")
        return job

    def _folded(self, rows: Rows, job: Job) -> list[_Part]:
        if not len(rows):
            return []
        if "facts" in job.stages or asks_for_choice(job.plans):
            return [_Part(rows)]
        chunks = dict(enumerate(cut_sources(memory_sources([rows]), job.batch_rows)))
        system = (0, self._system)
        return [  # all of them before anything is kept: rows with a fault leave no trace
            _Part(chunk.rows, (result.states[system], result.items[0].systems[system]), rank=0)
            for result in self._engine.fold(job, {}, "metrics", chunks, alone=True)
            for chunk in [chunks[result.chunks[0]]]
            if isinstance(chunk, MemoryChunk)
        ]

    @checked
    def merge(self, other: Tally) -> None:
        """Add the rows of another tally of the same metrics behind these; the other one is left as it is."""
        if not len(other):
            return
        columns = self._columns or other._columns
        mine, theirs = self._job_with(columns), other._job_with(other._columns)
        left, right = ((each.plans[0].folded, each.resources.digests) for each in (mine, theirs))
        if left != right or _read(mine) & (columns ^ other._columns):
            what = "other metrics, other resources or other columns"
            raise SettingError(f"{other!r} cannot be merged into {self!r}: it has {what}; make both alike")
        waiting = [] if other._waiting is None else [_Part(other._waiting)]
        parts, own = [*(part.sent() for part in other._parts), *waiting], 0
        for at, part in enumerate(parts):
            parts[at], own = part.placed(self._rows, own, self._system), own + len(part.rows)
        self._parts += self._folded(self._waiting, mine) if self._waiting is not None else []
        self._waiting = parts.pop().rows if waiting else None
        self._parts += parts
        self._notes |= other._notes
        self._rows, self._columns, self._job = self._rows + len(other), self._columns | other._columns, None

    def _whole(self) -> Rows:
        return Rows.joined([*(part.rows for part in self._parts), *([self._waiting] if self._waiting else [])])

    def compute(self) -> Result:
        """The estimates of all rows so far, by key: what `dialeval.evaluate` gives for them."""
        return self.run()[self._system]

    def run(self) -> Run:
        """The run of all rows so far, to be compared, logged, saved and reported, with its warnings."""
        if not len(self):
            raise SettingError("there are no rows yet; call update first")
        whole, self._job = self._whole(), self._job_with(self._columns)
        waiting = [_Part(self._waiting)] if self._waiting is not None else []
        kept = _KeptItems([*self._parts, *waiting])
        evaluation = run_sources(
            memory_sources([whole]),
            self._planner,
            self._resources,
            self._options,
            warnings=tuple(self._notes),
            opened=self._opened,
            kept=kept,
        )
        return evaluation.run


def _read(job: Job) -> set[Need]:
    """What the metrics of a job look at."""
    return {need for metric in job.plans[0].folded for need in metric.needs | metric.wants}


def _continued(waiting: Rows, rows: Rows) -> Rows:
    """Rows behind others whose last dialogue they may go on with."""
    return replace(Rows.joined([waiting, rows]), offsets=None)


def _cut_last_dialogue(rows: Rows) -> tuple[Rows, Rows | None]:
    """The rows of all dialogues but the last, and those of the last; rows without dialogues wait for nothing."""
    if rows.dialogues is None:
        return rows, None
    start = int(rows.dialogue_offsets()[-2])
    return rows.slice(0, start), rows.slice(start, len(rows))


@checked
def metric(
    metrics: Asked,
    *,
    train: Any = None,
    vocabulary: Any = None,
    embeddings: Any = None,
    known_words: WordChoice | None = None,
    judge: Any = None,
    settings: Settings | None = None,
    tokeniser: Tokeniser | None = None,
    fields: Mapping[str, str] | None = None,
    t: float | None = None,
    confidence: float | None = None,
    intervals: Kind | None = None,
    threads: int | None = None,
    system: str = "system",
) -> Tally:
    """Metrics that remember: `update` with rows as they come, `compute` at any time, `merge` across processes, `reset`.

    `metrics`: names in a text or a list ("bleu-4,distinct-2"), families, metric objects, functions of `metric_of_rows`.
    `system`: what the run calls the system that is measured. All else is what it is for `dialeval.evaluate`, and so is
    the result: `compute` gives what `evaluate` gives for all rows together, to the last digit.
    """
    resources = Resources(train, vocabulary, embeddings, judge, known_words)
    options = Options(t, confidence, intervals, BATCH_ROWS, threads)
    return Tally(
        metrics,
        resources,
        options,
        system=system,
        settings=settings,
        tokeniser=tokeniser,
        fields=fields,
    )
