"""`dialeval lsdscc`: files of several hypotheses per query in, MDS, PDS and MaxBLEU out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli.intervals import interval_options
from dialeval.cli.score import FORMATS

if TYPE_CHECKING:
    from dialeval.core.result import Run

ALIGNERS = ("bleu", "nltk-bleu", "nltk-nist", "sacre", "embedding")
"""As in `metrics.coverage.aligners`, which is not imported to print help."""
METRICS = "mds,pds,max-bleu"


@click.command(
    epilog="""\b
Examples:
  dialeval lsdscc beam.txt sampled.txt -r groups.json
  dialeval lsdscc sampled.txt -r groups.json --aligner nltk-bleu --smoothing 3 -f json
  dialeval lsdscc sampled.txt -r groups.json --aligner embedding --vectors wordllama --report report.html
  dialeval lsdscc sampled.jsonl -r references.json --aligner sacre --auto-groups 0.2
"""
)
@click.argument("hypotheses", nargs=-1, required=True, type=click.Path())
@click.option("-r", "--references", "groups", required=True, type=click.Path(), help="Reference groups, a JSON file.")
@click.option("--eos", default="</s>", show_default=True, help="What stands between two hypotheses of a line.")
@click.option("--aligner", type=click.Choice(ALIGNERS), default="bleu", show_default=True, help="What finds the group.")
@click.option("-n", "n", type=click.IntRange(1, 5), default=4, show_default=True, help="Longest n-grams to count.")
@click.option("--smoothing", type=click.IntRange(0, 7), help="nltk's smoothing method for nltk-bleu.  [default: none]")
@click.option(
    "--auto-groups",
    type=click.FloatRange(min=0, min_open=True),
    metavar="THRESHOLD",
    help="Group the references by their similarity, at least this, instead of taking the groups as given.",
)
@click.option("--vectors", "embeddings", help="Word vectors for embedding: a file, a data pack, or wordllama.")
@click.option("--train", type=click.Path(), help="Text whose frequent words weigh less under embedding.")
@click.option("-t", "t", type=float, help="Factor of the confidence t*std/sqrt(n).  [default: 1.97]")
@click.option("--confidence", type=float, metavar="LEVEL", help="Level of the interval instead of -t, such as 0.95.")
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="Save the run in this folder.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write an HTML report to this file.")
@click.option(
    "-f", "--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True, help="Print as."
)
@interval_options
@click.option("-j", "--threads", type=click.IntRange(min=1), help="Threads to use.  [default: one per core]")
def lsdscc(
    hypotheses: tuple[str, ...],
    groups: str,
    aligner: str,
    n: int,
    smoothing: int | None,
    auto_groups: float | None,
    output: Path | None,
    report: Path | None,
    format_: str,
    resampled: Callable[[Run], Run],
    **inputs: Any,
) -> None:
    """Measure how many of the things one could answer sampled responses cover: MDS, PDS and MaxBLEU.

    HYPOTHESES are files with a line per query and --eos between the hypotheses (.json, .jsonl: a list per query; each
    also .gz or .zst), one system each, or a directory of them; NAME=FILE names a system. The references are a JSON
    object of query -> group -> list, in the order of the lines. The default aligner is that of the LSDSCC program; it
    favours short hypotheses. Where each hypothesis landed is in the JSON, in the report and in the saved run.
    """
    from dialeval.cli.saving import command_line, save
    from dialeval.cli.score import progress_bar, show, systems
    from dialeval.engine.evaluate import evaluate

    if smoothing is not None and aligner != "nltk-bleu":
        raise click.UsageError(f"--smoothing is for --aligner nltk-bleu; {aligner} has none to choose")
    if inputs["embeddings"] is not None and aligner != "embedding":
        raise click.UsageError(f"--vectors is for --aligner embedding; {aligner} looks at words alone")
    settings = {"aligner": aligner, "n": n, "smooth": smoothing or 0, "threshold": auto_groups or 0.0}
    with progress_bar() as progress:
        run = evaluate(
            systems(hypotheses),
            reference_groups=groups,
            metrics=METRICS,
            settings={"coverage": settings},
            progress=progress,
            alignments=format_ == "json" or output is not None or report is not None,
            **inputs,
        )
    run = resampled(run)
    if output is not None:
        save(run, output)
    if report is not None:
        from dialeval.reports.html import report as write_report

        click.echo(f"report in {write_report(run, report, command_line())}", err=True)
    show(run, format_)
