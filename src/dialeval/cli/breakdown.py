"""`dialeval breakdown`: breakdown detectors, as the challenge (DBDC) evaluates them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli import options
from dialeval.cli.output import (
    check_places,
    exit_status,
    print_run,
    print_warnings,
    printing_all_faults,
    save_run,
    say,
    show,
    write,
)

if TYPE_CHECKING:
    from dialeval.engine.breakdown import BreakdownRun


def read_thresholds(_context: click.Context, parameter: click.Parameter, value: str) -> list[float]:
    """Read one threshold or several by commas."""
    try:
        return [float(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} is no number, nor several by commas", param=parameter) from None


_DATA = click.option(
    "-p", "--data", type=click.Path(), help="Annotated dialogues: folder of *.log.json, .jsonl, .tar.gz."
)


@options.examples(
    "dialeval breakdown -p data/ -o labels/ -t 0.5",
    "dialeval breakdown -p test.jsonl -o mine.jsonl -o theirs.jsonl -t 0,0.3,0.5 --development dev/",
    "dialeval breakdown -p data/ -o labels/ --match position --lenient",
    "dialeval breakdown detect chats.jsonl -o labels/",
)
@click.group(invoke_without_command=True)
@_DATA
@click.option(
    "-o",
    "--labels",
    multiple=True,
    callback=options.read_systems,
    help="A detector's labels: folder of *.labels.json, .jsonl, .tar.gz, or NAME=PATH; repeat for several.",
)
@click.option(
    "-t",
    "--threshold",
    default="0.0",
    callback=read_thresholds,
    help="Share from which on T or X is the reference; several by commas.",
)
@options.choice(
    "--match", ["turn-index", "position"], "Match labels with turns by turn-index, or by position as the original does."
)
@click.option("--lenient", is_flag=True, help="Count faults of the files and go on.")
@click.option("--development", type=click.Path(), help="Annotated dialogues for the floor of the mean distribution.")
@click.option("--no-anchors", is_flag=True, help="Leave floors and ceilings out of the table.")
@click.option("--turns", "turns_file", type=options.FILE, help="Write a CSV row per turn.")
@options.save_folder
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice(("original", *options.FORMATS)),
    help="Print as.  [default: original for one detector and threshold, else table]",
)
@options.fail_under()
@options.intervals
@printing_all_faults
def breakdown(
    labels: str | dict[str, str],
    threshold: list[float],
    no_anchors: bool,
    turns_file: Path | None,
    save: Path | None,
    format_: str | None,
    limits: Mapping[str, float],
    intervals: options.Intervals,
    **inputs: Any,
) -> int:
    """Evaluate dialogue breakdown detectors: labels and probabilities against what annotators said.

    Prints the lines of the challenge's eval.py. As a table, detectors stand beside floors (detectors that look at
    nothing) and ceilings (annotators against each other), so that a figure can be read between them.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return 0
    from dialeval.analysis.gates import below_limit
    from dialeval.engine.breakdown import evaluate_breakdown

    if inputs["data"] is None or not labels:
        raise click.UsageError("name the annotated dialogues and the labels: -p DATA -o LABELS")
    single = (isinstance(labels, str) or len(labels) == 1) and len(threshold) == 1
    format_ = format_ or ("original" if single else "table")
    if format_ == "original" and not single:
        raise click.UsageError("-f original prints one detector at one threshold")
    check_places(save, labels, inputs["data"], inputs["development"], files=(turns_file,))
    anchors = not no_anchors and (format_ != "original" or save is not None)
    inputs["intervals"] = intervals.kind
    run = evaluate_breakdown(labels=labels, threshold=threshold, anchors=anchors, **inputs)
    run = intervals.added_to(run)
    if save is not None:
        from dialeval.engine.breakdown_curves import with_curves

        save_run(with_curves(run), save)
    if turns_file is not None:
        from dialeval.reports.breakdown import turns_csv

        write(turns_file, turns_csv(run).encode(), "turns in")
    print_breakdown(run, format_)
    return exit_status(below_limit(run, limits))


@options.examples(
    "dialeval breakdown detect chats.jsonl -o labels/",
    "dialeval breakdown detect -p data/ -o labels/ && dialeval breakdown -p data/ -o labels/ -f table",
)
@breakdown.command()
@click.argument("chats", nargs=-1, type=click.Path())
@_DATA
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder, or .jsonl file, of labels."
)
@options.judge
@options.row_fields
@printing_all_faults
def detect(chats: tuple[str, ...], output: Path, **inputs: Any) -> None:
    """Label the turns of CHATS where people would see a breakdown, by the judge of `dialeval judge`.

    CHATS are files of chats, or of rows with contexts; -p takes dialogues of the challenge instead. The labels are
    those of a detector in the challenge, which `dialeval breakdown` evaluates: shares of O (no breakdown), T (possibly
    one) and X. A turn is its index among the messages.
    """
    from dialeval.analysis.breakdown_detection import detect as run
    from dialeval.analysis.breakdown_detection import save_labels
    from dialeval.core.files import check_file

    check_file(output if output.suffix == ".jsonl" else None, chats, inputs["data"])
    documents = run(chats, **inputs)
    save_labels(documents, output)
    turns = [turn["labels"][0]["breakdown"] for document in documents for turn in document["turns"]]
    counted = ", ".join(f"{label} {turns.count(label)}" for label in ("O", "T", "X"))
    say(f"{len(turns)} turns of {len(documents)} dialogues in {output}: {counted}")


def print_breakdown(run: BreakdownRun, format_: str) -> None:
    """Print a run of detectors; `original`: one of them, as the challenge's program does."""
    from dialeval.reports.breakdown import original, tables_text

    if format_ != "original":
        print_run(run, format_)
        if format_ == "table":
            show("\n" + tables_text(run))
        return
    if len(run.detectors) > 1:
        raise click.UsageError(f"there are {len(run.detectors)} detectors; choose one, or another format (-f table)")
    show(original(run))
    print_warnings(run.warnings)
