"""Progress on stderr: a bar with rate and time left for people, JSON lines for machines.

`--progress json` prints one object a line, at most twice a second, and one in the end:

    {"rows": 65536, "total": 200000, "share": 0.33, "rate": 120000.0, "eta": 1.1}

`rows` are those that are scored, `total` is null where nobody knows how many there are, `share` is that of all work,
`rate` rows a second so far, `eta` seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from dialeval.engine.folding import Done

Mode = Literal["auto", "bar", "json", "none"]
MODES = ("auto", "bar", "json", "none")

_SECONDS_BETWEEN = 0.5


class Meter:
    """How far a run is."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self.share = 0.0
        self.rows = 0
        self.total: int | None = None

    def run(self, done: Done) -> None:
        """Take in how far a run is, and show it."""
        self.rows, self.share = done.rows, done.share
        self.total = done.rows if done.share == 1 else done.total
        self.show()

    def work(self, done: int, total: int | None) -> None:
        """Take in how much of some other work is done, and show it."""
        self.rows, self.total, self.share = done, total, done / total if total else 0.0
        self.show()

    def figures(self) -> dict[str, Any]:
        """Everything there is to tell."""
        spent = max(time.monotonic() - self._start, 1e-9)
        left = spent * (1 - self.share) / self.share if self.share else None
        return {
            "rows": self.rows,
            "total": self.total,
            "share": round(self.share, 4),
            "rate": round(self.rows / spent, 1),
            "eta": None if left is None else round(left, 1),
        }

    def show(self) -> None:
        """Tell somebody."""


class _JsonMeter(Meter):
    _shown = 0.0

    def show(self) -> None:
        if time.monotonic() - self._shown >= _SECONDS_BETWEEN and self.share < 1:
            self.print()  # the last one is printed when all is saved

    def print(self) -> None:
        import orjson

        self._shown = time.monotonic()
        click.echo(orjson.dumps(self.figures()).decode(), err=True)


class _BarMeter(Meter):
    def __init__(self, bar: Any) -> None:
        super().__init__()
        self._bar = bar
        self._task: Any = None

    def show(self) -> None:
        figures = self.figures()
        rows = f"{figures['rows']:,} rows, {figures['rate']:,.0f} a second"
        if self._task is None:
            self._task = self._bar.add_task("", total=1.0, rows=rows)
        self._bar.update(self._task, completed=self.share, rows=rows)


@contextmanager
def metered(mode: str) -> Iterator[Meter | None]:
    """A meter that shows itself in the given way; None where nobody wants to see one."""
    if mode == "none" or (mode == "auto" and not sys.stderr.isatty()):
        yield None
    elif mode == "json":
        meter = _JsonMeter()
        yield meter
        meter.print()
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        name, rows = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[rows]}")
        columns = (name, BarColumn(), TaskProgressColumn(), rows, TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            yield _BarMeter(bar)
