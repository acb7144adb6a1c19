"""`dialeval demo`: everything that exists so far, on the sample that ships in the package."""

from __future__ import annotations

from pathlib import Path

import click


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
    """Evaluate the shipped sample of invented chats, print a table, write a report and print its path last."""
    from dialeval import sample
    from dialeval.cli.score import progress_bar, show
    from dialeval.engine.evaluate import evaluate
    from dialeval.reports.html import report

    here = sample.folder()
    with progress_bar() as progress:
        run = evaluate(
            here / "responses",
            here / "references.txt",
            here / "contexts.txt",
            train=here / "train.txt",
            embeddings=here / "vectors.txt",
            progress=progress,
        )
    run.save(output)
    show(run, "table")
    path = report(run, output / "report.html", command="dialeval demo")
    click.echo(str(path.resolve()))
