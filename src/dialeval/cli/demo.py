"""`dialeval demo`: everything that exists so far, on the sample that ships in the package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dialeval.core.result import Run


@click.command(
    epilog="""\b
Example:
  dialeval demo -o dialeval-demo
"""
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("dialeval-demo"),
    show_default=True,
    help="Folder for the run and the report.",
)
def demo(output: Path) -> None:
    """Evaluate the shipped sample of invented chats, print tables, write a report and print its path last."""
    from dialeval import sample
    from dialeval.breakdown import evaluate_breakdown
    from dialeval.cli.score import progress_bar
    from dialeval.core.needs import Need
    from dialeval.engine.breakdown_curves import with_curves
    from dialeval.engine.evaluate import evaluate
    from dialeval.engine.resources import lacking
    from dialeval.multiwoz import Evaluator
    from dialeval.reports.html import report

    here = sample.folder()
    with progress_bar() as progress:
        run = evaluate(
            here / "responses",
            here / "references.txt",
            here / "contexts.txt",
            train=here / "train.txt",
            embeddings=here / "vectors.txt",
            metrics="all" if lacking(Need.JUDGE) else "all,adem",
            progress=progress,
        )
    run = _told("Responses", run, output)
    _compared(run)
    sampled = evaluate(
        {name: here / "lsdscc" / f"{name}.txt" for name in ("varied", "safe")},
        reference_groups=here / "lsdscc" / "groups.json",
    )
    sampled = _told("Sampled answers", sampled, output / "lsdscc")
    evaluator, predictions = Evaluator(data="town", dst=True), here / "town" / "predictions"
    town = evaluator.with_transcripts(evaluator.run(predictions), predictions)
    town = _told("Task dialogues", town, output / "town")
    talks = here / "breakdown"
    detected = with_curves(evaluate_breakdown(talks / "data", [talks / "keywords", talks / "cautious"]))
    detected = _told("Breakdown detection", detected, output / "breakdown")
    path = report([run, sampled, town, detected], output / "report.html", command="dialeval demo")
    click.echo(str(path.resolve()))


def _told(title: str, run: Run, folder: Path) -> Run:
    """The run with intervals by resampling, saved and shown."""
    from dialeval.analysis.intervals import with_intervals
    from dialeval.cli.score import show

    # Whoever asks for intervals is told what has none (the agreement of annotators); a demo shows it well enough.
    run = replace(with_intervals(run), warnings=run.warnings)
    run.save(folder)
    click.echo(f"\n{title}\n")
    show(run, "table")
    return run


def _compared(run: Run) -> None:
    """Which system is better, by a few of the metrics."""
    from rich.console import Console

    from dialeval.analysis.comparison import compare
    from dialeval.reports import comparisons

    keys = [key for key in ("bleu-4", "distinct-2", "adem") if key in run.keys_in_order]
    click.echo("\nCompared with the first system\n")
    Console().print(comparisons.table(compare(run, metrics=keys)))
