"""The code blocks of a page: found, and run as a reader would run them.

- ```sh: commands, run one after the other in the page's folder; each must end with status 0.
- ```python: run in one namespace for the whole page.
- ```text: a part of what one of the page's commands or programs has printed before, on either stream.
- ```json, ```toml, ```yaml: not run, but well-formed; JSON is a document, or one a line. ```bibtex is shown.
- A block with a title (```toml title="form.toml") is also written to the file of that name.
- A line `<!-- not run: reason -->` above a block: it needs a GPU, a cluster, large data, a network or the like.

`tests/docs/test_pages.py` runs every page; the gallery of the site is made by the commands of docs/report.md.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

NOT_RUN = re.compile(r"^<!-- not run: (?P<reason>.*) -->$")
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)(?: title=\"(?P<title>[^\"]+)\")?")
_SHELL = re.compile(r"[$|<>&;*~]")
"""What only a shell understands; without it, a command of ours runs in this process, which is much faster."""
WIDTH = "80"


@dataclass(frozen=True)
class Block:
    """A code block and the line of the page on which it begins; `reason` is why it is not run."""

    line: int
    language: str
    code: str
    title: str | None
    reason: str | None


def blocks(markdown: str) -> Iterator[Block]:
    """Every fenced block of a page, in order."""
    lines = markdown.splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        if start is None and _FENCE.match(line):
            start = number
        elif start is not None and line.strip() == "```":
            fence, above = _FENCE.match(lines[start]), NOT_RUN.match(lines[start - 1] if start else "")
            assert fence is not None
            code = "".join(f"{each[len(fence['indent']) :]}\n" for each in lines[start + 1 : number])
            yield Block(start + 1, fence["language"], code, fence["title"], above["reason"] if above else None)
            start = None


def commands(code: str) -> list[str]:
    """The commands of a block; a block with a here-document is one."""
    joined = code.replace("\\\n", " ")
    return [joined] if "<<" in joined else [line for line in joined.splitlines() if line.strip()]


@dataclass
class Runner:
    """Runs blocks in a folder, and keeps what they print."""

    folder: Path
    printed: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def command(self, command: str) -> None:
        """Run a command; AssertionError with what it said if its status is not 0."""
        if command.startswith("dialeval ") and not _SHELL.search(
            re.sub(r"'[^']*'", "", command.split(" #", maxsplit=1)[0])
        ):
            status, out, said = self._ours(shlex.split(command, comments=True))
        else:
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
            environment = {**os.environ, "PATH": path, "COLUMNS": WIDTH}
            done = subprocess.run(
                ["bash", "-c", command], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
            )
            status, out, said = done.returncode, done.stdout, done.stderr
        assert status == 0, f"{command}\nended with {status}: {said}"
        self.printed += [out, said]

    def python(self, code: str) -> None:
        """Run a program in the namespace of the page."""
        with _inside(self.folder), redirect_stdout(StringIO()) as out:
            exec(compile(code, "<block>", "exec"), self.names)
        self.printed.append(out.getvalue())

    def has_printed(self, text: str) -> bool:
        """Whether a text is part of what one command or program has printed."""
        return any(_plain(text) in _plain(out) for out in self.printed)

    def _ours(self, arguments: list[str]) -> tuple[int, str, str]:
        from dialeval.cli.main import main

        before, sys.argv = sys.argv, arguments
        try:
            with _inside(self.folder), redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as said:
                main()
        except SystemExit as end:
            return int(end.code or 0), out.getvalue(), said.getvalue()
        finally:
            sys.argv = before
        raise AssertionError("the program did not end")


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """With a folder as the current one, and a terminal of a known width."""
    before, environment = Path.cwd(), dict(os.environ)
    os.chdir(folder)
    os.environ["COLUMNS"] = WIDTH
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
