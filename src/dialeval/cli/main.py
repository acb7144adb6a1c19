"""The command `dialeval`.

Results go to stdout, everything else to stderr. Every process ends with one of `STATUSES`. Commands are imported when
they are called, so that `--help` is fast.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from io import StringIO, TextIOWrapper
from pkgutil import resolve_name

import click

from dialeval.cli.help import Group
from dialeval.cli.output import SAVED, UNSAVED, drop_output, print_err, print_saved, print_warnings, quote_command
from dialeval.core.errors import DialevalError, collect_warnings
from dialeval.core.features import Command, find_command, list_features
from dialeval.core.version import __version__

_TOOLS = "dialeval.cli.tools"
_COMMANDS: Mapping[str, Command] = {
    "score": Command("dialeval.cli.score:score", "Score the responses of one or several systems.", "Evaluate"),
    "compare": Command(
        "dialeval.cli.compare:compare",
        "Test which system is better; confidence intervals, p-values, gates.",
        "Evaluate",
    ),
    "discover": Command(
        "dialeval.cli.compare:discover", "Find groups of dialogues where a system is worse.", "Evaluate"
    ),
    "survival": Command("dialeval.cli.compare:survival", "Turns until conversations fail (Kaplan-Meier).", "Evaluate"),
    "users": Command("dialeval.cli.compare:users", "Compare simulated users with real ones.", "Evaluate"),
    "report": Command("dialeval.cli.report:report", "Write an HTML report of saved runs.", "Evaluate"),
    "table": Command("dialeval.cli.report:table", "Write a table of saved runs for a paper.", "Evaluate"),
    "describe": Command(
        "dialeval.cli.report:describe", "Write the methods paragraph of a paper, and BibTeX.", "Evaluate"
    ),
    "export": Command("dialeval.cli.report:export", "Write scores for other programs.", "Evaluate"),
    "demo": Command(f"{_TOOLS}:demo", "Evaluate the sample data that ships with dialeval.", "Evaluate"),
    "sample-data": Command(f"{_TOOLS}:sample_data", "Copy the sample data that ships with dialeval.", "Evaluate"),
    **{name: command for feature in list_features() for name, command in feature.commands.items()},
    "metrics": Command(f"{_TOOLS}:metrics", "List the metrics, or explain one.", "Tools"),
    "formats": Command(f"{_TOOLS}:formats", "List the chat logs and row formats that are read.", "Tools"),
    "validate": Command(f"{_TOOLS}:validate", "List every problem of input files.", "Tools"),
    "data": Command(f"{_TOOLS}:data", "Add, list, verify and remove data packs (word vectors).", "Tools"),
    "skill": Command(f"{_TOOLS}:skill", "Print instructions for coding agents.", "Tools"),
    "compat": Command("dialeval.cli.compat:compat", "Accept the flags of dialog-eval, mwzeval, lsdscc, dbdc.", "Tools"),
}
"""The commands in the order of the help; those of other packages are found when one is called that is not here."""
STATUSES = {
    0: "done",
    1: "a gate failed: --fail-under, --fail-over, --no-worse-than",
    2: "bad input or usage, or a place that cannot be read or written",
    70: "an internal error of dialeval, to be reported",
    130: "interrupted by Ctrl-C",
    141: "the output pipe was closed, as by `| head`",
    143: "ended by SIGTERM",
}
"""The meaning of each exit status."""
INTERNAL_ERROR = 70
_YOUNG = 100_000
"""New objects after which garbage is looked for; with Python's 700 that takes a tenth of a short command."""
_COMPLETE = "_DIALEVAL_COMPLETE"
"""The variable by which a shell asks click for completions."""
DEBUG = "DIALEVAL_DEBUG"
"""The variable that shows the traceback of an internal error."""
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM): temporary files are removed on the way out, as after Ctrl-C."""


class LazyGroup(Group):
    """A group whose commands are imported on use; their one-line help is known beforehand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            return resolve_name(_COMMANDS[cmd_name].place)
        return find_command(cmd_name)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one screen: an example, and the commands in groups."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in _COMMANDS.items():
            sections.setdefault(command.section, []).append((f"{name:<9}", command.summary))
        for title, lines in sections.items():
            with formatter.section(title):
                formatter.write_dl(lines)
        formatter.write("\nCOMMAND --help lists its options; --version prints the version.\n")


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
)
@click.version_option(__version__, prog_name="dialeval")
def dialeval_command() -> None:
    """Is this dialogue system better, by how much, and where does it fail?

    Example: dialeval score damd.txt ubar.txt -r references.txt
    """


