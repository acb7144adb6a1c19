"""The commands `discover`, `survival` and `users`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dialeval.cli import options
from dialeval.cli import output as out

_cluster = click.option("--cluster", metavar="FIELD", help="A field whose dialogues belong together, such as user.")
_baseline = click.option(
    "--baseline", metavar="NAME", help="The system that others are compared with.  [default: the first]"
)
_confidence = click.option("--confidence", type=float, default=0.95, metavar="LEVEL", help="Confidence level.")
_alpha = click.option("--alpha", type=float, default=0.05, help="Significance level.")
_seed = click.option("--seed", type=options.SEED, default=12345, help="Random seed.")
_runs = click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True))


def _print(result: object, format_: str, output: Path | None) -> None:
    from dialeval.reports import discoveries

    out.print_as(format_, discoveries, result, output)


def _load(runs: tuple[str, ...]) -> Any:
    from dialeval.analysis.pairing import load_runs

    return load_runs(runs)


@options.command(
    "dialeval discover results/                    where is the new system worse, and where better?",
    "dialeval discover results/ -m judge --cluster user",
)
@_runs
@click.option("-m", "--metrics", multiple=True, help="Metrics.  [default: one of each family]")
@_baseline
@_cluster
@_alpha
@_confidence
@_seed
@options.output_file
@options.format_()
def discover(
    runs: tuple[str, ...], output: Path | None, format_: str, metrics: tuple[str, ...], **settings: Any
) -> None:
    """Find groups of dialogues in saved RUNS where a system is worse or better than elsewhere.

    Groups are words of users, tools, lengths and fields. One half of the dialogues suggests them, the other half tests
    them, and all tests are corrected together.
    """
    from dialeval.analysis.discovery import discover as find

    _print(find(_load(runs), metrics=metrics or None, **settings), format_, output)


@options.command(
    "dialeval survival results/                    turns until there is no reply",
    "dialeval survival results/ -m judge --below 0.4 --cluster user",
)
@_runs
@click.option("-m", "--metric", default="failure-rate", help="A metric with a value per reply.")
@click.option("--below", type=float, help="Replies below this value fail.  [default: the middle of the range]")
@click.option("--above", type=float, help="Replies above this value fail.")
@_baseline
@_cluster
@_confidence
@options.output_file
@options.format_()
def survival(runs: tuple[str, ...], output: Path | None, format_: str, **settings: Any) -> None:
    """Estimate how many turns conversations of saved RUNS go without a failed reply (Kaplan-Meier, log-rank test)."""
    from dialeval.analysis.survival import estimate_survival

    _print(estimate_survival(_load(runs), **settings), format_, output)


@options.command(
    "dialeval users real.jsonl simulated.jsonl     chat logs, or saved runs",
    "dialeval users real-run/ simulated-run/ -f json",
)
@click.argument("real", type=click.Path(exists=True))
@click.argument("simulated", type=click.Path(exists=True))
@_alpha
@_confidence
@_seed
@options.output_file
@options.format_()
def users(real: str, simulated: str, output: Path | None, format_: str, **settings: Any) -> None:
    """Compare the user sides of two logs: can SIMULATED users be told apart from REAL ones, and by what?"""
    from dialeval.analysis.users import compare_users
    from dialeval.core.result import load
    from dialeval.core.rowtable import RUN_FILE
    from dialeval.engine.evaluate import evaluate

    sides = [
        load(path) if (Path(path) / RUN_FILE).exists() else evaluate(path, metrics="length")
        for path in (real, simulated)
    ]
    _print(compare_users(*sides, **settings), format_, output)
