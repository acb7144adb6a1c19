"""`dialeval validate`: every fault of every file at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from dialeval.cli import options
from dialeval.cli.output import tell


@options.examples("dialeval validate outputs/*.txt rows.jsonl")
@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@options.row_fields
@options.reading
def validate(files: tuple[str, ...], fields: Mapping[str, str], **reading: Any) -> int:
    """List every fault of every file, or say what each good file holds. Exit status 2 if there is a fault."""
    from dialeval.data.rows.checks import check, summary

    faulty = False
    for file in files:
        faults = check([file], fields or None, **reading)
        for fault in faults:
            tell(str(fault))
        if not faults:
            tell(str(summary(file, fields or None, **reading)))
        faulty = faulty or bool(faults)
    return 2 if faulty else 0
