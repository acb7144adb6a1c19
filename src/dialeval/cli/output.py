"""What commands print, write and save. Results go to stdout; everything else goes to stderr.

Everything is printed by `print_err`, `print_out` and `print_content`. Names, file names and rows come from outside:
control characters in them are written out (`\\x1b`). Only data for other programs (JSON, CSV and the like) that goes
into a file or a pipe stays as it is.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import wraps
from io import StringIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from dialeval.core.errors import escape_lines

if TYPE_CHECKING:
    from pathlib import Path  # importing it takes a tenth of the time of `--help`

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.progress import Progress, ProgressColumn, TaskID

    from dialeval.analysis.comparison import Comparison
    from dialeval.analysis.gates import Gate
    from dialeval.analysis.slices import Slices
    from dialeval.cli.options import IntervalOptions, Limits
    from dialeval.core.errors import DialevalError
    from dialeval.core.result import Result, Run
    from dialeval.engine.folding import Done
    from dialeval.reports.comparisons import RunVerdict

Command = TypeVar("Command", bound=Callable[..., object])
AnyRun = TypeVar("AnyRun", bound="Run")

MOST_PROBLEMS = 200
"""The most problems that `print_all_problems` prints."""
_LEAST_WIDTH = 20
_MOST_SKIPPED = 3
"""Metrics that lack one thing are named up to this number."""


SAVED: list[Path] = []
"""Where runs were saved: the command line prints it last."""
STYLE = "dialeval.style"
"""Where the context of a command holds how a table for a paper looks: arguments of `reports.documents.make_style`."""
VERBOSE = "dialeval.verbose"
"""Where the context of a command holds whether `-v` was given."""
UNSAVED: list[DialevalError] = []
"""Why runs that were computed could not be saved: the command line prints it after their values."""


def print_err(line: str) -> None:
    """Print a line on stderr; if that fails, as on a full disk, drop it and continue."""
    try:
        click.echo(escape_lines(line), err=True)
    except (OSError, ValueError):
        drop_output(sys.stderr)


def drop_output(stream: TextIO) -> None:
    """Drop further output; else Python would write it again at exit, and end with a status of its own."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_out(line: str) -> None:
    """Print a line on stdout, with control characters written out."""
    click.echo(escape_lines(line))


def compare_and_save(
    run: Run,
    format_: str | None,
    folder: Path | None,
    force: bool = False,
    saved: Run | None = None,
    chosen: Mapping[str, object] | None = None,
) -> RunVerdict | None:
    """Compare the systems of a run for a format that shows a verdict, and save both in a folder.

    `chosen`: arguments of the comparison. A run whose comparison is interrupted is saved alone.
    """
    verdict = None
    try:
        if format_ in ("table", "github") and len(run) - len(run.baselines) > 1:
            from dialeval.reports.comparisons import judge_run

            verdict = judge_run(run, **(chosen or {}))
    finally:
        if folder is not None:
            save_run(saved or run, folder, force, verdict)
    return verdict


def deliver_run(
    run: Run,
    format_: str,
    folder: Path | None = None,
    force: bool = False,
    *,
    by: Sequence[str] = (),
    compared: bool = True,
    saved: Run | None = None,
) -> None:
    """Compare the systems of a run, save it in a folder if there is one, and print it.

    `saved`: the run to save, where it has more details than the one to print. Others: see `print_run`.
    """
    verdict = compare_and_save(run, format_ if compared else None, folder, force, saved)
    print_run(run, format_, by, compared, verdict)


