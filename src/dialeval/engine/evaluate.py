"""evaluate(): inputs in, a `Run` out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from dialeval.core.arguments import checked
from dialeval.core.batch import Need
from dialeval.core.errors import SettingError, collect_warnings
from dialeval.core.fold import IntervalKind
from dialeval.core.result import Run, check_folder
from dialeval.engine.anchors import evaluate_with_anchors
from dialeval.engine.folding import BATCH_ROWS, Options, Progress, run_sources
from dialeval.engine.plan import Asked, Settings, planner
from dialeval.engine.resources import Resources, WordChoice
from dialeval.engine.worker import Engine
from dialeval.io.fields import FieldNames
from dialeval.io.opening import LINES, format_of, is_pattern, is_remote
from dialeval.io.reading import attach, read_responses, read_texts
from dialeval.io.rows import EOS, LISTS, Rows, split_fields
from dialeval.io.sources import Source, file_names, find_sources, memory_sources
from dialeval.text.tokenizers import Tokenizer

_READ_HYPOTHESES = "dialeval.suites.lsdscc.data:read_with_groups"
_EVALUATE_GROUPS = "dialeval.suites.lsdscc.report:evaluate_groups"
"""Functions for several responses per row; they are imported when such rows are given."""
LARGE_BYTES = 1 << 28
"""Files of this size have so many rows that nobody keeps what single rows add to a corpus value, nor their texts."""


@dataclass(frozen=True)
class Inputs:
    """The rows that are evaluated, as a user gives them."""

    responses: Any
    references: Any = None
    contexts: Any = None
    reference_groups: Any = None
    fields: Mapping[str, str] | None = None
    eos: str | None = EOS
    keep: Sequence[str] = ()
    system_prompts: bool = False
    separator: str | None = None
    every_call: bool = False
    """Whether rows without a tool call count as making none, for assertions."""
    shards: bool = False
    """Whether the files of a folder are the parts of one system."""

    def are_chunked(self, options: Options, large_too: bool = False) -> bool:
        """Return whether they are read in chunks and released: the one place where the route is chosen.

        They are where an input is a pattern or on shared storage, or where an option needs chunks; with `large_too`
        also if they are the lines of one system in a file so large that few would want its rows in memory.
        """
        asked = options.engine is not None or options.resume is not None or not options.items
        return asked or self.shards or self._in_many_files or (large_too and self._large)

    @property
    def _in_many_files(self) -> bool:
        return any(is_remote(path) or is_pattern(path) for path in self._paths())

    @property
    def _large(self) -> bool:
        # Several systems are compared with each other, for which all rows are needed; rows may be of several.
        paths = [*self._paths()]
        own = [*self.responses.values()] if isinstance(self.responses, Mapping) else [self.responses]
        is_file = os.path.isfile  # Path.is_file raises for names that are too long
        if len(own) > 1 or not all(is_file(path) and format_of(path) == LINES for path in paths):
            return False
        return os.fspath(own[0]) in paths[:1] and sum(Path(path).stat().st_size for path in paths) >= LARGE_BYTES

    def _paths(self) -> Iterator[str]:
        for given in (self.responses, self.references, self.contexts):
            for each in given.values() if isinstance(given, Mapping) else [given]:
                if isinstance(each, str | os.PathLike):
                    yield os.fspath(each)

    @property
    def _reading(self) -> dict[str, Any]:
        asked = ("system_prompts", "separator", "every_call")
        return {name: getattr(self, name) for name in asked}

    @property
    def names(self) -> FieldNames:
        """The names of the fields of the rows, and how they are read."""
        return FieldNames.of(self.fields, **self._reading)

    def find_sources(self) -> list[Source]:
        """Find the files of every system, to be read in chunks."""
        if self.reference_groups is not None:
            raise SettingError("anchors and reference_groups need all rows in memory; rows in chunks are let go")
        if self.keep:
            raise SettingError("fields are kept of rows in memory; rows in chunks are let go")
        return find_sources(self.responses, self.references, self.contexts, self.shards)

    def read(self) -> tuple[list[Rows], Any]:
        """Read the rows of every system, and the reference groups if there are any."""
        groups = None
        if self.reference_groups is None and not has_lists(self.responses):
            systems = read_responses(self.responses, self.fields, keep=self.keep, **self._reading)
        elif self.keep:
            raise SettingError("rows with several answers have no further fields to keep")
        else:
            systems, groups = resolve_name(_READ_HYPOTHESES)(self.responses, self.reference_groups, self.eos)
        for need, source in {Need.REFERENCE: self.references, Need.CONTEXT: self.contexts}.items():
            if source is not None:
                column = read_texts(source, need, self.fields, self.system_prompts, self.separator)
                where = str(source) if isinstance(source, str | os.PathLike) else need.argument
                if isinstance(source, Mapping):
                    where = ", ".join(map(str, source))
                systems = [attach(rows, need, column, where) for rows in systems]
        return systems, groups


def has_lists(responses: Any) -> bool:
    """Return whether responses in memory are several per row: a list of lists, or a mapping of such."""
    if isinstance(responses, Mapping):
        return any(map(has_lists, responses.values()))
    return isinstance(responses, LISTS) and any(isinstance(row, LISTS) for row in responses)


@checked
def evaluate(
    responses: Any,
    references: Any = None,
    contexts: Any = None,
    *,
    reference_groups: Any = None,
    train: Any = None,
    vocabulary: Any = None,
    embeddings: Any = None,
    known_words: WordChoice | None = None,
    judge: Any = None,
    assertions: Any = None,
    metrics: Asked = None,
    settings: Settings | None = None,
    tokenizer: Tokenizer | None = None,
    fields: Mapping[str, str] | None = None,
    keep: str | Sequence[str] = (),
    system_prompts: bool = False,
    separator: str | None = None,
    eos: str | None = EOS,
    t: float | None = None,
    confidence: float | None = None,
    intervals: IntervalKind | None = None,
    anchors: bool = False,
    alignments: bool = True,
    shards: bool = False,
    engine: Engine | None = None,
    threads: int | None = None,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    items: bool = True,
    resume: str | os.PathLike[str] | None = None,
    details: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    batch_rows: int = BATCH_ROWS,
    chunk_bytes: int | None = None,
) -> Run:
    """Score one or several systems.

    `responses`, `references`, `contexts`: a path, a list of texts, a table or column (Arrow, pandas, polars, Hugging
    Face), rows with those fields, or for responses a mapping of systems to any of these or a directory of files.
    `references` may hold a list of texts per row, or be a mapping of reference sets.
    `reference_groups`: references in groups of one meaning each, a JSON file or a list with lists of texts per query;
    `responses` are then several per query: a list of lists, or files with `eos` between them (None: one a line).
    `Run.details` says where each of them landed, unless `alignments` is False.
    `train`: the training text (source side), one text a line; `embeddings`: word vectors, a file or the name of an
    installed pack. For metrics with `oov=unk`, such as the group "dialog-eval": `vocabulary`: in-vocabulary words, one
    a line, else those of the training text; `known_words`: whether words with a vector that are not in the vocabulary
    are known too, "vectors", or not, "listed"; None: "listed" for a vector file with a header line.
    `judge`: the folder of a judge that `dialeval judge train` or `dialeval adem train` wrote, else the shipped ones.
    `assertions`: rules about tool calls for the metric `call-assertions`, a TOML file or a list of dictionaries.
    `metrics`: names, families, the group "dialog-eval", metric objects; None: all that the inputs allow, the others
    being listed in `Run.skipped`. `settings` changes the defaults of a family (`{"bleu": {"smooth": 7}}`), `tokenizer`
    is that of every metric that counts words and whose name says no other: "13a", "zh", "ja" or another of `Tokenizer`,
    or "auto", one that suits the scripts of all texts. `fields` maps our field names to those of a file with rows
    (`{"response": "answer"}`), `keep` names further fields of the rows that the run keeps, so that `dialeval.slices`
    can cut it by them. Rows, chats and logs of many programs are recognized, see `dialeval formats`. `system_prompts`:
    the system prompts of chats are part of contexts. `separator`: what stands between the cells of CSV files, where it
    is not to be found out.
    `intervals`: "clustered" (the default) makes them over whole dialogues, or over rows that stand alone, by Student's
    and Wilson's formulas; "rows" makes those of dialog-eval, mean -+ t * std / sqrt(rows); "none" makes none.
    `confidence`: the level of the intervals, 0.95 unless given; `t`: the factor of "rows", 1.97 unless given.
    `anchors`: also score gold replies, shuffled gold, a constant and random training lines, as systems called
    `ceiling/...` and `floor/...`; `Run.details["anchors"]` says where each system stands between them.

    Files of any number and size are read in chunks, with bounded memory, where a path is a pattern such as
    `logs/2026-*.jsonl` (one system) or an address that fsspec knows (s3://...), or where one of these is given:
    `shards`: the files of a folder are the parts of one system. `engine`: who works, `Threads`, `Processes` or
    `Cluster`. `resume`: a folder in which finished chunks are kept, to go on after a run that was broken off. `items`
    False: no value per row is kept. Values per row are then not in the result; they are saved if there is an `output`.

    `output`: a folder to save the run in, with `details`; a run of other files there is replaced only with `force`.
    `threads`: how many to use, one per core unless given.
    """
    if output is not None:
        read = (responses, references, contexts, reference_groups, train, vocabulary, embeddings, assertions)
        check_folder(output, *read, sources=() if force else file_names(responses))
    kept = split_fields(keep)
    texts = (responses, references, contexts, reference_groups)
    inputs = Inputs(*texts, fields, eos, kept, system_prompts, separator, assertions is not None, shards)
    resources = Resources(train, vocabulary, embeddings, judge, known_words, assertions)
    options = Options(
        t=t,
        confidence=confidence,
        intervals=intervals,
        batch_rows=batch_rows,
        threads=threads,
        engine=engine,
        progress=progress,
        output=output,
        items=items,
        resume=resume,
        chunk_bytes=chunk_bytes,
        force=force,
    )
    plans = planner(metrics, settings, tokenizer)
    if inputs.are_chunked(options):
        if anchors:
            raise SettingError("anchors and reference_groups need all rows in memory; rows in chunks are let go")
        return run_sources(inputs.find_sources(), plans, resources, options, names=inputs.names, details=details).run
    with collect_warnings() as notes:
        systems, groups = inputs.read()
    if anchors:
        run = evaluate_with_anchors(systems, plans, resources, options)
    elif groups is not None:
        run = resolve_name(_EVALUATE_GROUPS)(systems, groups, plans, resources, options, table=alignments)
    else:
        run = run_sources(memory_sources(systems), plans, resources, options).run
    run = replace(run, details={**run.details, **(details or {})}, warnings=(*notes, *run.warnings))
    if output is not None:
        run.save(output, force=force)
    return run
