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
    from dialeval.engine.stream import Done

Mode = Literal["auto", "bar", "json", "none"]
MODES = ("auto", "bar", "json", "none")

_SECONDS_BETWEEN = 0.5


class Meter:
    """What is told of a run; `evaluate` tells by system, `evaluate_shards` by the share of all work."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._done: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self.share = 0.0
        self.rows = 0
        self.total: int | None = None
        self.name = ""
        """The system at hand, where one is scored after the other."""

    def system(self, system: str, rows: int, done: int) -> None:
        """Some more rows of a system are done."""
        self.name = system
        self._sizes[system] = rows
        self._done[system] = self._done.get(system, 0) + done
        self.rows, self.total = sum(self._done.values()), sum(self._sizes.values())
        self.share = self.rows / max(1, self.total)
        self.show()

    def stream(self, done: Done) -> None:
        """A stream is so far."""
        self.rows, self.share = done.rows, done.share
        if done.share == 1:
            self.total = done.rows
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
            self._task = self._bar.add_task(self.name, total=1.0, rows=rows)
        self._bar.update(self._task, description=self.name, completed=self.share, rows=rows)


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
