"""`dialeval estimate`: what people would say, from ratings of some rows and a judge on all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dialeval.cli import options
from dialeval.cli.output import check_places, print_as, print_warnings

_FILE_WIDTH = 120
"""Characters in a line of a table that is written to a file."""


@options.examples(
    "dialeval estimate results/ --human ratings.jsonl --by judge",
    "dialeval estimate results/ --human ann.jsonl --human bob.jsonl --sample to-rate/ --by judge,rouge-l",
    "dialeval estimate results/ --human ratings.jsonl --by judge --as-if-random -f md",
)
@click.command()
@click.argument("run", type=click.Path(exists=True))
@click.option("--human", required=True, multiple=True, type=click.Path(), help="Ratings; repeat for several files.")
@click.option(
    "--sample",
    type=click.Path(),
    help="The folder that the rated rows were drawn into.  [default: the one beside the ratings]",
)
@click.option("--by", metavar="KEYS", default="", help="The judge: a metric of the run, or several by commas.")
@click.option("--quality", default="overall", help="Which of the scores counts.")
@options.choice("--raters", ["fixed", "random"], "Intervals for these raters, or for others as well (from 5 on).")
@options.choice("--of", ["dialogues", "run"], "Of other dialogues of the same kind, or of just the rows of the run.")
@click.option("--baseline", metavar="NAME", help="The system that others are compared with.  [default: the first]")
@click.option("--confidence", "level", type=float, default=0.95, metavar="LEVEL", help="Level of the intervals.")
@click.option("--as-if-random", is_flag=True, help="Take ratings that were not drawn for a random sample, and say so.")
@click.option("--seed", type=options.SEED, default=12345, help="Of the folds that judges are combined by.")
@options.fields_in("rated rows")
@options.output_file
@options.format_()
def estimate(run: str, human: tuple[str, ...], output: Path | None, format_: str, **settings: Any) -> None:
    """Estimate what people would say of the systems of a saved RUN, on average and for each difference.

    The judge's mean over all rows is corrected by what people say of the rated ones (prediction-powered inference),
    with the probabilities that rows were drawn with, and over whole dialogues. The interval from ratings alone stands
    beside it. Ratings are lines with an id of rows.jsonl, a rater and scores.
    """
    from dialeval.analysis.people import estimate as estimated
    from dialeval.core.result import files_of
    from dialeval.reports import people

    check_places(None, (files_of(run), *human), files=(output,))
    found = estimated(run, human[0] if len(human) == 1 else list(human), **settings)
    print_as(format_, people, found, output, _FILE_WIDTH)
    print_warnings(found.warnings)