@dataclass
class TaskRun:
    """The options about the run of a suite's command: how intervals are made, where it is saved, how it is shown."""

    output: Path | None
    force: bool
    format_: str
    limits: Limits
    intervals: IntervalOptions
    confidence: float | None
    by: Sequence[str] = ()
    compared: bool = True

    @classmethod
    def take(cls, options: dict[str, Any]) -> TaskRun:
        """Take these options out of those of a command."""
        return cls(**{name: options.pop(name) for name in cls.__dataclass_fields__ if name in options})

    def check(self, *read: object, files: Sequence[Path | None] = ()) -> None:
        """Check the places where files are written; see `check_places`."""
        check_places(self.output, *read, files=files)

    def evaluate(self, evaluate: Callable[..., AnyRun], *arguments: object, **settings: object) -> AnyRun:
        """Call a function that evaluates, with these intervals, while a meter shows its progress."""
        with open_meter() as meter:
            chosen = {"confidence": self.confidence, "intervals": self.intervals.kind}
            run = evaluate(*arguments, **chosen, progress=meter.update_run, **settings)
        return self.intervals.add_to(run, self.confidence)

    def deliver(self, run: Run, saved: Run | None = None) -> int:
        """Save and print the run (see `deliver_run`); return the exit status that its limits give."""
        deliver_run(run, self.format_, self.output, self.force, by=self.by, compared=self.compared, saved=saved)
        return print_failed_gates(self.limits.make_gates(run))


def print_run(
    run: Run,
    format_: str,
    by: Sequence[str] = (),
    compared: bool = True,
    verdict: RunVerdict | None = None,
    percent: bool = False,
) -> None:
    """Print a run, what was skipped, and its warnings; before a table of several systems, which one is better.

    `by`: fields to split the rows into slices by, which are below a table, in JSON, or in the place of the run.
    `compared`: test the differences between systems in slices. `verdict`: the comparison of the systems, for a table.
    `percent`: show scores from 0 to 1 times 100.
    """
    from dialeval.reports import tables
    from dialeval.reports.documents import WRITERS, find_extensions

    whole = run
    if percent:
        from dialeval.reports.comparisons import run_to_percent

        run, verdict = run_to_percent(run), None if verdict is None else verdict.to_percent()
    table: RenderableType = ""
    if format_ == "table":
        table = tables.lay_out(run, verdict)
    if by:
        from dialeval.analysis.slices import compare_slices
        from dialeval.reports.slices import MOST_TESTS

        by_slice = compare_slices(whole, by, compared=compared, most_tests=MOST_TESTS)
        print_slices(format_, table, run, by_slice, percent=percent)
    elif table:
        print_content(table)
    else:
        print_as(format_, tables, run)
    if format_ in ("table", "md", "latex") and (standing := tables.describe_standing(run)):
        print_content("\n")
        print_content(WRITERS[format_](standing))
    if format_ == "table":
        print_tables(table for make in find_extensions(run, "table") for table in make(run))
    print_skipped(run.skipped)
    print_warnings(run.warnings)


def print_slices(
    format_: str,
    above: RenderableType,
    subject: Run | Comparison,
    by_slice: Slices,
    output: Path | None = None,
    width: int | None = None,
    percent: bool = False,
) -> None:
    """Print slices: below the table of the run or comparison that they belong to, in JSON as a part of it, or alone."""
    from dialeval.reports import slices as reports

    by_slice = reports.to_percent(by_slice) if percent else by_slice
    if format_ == "table":
        from rich.console import Group

        print_content(Group(above, "", reports.lay_out(by_slice)), output, width)
    elif format_ == "json":
        print_content(encode_json({**subject.to_dict(), "slices": by_slice.to_dict()}).decode(), output)
    else:
        print_as(format_, reports, by_slice, output, width)


def check_percent(format_: str | None, percent: bool) -> None:
    """Refuse --percent with a format for programs, which holds scores as they are (UsageError)."""
    if percent and format_ not in ("table", "md", "latex"):
        raise click.UsageError("--percent needs -f table, md or latex; other formats keep the original scale")


