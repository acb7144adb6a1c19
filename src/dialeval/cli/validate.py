"""`dialeval validate`: every fault of every file at once."""

from __future__ import annotations

from collections.abc import Mapping

import click

from dialeval.cli.score import pairs


@click.command(
    epilog="""\b
Example:
  dialeval validate outputs/*.txt rows.jsonl
"""
)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "--field", "fields", multiple=True, callback=pairs, metavar="OURS=THEIRS", help="Name of a field in rows."
)
def validate(files: tuple[str, ...], fields: Mapping[str, str]) -> int:
    """List every fault of every file, or say what each good file holds. Exit status 2 if there is a fault."""
    from dialeval.data.rows.checks import check, summary

    faulty = False
    for file in files:
        faults = check([file], fields or None)
        for fault in faults:
            click.echo(str(fault))
        if not faults:
            click.echo(str(summary(file, fields or None)))
        faulty = faulty or bool(faults)
    return 2 if faulty else 0
