"""What people type: metrics with settings, limits of gates, and whole command lines."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

import click

from dialeval.cli.main import dialeval_command
from dialeval.core.errors import SettingError
from dialeval.core.signature import Signature
from dialeval.metrics.registry import registry
from fuzz.harness import Files, target
from fuzz.row_files import only

METRICS = (
    "distinct-2",
    "bleu(n=4,smooth=7)",
    "distinct(n=3,per=response),length",
    "chrf , rouge-l",
    "all,adem",
    "embedding(by=greedy)",
    "coverage(aligner=sacre,n=2)",
    "slot-f1, f1-x,  inform",
)


def _typed(lines: tuple[str, ...]) -> list[Files]:
    return [{"typed.txt": line.encode()} for line in lines]


def _text(folder: Path) -> str:
    """What was typed; a shell hands over bytes that are not UTF-8 as halves of characters."""
    return only(folder).read_bytes().decode("utf-8", "surrogateescape")


@target("metric-names", seeds=lambda: _typed(METRICS))
def metric_names(folder: Path) -> None:
    """A list of metrics; every metric prints to a name that reads back to an equal one."""
    for metric in registry().select(_text(folder)):
        assert registry().parse(str(metric)) == metric


SIGNATURES = (
    "distinct-2|n:2|per:corpus|tokenizer:words.1|definition:1|dialeval:0.1.0",
    "bleu|n:4|smooth:7|references:1234567890ab|definition:1|dialeval:0.1.0",
)


@target("signatures", seeds=lambda: _typed(SIGNATURES))
def signatures(folder: Path) -> None:
    """The line that says how a number was made."""
    read = Signature.parse(_text(folder))
    assert Signature.parse(str(read)) == read


COMMANDS = (
    "score|rows.txt|-m|length,distinct-2|-f|csv|--fail-under|distinct-2=0.2",
    "score|rows.txt|-r|rows.txt|-m|bleu|--bleu-smoothing|3|--confidence|0.9|-f|md",
    "score|a=rows.txt|b=rows.txt|-m|length|--intervals|studentized|--resamples|20|--seed|3|-f|latex",
    "score|rows.txt|--field|response=answer|-j|1|-m|length|-f|metrics-txt",
    "score|rows.txt|-m|length",
    "validate|rows.txt",
    "metrics|distinct-2",
)
ROWS = b"the library opens at nine\nit is closed\n"
_WRITES = re.compile(
    r"-o|-[a-z]*o|--?(o|ou|out.*|sa.*|rep.*|resum.*|eng.*|jo.*|ju.*|ad.*|ve.*|tr.*|vo.*)(=.*)?", re.DOTALL
)
"""Options that write, start processes or read large files, also where they are cut short."""
_COMMANDS = frozenset({"score", "validate", "metrics"})
_HARMLESS = re.compile("[\n -~\u00a0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\U0010ffff]*")


def command_lines() -> list[Files]:
    return [{"typed.txt": line.replace("|", "\n").encode(), "rows.txt": ROWS} for line in COMMANDS]


@target("command-lines", seeds=command_lines, seconds=10.0)
def command_line(folder: Path) -> None:
    """Whole commands, an argument a line; what they print holds nothing that a terminal obeys."""
    typed = folder / "typed.txt"
    words = typed.read_bytes().decode("utf-8", "surrogateescape").split("\n") if typed.exists() else []
    words = [word for word in words if "\0" not in word]
    if not words or words[0] not in _COMMANDS or any(_WRITES.match(word) or "://" in word for word in words):
        raise SettingError("not a command that may be tried")
    before, out = Path.cwd(), io.StringIO()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            dialeval_command.main(words, prog_name="dialeval", standalone_mode=False)
    except (click.exceptions.Exit, click.ClickException) as error:
        raise SettingError(str(error)) from None
    finally:
        os.chdir(before)
        assert _HARMLESS.fullmatch(out.getvalue()), out.getvalue()
