"""`dialeval compare`, `discover`, `survival` and `users`: differences with intervals and tests, and gates for CI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dialeval
from dialeval.cli import options
from dialeval.cli import output as out

if TYPE_CHECKING:
    from dialeval.core.result import Run

_FILE_WIDTH = 160
"""Characters in a line of a table that is written to a file."""
_LIMITS = ("limits_lowest", "limits_highest", "limits_missing")
_NOT_OVER_TIME = (*_LIMITS, "percent", "bar", "by", "margins", "adjust", "cluster", "replicate", "detect")
"""Arguments of options that do not go with --sequential and --trend."""


@options.command(
    "dialeval compare results/                          all systems of a run with its first",
    "dialeval compare main/ branch/ -m sacrebleu,judge",
    "dialeval compare results/ --by domain,turn         where each system loses to the first",
    "dialeval compare results/ --baseline damd -f latex --save table.tex",
    "dialeval compare results/ --detect 0.01            sample size for a difference of 0.01",
    "dialeval compare week1/ week2/ --adjust topic      independent logs, at the same mix of topics",
    "dialeval compare results/ --sequential             interim looks at any time, without error inflation",
    "dialeval compare branch/ --no-worse-than main/ --margin sacrebleu=0.005 --fail-under sacrebleu=0.1",
)
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@options.baseline
@options.option("--systems", "Only these, comma-separated.  [default: all but floors, ceilings]", metavar="NAMES")
@options.option("-m --metrics", "Only these or families, comma-separated.  [default: all shared]", metavar="KEYS")
@options.option("--alpha", "Significance level of adjusted p-values; at least 1e-9.", float, default=0.05)
@options.level
@options.bootstrap_resamples
@options.option("--trials", "Randomization trials.  [default: 2000, more if many tests]", click.IntRange(min=1))
@options.seed
@options.option("--sequential", "Sequential test: confidence sequences, valid at every interim look.", is_flag=True)
@options.option("--detect", "Print how many dialogues detect it (80% power).", float, metavar="DIFFERENCE")
@options.option(
    "--design",
    "paired: the same units; common: only the units in common; openings: only rows before the users differ; ids: "
    "by id, whatever users said; unpaired: independent logs.  "
    "[default: by what the systems have in common]",
    options.Choice(["paired", "common", "openings", "ids", "unpaired"]),
)
@options.choice("--weight", ["rows", "dialogues"], "Whether every row or every dialogue has equal weight in a mean.")
@options.option(
    "--adjust", "Unpaired logs: standardize to the same mix of these fields (post-stratification).", metavar="FIELDS"
)
@options.option("--trend", "Test for a trend over the systems in the given order.", is_flag=True)
@options.by
@options.format_((*options.FORMATS, *options.GATE_FORMATS))
@options.option("--details", "Also show effect sizes, dialogues won, tied and lost, and power.", is_flag=True)
@options.percent
@options.output_file
@options.limits
@options.option(
    "--no-worse-than bar",
    "Exit 1 if a system is significantly worse than this system or saved run, which becomes the baseline; with "
    "--by also if it is in a slice.",
    metavar="BASELINE",
)
@options.margins
@options.cluster
def compare(
    runs: tuple[str, ...],
    baseline: str | None,
    systems: str | None,
    metrics: str | None,
    format_: str,
    percent: bool,
    output: Path | None,
    limits: options.Limits,
    confidence: float,
    bar: str | None,
    margins: Mapping[str, float],
    by: list[str],
    sequential: bool,
    trend: bool,
    details: bool,
    **settings: Any,
) -> int:
    """Compare the systems of saved RUNS (folders that `dialeval score -o` wrote) with a baseline.

    Differences come with confidence intervals, p-values (also adjusted for the number of tests), effect sizes and rows
    won, tied and lost. Systems are matched by dialogue ids, prompts, references or position: those with the same units
    are compared in pairs, logs of different users as independent samples, and the output states which. With several
    runs, systems of the same name are called RUN/NAME. --fail-under and --fail-over check every system except the
    baseline against a limit; of the baseline, values may not be missing.
    """
    from dialeval.analysis.comparison import find_best_systems, load_comparison
    from dialeval.analysis.gates import check_baseline, check_slices
    from dialeval.analysis.pairing import collect_systems, load_runs
    from dialeval.core.result import files_of
    from dialeval.metrics.registry import split_names
    from dialeval.reports import comparisons
    from dialeval.reports.documents import to_markdown

    out.check_percent(format_, percent)
    if bar is not None:
        options.refuse_options("--no-worse-than", "baseline")
    if sequential:
        options.refuse_options("--sequential", *_NOT_OVER_TIME, "trend")
    if trend:
        options.refuse_options("--trend", *_NOT_OVER_TIME, "baseline")
    if format_ in options.GATE_FORMATS and (sequential or trend or (by and bar is None)):
        raise click.UsageError(f"{format_} cannot show slices, sequential tests or trends; choose another format")
    out.check_places(None, files_of(*runs, *([] if bar is None else [bar])), files=(output,))
    named = None if systems is None else [name.strip() for name in systems.split(",")]
    chosen: dict[str, Any] = {
        "baseline": baseline,
        "systems": named,
        "metrics": None if metrics is None else split_names(metrics),
        "confidence": confidence,
        **settings,
    }
    if sequential or trend:
        analyze = dialeval.run_sequential_test if sequential else dialeval.fit_trend
        names = ("systems", "metrics", "alpha", "design", *(("baseline", "weight") if sequential else ("confidence",)))
        result = analyze(load_runs(runs), **{name: chosen[name] for name in names})
        out.print_result(format_, result, output, _FILE_WIDTH)
        return 0
    loaded, chosen["baseline"] = _load_with_bar(runs, bar, baseline)
    sliced = dialeval.compare_slices(loaded, by, **chosen) if by else None
    chosen["margin"] = margins or None
    gated = bar is not None or format_ in options.GATE_FORMATS  # what is saved next to a run decides no gate
    stored = load_comparison(runs[0], next(iter(loaded.values())), **chosen) if len(loaded) == 1 and not gated else None
    comparison = stored or dialeval.compare(loaded, **chosen)
    scored = collect_systems(loaded, settings["weight"])
    results = {name: scored[name] for name in (comparison.baseline, *comparison.systems)}
    gates = list(limits.make_gates(results, comparison.baseline))
    if bar is not None:
        gates += check_baseline(comparison, {}, metrics is not None, limits.missing)
        gates += check_slices(sliced, limits.missing) if sliced is not None else ()
    comparison = comparisons.to_percent(comparison) if percent else comparison
    table = comparisons.lay_out(comparison, details, percent)
    if format_ in options.GATE_FORMATS:
        out.print_gates(format_, gates, comparison, results, output)
    elif sliced is not None:
        out.print_slices(format_, table, comparison, sliced, output, _FILE_WIDTH, percent)
    elif format_ == "latex":
        best = find_best_systems(results, comparison.keys, comparison=comparison)
        from dialeval.reports.papers import write_table

        out.print_content(write_table(comparison, best=best, **out.get_style()), output)
    elif format_ == "table":
        out.print_content(table, output, _FILE_WIDTH)
    elif format_ == "md":
        out.print_content(to_markdown(comparisons.to_document(comparison, details, percent)), output)
    else:
        out.print_as(format_, comparisons, comparison, output)
    return out.print_failed_gates(gates)


def _load_with_bar(runs: tuple[str, ...], bar: str | None, baseline: str | None) -> tuple[dict[str, Run], str | None]:
    """Load the runs, and name the baseline; --no-worse-than names a system, or a saved run of one, put first."""
    from dialeval.analysis.pairing import collect_systems, find_run_file, load_runs

    if bar is None:
        return load_runs(runs), baseline
    if not find_run_file(bar).is_file():
        return load_runs(runs), bar
    loaded = load_runs([bar, *runs])
    first = next(iter(loaded.values()))
    if len(first) != 1:
        raise click.UsageError(f"{bar} holds {len(first)} systems; name one: --no-worse-than SYSTEM")
    return loaded, next(iter(collect_systems(loaded)))


_cluster = options.option("--cluster", "A field whose dialogues belong together, such as user.", metavar="FIELD")
_alpha = options.option("--alpha", "Significance level.", float, default=0.05)
_runs = click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True))


@options.command(
    "dialeval discover results/                    where is the new system worse, and where better?",
    "dialeval discover results/ -m judge --cluster user",
)
@_runs
@options.option("-m --metrics", "Metrics.  [default: one of each family]", multiple=True)
@options.baseline
@_cluster
@_alpha
@options.level
@options.seed
@options.output_file
@options.format_()
def discover(
    runs: tuple[str, ...], output: Path | None, format_: str, metrics: tuple[str, ...], **settings: Any
) -> None:
    """Find groups of dialogues in saved RUNS where a system is worse or better than elsewhere.

    Groups are words of users, tools, lengths and fields. One half of the dialogues suggests them, the other half tests
    them, and all tests are corrected together.
    """
    from dialeval.analysis.pairing import load_runs

    out.print_result(format_, dialeval.discover(load_runs(runs), metrics=metrics or None, **settings), output)


@options.command(
    "dialeval survival results/                    turns until there is no reply",
    "dialeval survival results/ -m judge --below 0.4 --cluster user",
)
@_runs
@options.option("-m --metric", "A metric with a value per reply.", default="failure-rate")
@options.option("--below", "Replies below this value fail.  [default: the middle of the range]", float)
@options.option("--above", "Replies above this value fail.", float)
@options.baseline
@_cluster
@options.level
@options.output_file
@options.format_()
def survival(runs: tuple[str, ...], output: Path | None, format_: str, **settings: Any) -> None:
    """Estimate how many turns conversations of saved RUNS go without a failed reply (Kaplan-Meier, log-rank test)."""
    from dialeval.analysis.pairing import load_runs

    out.print_result(format_, dialeval.estimate_survival(load_runs(runs), **settings), output)


@options.command(
    "dialeval users real.jsonl simulated.jsonl     chat logs, or saved runs",
    "dialeval users real-run/ simulated-run/ -f json",
)
@click.argument("real", type=click.Path(exists=True))
@click.argument("simulated", type=click.Path(exists=True))
@_alpha
@options.level
@options.seed
@options.output_file
@options.format_()
def users(real: str, simulated: str, output: Path | None, format_: str, **settings: Any) -> None:
    """Compare the user sides of two logs: can SIMULATED users be told apart from REAL ones, and by what?"""
    from dialeval.analysis.pairing import find_run_file

    sides = [
        dialeval.load(path) if find_run_file(path).exists() else dialeval.evaluate(path, metrics="length")
        for path in (real, simulated)
    ]
    out.print_result(format_, dialeval.compare_users(*sides, **settings), output)