def print_skipped(skipped: Mapping[str, str]) -> None:
    """Print which metrics were skipped: a line for each missing input."""
    by_reason: dict[str, list[str]] = {}
    for key, reasons in skipped.items():
        for reason in reasons.split("; "):
            by_reason.setdefault(reason, []).append(key)
    for reason, keys in by_reason.items():
        more = f" and {len(keys) - _MOST_SKIPPED} more" if len(keys) > _MOST_SKIPPED else ""
        print_err(f"skipped {', '.join(keys[:_MOST_SKIPPED])}{more}: {reason}")


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings, a line each."""
    for warning in warnings:
        print_err(f"warning: {warning}")


def print_tables(tables: Iterable[tuple[str, Sequence[Sequence[str]]]]) -> None:
    """Print tables, each a title and lines of cells, the first of which is the head."""
    from dialeval.reports.documents import Document, Layout, Table

    titles, shown = [], []
    for title, (head, *lines) in tables:
        titles.append(title)
        shown.append(Table(head, lines))
    if shown:
        print_content("\n")
        print_content(Layout(Document([], shown, [], titles=titles)))


def print_as(format_: str, reports: Any, value: object, output: Path | None = None, width: int | None = None) -> None:
    """Print a result by `lay_out` or one of the `FORMATS` of a report module; or write it, see `print_content`."""
    style = get_style() if format_ == "latex" else {}
    content = reports.lay_out(value) if format_ == "table" else reports.FORMATS[format_](value, **style)
    print_content(content, output, width)


def print_result(format_: str, result: object, output: Path | None = None, width: int | None = None) -> None:
    """Print the result of an analysis in a format, or write it, see `print_content`."""
    from dialeval.reports import documents

    print_as(format_, documents, result, output, width)


def print_content(content: RenderableType, output: Path | None = None, width: int | None = None) -> None:
    """Print a text as it is, or a rich table; or write it to a file, where a table is `width` characters wide."""
    if not isinstance(content, str):
        from rich.console import Console

        if hasattr(content, "verbose"):
            content.verbose = is_verbose()

        file = None if output is None else StringIO()
        console = Console(file=file, width=width if file else None)
        console.width = max(console.width, _LEAST_WIDTH)  # COLUMNS=0 would print nothing
        console.print(_Plain(content))
        if file is None:
            return
        content = file.getvalue()
    if output is None:
        # With `color`, click leaves a text as it is; else it would take escapes out of what goes into a pipe.
        click.echo(escape_lines(content) if sys.stdout.isatty() else content, nl=False, color=True)
    else:
        write_output(output, content.encode())


@dataclass(frozen=True)
class _Plain:
    """Something for a rich console, with control characters in its texts written out; rich's own styles stay."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        for text, style, control in console.render(self.content, options):
            yield Segment(text if control else escape_lines(text), style, control)


