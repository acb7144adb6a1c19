"""`dialeval formats`: which files are read, and which rows of other programs in them."""

from __future__ import annotations

import json

import click

from dialeval.cli import options
from dialeval.cli.output import tell


@options.examples("dialeval formats", "dialeval formats sharegpt")
@click.command()
@click.argument("name", required=False)
def formats(name: str | None) -> None:
    """List the shapes of rows that are recognised: where each holds our fields, and an example; or explain one NAME.

    Any of them may stand in .jsonl, .json, .parquet, .arrow or, as far as cells hold it, .csv and .tsv; also in .gz and
    .zst. For others, `--field response=NAME` maps names, and `--field response=output.text` leads into objects.
    """
    from dialeval.data.formats.row_shapes import OWN, SHAPES

    shapes = {shape.name: shape for shape in (OWN, *SHAPES)}
    if name is not None and name not in shapes:
        raise click.UsageError(f"there is no shape {name!r}; there are {', '.join(shapes)}")
    for shape in shapes.values() if name is None else [shapes[name]]:
        example = json.dumps(shape.example, ensure_ascii=False, indent=None if name is None else 2)
        tell(f"{shape.name}: {shape.title}\n  {shape.explained}\n  {example}")
