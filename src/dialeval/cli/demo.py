"""`dialeval demo`: every family of metrics, on the sample that ships in the package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialeval.cli import options
from dialeval.cli.output import show, tell
from dialeval.cli.progress import metered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval.core.result import Run

RESPONSES = ("bleu-4", "rouge-l", "embedding-average", "distinct-2", "adem")
SAMPLED = ("mds", "pds", "max-bleu")
TASKS = ("inform", "success", "bleu/town", "combined")
BREAKDOWN = ("accuracy", "f1-x", "jsd-o-t-x")
"""The metrics that are printed: all tables together fit on two screens of 80 by 24. The report has the others."""


@options.examples("dialeval demo", "dialeval demo -o dialeval-demo --open")
@click.command()
@click.option(
    "-o", "--output", type=options.FOLDER, default=Path("dialeval-demo"), help="Folder for the runs and the report."
)
@options.open_page
def demo(output: Path, opened: bool) -> None:
    """Evaluate the shipped sample of invented chats, print the main figures, write a report and print its path last."""
    from dialeval import sample
    from dialeval.breakdown import evaluate_breakdown
    from dialeval.core.needs import Need
    from dialeval.engine.breakdown import with_curves
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
    _shown("Responses", run, output, RESPONSES, first=True)
    sampled = evaluate(
        {name: here / "lsdscc" / f"{name}.txt" for name in ("varied", "safe")},
        reference_groups=here / "lsdscc" / "groups.json",
    )
    _shown("Sampled answers", sampled, output / "lsdscc", SAMPLED)
    evaluator, predictions = Evaluator(data="town", dst=True), here / "town" / "predictions"
    town = evaluator.with_transcripts(evaluator.run(predictions), predictions)
    _shown("Task dialogues", town, output / "town", TASKS)
    talks = here / "breakdown"
    detected = with_curves(evaluate_breakdown(talks / "data", [talks / "keywords", talks / "cautious"]))
    _shown("Breakdown detection", detected, output / "breakdown", BREAKDOWN)
    path = report([run, sampled, town, detected], output / "report.html", command="dialeval demo").resolve()
    tell("The report has every metric, test and row. Open it in a browser; it is one file:")
    show(f"{path}\n")
    if opened:
        click.launch(path.as_uri())


def _shown(title: str, run: Run, folder: Path, keys: Sequence[str], first: bool = False) -> None:
    """Save a run and print its main figures; with the `first` one comes the verdict, and what the tables mean."""
    from dialeval.reports.comparisons import judge_run
    from dialeval.reports.tables import table

    run.save(folder)
    tell(title)
    main = {
        name: replace(result, estimates={key: result[key] for key in keys if key in result})
        for name, result in run.items()
        if result.role == "system"
    }
    show(table(replace(run, systems=main), judge_run(run) if first else None, notes=first))
    tell("")
