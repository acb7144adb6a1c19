"""The page on the command line: its table of names holds commands and Python functions together."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import click
import pytest

import dialeval
from dialeval.cli.main import _COMMANDS, dialeval_command

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
NAMES = PAGE.partition("## Names in Python")[2].partition("\n## ")[0]
FUNCTIONS = {"score": "evaluate", "estimate": "estimate_ratings", "agreement": "measure_agreement"}
FUNCTIONS |= {name: name for name in ("compare", "report", "sample", "rank")}


def exceptions(command: str) -> tuple[set[str], str]:
    """The options of a command that the table lists, and what it says of Python about them."""
    options, python = set(), ""
    for line in re.findall(r"^\| (`--.*) \|$", NAMES, re.MULTILINE):
        flags, there, of = line.split(" | ")
        if of == "all" or command in of.split(", "):
            options |= {flag.replace("-", "_") for flag in re.findall(r"`--([a-z-]+)", flags)}
            python += there
    return options, python


@pytest.mark.parametrize("command", FUNCTIONS)
def test_options_and_arguments_have_the_same_names(command: str) -> None:
    """Each option is a parameter of the same name or in the table, and each parameter an option or on the page."""
    found = dialeval_command.get_command(click.Context(dialeval_command), command)
    assert found is not None
    given = {
        each.opts[-1].lstrip("-").replace("-", "_") if isinstance(each, click.Option) else str(each.name)
        for each in found.params
    }
    parameters = set(inspect.signature(getattr(dialeval, FUNCTIONS[command])).parameters)
    for kind in (dialeval.Reading, dialeval.Execution) if command == "score" else ():
        parameters |= {field.name for field in fields(kind)}
    listed, python = exceptions(command)
    assert given - parameters == (listed & given) - parameters
    words = set(re.findall(r"\w+", python + NAMES.rpartition("|\n")[2]))
    assert parameters - given <= words


def test_python_names_of_the_table_exist() -> None:
    for name in re.findall(r"dialeval\.(\w+)\(", NAMES):
        assert name in dialeval.__all__


def test_commands_are_listed_in_their_groups() -> None:
    for title in dict.fromkeys(command.section for command in _COMMANDS.values()):
        (line,) = re.findall(rf"^\| {title} \| (.*) \|$", PAGE, re.MULTILINE)
        commands = [name for name, command in _COMMANDS.items() if command.section == title]
        assert re.findall(r"`([\w-]+)`", line) == commands


OTHERS = {"--no-deps", "--only"}
"""Options of pip and of our tools."""


def options_by_name(command: click.Command) -> dict[str, list[click.Option]]:
    """The options of a command and of those below it, by their names."""
    found: dict[str, list[click.Option]] = {"--help": []}
    for each in command.params:
        if isinstance(each, click.Option):
            for name in (*each.opts, *each.secondary_opts):
                found.setdefault(name, []).append(each)
    inner = dict(getattr(command, "inner", {}))
    if isinstance(command, click.Group):
        context = click.Context(command)
        inner |= {name: command.get_command(context, name) for name in command.list_commands(context)}
    for below in inner.values():
        assert below is not None
        for name, options in options_by_name(below).items():
            found.setdefault(name, []).extend(options)
    return found


def test_pages_name_options_and_choices_that_exist() -> None:
    known = options_by_name(dialeval_command)
    pages = [path for path in (Path(__file__).parents[2] / "docs").glob("*.md") if path.name != "migrate.md"]
    named = 0
    for path in pages:
        for option, value in re.findall(r"`(--[a-z0-9-]+)(?: ([a-z0-9-]+))?`", path.read_text(encoding="utf-8")):
            if option in OTHERS:
                continue
            assert option in known, f"{path.name} names {option}"
            choices = [each.type.choices for each in known[option] if isinstance(each.type, click.Choice)]
            assert not value or len(choices) < len(known[option]) or any(value in each for each in choices), path.name
            named += 1
    assert named > 100
