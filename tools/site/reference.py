"""Reference pages that are made from the code: the public names of Python, and the help of every command."""

from __future__ import annotations

from collections.abc import Iterator

import click

import dialeval
from dialeval.cli.main import dialeval_command

MODULES = {
    "dialeval.multiwoz": "Task dialogues",
    "dialeval.breakdown": "Breakdown detection",
    "dialeval.lsdscc": "Sampled answers",
    "dialeval.adem": "Learned judges",
}
"""Modules that are public as a whole, each with what it is about."""


def python_page() -> str:
    """The public names of the package, for mkdocstrings to fill in."""
    names = [name for name in dialeval.__all__ if not name.startswith("__")]
    functions = [name for name in names if name[0].islower()]
    errors = [name for name in names if name.endswith("Error")]
    classes = [name for name in names if name not in {*functions, *errors}]
    parts = [
        "# Python",
        "What `import dialeval` gives. Everything else may change without notice ([versions](versions.md)).",
    ]
    for title, some in {"Functions": functions, "Results": classes, "Errors": errors}.items():
        parts += [f"## {title}", *(f"::: dialeval.{name}" for name in some)]
    for module, title in MODULES.items():
        parts += [
            f"## {title}: `{module}`",
            f"::: {module}\n    options:\n      show_root_heading: false\n      heading_level: 3",
        ]
    return "\n\n".join(parts) + "\n"


def commands_page() -> str:
    """The help of every command, as `--help` prints it."""
    parts = [
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
