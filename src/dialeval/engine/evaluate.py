"""evaluate(): inputs in, a `Run` out; and tallies, which wait for their rows.

    tally = dialeval.make_tally("bleu-4,distinct-2")
    for batch in loader:
        tally.update(generate(batch), batch["references"])
    tally.compute()["bleu-4"].mean

A tally keeps its rows; `compute` evaluates all of them by the route of every evaluation (`folding.run_sources`). So it
gives what `dialeval.evaluate` gives for all rows together, to the last digit, with the same signatures. Resources are
opened once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from dialeval.core import inputs
from dialeval.core.errors import SettingError, collect_warnings
from dialeval.core.inputs import Column, Input
from dialeval.core.result import Result, Run, check_folder
from dialeval.engine.baselines import evaluate_with_baselines
from dialeval.engine.folding import BATCH_ROWS, Options, Progress, make_job, run_sources
from dialeval.engine.intervals import IntervalKind
from dialeval.engine.plan import Asked, Planner, Settings, list_asked, list_fields, make_planner
from dialeval.engine.resources import Data, JudgeProtocol, LanguageJudge, Resources, WordChoice
from dialeval.engine.worker import Context, Engine, Job, open_context
from dialeval.io.opening import LINES, PathSource, format_of, is_pattern, is_remote
from dialeval.io.outcomes import account_for, join_parts, mark_outcomes
from dialeval.io.reading import attach, join_scores, name_dialogues, read_responses, read_texts
from dialeval.io.rows import FieldNames, Rows, split_fields
from dialeval.io.sources import Source, find_sources, list_file_names, wrap_systems
from dialeval.io.vectors import WordVectors
from dialeval.text.tokenizers import Tokenizer

LARGE_BYTES = 1 << 28
"""Files of this size have so many rows that nobody keeps what single rows add to a corpus value, nor their texts."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How inputs are read, and what is read besides them: options of `dialeval.evaluate`.

    Attributes:
        roles: Further names of roles of messages, with ours: `{"shopper": "user"}`.
        invalid: What to do with rows that cannot be read: `"refuse"` them, or `"skip"` and count them.
        keep_reasoning: Keep reasoning blocks (`<think>...</think>`) as part of replies.
        system_prompts: Count the system prompts of chats as part of contexts.
        separator: The separator of CSV files; None: found from the file.
        shards: The files of a folder are parts of one system.
        dialogues: The dialogue id of each response, for responses that are lines or texts: a file with an id per line,
            a list, or `"empty-lines"` if empty lines (in all files) separate dialogues.
        scores: Scores of the dialogues from another tool, for metrics such as `score:csat`: a file or a list of rows
            with the id of a dialogue and numbers, and with `turn` for scores of replies and `system` for several.
        key: The column of `scores` with the ids of dialogues; or a field of the rows that is unique for each reply.
        vocabulary: The in-vocabulary words, one per line, for metrics with `oov=unk`; those of `train` unless given.
        in_vocabulary: Whether words with a vector count as in-vocabulary (`"vectors"`) or only the words of the
            vocabulary (`"listed"`). None: `"listed"` for a vector file with a header line.
        checks: Rules for the metrics `checks` and `call-assertions`: a TOML file, or a list of dictionaries.

    Examples:
        >>> import dialeval
        >>> lines = ["at nine", "<think>hm</think> no"]
        >>> run = dialeval.evaluate(lines, metrics="length", reading=dialeval.Reading(dialogues=["one", "two"]))
        >>> run["system"].table.dialogues
        ['one', 'two']
    """

    roles: Mapping[str, str] | None = None
    invalid: Literal["refuse", "skip"] = "refuse"
    keep_reasoning: bool = False
    system_prompts: bool = False
    separator: str | None = None
    shards: bool = False
    dialogues: PathSource | Sequence[str] | None = None
    scores: PathSource | Sequence[Mapping[str, object]] | None = None
    key: str = "dialog_id"
    vocabulary: Data | None = None
    in_vocabulary: WordChoice | None = None
    checks: PathSource | Sequence[Mapping[str, object]] | None = None

    def __post_init__(self) -> None:
        if self.invalid not in ("refuse", "skip"):
            raise SettingError(f"invalid rows are refused or skipped: invalid='refuse' or 'skip', not {self.invalid!r}")

    @property
    def settings(self) -> dict[str, object]:
        """The settings of `FieldNames`."""
        names = ("system_prompts", "separator", "keep_reasoning", "roles")
        every_call, skip = self.checks is not None and _has_call_checks(self.checks), self.invalid == "skip"
        return {"every_call": every_call, "skip_invalid": skip, **{name: getattr(self, name) for name in names}}


def _has_call_checks(source: object) -> bool:
    from dialeval.metrics.checks import load_checks

    return inputs.CALL_CHECKS in load_checks(source)


@dataclass(frozen=True, kw_only=True)
class Execution:
    """How the work is done and what is kept of it: options of `dialeval.evaluate` that change no value.

    Attributes:
        engine: What runs the work: `Threads`, `Processes` or `Cluster` of `dialeval.engine`.
        threads: The number of threads; None: one per core.
        row_scores: Keep per-row scores.
        force: Replace a saved run of other inputs in `output`.
        details: Further data to save with the run, JSON-compatible, by name.
        progress: A function that is called now and then with the work done: `rows`, `total` and `share`.
        batch_rows: Rows that are scored at a time.
        chunk_bytes: The size of the chunks that files are split into.

    Examples:
        >>> import dialeval
        >>> execution = dialeval.Execution(threads=1, details={"commit": "abc123"})
        >>> dialeval.evaluate(["yes"], metrics="length", execution=execution).details["commit"]
        'abc123'
    """

    engine: Engine | None = None
    threads: int | None = None
    row_scores: bool = True
    force: bool = False
    details: Mapping[str, object] | None = None
    progress: Progress | None = None
    batch_rows: int = BATCH_ROWS
    chunk_bytes: int | None = None


def make_options(
    execution: Execution,
    confidence: float | None,
    intervals: IntervalKind | float | None,
    output: PathSource | None = None,
) -> Options:
    """Return the options of a run; a number in the place of intervals is the factor of those over rows."""
    kind, t = (None, intervals) if isinstance(intervals, int | float) else (intervals, None)
    return Options(
        t,
        confidence,
        kind,
        execution.batch_rows,
        execution.threads,
        execution.engine,
        execution.progress,
        output,
        execution.row_scores,
        execution.chunk_bytes,
        execution.force,
    )


@dataclass(frozen=True)
class _Inputs:
    """The rows that are evaluated, as a user gives them."""

    responses: Data
    references: Data | None = None
    contexts: Data | None = None
    fields: Mapping[str, str] | None = None
    keep: Sequence[str] = ()
    reading: Reading = field(default_factory=Reading)
    columns: tuple[Column, ...] = ()
    """Fields that metrics ask for."""
    scores: tuple[str, ...] = ()
    """Scores that metrics ask for."""

    def are_chunked(self, options: Options, large_too: bool = False) -> bool:
        """Return whether they are read in chunks and released: the one place where the route is chosen.

        They are where an input is a pattern or on shared storage, or where an option needs chunks; with `large_too`
        also if they are the lines of one system in a file so large that few would want its rows in memory.
        """
        asked = options.engine is not None or not options.row_scores
        in_many_files = any(is_remote(path) or is_pattern(path) for path in self._list_paths())
        return asked or self.reading.shards or in_many_files or (large_too and self._large)

    @property
    def _large(self) -> bool:
        # Several systems are compared with each other, for which all rows are needed; rows may be of several.
        paths = [*self._list_paths()]
        several = isinstance(self.responses, Mapping) and len(self.responses) > 1
        is_file = os.path.isfile  # Path.is_file raises for names that are too long
        if several or not all(is_file(path) and format_of(path) == LINES for path in paths):
            return False
        return sum(Path(path).stat().st_size for path in paths) >= LARGE_BYTES

    def _list_paths(self) -> Iterator[str]:
        for source in (self.responses, self.references, self.contexts):
            for each in source.values() if isinstance(source, Mapping) else [source]:
                if isinstance(each, str | os.PathLike):
                    yield os.fspath(each)

    @property
    def _reading(self) -> dict[str, Any]:
        return {**self.reading.settings, "columns": self.columns, "scores": self.scores}

    @property
    def names(self) -> FieldNames:
        """The names of the fields of the rows, and how they are read."""
        return FieldNames.of(self.fields, **self._reading)

    def find_sources(self) -> list[Source]:
        """Find the files of every system, to be read in chunks."""
        if self.keep or self.reading.dialogues is not None or self.reading.scores is not None:
            raise SettingError("fields, dialogues and scores are added to rows in memory, not to those of chunks")
        return find_sources(self.responses, self.references, self.contexts, self.reading.shards)

    def read(self) -> list[Rows]:
        """Read the rows of every system."""
        key = self.reading.key
        joined = {key} - {*self.keep, *self.names.dialog_ids} if self.reading.scores is not None else set()
        systems = read_responses(self.responses, self.fields, None, self.keep, tuple(joined), **self._reading)
        for need, source in {inputs.REFERENCE: self.references, inputs.CONTEXT: self.contexts}.items():
            if source is not None:
                column = read_texts(source, need, self.fields, **self._reading)
                where = str(source) if isinstance(source, str | os.PathLike) else need.argument
                if isinstance(source, Mapping):
                    where = ", ".join(map(str, source))
                systems = [attach(rows, need, column, where) for rows in systems]
        if self.reading.dialogues is not None:
            named = (name_dialogues(rows, self.reading.dialogues) for rows in systems)
            systems = account_for(mark_outcomes(rows, {}, self.reading.keep_reasoning) for rows in named)
        if self.reading.scores is not None:
            systems = join_scores(systems, self.reading.scores, key, self.scores)
            kept = [{name: fields for name, fields in rows.fields.items() if name not in joined} for rows in systems]
            systems = [replace(rows, fields=fields) for rows, fields in zip(systems, kept, strict=True)]
        return join_parts(systems)


def is_chunked(
    responses: Data,
    references: Data | None,
    contexts: Data | None,
    shards: bool,
    options: Options,
    large_too: bool = False,
) -> bool:
    """Return whether inputs are read in chunks; with `large_too` also if few would want their rows in memory."""
    return _Inputs(responses, references, contexts, reading=Reading(shards=shards)).are_chunked(options, large_too)


def evaluate(
    responses: Data,
    references: Data | None = None,
    contexts: Data | None = None,
    *,
    metrics: Asked = None,
    settings: Settings | None = None,
    tokenizer: Tokenizer | None = None,
    train: Data | None = None,
    vectors: PathSource | WordVectors | None = None,
    judge: PathSource | JudgeProtocol | None = None,
    llm: LanguageJudge | None = None,
    fields: Mapping[str, str] | None = None,
    keep: str | Sequence[str] = (),
    confidence: float | None = None,
    intervals: IntervalKind | float | None = None,
    baselines: bool = False,
    output: str | os.PathLike[str] | None = None,
    reading: Reading | None = None,
    execution: Execution | None = None,
) -> Run:
    """Score one or several systems.

    Responses, references and contexts may be a path, a list of texts, a table or column (Arrow, pandas, polars, Hugging
    Face), or rows with those fields; the logs of many programs are recognized (`dialeval formats` lists them). Inputs
    are never changed.

    Files of any number and size are read in chunks with bounded memory where a path is a pattern such as
    `logs/2026-*.jsonl` (one system) or an address that fsspec knows (`s3://...`), or where `shards`, `engine` or
    `row_scores=False` is given (`Reading`, `Execution`). Per-row scores are then not in the returned run; they are
    saved if there is an `output`.

    Args:
        responses: The responses of a system; a mapping of system names to responses; or a folder with a file per
            system.
        references: The reference texts, one or a list per row; or a mapping of names to reference sets.
        contexts: The dialogue context of each response: the turns before it.
        metrics: Names, families, groups such as `"dialog-eval"`, metric objects or functions made by `metric_of_rows`,
            in a comma-separated text or a list; `"all"`: every metric that the inputs allow. None: the default
            panel. `Run.skipped` names what could not be computed.
        settings: Settings of metric families that differ from their defaults, as `{"bleu": {"smooth": 7}}`.
        tokenizer: The tokenizer of every metric that counts tokens and names none itself, such as `"13a"`, `"zh"` or
            `"ja"`; `"auto"` chooses one by the scripts of all texts.
        train: The training text, one text per line, for metrics that compare with it.
        vectors: Word vectors: a file, or the name of an installed data pack.
        judge: The folder of a judge, such as `dialeval adem train` wrote, or an object that is one (`plugin.Judge`);
            None: the shipped one.
        llm: A language model for the metrics `llm` and `llm-conversation`: `dialeval.judges.LLM(...)` or a `Panel`.
        fields: The names of fields in the input, by ours: `{"response": "answer"}`.
        keep: Further fields of the rows that the run keeps, to slice it by them: names in a comma-separated text or a
            list.
        confidence: The confidence level of the intervals, 0.95 unless given.
        intervals: `"clustered"` (the default): confidence intervals over whole dialogues, by the formulas of Student
            and Wilson. `"rows"`: those of dialog-eval, mean ± t · std / √rows; a number is such a factor t, 1.97 unless
            given. `"none"`: none.
        baselines: Also score floor and ceiling systems (gold replies, shuffled gold replies, a constant, random
            training lines), named `floor/...` and `ceiling/...`.
        output: A folder to save the run in.
        reading: How inputs are read, and what is read besides them: `dialeval.Reading(...)`.
        execution: How the work is done: `dialeval.Execution(...)`.

    Returns:
        The scores of every system.

    Raises:
        DataError: An input cannot be read, or systems and references differ in length; every problem is listed.
        NeedError: A metric was asked for without an input that it needs.
        SettingError: A metric or a setting does not exist.

    Examples:
        >>> import dialeval
        >>> old = ["hello there", "goodbye"]
        >>> new = ["hello", "goodbye now"]
        >>> references = ["hello", "goodbye now my friend"]
        >>> run = dialeval.evaluate({"old": old, "new": new}, references, metrics="rouge-l,length")
        >>> run["new"]["length"].mean
        1.5
        >>> [round(run[name]["rouge-l"].mean, 3) for name in run]
        [0.535, 0.814]
    """
    reading, execution = reading or Reading(), execution or Execution()
    if output is not None:
        read = (responses, references, contexts, train, reading.vocabulary, vectors, reading.checks)
        sources = () if execution.force else list_file_names(responses)
        check_folder(output, *read, reading.dialogues, reading.scores, sources=sources)
        if llm is not None:
            llm.check_folder(output)
    columns, scores = list_fields(metrics)
    data = _Inputs(responses, references, contexts, fields, split_fields(keep), reading, columns, scores)
    resources = Resources(train, reading.vocabulary, vectors, judge, reading.in_vocabulary, reading.checks, llm)
    if llm is not None:
        metrics, settings = llm.plan(metrics, settings)
    options = make_options(execution, confidence, intervals, output)
    if data.are_chunked(options):
        if baselines:
            raise SettingError("baselines need all rows in memory, which a run in chunks does not keep")
        plans = make_planner(metrics, settings, tokenizer)
        sources_of_files, names = data.find_sources(), data.names
        run = run_sources(sources_of_files, plans, resources, options, names=names, details=execution.details).run
    else:
        with collect_warnings() as notes:
            systems = data.read()
        plans = make_planner(metrics, settings, tokenizer, sum(map(len, systems)))
        if baselines:
            run = evaluate_with_baselines(systems, plans, resources, options)
        else:
            run = run_sources(wrap_systems(systems), plans, resources, options).run
        details = {**run.details, **(execution.details or {})}
        run = replace(run, details=details, warnings=(*notes, *run.warnings))
        if output is not None:
            run.save(output, force=execution.force)
    if output is not None and llm is not None:
        llm.copy_answers(output)
    return run


class Tally:
    """Metrics of one system that accumulate rows; `dialeval.make_tally` makes one.

    It can be pickled, sent to another process and merged there. Resources are sent as paths, or whole where they are
    objects in memory.

    Examples:
        >>> import dialeval
        >>> tally = dialeval.make_tally("distinct-1")
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
        reading: Reading | None = None,
        system: str = "system",
        settings: Settings | None = None,
        tokenizer: Tokenizer | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        self._asked = metrics if metrics is None or isinstance(metrics, str) else tuple(list_asked(metrics))
        self._settings, self._tokenizer, self._fields = settings, tokenizer, fields
        self._resources, self._options, self._system = resources, options, system
        self._reading = reading or Reading()
        self.reset()

    @property
    def _planner(self) -> Planner:
        return make_planner(self._asked, self._settings, self._tokenizer, len(self))

    @cached_property
    def _context(self) -> Context:
        return open_context(self._resources)

    def __getstate__(self) -> dict[str, object]:
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

    def update(self, responses: Data, references: Data | None = None, contexts: Data | None = None) -> None:
        """Add rows of one system.

        Args:
            responses: The responses, as `dialeval.evaluate` takes them: a list of texts, rows, a table or a path.
            references: Their references; rows of a call without them have none.
            contexts: Their dialogue contexts; likewise.

        Raises:
            SettingError: The rows are of several systems, or are repeated trials of tasks.
        """
        with collect_warnings() as notes:
            columns, scores = list_fields(self._asked)
            texts = (responses, references, contexts)
            systems = _Inputs(*texts, self._fields, (), self._reading, columns, scores).read()
        if len(systems) > 1:
            names = ", ".join(rows.system for rows in systems)
            raise SettingError(f"a tally measures one system, and these rows are of {names}; make a tally for each")
        if inputs.TRIALS in systems[0].columns:
            raise SettingError("how often a task was tried is known of all rows together; use dialeval.evaluate")
        self.add(systems[0])
        self._notes |= notes

    def add(self, part: Rows) -> None:
        """Add rows that are columns already.

        Args:
            part: The rows of one system.
        """
        if len(part):
            self._make_job(self._columns | frozenset(part.columns))  # refuses a metric that lacks a column
            self._parts.append(replace(part, system=self._system).move_behind(len(self)))

    @property
    def _columns(self) -> frozenset[Input]:
        return frozenset(need for rows in self._parts for need in rows.columns)

    def _make_job(self, columns: frozenset[Input]) -> Job:
        """Make the job for rows with some columns; NeedError where a metric lacks one."""
        rows = self._options.batch_rows
        return make_job(self._planner, [columns], self._resources, FieldNames(), rows, self._context)

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
        before, added = len(self), 0
        for rows in list(other._parts):
            self._parts.append(replace(rows, system=self._system).move_behind(before, added))
            added += len(rows)
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
        rows = replace(Rows.join(self._parts), offsets=None)
        self._parts = account_for([rows]) if rows.account.due else [rows]
        sources, notes = wrap_systems(self._parts), tuple(self._notes)
        settings = (self._planner, self._resources, self._options)
        return run_sources(sources, *settings, warnings=notes, context=self._context).run


