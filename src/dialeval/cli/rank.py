"""`dialeval rank`: systems in order of which of two responses was preferred."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dialeval.cli import options
from dialeval.cli.output import check_places, print_as

_FILE_WIDTH = 120
"""Characters in a line of a table that is written to a file."""


@options.examples(
    "dialeval rank pairs.jsonl",
    "dialeval rank ann.csv bob.csv --field a=left --field b=right --field better=winner --length",
    "dialeval rank results/ --by judge --tie 0.2",
)
@click.command()
@click.argument("pairs", nargs=-1, required=True, type=click.Path(exists=True), metavar="PAIRS...|RUN")
@click.option("--by", metavar="KEY", help="With a run: the metric whose values are compared row by row.")
@click.option("--tie", type=float, default=0.0, help="With a run: a difference up to this is a tie.")
@click.option("--length", is_flag=True, help="Hold the length of the responses equal.")
@click.option("--systems", metavar="NAMES", help="Only these systems, by commas.  [default: all]")
@click.option("--confidence", "level", type=float, default=0.95, metavar="LEVEL", help="Level of the intervals.")
@options.fields_in("pairs")
@options.output_file
@options.format_()
def rank(pairs: tuple[str, ...], output: Path | None, format_: str, systems: str | None, **settings: Any) -> None:
    """Rank systems by PAIRS of responses of which one was preferred, or by a metric of a saved RUN.

    A pair is a row with a, b (the systems) and better (a, b or tie), and where known dialog_id, response_a and
    response_b (.jsonl, .json, .csv, .tsv, .parquet). Strengths are those of Bradley and Terry with ties; intervals are
    Student's over dialogues (jackknife).
    """
    from dialeval.analysis.ranking import rank as ranked
    from dialeval.core.result import RUN_FILE, files_of, load
    from dialeval.reports import people

    first = Path(pairs[0])
    saved = first.is_dir() or first.name == RUN_FILE
    if saved and len(pairs) > 1:
        raise click.UsageError("give one run, or any number of files with pairs")
    check_places(None, files_of(pairs[0]) if saved else pairs, files=(output,))
    found = ranked(
        load(first) if saved else list(pairs),
        systems=None if systems is None else [name.strip() for name in systems.split(",")],
        **settings,
    )
    print_as(format_, people, found, output, _FILE_WIDTH)
