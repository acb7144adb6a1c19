"""Progress on stderr: a bar with rate and time left, or JSON lines for programs.

`--progress json` prints one object a line, at most twice a second, and one in the end:

    {"rows": 65536, "total": 200000, "share": 0.33, "rate": 120000.0, "eta": 1.1}

`rows` is the number of rows scored so far, `total` that of all rows (null while it is not known), `share` the fraction
of all work that is done, `rate` rows per second so far, `eta` the seconds left. With a language model as the judge also
`requests` and `tokens` so far and, with prices, `cost`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

    from dialeval.engine.folding import Done

MODES = ("auto", "bar", "json", "none")

_SECONDS_BETWEEN = 0.5


class Meter:
    """The progress of a run or of other work; this meter shows nothing."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self.share = 0.0
        self.rows = 0
        self.total: int | None = None
        self.llms: list[Any] = []
        """Language models that are asked."""

    def update_run(self, done: Done) -> None:
        """Take over the progress of a run."""
        self.rows, self.share = done.rows, done.share
        self.total = done.rows if done.share == 1 else done.total
        self.show()

    def update_steps(self, done: int, total: int | None) -> None:
        """Take over how many steps of other work are done."""
        self.rows, self.total, self.share = done, total, done / total if total else 0.0
        self.show()

    def to_dict(self) -> dict[str, float | None]:
        """Return the fields of a JSON line."""
        spent = max(time.monotonic() - self._start, 1e-9)
        left = spent * (1 - self.share) / self.share if self.share else None
        return {
            "rows": self.rows,
            "total": self.total,
            "share": round(self.share, 4),
            "rate": round(self.rows / spent, 1),
            "eta": None if left is None else round(left, 1),
            **self.sum_requests(),
        }

    def sum_requests(self) -> dict[str, float]:
        """Return requests, tokens and cost of all language models; empty without one."""
        if not self.llms:
            return {}
        requests, tokens = (sum(getattr(llm.counts, name) for llm in self.llms) for name in ("requests", "tokens"))
        costs = [cost for llm in self.llms if (cost := llm.counts.compute_cost(llm.prices)) is not None]
        return {"requests": requests, "tokens": tokens, **({"cost": round(sum(costs), 4)} if costs else {})}

    def show(self) -> None:
        """Show the progress."""

    def note(self, text: str) -> None:
        """Print a line about the work."""
        from dialeval.cli.output import print_err

        print_err(text)


class _JsonMeter(Meter):
    _shown = 0.0

    def show(self) -> None:
        if time.monotonic() - self._shown >= _SECONDS_BETWEEN and self.share < 1:
            self.print()  # the last one is printed when all is saved

    def print(self) -> None:
        import orjson

        self._shown = time.monotonic()
        click.echo(orjson.dumps(self.to_dict()).decode(), err=True)


class _BarMeter(Meter):
    def __init__(self, bar: Progress) -> None:
        super().__init__()
        self._bar = bar
        self._task: TaskID | None = None

    def show(self) -> None:
        fields = self.to_dict()
        rows = f"{fields['rows']:,} rows, {fields['rate']:,.0f} a second"
        rows += "".join(f", {value:,} {name}" for name, value in self.sum_requests().items())
        if self._task is None:  # no empty bar while inputs are read
            self._task = self._bar.add_task("", total=1.0, rows=rows)
        self._bar.update(self._task, completed=self.share, rows=rows)

    def note(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)


@contextmanager
def open_meter(mode: str = "auto") -> Iterator[Meter]:
    """Open a meter that shows progress by a mode of `MODES`; `auto` is a bar if stderr is a terminal, else nothing."""
    if mode == "none" or (mode == "auto" and not sys.stderr.isatty()):
        yield Meter()
    elif mode == "json":
        meter = _JsonMeter()
        yield meter
        meter.print()
    else:
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

        rows = TextColumn("{task.fields[rows]}")
        with _make_bar(BarColumn(), TaskProgressColumn(), rows, TimeRemainingColumn()) as bar:
            yield _BarMeter(bar)


@contextmanager
def open_download_bar(name: str) -> Iterator[Callable[[int, int | None], None] | None]:
    """Open a bar of bytes if stderr is a terminal, else None; call it with the bytes that are there and their total."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with _make_bar(*columns, TimeRemainingColumn()) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _make_bar(*columns: ProgressColumn) -> Progress:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True)