def make_tally(
    metrics: Asked,
    *,
    settings: Settings | None = None,
    tokenizer: Tokenizer | None = None,
    train: Data | None = None,
    vectors: PathSource | WordVectors | None = None,
    judge: PathSource | JudgeProtocol | None = None,
    fields: Mapping[str, str] | None = None,
    confidence: float | None = None,
    intervals: IntervalKind | float | None = None,
    reading: Reading | None = None,
    execution: Execution | None = None,
    system: str = "system",
) -> Tally:
    """Make metrics that accumulate rows: `update` with rows as they come, `compute` at any time.

    Args:
        metrics: Names in a comma-separated text or a list, families, metric objects, functions made by
            `metric_of_rows`.
        settings: Settings of metric families; see `dialeval.evaluate`, as for all that follow.
        tokenizer: The tokenizer of metrics that name none.
        train: The training text.
        vectors: Word vectors.
        judge: A judge, or the folder of one.
        fields: The names of fields in the input, by ours.
        confidence: The confidence level of the intervals.
        intervals: How intervals are computed.
        reading: How inputs are read; its `dialogues` and `scores` are of all rows together, and not for a tally.
        execution: How the work is done.
        system: The name of the system in the run.

    Returns:
        A `Tally` without rows. Its `compute` returns what `dialeval.evaluate` returns for all rows together, to the
        last digit.

    Raises:
        SettingError: A metric or a setting does not exist.

    Examples:
        >>> import dialeval
        >>> tally = dialeval.make_tally("length")
        >>> tally.update(["yes", "no thanks"])
        >>> tally.update(["see you at nine"])
        >>> tally.compute()["length"]
        <Estimate 2.333 [0, 6.128], 3 turns>
    """
    reading = reading or Reading()
    if reading.dialogues is not None or reading.scores is not None:
        raise SettingError(
            "dialogues and scores are of all rows together; use dialeval.evaluate, or fields of the rows"
        )
    resources = Resources(train, reading.vocabulary, vectors, judge, reading.in_vocabulary, reading.checks)
    options = make_options(execution or Execution(), confidence, intervals)
    return Tally(metrics, resources, options, reading, system, settings, tokenizer, fields)