def is_verbose() -> bool:
    """Return whether the running command prints settings and signatures (`-v`)."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(VERBOSE))


def get_style() -> dict[str, Any]:
    """Return how the running command shows a table for a paper."""
    context = click.get_current_context(silent=True)
    return {} if context is None else dict(context.meta.get(STYLE, {}))


def write_output(path: Path, content: bytes, what: str = "written to") -> None:
    """Write a file, and print its path."""
    from dialeval.core.files import write_bytes

    write_bytes(path, content)
    print_err(f"{what} {path}")


def check_places(
    folder: Path | None, *inputs: object, files: Iterable[Path | None] = (), sources: Iterable[str] = ()
) -> None:
    """Refuse output paths that would replace inputs (DataError); call it before any work.

    `sources`: the files that responses come from, where a run of others must not be replaced.
    """
    from dialeval.core.files import check_file

    if folder is not None:
        from dialeval.core.result import check_folder

        check_folder(folder, *inputs, sources=sources)
    for file in files:
        check_file(file, *inputs)


def encode_json(document: object) -> bytes:
    """Return JSON as commands print and write it."""
    import orjson

    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def save_run(run: Run, folder: Path, force: bool = False, verdict: RunVerdict | None = None) -> None:
    """Save a run in a folder with the command that made it, and print where; `force`: replace any other run.

    `verdict`: the comparison of its systems, which `dialeval compare` and `dialeval report` use again. If the run
    cannot be saved, the command continues and ends with the error (`UNSAVED`).
    """
    from dialeval.core.errors import DataError

    try:
        named = replace(run, details={**run.details, "command": quote_command()})
        named.save(folder, force=force, comparison=None if verdict is None else verdict.dump())
    except DataError as error:
        UNSAVED.append(error)
    else:
        SAVED.append(folder)


def print_saved() -> None:
    """Print where runs were saved, and the command that opens each."""
    while SAVED:
        folder = shlex.quote(str(SAVED.pop(0)))
        print_err(f"saved in {folder}; open it row by row: dialeval report {folder}")


_SECRET_HEADER = re.compile(r"((?:--llm-header=)?[^=]+=)[^$]+")
_SECRET_QUERY = re.compile(r"(?<=[?&])(?!api-version=)([^=&]+)=[^&$]+")


def _mask_secrets(before: str, word: str) -> str:
    """Return a word of a command without values of headers and of the query of an endpoint; variables stay."""
    if before == "--llm-header" or word.startswith("--llm-header="):
        return _SECRET_HEADER.sub(r"\1***", word, count=1)
    return _SECRET_QUERY.sub(r"\1=***", word) if before == "--llm-endpoint" or word.startswith("--llm-end") else word


def quote_command(short_paths: bool = False) -> str:
    """Return the running command, quoted for a shell and without secrets; `short_paths`: only the last part of paths.

    Only paths that exist are shortened.
    """
    words = [_mask_secrets(*pair) for pair in pairwise(["", *sys.argv[1:]])]
    if short_paths:
        words = [os.path.basename(word.rstrip("/")) if "/" in word and os.path.exists(word) else word for word in words]  # noqa: PTH110, PTH119
    return shlex.join(["dialeval", *words])


def print_failed_gates(gates: Iterable[Gate]) -> int:
    """Print a line for each gate that failed; return the exit status, 1 if there is one, else 0."""
    failures = [gate.failure for gate in gates if gate.failure is not None]
    for failure in failures:
        print_err(f"gate failed: {failure}")
    return int(bool(failures))


def print_gates(
    format_: str,
    gates: Sequence[Gate],
    subject: Run | Comparison,
    results: Mapping[str, Result],
    output: Path | None = None,
    sentences: Sequence[str] = (),
) -> None:
    """Print gates in one of `options.GATE_FORMATS`, as test results or as Markdown with a run or comparison.

    `sentences`: the verdict on a run.
    """
    from dialeval.reports.comparisons import to_github, to_junit

    if format_ == "junit" and not gates:
        flags = "--fail-under, --fail-over, or --no-worse-than of `dialeval compare`"
        raise click.UsageError(f"-f junit prints gates, and none is set: {flags}")
    text = to_junit(gates, results, subject) if format_ == "junit" else to_github(gates, subject, results, sentences)
    print_content(text, output)


def print_all_problems(command: Command) -> Command:
    """Make a command print all problems of its inputs, not only the first few; a decorator."""

    @wraps(command)
    def call(**arguments: object) -> object:
        from dialeval.core.errors import DataError, describe_group, group_problems

        try:
            return command(**arguments)
        except DataError as error:
            groups = group_problems(error.problems)
            for group in groups[:MOST_PROBLEMS]:
                print_err(f"dialeval: {describe_group(group)}")
            if len(groups) > MOST_PROBLEMS:
                print_err(f"dialeval: and {sum(map(len, groups[MOST_PROBLEMS:])):,} more")
            raise click.exceptions.Exit(2) from None

    return call  # type: ignore[return-value]


# Progress on stderr: a bar with rate and time left, or JSON lines for programs.

MODES = ("auto", "bar", "json", "none")

_SECONDS_BETWEEN = 0.5


class Meter:
    """The progress of a run or of other work; this meter shows nothing.

    `--progress json` prints one object a line, at most twice a second, and one in the end:

        {"rows": 65536, "total": 200000, "share": 0.33, "rate": 120000.0, "eta": 1.1}

    `rows` is the number of rows scored so far, `total` that of all rows (null while it is not known), `share` the
    fraction of all work that is done, `rate` rows per second so far, `eta` the seconds left. With a language model as
    the judge also `requests` and `tokens` so far and, with prices, `cost`.
    """

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
