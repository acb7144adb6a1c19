"""`dialeval compare`: saved runs in, differences with intervals and tests out; gates for CI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli.score import _limits, failed, pairs

if TYPE_CHECKING:
    from dialeval.analysis.comparison import Comparison
    from dialeval.core.result import Run

FORMATS = ("table", "json", "csv", "md", "latex")


@click.command(
    epilog="""\b
Examples:
  dialeval compare results/                          all systems of a run with its first
  dialeval compare main/ branch/ -m bleu-4,distinct-2 --detect 0.01
  dialeval compare results/ --baseline damd -f latex -o table.tex
  dialeval compare branch/ --no-worse-than main/ --margin bleu-4=0.005 --fail-under bleu-4=0.1
"""
)
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@click.option("--baseline", metavar="NAME", help="The system that others are compared with.  [default: the first]")
@click.option("--systems", metavar="NAMES", help="Only these systems, by commas.  [default: all but floors, ceilings]")
@click.option("-m", "--metrics", metavar="KEYS", help="Only these, or families, by commas.  [default: all in common]")
@click.option(
    "--test",
    type=click.Choice(["randomisation", "bootstrap"]),
    default="randomisation",
    show_default=True,
    help="What p is from; the interval is always that of the bootstrap.",
)
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Adjusted p below it is significant.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option("--resamples", type=click.IntRange(min=1), default=1000, show_default=True, help="Of the bootstrap.")
@click.option(
    "--trials", type=click.IntRange(min=1), help="Of the randomisation.  [default: 2000, more for very many tests]"
)
@click.option("--seed", type=click.IntRange(min=0), default=12345, show_default=True, help="Of both.")
@click.option("--detect", type=float, metavar="DIFFERENCE", help="Say how many dialogues it takes to find this.")
@click.option("--force", is_flag=True, help="Compare what was not scored alike, and say so.")
@click.option(
    "-f", "--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True, help="Print as."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead.")
@click.option(
    "--fail-under",
    "gates",
    multiple=True,
    callback=pairs,
    metavar="KEY=VALUE",
    help="Exit 1 if the value of a system (not the baseline) is lower.",
)
@click.option(
    "--no-worse-than",
    "bar",
    metavar="BASELINE",
    help="Exit 1 if a system is significantly worse than this system or saved run, which becomes the baseline.",
)
@click.option(
    "--margin",
    "margins",
    multiple=True,
    callback=pairs,
    metavar="KEY=VALUE",
    help="With --no-worse-than: exit 1 unless the interval rules out that KEY is worse by more than VALUE.",
)
def compare(
    runs: tuple[str, ...],
    baseline: str | None,
    systems: str | None,
    metrics: str | None,
    format_: str,
    output: Path | None,
    gates: Mapping[str, str],
    bar: str | None,
    margins: Mapping[str, str],
    **settings: Any,
) -> int:
    """Compare the systems of saved RUNS (folders that `dialeval score -o` wrote) with a baseline, row by row.

    Differences come with intervals, p (as it is and adjusted for the number of tests), effect sizes and how often a
    system is ahead. Systems must have been scored alike on the same rows. With several runs, systems of the same name
    are called RUN/NAME.
    """
    from dialeval.analysis.comparison import compare as compared
    from dialeval.analysis.gates import failures
    from dialeval.core.result import Run
    from dialeval.metrics.registry import split_names

    limits, allowed = _limits(gates), _limits(margins, "--margin")
    if bar is None and allowed:
        raise click.UsageError("--margin is that of --no-worse-than BASELINE")
    if bar is not None and baseline is not None:
        raise click.UsageError("--no-worse-than names the baseline; leave --baseline out")
    loaded, first = _loaded(runs, bar)
    found = compared(
        loaded,
        baseline=baseline if bar is None else first,
        systems=None if systems is None else [name.strip() for name in systems.split(",")],
        metrics=None if metrics is None else split_names(metrics),
        **settings,
    )
    _print(found, format_, output)
    gated = Run({name: found.results[name] for name in found.systems}, "")
    status = failed(gated, limits)
    if bar is not None:
        for line in failures(found, allowed):
            click.echo(f"gate failed: {line}", err=True)
            status = 1
    return status


def _loaded(runs: tuple[str, ...], bar: str | None) -> tuple[dict[str, Run], str | None]:
    """Saved runs by short names, and the baseline of the gate: a system's name, or a run that is put first."""
    from dialeval.analysis.pairing import labels_of
    from dialeval.core.result import load

    is_run = bar is not None and _run_file(bar).is_file()
    given = [bar, *runs] if bar is not None and is_run else runs
    once: dict[Path, str] = {}
    for folder in given:  # `main` and `main/` are one run
        once.setdefault(_run_file(folder).resolve(), folder)
    folders = list(once.values())
    labels = labels_of(folders)
    loaded = {label: load(folder) for label, folder in zip(labels, folders, strict=True)}
    if bar is None or not is_run:
        return loaded, bar
    label = labels[0]
    if len(loaded[label]) != 1:
        raise click.UsageError(f"{bar} holds {len(loaded[label])} systems; name one: --no-worse-than SYSTEM")
    (system,) = loaded[label]
    taken = [name for name, run in loaded.items() if system in run]
    return loaded, system if len(taken) == 1 else f"{label}/{system}"


def _run_file(path: str) -> Path:
    """The file that a saved run is read from, for its folder or for that file."""
    from dialeval.core.result import RUN_FILE

    return Path(path) if Path(path).name == RUN_FILE else Path(path) / RUN_FILE


def _print(comparison: Comparison, format_: str, output: Path | None) -> None:
    from dialeval.core.files import write_bytes
    from dialeval.reports import comparisons

    if format_ != "table":
        text = comparisons.FORMATS[format_](comparison)
    elif output is None:
        from rich.console import Console

        Console().print(comparisons.table(comparison))
        return
    else:
        import io

        from rich.console import Console

        plain = Console(file=io.StringIO(), width=160)
        plain.print(comparisons.table(comparison))
        text = plain.file.getvalue()  # type: ignore[attr-defined]
    if output is None:
        click.echo(text, nl=False)
    else:
        write_bytes(output, text.encode())
        click.echo(f"written to {output}", err=True)
