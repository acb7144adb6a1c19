"""`dialeval score`: response files in, a table of estimates out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli.intervals import interval_options
from dialeval.cli.progress import metered
from dialeval.cli.scaling import Scaling, scaling_options, scored

if TYPE_CHECKING:
    from dialeval.core.result import Run
    from dialeval.engine.folding import Progress

FORMATS = ("table", "json", "csv", "md", "latex", "metrics-txt")


def pairs(_context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Read options of the form NAME=VALUE."""
    found = {}
    for value in values:
        name, equals, rest = value.partition("=")
        if not equals or not name or not rest:
            raise click.BadParameter(f"{value!r} is not of the form NAME=VALUE", param=parameter)
        found[name] = rest
    return found


@click.command(
    epilog="""\b
Examples:
  dialeval score damd.txt ubar.txt -r references.txt -c contexts.txt
  dialeval score outputs/ -r references.txt --train train.txt --vectors glove-6b
  dialeval score outputs/ -m distinct,length -f latex
  dialeval score rows.jsonl --field response=answer -o results/
  dialeval score 'logs/2026-*.jsonl' --jobs 8 --resume work/ -o results/
"""
)
@click.argument("responses", nargs=-1, required=True, type=click.Path())
@click.option(
    "-r", "--references", multiple=True, type=click.Path(), help="One reference per response; repeat for several."
)
@click.option("-c", "--contexts", type=click.Path(), help="What each response answers.")
@click.option("--train", type=click.Path(), help="Training text (source side), one text a line.")
@click.option("--vocab", "vocabulary", type=click.Path(), help="Known words, one a line.  [default: those of --train]")
@click.option("--vectors", "embeddings", help="Word vectors: a file, an installed data pack, or wordllama.")
@click.option(
    "--judge", type=click.Path(file_okay=False), help="Folder of a judge for adem.  [default: the shipped one]"
)
@click.option("-m", "--metrics", "names", help="Metrics or families, by commas.  [default: all that the inputs allow]")
@click.option("--bleu-smoothing", type=click.IntRange(0, 7), help="nltk's smoothing method for BLEU.  [default: 4]")
@click.option("--anchors", is_flag=True, help="Also score gold, shuffled gold, a constant and random training lines.")
@click.option("-t", "t", type=float, help="Factor of the confidence t*std/sqrt(n).  [default: 1.97]")
@click.option("--confidence", type=float, metavar="LEVEL", help="Level of the interval instead of -t, such as 0.95.")
@click.option(
    "--field", "fields", multiple=True, callback=pairs, metavar="OURS=THEIRS", help="Name of a field in rows."
)
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="Save the run in this folder.")
@click.option(
    "-f", "--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True, help="Print as."
)
@click.option(
    "--fail-under", "gates", multiple=True, callback=pairs, metavar="KEY=VALUE", help="Exit 1 if a mean is lower."
)
@interval_options
@click.option("-j", "--threads", type=click.IntRange(min=1), help="Threads to use.  [default: one per core]")
@scaling_options
def score(
    responses: tuple[str, ...],
    references: tuple[str, ...],
    bleu_smoothing: int | None,
    names: str | None,
    output: Path | None,
    format_: str,
    gates: Mapping[str, str],
    resampled: Callable[[Run], Run],
    scaling: Scaling,
    **inputs: Any,
) -> int:
    """Score response files, one system each.

    RESPONSES are files (.txt with a line per response, .jsonl, .json, .csv, .tsv, .parquet, each also .gz or .zst) or
    a directory of them; NAME=FILE names a system. A file of rows may hold contexts, references and several systems.
    What is not given switches off the metrics that need it. A quoted pattern such as 'logs/2026-*.jsonl' is one system
    in many files, which are read in batches.
    """
    from dialeval.core.arrays import return_freed_arrays

    return_freed_arrays()
    limits = _limits(gates)
    settings: dict[str, dict[str, object]] = {} if bleu_smoothing is None else {"bleu": {"smooth": bleu_smoothing}}
    run = scored(
        scaling,
        systems(responses),
        _references(references),
        output=output,
        resampled=resampled,
        metrics=names,
        settings=settings,
        **inputs,
    )
    show(run, format_)
    return failed(run, limits)


def systems(responses: Sequence[str]) -> Any:
    """What `evaluate` takes for the given arguments: a path, or a mapping of names to paths."""
    from dialeval.data.shards.sources import system_name

    if len(responses) == 1 and not _named(responses[0]):
        return responses[0]
    found: dict[str, str] = {}
    for argument in responses:
        name, path = argument.split("=", 1) if _named(argument) else (system_name(argument), argument)
        if name in found:
            raise click.UsageError(f"two systems are called {name!r} ({found[name]}, {path}); write NAME=FILE for one")
        found[name] = path
    return found


def _named(argument: str) -> bool:
    name, equals, _ = argument.partition("=")
    return bool(equals) and "/" not in name and not Path(argument).exists()


def _references(paths: tuple[str, ...]) -> Any:
    if len(paths) < 2:
        return paths[0] if paths else None
    return {f"reference {number}": path for number, path in enumerate(paths, 1)}


def show(run: Run, format_: str) -> None:
    """Print a run on stdout, and what was skipped on stderr."""
    from dialeval.reports import anchors, tables

    if format_ == "table":
        from rich.console import Console

        Console().print(tables.table(run))
        if anchors.lines_of(run):
            Console().print(anchors.table(run))
    else:
        click.echo(tables.FORMATS[format_](run), nl=False)
        if format_ in anchors.FORMATS and anchors.lines_of(run):
            click.echo(anchors.FORMATS[format_](run), nl=False)
    if format_ == "metrics-txt" and (other := [key for key in run.keys_in_order if key not in tables.METRICS_TXT]):
        click.echo(f"metrics-txt has no column for {', '.join(other)}; choose another format for them", err=True)
    for key, reason in run.skipped.items():
        click.echo(f"skipped {key}: {reason}", err=True)
    for warning in run.warnings:
        click.echo(f"warning: {warning}", err=True)


def _limits(gates: Mapping[str, str], flag: str = "--fail-under") -> dict[str, float]:
    try:
        return {key: float(value) for key, value in gates.items()}
    except ValueError as error:
        raise click.UsageError(f"{flag} wants KEY=NUMBER: {error}") from None


def failed(run: Run, limits: Mapping[str, float]) -> int:
    """1 if some system's mean is below its limit (or was not computed), with a line for each; else 0."""
    status = 0
    for key, limit in limits.items():
        for system, result in run.items():
            if result.role != "system":  # a floor is meant to be low
                continue
            mean = result[key].mean if key in result else None
            if mean is None or not mean >= limit:
                shown = "not computed" if mean is None else f"{mean:.6g}"
                click.echo(f"gate failed: {key} of {system} is {shown}, limit {limit:g}", err=True)
                status = 1
    return status


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """A progress bar on stderr if that is a terminal, else nothing."""
    with metered("auto") as meter:
        yield None if meter is None else meter.run
