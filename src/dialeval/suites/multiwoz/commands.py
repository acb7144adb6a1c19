"""`dialeval multiwoz`: task dialogues, by the rules of the MultiWOZ evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli import options
from dialeval.cli import output as out

if TYPE_CHECKING:
    from dialeval.multiwoz import Evaluator
    from dialeval.suites.multiwoz.data import Predictions


_INPUT = click.option(
    "-i",
    "--input",
    "predictions",
    multiple=True,
    type=click.Path(),
    callback=options.parse_systems,
    help="Predictions: a file, a folder of them, NAME=FILE.",
)
_TASK = options.combine_options(
    click.option("--data", help="Folder with the data, a pack such as multiwoz-2.4, or `town`.  [default: multiwoz]"),
    click.option("--split", help="Split of the data.  [default: test]"),
    options.choice("--names", ["published", "2023"], "Spelling of venues: of the published results, or since 2023."),
)
_DATA = options.combine_options(
    _TASK,
    options.choice("--fallback", ["file", "turn"], "Replace missing states: in the whole file (original), or there."),
    click.option("--lexicalized", is_flag=True, help="Replies hold values: map them to placeholders first."),
)
_RATIO = options.choice("--ratio", ["historical", "exact"], "Partial ratio by which names are compared.")


@options.group(
    "dialeval multiwoz -i damd.json -b -s -r -o results/",
    "dialeval multiwoz -i predictions/ --data town",
    "dialeval multiwoz -i lava.json -i damd.json --by domain",
    "dialeval multiwoz -i damd.json --failures",
    "dialeval multiwoz -i damd.json --baselines",
    "dialeval multiwoz explain pmul0320 -i damd.json",
    invoke_without_command=True,
)
@_INPUT
@click.option("-b", "--bleu", is_flag=True, help="BLEU against every reference set.")
@click.option("-s", "--success", is_flag=True, help="Inform and Success.")
@click.option("-r", "--richness", is_flag=True, help="Lexical richness.")
@click.option("-d", "--dst", is_flag=True, help="State tracking; needs a state in every turn.")
@_DATA
@click.option("--strict", is_flag=True, help="Dialogues without a turn count as failed, missing turns as empty.")
@click.option("--completion", is_flag=True, help="Complete and Book rates, after ConvLab.")
@click.option("--dst-unify-booking", "unify_booking", is_flag=True, help="For -d: bookday and day are one slot.")
@click.option("--dst-exact", is_flag=True, help="For -d: values must be equal, not similar.")
@click.option("--dst-ignore-dontcare", "ignore_dontcare", is_flag=True, help="For -d: leave out dontcare and none.")
@_RATIO
@options.baselines("gold, shuffled gold, a constant and every placeholder in every turn")
@click.option("--failures", is_flag=True, help="Print the failed dialogues by cause instead of scores.")
@click.option("--dialogues", type=options.FILE, help="Write one line per dialogue here (JSONL).")
@options.of_task_runs
@options.threads
@out.print_all_problems
def multiwoz(
    predictions: Predictions, failures: bool, dialogues: Path | None, threads: int | None, **settings: Any
) -> int:
    """Evaluate task dialogues: Inform, Success, BLEU, richness, state tracking.

    Without -b, -s, -r, -d and --completion it is BLEU, Inform and Success, and richness. With BLEU and Success there
    is also the combined score, 0.5 * (Inform + Success) + BLEU against the first reference set. Where the original
    replaces or ignores something silently, a warning says so. `dialeval compat mwzeval` writes exactly what it writes.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return 0
    import orjson

    from dialeval.suites.multiwoz.evaluation import list_dialogue_rows

    if not any(settings[name] for name in ("bleu", "success", "richness", "dst", "completion")):
        settings |= {"bleu": True, "success": True, "richness": True}
    shown = out.TaskRun.take(settings)
    shown.check(predictions, files=(dialogues,))
    evaluator = _make_evaluator(predictions, settings)
    if failures:
        from dialeval.suites.multiwoz.report import FAILURES, FailedDialogues

        out.print_as(shown.format_, FAILURES, FailedDialogues(evaluator.failures(predictions)))
        return 0
    read = evaluator.read(predictions)
    run = shown.evaluate(evaluator.run, read, threads=threads)
    if dialogues is not None:
        lines = (orjson.dumps(row) + b"\n" for row in list_dialogue_rows(run, evaluator.task))
        out.write_output(dialogues, b"".join(lines))
    explained = shown.output is not None and evaluator.success
    return shown.deliver(run, evaluator.with_transcripts(run, read) if explained else None)


def _make_evaluator(predictions: Predictions, settings: Mapping[str, Any]) -> Evaluator:
    if not predictions:
        raise click.UsageError("name the predictions: -i PREDICTIONS.json")
    from dialeval.multiwoz import Evaluator

    return Evaluator(**settings)


@multiwoz.command("dialeval multiwoz explain pmul0320 -i damd.json")
@click.argument("dialogue")
@_INPUT
@_DATA
@_RATIO
@out.print_all_problems
def explain(dialogue: str, predictions: Predictions, **settings: object) -> int:
    """Explain, turn by turn, why DIALOGUE lost Inform or Success.

    For each turn: the response, active domains, the state, what was offered and provided; and in the end the cause of
    everything that was lost.
    """
    by_system = _make_evaluator(predictions, settings).explain(predictions, dialogue)
    for system, explanations in by_system.items():
        if len(by_system) > 1:
            out.print_out(f"{system}\n")
        for explanation in explanations:
            out.print_out(str(explanation))
        if not explanations:
            out.print_err(f"{system} does not give {dialogue}")
    return 0 if any(by_system.values()) else 2


@multiwoz.command("dialeval multiwoz delexicalize -i replies.json --save predictions.json", name="delexicalize")
@_INPUT
@_TASK
@click.option("--save", "output", type=options.FILE, help="Write the predictions of a system with placeholders here.")
@options.format_()
@out.print_all_problems
def delexicalize_command(predictions: Predictions, output: Path | None, format_: str, **data: object) -> None:
    """Map values in replies (venues, phone numbers, references, times) to placeholders, and list what was matched.

    Values are found by the venues, by the states of the predictions and by the patterns of the ontology. Look through
    the list before scores are believed: `dialeval multiwoz --lexicalized` maps in the same way.
    """
    from dialeval.suites.multiwoz.lexicalized import PRINTER, MatchReport, delexicalize

    evaluator = _make_evaluator(predictions, data)
    out.check_places(None, predictions, files=(output,))
    systems, reports = zip(
        *(delexicalize(system, evaluator.task) for system in evaluator.read(predictions)), strict=True
    )
    if output is not None:
        if len(systems) != 1:
            raise click.UsageError("--save writes the predictions of one system; name one with -i")
        out.write_output(output, out.encode_json(systems[0].to_document()))
    left = {system: words for report in reports for system, words in report.left.items()}
    out.print_as(format_, PRINTER, MatchReport([word for report in reports for word in report.words], left))
