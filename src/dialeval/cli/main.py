"""The command `dialeval`.

Results go to stdout, everything else to stderr. Exit status: 0 done, 1 a gate failed, 2 bad input or usage, 130
interrupted. Commands are imported when they are called, so that `--help` is fast.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from keyword import iskeyword

import click

from dialeval.core.errors import DialevalError
from dialeval.core.version import __version__

_COMMANDS = {
    "demo": "Evaluate the shipped sample and write a report.",
    "score": "Score response files.",
    "lsdscc": "Diversity of sampled responses over grouped references.",
    "multiwoz": "Task dialogues: Inform, Success, BLEU, and why a dialogue failed.",
    "breakdown": "Evaluate dialogue breakdown detectors (DBDC).",
    "judge": "Train, use and attack a judge that reads context and response together.",
    "adem": "Train, use and attack a learned judge of responses.",
    "compare": "Which system is better: differences, tests, gates.",
    "meta": "How far metrics agree with people.",
    "report": "Show saved runs in one HTML file.",
    "metrics": "List the metrics, or explain one.",
    "data": "Add, list, verify and remove data packs (word vectors).",
    "validate": "List every fault of every file.",
    "from": "Take the flags of an original program: dialog-eval, mwzeval, lsdscc, dbdc.",
}
"""The one-line help of each command, which is the function of its name in the module of its name; `from` is `from_`."""


class LazyGroup(click.Group):
    """A group whose commands are imported on use; their one-line help is known beforehand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(import_module(f"dialeval.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
    epilog="`dialeval COMMAND --help` explains a command with an example.",
)
@click.version_option(__version__, prog_name="dialeval")
def dialeval_command() -> None:
    """Is this dialogue system better, by how much, how sure can one be, and where does it fail?

    \b
    Example:
      dialeval score damd.txt ubar.txt -r references.txt
    """


def main() -> None:
    """Run the command line and end the process with its exit status."""
    try:
        status = dialeval_command.main(prog_name="dialeval", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        status = end.exit_code
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except DialevalError as error:
        click.echo(f"dialeval: {error}", err=True)
        status = 2
    except MemoryError:
        click.echo("dialeval: out of memory; score fewer metrics at once, or fewer rows", err=True)
        status = 2
    except (KeyboardInterrupt, click.exceptions.Abort):
        click.echo("dialeval: interrupted", err=True)
        status = 130
    except (BrokenPipeError, SystemExit):
        # The reader of our output has gone (`dialeval score ... | head`); nothing is left to be said to it. click sees
        # most of these first and would end the process with 1; but 1 is for gates.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 141
    sys.exit(status)
