"""Saving a run from the command line: with the command that made it."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dialeval.core.result import Run


def command_line() -> str:
    """The command that is running, as one would type it."""
    return shlex.join(["dialeval", *sys.argv[1:]])


def save(run: Run, folder: Path) -> None:
    """Save a run with its command in a folder, and say so."""
    replace(run, details={**run.details, "command": command_line()}).save(folder)
    click.echo(f"saved in {folder}", err=True)
