"""`dialeval meta`: how far metrics agree with people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from dialeval.cli import options
from dialeval.cli.output import check_places, print_as, print_skipped, print_warnings, say

LEVELS = ("turn", "dialogue", "system")
"""As in `analysis.levels`, which is not imported to print help."""
_FILE_WIDTH = 120
"""Characters in a line of a table that is written to a file."""


@options.examples(
    "dialeval meta ratings.jsonl --human overall -m nlg-bleu-4,rouge-l,chrf",
    "dialeval meta results/ --human ratings.jsonl --quality engaging",
    "dialeval meta ratings.csv --human overall --field response=answer --level system -f latex",
    "dialeval meta results/ --human ratings.jsonl -f html -o agreement.html",
)
@click.command()
@click.argument("subject", type=click.Path(exists=True), metavar="RUN|RATINGS")
@click.option("--human", required=True, help="The ratings of a run's responses, or the quality in the rated rows.")
@click.option("--quality", help="Which of the scores counts, where --human is a file.  [default: overall]")
@options.metrics("all that there are")
@options.tokenizer
@options.resources
@click.option("--level", "levels", multiple=True, type=click.Choice(LEVELS), help="Repeat for several.  [default: all]")
@options.bootstrap_resamples
@click.option("--seed", type=options.SEED, default=12345, help="Of resamples and tests.")
@click.option("--confidence", type=float, default=0.95, metavar="LEVEL", help="Level of the intervals.")
@click.option("--sample", type=click.Path(), help="The folder that the rated rows were drawn into.")
@options.fields_in("rated rows")
@options.output_file
@options.format_((*options.FORMATS, "html"))
@options.threads
def meta(
    subject: str,
    human: str,
    quality: str | None,
    levels: tuple[str, ...],
    output: Path | None,
    format_: str,
    **settings: Any,
) -> None:
    """Correlate metrics with human scores, at the level of turns, dialogues and systems.

    Takes a saved run with a file of rated rows, or the rated rows alone, which are then scored. A rated row is an
    object with a response, scores and, where known, references, context, system and dialog_id (.jsonl, .json, .csv,
    .tsv, .parquet). Intervals are over dialogues. The length of the response is always there as the
    control, and the agreement of the annotators as the ceiling.
    """
    from dialeval.analysis.agreement import agreement
    from dialeval.core.result import RUN_FILE, files_of
    from dialeval.reports import agreement as tables

    saved = Path(subject).is_dir() or Path(subject).name == RUN_FILE
    if saved and not os.path.exists(human):  # noqa: PTH110  (pathlib raises for a name that is too long)
        raise click.BadParameter(
            f"there is no file {human!r} with ratings of the run's responses", param_hint="--human"
        )
    if not saved and quality is not None:
        raise click.UsageError(f"--quality goes with a run; {subject} holds rated rows: --human {quality} names it")
    read = (
        files_of(subject) if saved else subject,
        human,
        *(settings[name] for name in ("train", "vocabulary", "embeddings")),
    )
    check_places(None, read, files=(output,))
    found = agreement(
        subject,
        human if saved else None,
        quality=(quality or "overall") if saved else human,
        levels=levels or None,
        **settings,
    )
    print_as(format_, tables, found, output, _FILE_WIDTH)
    print_skipped(found.skipped)
    for key, by_level in found.metrics.items():
        for level, correlation in by_level.items():
            if correlation.reason is not None:
                say(f"no figures for {key} at {level} level: {correlation.reason}")
    print_warnings(found.warnings)
