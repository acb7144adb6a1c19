"""`dialeval report`: saved runs in, one offline HTML file out."""

from __future__ import annotations

import shlex
from pathlib import Path

import click


@click.command(
    epilog="""\b
Example:
  dialeval score damd.txt ubar.txt -r references.txt -o results
  dialeval report results -o report.html
"""
)
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The file to write.",
)
def report(runs: tuple[str, ...], output: Path) -> None:
    """Show saved RUNS (folders that `dialeval score -o` wrote) in one HTML file that needs no network."""
    from dialeval.core.result import load
    from dialeval.reports.html import report as write_report

    command = shlex.join(["dialeval", "report", *runs, "-o", str(output)])
    click.echo(str(write_report([load(run) for run in runs], output, command=command).resolve()))
