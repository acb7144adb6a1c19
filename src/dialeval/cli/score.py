"""`dialeval score`: response files in, a table of estimates out."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from dialeval.cli import options
from dialeval.cli import output as out

if TYPE_CHECKING:
    from dialeval.core.result import Run
    from dialeval.engine.worker import Engine


_FILES = ("responses", "contexts", "dialogues", "scores", "train", "vocabulary", "vectors", "checks")
"""The arguments that name files to read."""


@options.command(
    "dialeval score damd.txt ubar.txt -r references.txt",
    "dialeval score chats.jsonl -m default,bertscore -o results/",
    "dialeval score outputs/ -r references.txt -f latex --percent",
    "dialeval score outputs/ -r references.txt -m dialog-eval --train train.txt --vectors glove-6b",
    "dialeval score rows.jsonl --field response=answer --by topic,turn",
    "dialeval score 'logs/2026-*.jsonl' --jobs 8 -o results/",
    "dialeval score rows.jsonl -m llm --llm-endpoint http://localhost:8000/v1 --llm-model NAME --rubric reply",
)
@options.responses()
@options.option("-r --references", "One reference per response; repeat for several.", click.Path(), multiple=True)
@options.contexts
@options.option("--dialogues", "Dialogue id of each line; empty-lines: these separate dialogues.", metavar="FILE")
@options.option("--scores", "Table with scores of dialogues, for -m score:NAME.", metavar="FILE")
@options.option("--key", "Column of --scores with the ids of dialogues, or of replies.", default="dialog_id")
@options.resources
@options.option("--judge-dir judge", "Folder of a judge.  [default: the shipped ones]", click.Path(file_okay=False))
@options.option("--checks", "Rules about replies and tool calls, a TOML file.", click.Path(dir_okay=False))
@options.metrics("default, a short panel; all: every one that the inputs allow; dialog-eval: the original's 17")
@options.llm
@options.tokenizer
@options.option("--bleu-smoothing", "nltk's smoothing method for BLEU.  [default: 4]", click.IntRange(0, 7))
@options.baselines("gold, shuffled gold, a constant and random training lines")
@options.confidence
@options.row_fields
@options.reading
@options.by
@options.output_folder
@options.format_((*options.RUN_FORMATS, *options.GATE_FORMATS))
@options.percent
@options.limits
@options.intervals
@options.threads
@options.option("--shards", "The files of a directory are the parts of one system.", is_flag=True)
@options.option("--jobs", "Read in chunks, in this many processes.", click.IntRange(min=1))
@options.option("--engine", "Where to run.  [default: local]", options.Choice(["local", "ray"]))
@options.option("--address", "An existing Ray cluster, such as auto or ray://host:10001.")
@options.option("--row-scores/--no-row-scores", "With -o: save one value per response.", default=True)
@options.compared
@options.margins
@options.cluster
@options.option(
    "--progress",
    "Progress on stderr.  [default: a bar, if a terminal]",
    options.Choice(out.MODES),
    default="auto",
    show_default=False,
)
def score(
    references: tuple[str, ...],
    bleu_smoothing: int | None,
    output: Path | None,
    force: bool,
    format_: str,
    percent: bool,
    limits: options.Limits,
    progress: str,
    by: list[str],
    compared: bool,
    margins: dict[str, float],
    cluster: str | None,
    replicate: str | None,
    llm: options.LanguageModel,
    **given: Any,
) -> int:
    """Score response files, one system each.

    RESPONSES are files (.txt with a line per response, .jsonl, .json, .csv, .tsv, .parquet, each also .gz or .zst) or
    a directory of them; NAME=FILE names a system. A file of rows may hold contexts, references and several systems;
    `dialeval formats` lists the chats and logs of other programs that are read as they are.
    Metrics whose inputs are not given are skipped. A quoted pattern such as 'logs/2026-*.jsonl' is one system
    in many files, which are read in chunks.
    """
    from dialeval.core.arrays import return_freed_arrays
    from dialeval.io.sources import list_file_names

    if by and format_ in ("metrics-txt", *options.GATE_FORMATS):
        raise click.UsageError(f"{format_} has no slices; choose another format, or leave --by out")
    return_freed_arrays()
    out.check_percent(format_, percent)
    sources = () if force or output is None else list_file_names(given["responses"])
    out.check_places(output, references, *(given[name] for name in _FILES), sources=sources)
    if given["scores"] is not None and given["metrics"] is None:
        given["metrics"] = "default,scores"
    given["metrics"] = limits.with_metrics(given["metrics"])
    settings: dict[str, dict[str, object]] = {} if bleu_smoothing is None else {"bleu": {"smooth": bleu_smoothing}}
    with out.open_meter(progress) as meter:
        judge = llm.open(meter)
        if judge is not None and "llm" not in (given["metrics"] or ""):
            raise click.UsageError("LLM options need the metric: -m llm")
        if judge is not None and output is not None:
            judge.check_folder(output)
        given |= {"llm": judge} if judge is not None else {}
        numbered = {f"reference {number}": path for number, path in enumerate(references, 1)}
        given["references"] = numbered if len(numbered) > 1 else next(iter(references), None)
        given |= {"settings": settings, "output": output, "force": force}
        run, is_saved = _evaluate(meter=meter, format_=format_, by=by, cluster=cluster, replicate=replicate, **given)
    shown = format_ if compared or format_ == "github" else None
    chosen = {"margin": margins or None, "cluster": cluster, "replicate": replicate}
    verdict = out.compare_and_save(run, shown, None if is_saved else output, force, chosen=chosen)
    if judge is not None:
        if output is not None and not is_saved:
            judge.copy_answers(output)
        out.print_err(f"llm: {judge.describe()}")
    if format_ in options.GATE_FORMATS:
        gates = list(limits.make_gates(run))
        out.print_gates(format_, gates, run, run, sentences=() if verdict is None else verdict.sentences)
        return out.print_failed_gates(gates)
    out.print_run(run, format_, by, compared, verdict, percent)
    return out.print_failed_gates(limits.make_gates(run))


def _evaluate(
    *,
    baselines: bool,
    intervals: options.IntervalOptions,
    output: Path | None,
    force: bool,
    meter: out.Meter,
    format_: str,
    by: list[str],
    cluster: str | None,
    replicate: str | None,
    jobs: int | None,
    engine: str | None,
    address: str | None,
    **inputs: Any,
) -> tuple[Run, bool]:
    """Evaluate as the options ask; return the run, and whether it was saved in `output` while rows were read."""
    from dialeval.core.errors import UnsavedRunError
    from dialeval.engine.evaluate import Execution, Reading, evaluate, is_chunked
    from dialeval.engine.folding import Options
    from dialeval.io.rows import split_fields

    if engine != "ray" and address:
        raise click.UsageError("--address needs --engine ray")
    # The table of dialog-eval has its metrics and its confidence, unless others are requested.
    as_there = format_ == "metrics-txt" and intervals.method is None
    if format_ == "metrics-txt":
        inputs["metrics"] = inputs["metrics"] or "dialog-eval"
    over = [*(() if cluster is None else split_fields(cluster)), *filter(None, [replicate])]
    kept = [*by, *over]
    if kept:
        from dialeval.analysis.slices import FOUND

        inputs["keep"] = [field for field in dict.fromkeys(kept) if field not in FOUND or field in over]
    inputs["invalid"] = "skip" if inputs.pop("skip_invalid") else "refuse"
    reading = Reading(**{option.name: inputs.pop(option.name) for option in fields(Reading) if option.name in inputs})
    needs_all_rows = baselines or bool(kept) or intervals.is_resampled
    needs_all_rows |= reading.dialogues is not None or reading.scores is not None
    if over and (intervals.is_resampled or as_there):
        flag = "--cluster" if cluster is not None else "--replicate"
        raise click.UsageError(f"{flag} has intervals by formula; leave --intervals and -f metrics-txt out")
    threads, row_scores = (inputs.pop(name) for name in ("threads", "row_scores"))
    workers = _make_engine(engine, jobs, address, threads)
    scoring = Options(engine=workers if jobs or engine else None, row_scores=row_scores)
    sources = (inputs["responses"], inputs["references"], inputs["contexts"])
    chunked = is_chunked(*sources, reading.shards, scoring, large_too=not needs_all_rows)
    if chunked and needs_all_rows:
        flags = "--baselines, --dialogues, --scores, --by, --cluster, --replicate and --intervals studentized"
        raise click.UsageError(f"{flags} need all rows in memory, which a run in chunks does not keep")
    try:
        run = evaluate(
            **inputs,
            intervals="rows" if as_there else intervals.kind,
            baselines=baselines,
            output=output if chunked else None,
            reading=reading,
            execution=Execution(
                engine=workers if chunked else None,
                threads=threads,
                row_scores=row_scores,
                force=force,
                details={"command": out.quote_command()} if chunked else None,
                progress=meter.update_run,
            ),
        )
    except UnsavedRunError as error:
        out.UNSAVED.append(error)
        return cast("Run", error.run), True
    if output is not None and chunked:
        out.SAVED.append(output)
    if over:
        from dialeval.analysis.crossed import with_clusters

        return with_clusters(run, cluster, replicate=replicate), chunked
    return intervals.add_to(run, inputs["confidence"]), chunked


def _make_engine(engine: str | None, jobs: int | None, address: str | None, threads: int | None) -> Engine:
    if engine == "ray":
        if jobs:
            raise click.UsageError("--jobs is for this machine; a Ray cluster uses the cores it has")
        from dialeval.engine.cluster import Cluster

        return Cluster(address)
    if jobs and jobs > 1:
        from dialeval.engine.processes import Processes

        return Processes(jobs)
    from dialeval.engine.worker import Threads

    return Threads(threads or os.cpu_count() or 1)
