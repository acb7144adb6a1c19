"""`dialeval schema`: the JSON Schemas of what dialeval writes."""

from __future__ import annotations

import click

from dialeval.cli import options
from dialeval.cli.output import json_bytes, show, tell


@options.examples("dialeval schema", "dialeval schema run > run.schema.json")
@click.command()
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """List what dialeval writes; with a NAME, print its JSON Schema."""
    from dialeval.core.errors import SettingError
    from dialeval.reports import schemas

    if name is None:
        width = max(map(len, schemas.WRITTEN))
        files = max(len(each.file) for each in schemas.WRITTEN.values())
        tell("\n".join(f"{known:<{width}}  {each.file:<{files}}  {each.by}" for known, each in schemas.WRITTEN.items()))
        return
    try:
        show(json_bytes(schemas.schema(name)).decode())
    except SettingError as error:
        raise click.UsageError(str(error)) from None