def main() -> None:
    """Run the command line and end the process with its exit status."""
    gc.set_threshold(_YOUNG)
    atexit.register(gc.freeze)  # else Python looks for garbage once more at its end: a tenth of a short command
    # The threads of a run share its rows. Further ones of OpenBLAS, NumPy's library, would wait for each other: an
    # encoder then takes five times the processor time, and starting them takes 40 ms.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with suppress(ValueError):  # only the first thread of a process may do that
        signal.signal(signal.SIGTERM, _terminate)
    SAVED.clear()
    UNSAVED.clear()
    try:
        _open_closed_streams()
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # as stderr has it: an output may know no more than ASCII
        with collect_warnings() as notes:
            try:
                status = dialeval_command.main(prog_name="dialeval", standalone_mode=False)
            finally:
                print_warnings(notes)  # what was guessed in reading, unless it is a warning of a run already
                print_saved()
        sys.stdout.flush()
        status = 2 if UNSAVED else status
        while UNSAVED:  # why runs could not be saved, after their values were printed
            print_err(f"dialeval: {UNSAVED.pop(0)}")
    except click.exceptions.Exit as end:
        status = end.exit_code
    except click.ClickException as error:
        message = StringIO()
        error.show(message)
        print_err(message.getvalue().removesuffix("\n"))
        status = error.exit_code
    except DialevalError as error:
        print_err(f"dialeval: {error}")
        status = 2
    except MemoryError:
        print_err("dialeval: out of memory; score fewer metrics at once, or fewer rows")
        status = 2
    except (KeyboardInterrupt, click.exceptions.Abort) as error:
        is_terminated = isinstance(error, Terminated) or isinstance(error.__context__, Terminated)
        print_err("dialeval: ended by SIGTERM" if is_terminated else "dialeval: interrupted")
        status = 143 if is_terminated else 130
    except SystemExit as end:
        # click ends the process itself in two cases: after a completion, and where the reader of our output has gone.
        status = end.code if _COMPLETE in os.environ else _handle_closed_pipe()
    except BrokenPipeError:
        status = _handle_closed_pipe()
    except OSError as error:
        status = _report_system_error(error)
    except Exception as error:
        status = _report_internal_error(error)
    sys.exit(status)


def _handle_closed_pipe() -> int:
    """Drop further output after its pipe was closed (`dialeval score ... | head`); return the exit status."""
    # click sees most of these first and would end the process with 1; but 1 is for gates.
    drop_output(sys.stdout)
    return 141


def _terminate(*_: object) -> None:
    """End on a signal, once: the removal of temporary files is not interrupted."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def _report_system_error(error: OSError) -> int:
    """Print what the system refused; return the exit status."""
    if error.errno == errno.ENAMETOOLONG:
        print_err(f"dialeval: {str(error.filename)[:60]}...: the file name is too long; check the path")
        return 2
    if error.errno not in _UNWRITABLE:
        return _report_internal_error(error)
    print_err(f"dialeval: the output cannot be written ({error.strerror}); make room, or write it elsewhere")
    drop_output(sys.stdout)
    return 2


def _open_closed_streams() -> None:
    """Give closed standard streams a device, so that no file that is opened later takes their place.

    Raises:
        click.UsageError: Nobody can read the results.
    """
    closed = []
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            device = os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free
            setattr(sys, name, os.fdopen(device, "r" if name == "stdin" else "w"))
            closed.append(name)
    if "stdout" in closed:
        raise click.UsageError("stdout is closed, and results are printed there; redirect it to a file or to /dev/null")


def _report_internal_error(error: Exception) -> int:
    """Print an error that no input may cause, with what a bug report needs; return the exit status."""
    import platform
    import traceback

    if os.environ.get(DEBUG):
        print_err("".join(traceback.format_exception(error)).removesuffix("\n"))
    last = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error}".partition("\n")[0]
    print_err(f"dialeval: internal error: {what} ({last.filename.rpartition('/')[2]}:{last.lineno})")
    print_err("This is an error of dialeval, not of your input. Please report it: these lines, and the traceback.")
    print_err(f"  dialeval {__version__}, Python {platform.python_version()}, {platform.platform()}")
    print_err(f"  {quote_command()}")
    if not os.environ.get(DEBUG):
        print_err(f"{DEBUG}=1 shows the traceback.")
    return INTERNAL_ERROR
