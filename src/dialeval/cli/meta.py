"""`dialeval meta`: how far metrics agree with people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli.score import pairs

if TYPE_CHECKING:
    from dialeval.analysis.agreement import Agreement

FORMATS = ("table", "json", "csv", "md", "latex")
LEVELS = ("turn", "dialogue", "system")
"""As in `analysis.levels`, which is not imported to print help."""


@click.command(
    epilog="""\b
Examples:
  dialeval meta ratings.jsonl --human overall -m nlg-bleu-4,rouge-l,chrf
  dialeval meta results/ --human ratings.jsonl --quality engaging
  dialeval meta ratings.csv --human score --field response=answer --level system -f latex
"""
)
@click.argument("subject", type=click.Path(exists=True), metavar="RUN|RATINGS")
@click.option("--human", required=True, help="The ratings of a run's responses, or the quality in the rated rows.")
@click.option("--quality", help="Which of the scores counts, where --human is a file.  [default: overall]")
@click.option("-m", "--metrics", "names", help="Metrics or families, by commas.  [default: all that there are]")
@click.option("--train", type=click.Path(), help="Training text (source side), one text a line.")
@click.option("--vocab", "vocabulary", type=click.Path(), help="Known words, one a line.  [default: those of --train]")
@click.option("--vectors", "embeddings", help="Word vectors: a file, an installed data pack, or wordllama.")
@click.option("--level", "levels", multiple=True, type=click.Choice(LEVELS), help="Repeat for several.  [default: all]")
@click.option("--resamples", type=click.IntRange(min=1), default=1000, show_default=True, help="Of the bootstrap.")
@click.option("--seed", type=click.IntRange(min=0), default=12345, show_default=True, help="Of resamples and tests.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option(
    "--field", "fields", multiple=True, callback=pairs, metavar="OURS=THEIRS", help="Name of a field in rated rows."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead.")
@click.option(
    "-f", "--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True, help="Print as."
)
@click.option("-j", "--threads", type=click.IntRange(min=1), help="Threads to use.  [default: one per core]")
def meta(
    subject: str,
    human: str,
    quality: str | None,
    names: str | None,
    levels: tuple[str, ...],
    fields: Mapping[str, str],
    output: Path | None,
    format_: str,
    **settings: Any,
) -> None:
    """Correlate metrics with human scores, at the level of turns, dialogues and systems.

    Takes a saved run with a file of rated rows, or the rated rows alone, which are then scored. A rated row is an
    object with a response, scores and, where known, references, context, system and dialog_id (.jsonl, .json, .csv,
    .tsv, .parquet). Intervals are of a bootstrap over dialogues. The length of the response is always there as the control,
    and the agreement of the annotators as the ceiling.
    """
    from dialeval.analysis.agreement import agreement
    from dialeval.core.result import RUN_FILE

    saved = Path(subject).is_dir() or Path(subject).name == RUN_FILE
    if saved and not Path(human).exists():
        raise click.BadParameter(
            f"there is no file {human!r} with ratings of the run's responses", param_hint="--human"
        )
    if not saved and quality is not None:
        raise click.UsageError(f"--quality goes with a run; {subject} holds rated rows: --human {quality} names it")
    found = agreement(
        subject,
        human if saved else None,
        quality=(quality or "overall") if saved else human,
        metrics=names,
        levels=levels or None,
        fields=fields,
        **settings,
    )
    show(found, format_, output)


def show(found: Agreement, format_: str, output: Path | None) -> None:
    """Print an agreement on stdout or write it to a file, and what was skipped on stderr."""
    from dialeval.reports import agreement as tables

    if output is not None:
        from dialeval.core.files import write_bytes

        write_bytes(output, _text(found, format_).encode())
        click.echo(f"written to {output}", err=True)
    elif format_ == "table":
        from rich.console import Console

        Console().print(tables.table(found))
    else:
        click.echo(_text(found, format_), nl=False)
    for key, reason in found.skipped.items():
        click.echo(f"skipped {key}: {reason}", err=True)
    for key, levels in found.metrics.items():
        for level, each in levels.items():
            if each.reason is not None:
                click.echo(f"no figures for {key} at {level} level: {each.reason}", err=True)
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)


def _text(found: Agreement, format_: str) -> str:
    from dialeval.reports import agreement as tables

    if format_ != "table":
        return tables.FORMATS[format_](found)
    from io import StringIO

    from rich.console import Console

    file = StringIO()
    Console(file=file, width=120).print(tables.table(found))
    return file.getvalue()
