"""Reference pages that are made from the code: the help of every command."""

from __future__ import annotations

from collections.abc import Iterator

import click
from tools.site.tables import table

from dialeval.cli.main import dialeval_command
from dialeval.io.row_shapes import OWN, SHAPES


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
