"""`dialeval compare`, `discover`, `survival` and `users`: differences with intervals and tests, and gates for CI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli import options
from dialeval.cli import output as out

if TYPE_CHECKING:
    from dialeval.core.result import Run

_FILE_WIDTH = 160
"""Characters in a line of a table that is written to a file."""


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
@click.option("--baseline", metavar="NAME", help="The system that others are compared with.  [default: the first]")
@click.option("--systems", metavar="NAMES", help="Only these, comma-separated.  [default: all but floors, ceilings]")
@click.option("-m", "--metrics", metavar="KEYS", help="Only these or families, comma-separated.  [default: all shared]")
@click.option("--alpha", type=float, default=0.05, help="Significance level of adjusted p-values; at least 1e-9.")
@click.option("--confidence", type=float, default=0.95, metavar="LEVEL", help="Confidence level.")
@options.bootstrap_resamples
@click.option("--trials", type=click.IntRange(min=1), help="Randomization trials.  [default: 2000, more if many tests]")
@click.option("--seed", type=options.SEED, default=12345, help="Random seed.")
@click.option("--sequential", is_flag=True, help="Sequential test: confidence sequences, valid at every interim look.")
@click.option("--detect", type=float, metavar="DIFFERENCE", help="Print how many dialogues detect it (80% power).")
@click.option(
    "--design",
    type=options.Choice(["paired", "common", "openings", "ids", "unpaired"]),
    help="paired: the same units; common: only the units in common; openings: only rows before the users differ; ids: "
    "by id, whatever users said; unpaired: independent logs.  "
    "[default: by what the systems have in common]",
)
@options.choice("--weight", ["rows", "dialogues"], "Whether every row or every dialogue has equal weight in a mean.")
@click.option(
    "--adjust",
    metavar="FIELDS",
    help="Unpaired logs: standardize to the same mix of these fields (post-stratification).",
)
@options.llm
@click.option("--length", is_flag=True, help="With --llm-model: control for the length of the responses.")
@click.option("--pairs", "pairs_file", type=options.FILE, help="With --llm-model: write verdicts for `dialeval rank`.")
@options.by
@options.format_((*options.FORMATS, *options.GATE_FORMATS))
@click.option("--details", is_flag=True, help="Also show effect sizes, dialogues won, tied and lost, and power.")
@options.percent
@click.option("--transpose", is_flag=True, help="Swap rows and columns (latex).")
@options.output_file
@options.limits
@click.option(
    "--no-worse-than",
    "bar",
    metavar="BASELINE",
    help="Exit 1 if a system is significantly worse than this system or saved run, which becomes the baseline; with "
    "--by also if it is in a slice.",
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
    transpose: bool,
    output: Path | None,
    limits: options.Limits,
    confidence: float,
    bar: str | None,
    margins: Mapping[str, float],
    by: list[str],
    sequential: bool,
    llm: options.LanguageModel,
    length: bool,
    pairs_file: Path | None,
    details: bool,
    **settings: Any,
) -> int:
    """Compare the systems of saved RUNS (folders that `dialeval score -o` wrote) with a baseline.

    Differences come with confidence intervals, p-values (also adjusted for the number of tests), effect sizes and rows
    won, tied and lost. Systems are matched by dialogue ids, prompts, references or position: those with the same units
    are compared in pairs, logs of different users as independent samples, and the output states which. With several
    runs, systems of the same name are called RUN/NAME. --fail-under and --fail-over check every system except the
    baseline against a limit; of the baseline, values may not be missing. With --llm-model a language model is asked
    which of two responses is better, in both orders, and the systems are ranked by its verdicts.
    """
    from dialeval.analysis.comparison import compare as compare_runs
    from dialeval.analysis.comparison import find_best_systems, load_comparison
    from dialeval.analysis.gates import check_baseline, check_slices
    from dialeval.analysis.pairing import collect_systems
    from dialeval.analysis.slices import compare_slices
    from dialeval.core.result import files_of
    from dialeval.metrics.registry import split_names
    from dialeval.reports import comparisons
    from dialeval.reports.documents import to_markdown

    out.check_percent(format_, percent)
    out.check_transpose(format_, transpose, ["latex"])
    _check_options(bar, baseline, format_, percent, (by and bar is None) or sequential, sequential)
    out.check_places(None, files_of(*runs, *([] if bar is None else [bar])), files=(output, pairs_file))
    named = None if systems is None else [name.strip() for name in systems.split(",")]
    if llm["model"]:
        if any((runs[1:], bar, by, sequential, limits.lowest, limits.highest, baseline, metrics)):
            raise click.UsageError("--llm-model compares the systems of one run by pairs only; leave other options out")
        out.print_result(format_, _compare_by_llm(runs[0], named, llm, length, pairs_file), output, _FILE_WIDTH)
        return 0
    if length or pairs_file is not None:
        raise click.UsageError("--length and --pairs need --llm-model")
    chosen: dict[str, Any] = {
        "baseline": baseline,
        "systems": named,
        "metrics": None if metrics is None else split_names(metrics),
        "confidence": confidence,
        **settings,
    }
    if sequential:
        fields = settings["adjust"], settings["cluster"], settings["replicate"]
        others = (bar, by, limits.lowest, limits.highest, margins, *fields)
        _print_sequential(runs, any(others), chosen, format_, output)
        return 0
    loaded, chosen["baseline"] = _load_with_bar(runs, bar, baseline)
    sliced = compare_slices(loaded, by, **chosen) if by else None
    chosen["margin"] = margins or None
    gated = bar is not None or format_ in options.GATE_FORMATS  # what is saved next to a run decides no gate
    stored = load_comparison(runs[0], next(iter(loaded.values())), **chosen) if len(loaded) == 1 and not gated else None
    comparison = stored or compare_runs(loaded, **chosen)
    scored = collect_systems(loaded, settings["weight"])
    results = {name: scored[name] for name in (comparison.baseline, *comparison.systems)}
    gates = list(limits.make_gates(results, comparison.baseline))
    if bar is not None:
        gates += check_baseline(comparison, {}, metrics is not None, limits.missing)
        gates += check_slices(sliced, limits.missing) if sliced is not None else ()
    comparison = comparisons.to_percent(comparison, comparisons.find_percent_keys(scored)) if percent else comparison
    table = comparisons.lay_out(comparison, details, percent)
    if format_ in options.GATE_FORMATS:
        out.print_gates(format_, gates, comparison, results, output)
    elif sliced is not None:
        out.print_slices(format_, table, comparison, sliced, output, _FILE_WIDTH, percent)
    elif format_ == "latex":
        best = find_best_systems(results, comparison.keys, comparison=comparison)
        from dialeval.reports.papers import write_table

        out.print_content(write_table(comparison, best=best, transpose=transpose, **out.get_style()), output)
    elif format_ == "table":
        out.print_content(table, output, _FILE_WIDTH)
    elif format_ == "md":
        out.print_content(to_markdown(comparisons.to_document(comparison, details, percent)), output)
    else:
        out.print_as(format_, comparisons, comparison, output)
    return out.print_failed_gates(gates)


def _check_options(
    bar: str | None, baseline: str | None, format_: str, percent: bool, no_gates: object, sequential: bool
) -> None:
    if bar is not None and baseline is not None:
        raise click.UsageError("--no-worse-than names the baseline; leave --baseline out")
    if percent and sequential:
        raise click.UsageError("--percent is not for --sequential; leave it out")
    if format_ in options.GATE_FORMATS and no_gates:
        raise click.UsageError(f"{format_} cannot show slices or sequential tests; choose another format")


def _compare_by_llm(
    folder: str, systems: list[str] | None, llm: options.LanguageModel, length: bool, pairs_file: Path | None
) -> object:
    """Ask a language model about every two systems of a run, and return its verdicts with the ranking by them."""
    from msgspec.structs import replace

    from dialeval.core.errors import DialevalError
    from dialeval.core.result import load
    from dialeval.human.rank import rank
    from dialeval.judges.commands import open_llm
    from dialeval.judges.llm.pairs import judge_pairs, list_run_pairs

    pairs = list_run_pairs(load(folder), systems)
    with open_llm(llm) as judge:
        preferences = judge_pairs(judge, pairs, llm["rubric"] or "pair")
    if pairs_file is not None:
        out.write_output(pairs_file, preferences.to_jsonl())
    try:
        return replace(preferences, ranking=rank(list(preferences.pairs), length=length))
    except DialevalError as error:
        out.print_err(f"no ranking: {error}")
        return preferences


def _print_sequential(
    runs: tuple[str, ...], more: bool, chosen: Mapping[str, Any], format_: str, output: Path | None
) -> None:
    """Print confidence sequences; `more`: options were given that do not go with them."""
    from dialeval.analysis.pairing import load_runs
    from dialeval.analysis.sequential import run_sequential_test as test_sequentially

    if more or chosen["detect"]:
        raise click.UsageError(
            "--sequential cannot be combined with gates, --by, --adjust, --margin, --cluster, --replicate or --detect; "
            "leave these out"
        )
    settings = {name: chosen[name] for name in ("systems", "metrics", "alpha", "design", "baseline", "weight")}
    out.print_result(format_, test_sequentially(load_runs(runs), **settings), output, _FILE_WIDTH)


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


_cluster = click.option("--cluster", metavar="FIELD", help="A field whose dialogues belong together, such as user.")
_baseline = click.option(
    "--baseline", metavar="NAME", help="The system that others are compared with.  [default: the first]"
)
_confidence = click.option("--confidence", type=float, default=0.95, metavar="LEVEL", help="Confidence level.")
_alpha = click.option("--alpha", type=float, default=0.05, help="Significance level.")
_seed = click.option("--seed", type=options.SEED, default=12345, help="Random seed.")
_runs = click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True))


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

    out.print_result(format_, find(_load(runs), metrics=metrics or None, **settings), output)


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

    out.print_result(format_, estimate_survival(_load(runs), **settings), output)


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
    out.print_result(format_, compare_users(*sides, **settings), output)
