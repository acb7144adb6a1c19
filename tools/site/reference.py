"""Reference pages that are made from the code: the help of every command, and the schemas of files."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
from tools.site.tables import table

from dialeval.cli.main import dialeval_command
from dialeval.io.row_shapes import OWN, SHAPES
from dialeval.reports.schemas import WRITTEN, make_schema

SCHEMAS = """\
# Files and their schemas

A JSON Schema (draft 2020-12) for each JSON that dialeval writes. `dialeval schema NAME` prints it, so that a program
can check what it reads without this page:

```sh
dialeval schema run > run.schema.json
```

Later versions may add fields ([versions](trust.md#saved-files)). In printed JSON (`-f json`), a number that could
not be computed is null.

TABLE

Next to `run.json` a saved run has tables in Parquet, whose columns are named in them: `scores.parquet` (a value per row
and metric), `rows.parquet` (texts, dialogues and turns) and `contributions.parquet` (what rows add to values of all
rows together). A run in chunks has several of the first two (`scores-00000.parquet` and so on), which `run.json` lists
in order.
"""


def schemas_page() -> str:
    """What dialeval writes, with its schemas."""
    rows = [[f"[`{name}`](schemas/{name}.schema.json)", each.file, each.by] for name, each in WRITTEN.items()]
    return SCHEMAS.replace("TABLE", table(["schema", "file", "written by"], rows))


def schemas() -> Iterator[tuple[str, str]]:
    """The place and the text of each schema."""
    for name in WRITTEN:
        yield f"schemas/{name}.schema.json", json.dumps(make_schema(name), indent=2) + "\n"


def list_formats(page: str) -> str:
    """The page on file formats, with the table of the rows that are read."""
    rows = [[f"`{shape.name}`", shape.title, "yes" if shape.seen else "no"] for shape in (OWN, *SHAPES)]
    return page.replace("<!-- formats -->", table(["name", "a row is", "read in a real file"], rows))


def commands_page() -> str:
    """The help of every command, as `--help` prints it."""
    parts = [
        "---\nsearch:\n  boost: 0.3\n---",
        "# Every command",
        "What `dialeval COMMAND --help` prints. [What all commands share](command-line.md) is on a page of its own.",
    ]
    for name, command, level in _commands(dialeval_command, "dialeval"):
        context = click.Context(command, info_name=name, max_content_width=100, terminal_width=100, show_default=True)
        parts += [f"{'#' * (level + 1)} {name}", f"```text\n{command.get_help(context)}\n```"]
    return "\n\n".join(parts) + "\n"


def _commands(group: click.Group, name: str, level: int = 1) -> Iterator[tuple[str, click.Command, int]]:
    context = click.Context(group, info_name=name)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        if command is not None:
            yield f"{name} {each}", command, level
            if isinstance(command, click.Group):
                yield from _commands(command, f"{name} {each}", level + 1)
