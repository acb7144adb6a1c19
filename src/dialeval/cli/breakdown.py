"""`dialeval breakdown`: breakdown detectors, as the challenge (DBDC) evaluates them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialeval.cli.intervals import interval_options
from dialeval.cli.score import _limits, failed, pairs, show, systems

if TYPE_CHECKING:
    from dialeval.engine.breakdown import BreakdownRun

FORMATS = ("original", "table", "json", "csv", "md", "latex")


def thresholds(_context: click.Context, parameter: click.Parameter, value: str) -> list[float]:
    """Read one threshold or several by commas."""
    try:
        return [float(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} is no number, nor several by commas", param=parameter) from None


@click.command(
    epilog="""\b
Examples:
  dialeval breakdown -p data/ -o labels/ -t 0.5
  dialeval breakdown -p test.jsonl -o mine.jsonl -o theirs.jsonl -t 0,0.3,0.5 --development dev/
  dialeval breakdown -p data/ -o labels/ --match position --lenient
"""
)
@click.option(
    "-p", "--data", required=True, type=click.Path(), help="Annotated dialogues: folder of *.log.json, .jsonl, .tar.gz."
)
@click.option(
    "-o",
    "--labels",
    required=True,
    multiple=True,
    help="A detector's labels: folder of *.labels.json, .jsonl, .tar.gz, or NAME=PATH; repeat for several.",
)
@click.option(
    "-t",
    "--threshold",
    default="0.0",
    callback=thresholds,
    show_default=True,
    help="Share from which on T or X is the reference; several by commas.",
)
@click.option(
    "--match",
    type=click.Choice(["turn-index", "position"]),
    default="turn-index",
    show_default=True,
    help="Match labels with turns by turn-index, or by position as the original does.",
)
@click.option("--lenient", is_flag=True, help="Count faults of the files and go on.")
@click.option("--development", type=click.Path(), help="Annotated dialogues for the floor of the mean distribution.")
@click.option("--no-anchors", is_flag=True, help="Leave floors and ceilings out of the table.")
@click.option(
    "--turns", "turns_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a CSV row per turn."
)
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), help="Save the run in this folder.")
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Print as.  [default: original for one detector and threshold, else table]",
)
@click.option(
    "--fail-under", "gates", multiple=True, callback=pairs, metavar="KEY=VALUE", help="Exit 1 if a mean is lower."
)
@interval_options
def breakdown(
    data: str,
    labels: tuple[str, ...],
    threshold: list[float],
    match: str,
    lenient: bool,
    development: str | None,
    no_anchors: bool,
    turns_file: Path | None,
    save: Path | None,
    format_: str | None,
    gates: Mapping[str, str],
    resampled: Callable[[BreakdownRun], BreakdownRun],
) -> int:
    """Evaluate dialogue breakdown detectors: labels and probabilities against what annotators said.

    Prints the lines of the challenge's eval.py. As a table, detectors stand beside floors (detectors that look at
    nothing) and ceilings (annotators against each other), so that a figure can be read between them.
    """
    from dialeval.core.errors import DataError
    from dialeval.engine.breakdown import evaluate_breakdown

    limits = _limits(gates)
    detectors = systems(labels)
    single = len(labels) == 1 and len(threshold) == 1
    shown = format_ or ("original" if single else "table")
    if shown == "original" and not single:
        raise click.UsageError("-f original prints one detector at one threshold")
    try:
        run = evaluate_breakdown(
            data,
            detectors,
            threshold,
            match=match,  # type: ignore[arg-type]
            lenient=lenient,
            development=development,
            anchors=not no_anchors and (shown != "original" or save is not None),
        )
    except DataError as error:
        # All of them, and not the first few: no other command lists the faults of these files.
        for fault in error.faults:
            click.echo(f"dialeval: {fault}", err=True)
        return 2
    run = resampled(run)
    if save is not None:
        _save(run, save)
    if turns_file is not None:
        _write_turns(run, turns_file)
    _print(run, shown)
    return failed(run.only_detectors, limits)


def _save(run: BreakdownRun, folder: Path) -> None:
    from dialeval.cli.saving import save
    from dialeval.engine.breakdown_curves import with_curves

    save(with_curves(run), folder)


def _write_turns(run: BreakdownRun, path: Path) -> None:
    from dialeval.core.files import write_bytes
    from dialeval.reports.breakdown import turns_csv

    write_bytes(path, turns_csv(run).encode())
    click.echo(f"turns in {path}", err=True)


def _print(run: BreakdownRun, format_: str) -> None:
    from dialeval.reports.breakdown import original, tables_text

    if format_ != "original":
        show(run, format_)
        if format_ == "table":
            click.echo("\n" + tables_text(run), nl=False)
        return
    if len(run.detectors) > 1:
        raise click.UsageError(f"there are {len(run.detectors)} detectors; choose one, or another format (-f table)")
    click.echo(original(run), nl=False)
    for warning in run.warnings:
        click.echo(f"warning: {warning}", err=True)
