"""`dialeval demo`: every family of metrics, on the sample that ships in the package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialeval.cli import options
from dialeval.cli.output import print_as, print_run, show, tell
from dialeval.cli.progress import metered

if TYPE_CHECKING:
    from dialeval.core.result import Run


@options.examples("dialeval demo -o dialeval-demo")
@click.command()
@click.option(
    "-o", "--output", type=options.FOLDER, default=Path("dialeval-demo"), help="Folder for the run and the report."
)
def demo(output: Path) -> None:
    """Evaluate the shipped sample of invented chats, print tables, write a report and print its path last."""
    from dialeval import sample
    from dialeval.breakdown import evaluate_breakdown
    from dialeval.core.needs import Need
    from dialeval.engine.breakdown_curves import with_curves
    from dialeval.engine.evaluate import evaluate
    from dialeval.engine.resources import lacking
    from dialeval.multiwoz import Evaluator
    from dialeval.reports.html import report

    here = sample.folder()
    with metered() as meter:
        run = evaluate(
            here / "responses",
            here / "references.txt",
            here / "contexts.txt",
            train=here / "train.txt",
            embeddings=here / "vectors.txt",
            metrics="all" if lacking(Need.JUDGE) else "all,adem",
            progress=meter.run,
        )
    run = _shown("Responses", run, output)
    _compare(run)
    sampled = evaluate(
        {name: here / "lsdscc" / f"{name}.txt" for name in ("varied", "safe")},
        reference_groups=here / "lsdscc" / "groups.json",
    )
    sampled = _shown("Sampled answers", sampled, output / "lsdscc")
    evaluator, predictions = Evaluator(data="town", dst=True), here / "town" / "predictions"
    town = evaluator.with_transcripts(evaluator.run(predictions), predictions)
    town = _shown("Task dialogues", town, output / "town")
    talks = here / "breakdown"
    detected = with_curves(evaluate_breakdown(talks / "data", [talks / "keywords", talks / "cautious"]))
    detected = _shown("Breakdown detection", detected, output / "breakdown")
    path = report([run, sampled, town, detected], output / "report.html", command="dialeval demo")
    show(f"{path.resolve()}\n")


def _shown(title: str, run: Run, folder: Path) -> Run:
    """The run with intervals by resampling, after it was saved and printed."""
    from dialeval.analysis.intervals import with_intervals

    # `with_intervals` warns of values that cannot have one; the demo's tables show that well enough.
    run = replace(with_intervals(run), warnings=run.warnings)
    run.save(folder)
    tell(f"\n{title}\n")
    print_run(run, "table")
    return run


def _compare(run: Run) -> None:
    """Print which system is better, by a few of the metrics."""
    from dialeval.analysis.comparison import compare
    from dialeval.reports import comparisons

    keys = [key for key in ("bleu-4", "distinct-2", "adem") if key in run.keys_in_order]
    tell("\nCompared with the first system\n")
    print_as("table", comparisons, compare(run, metrics=keys))
