"""`dialeval breakdown`: breakdown detectors, as the challenge (DBDC) evaluates them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli import options
from dialeval.cli import output as out

if TYPE_CHECKING:
    from dialeval.reports.comparisons import RunVerdict
    from dialeval.suites.breakdown.evaluation import BreakdownRun


def read_thresholds(_context: click.Context, parameter: click.Parameter, value: str) -> list[float]:
    """Read one threshold or several, comma-separated."""
    try:
        return [float(part) for part in value.split(",")]
    except ValueError:
        what = f"{value!r} is not a number or a comma-separated list of numbers"
        raise click.BadParameter(what, param=parameter) from None


_FORMAT_HELP = "Output format.  [default: original for one detector and threshold, else table]"


def _data(*, required: bool) -> options.Decorator:
    where = "Annotated dialogues: folder of *.log.json, .jsonl, .tar.gz"
    if not required:
        return click.option("-p", "--data", type=click.Path(), help=f"{where}.")
    several: dict[str, Any] = {"multiple": True, "required": True, "callback": options.parse_systems}
    return click.option("-p", "--data", type=click.Path(), help=f"{where}; repeat for data sets, NAME=PATH.", **several)


@options.command(
    "dialeval breakdown labels/ -p data/ -t 0.5",
    "dialeval breakdown mine.jsonl theirs.jsonl -p test.jsonl -t 0,0.3,0.5 --development dev/ -o results/",
    "dialeval breakdown labels/ -p data/ --match position --lenient",
    "dialeval breakdown labels/ -p CIC=cic/ -p IRIS=iris/ -p YI=yi/ -t 0.5 --macro",
    "dialeval breakdown detect chats.jsonl -o labels/",
)
@options.responses("labels")
@_data(required=True)
@click.option(
    "-t", "--threshold", default="0.0", callback=read_thresholds, help="Fraction of annotators for T or X, or several."
)
@options.choice("--match", ["turn-index", "position"], "Match labels with turns by index, or by position (original).")
@click.option("--lenient", is_flag=True, help="Count problems of the files and continue.")
@click.option("--development", type=click.Path(), help="Annotated dialogues for the floor of the mean distribution.")
@click.option(
    "--baselines/--no-baselines",
    default=True,
    show_default=False,
    help="Score floors, ceilings.  [default: in tables]",
)
@click.option("--macro", is_flag=True, help="Print averages over the data sets, each counting equally, instead.")
@click.option("--error-categories", metavar="FIELD", help="Score the error categories in this field instead.")
@click.option("--turns", "turns_file", type=options.FILE, help="Write a CSV row per turn.")
@options.output_folder
@click.option("-f", "--format", "format_", type=options.Choice(("original", *options.FORMATS)), help=_FORMAT_HELP)
@options.limits
@options.confidence
@options.intervals
@options.threads
@out.print_all_problems
def breakdown(
    labels: str | dict[str, str],
    threshold: list[float],
    baselines: bool,
    macro: bool,
    error_categories: str | None,
    turns_file: Path | None,
    **inputs: Any,
) -> int:
    """Evaluate dialogue breakdown detectors: labels and probabilities against what annotators said.

    LABELS are folders of *.labels.json, .jsonl files or .tar.gz archives, one detector each; NAME=PATH names one.
    Prints the lines of the challenge's eval.py. The table also has floors (constant detectors) and ceilings
    (annotators against each other).
    """
    from dialeval.suites.breakdown import report
    from dialeval.suites.breakdown.evaluation import evaluate_breakdown

    single = (isinstance(labels, str) or len(labels) == 1) and len(threshold) == 1
    shown = out.TaskRun.take(inputs)
    shown.format_ = format_ = shown.format_ or ("original" if single and not macro else "table")
    if format_ == "original" and (macro or not single):
        raise click.UsageError("-f original prints one detector at one threshold, without --macro")
    shown.check(labels, inputs["data"], inputs["development"], files=(turns_file,))
    if error_categories is not None:
        categories = report.score_categories(inputs["data"], labels, error_categories)
        out.print_run(categories, "table" if format_ == "original" else format_)
        return 0
    output = shown.output
    baselines = baselines and (format_ != "original" or output is not None)
    run = shown.evaluate(evaluate_breakdown, labels=labels, threshold=threshold, baselines=baselines, **inputs)
    detailed = None if output is None else run.with_report_details()
    verdict = out.compare_and_save(run, format_, output, shown.force, detailed)
    if turns_file is not None:
        out.write_output(turns_file, report.format_turns(run).encode(), "turns in")
    if macro:
        out.print_run(report.average_over_datasets(run), format_)
    else:
        print_breakdown(run, format_, verdict)
    return out.print_failed_gates(shown.limits.make_gates(run))


@options.command(
    "dialeval breakdown detect chats.jsonl -o labels/",
    "dialeval breakdown detect -p data/ -o labels/ && dialeval breakdown labels/ -p data/ -f table",
)
@click.argument("chats", nargs=-1, type=click.Path())
@_data(required=False)
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder, or .jsonl file, of labels."
)
@options.judge
@options.row_fields
@out.print_all_problems
def detect(chats: tuple[str, ...], output: Path, **inputs: Any) -> None:
    """Label the turns of CHATS where a breakdown is likely, by the judge.

    CHATS are files of chats, or of rows with contexts; -p takes dialogues of the challenge instead. The labels are
    those of a detector in the challenge, which `dialeval breakdown` evaluates: shares of O (no breakdown), T (possibly
    one) and X. A turn is its index among the messages.
    """
    from dialeval.core.files import check_file
    from dialeval.suites.breakdown.judge import detect as run
    from dialeval.suites.breakdown.judge import save_labels

    check_file(output if output.suffix == ".jsonl" else None, chats, inputs["data"])
    documents = run(chats, **inputs)
    save_labels(documents, output)
    turns = [turn["labels"][0]["breakdown"] for document in documents for turn in document["turns"]]
    counted = ", ".join(f"{label} {turns.count(label)}" for label in ("O", "T", "X"))
    out.print_err(f"{len(turns)} turns of {len(documents)} dialogues in {output}: {counted}")


breakdown.inner = {"detect": detect}


def print_breakdown(run: BreakdownRun, format_: str, verdict: RunVerdict | None = None) -> None:
    """Print a run of detectors; `original`: one of them, as the challenge's program does."""
    from dialeval.suites.breakdown.report import format_original, format_tables

    if format_ != "original":
        out.print_run(run, format_, verdict=verdict)
        if format_ == "table":
            out.print_content("\n" + format_tables(run))
        return
    if len(run.detectors) > 1:
        raise click.UsageError(f"there are {len(run.detectors)} detectors; choose one, or another format (-f table)")
    out.print_content(format_original(run))
    out.print_warnings(run.warnings)
