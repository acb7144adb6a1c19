"""`dialeval multiwoz`: task dialogues, by the rules of the MultiWOZ evaluation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dialeval.cli.intervals import interval_options
from dialeval.cli.score import pairs

if TYPE_CHECKING:
    from dialeval.core.result import Run
    from dialeval.multiwoz import Evaluator

FORMATS = ("table", "json", "csv", "md", "latex")
SHOWN_FAULTS = 200
F = TypeVar("F", bound=Callable[..., Any])

_INPUT = click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(),
    help="Predictions: a file, a folder of them, NAME=FILE.",
)
_DATA = click.option("--data", help="Folder with the data, or `town`.  [default: the pack multiwoz]")
_SPLIT = click.option("--split", help="Split of the data.  [default: test]")
_FALLBACK = click.option(
    "--fallback",
    type=click.Choice(["file", "turn"]),
    default="file",
    show_default=True,
    help="Replace what single turns lack (states, active domains) in the whole file, as the original does, or there.",
)
_RATIO = click.option(
    "--ratio",
    type=click.Choice(["historical", "exact"]),
    default="historical",
    show_default=True,
    help="Partial ratio by which names are compared.",
)


def all_faults(command: F) -> F:
    """Print every fault of an input, not only the first ones."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        from dialeval.core.errors import DataError

        try:
            return command(*arguments, **options)
        except DataError as error:
            for fault in error.faults[:SHOWN_FAULTS]:
                click.echo(f"dialeval: {fault}", err=True)
            if len(error.faults) > SHOWN_FAULTS:
                click.echo(f"dialeval: and {len(error.faults) - SHOWN_FAULTS:,} more", err=True)
            raise click.exceptions.Exit(2) from None

    return run  # type: ignore[return-value]


@click.group(
    invoke_without_command=True,
    epilog="""\b
Examples:
  dialeval multiwoz -i damd.json -b -s -r -o damd-scores.json
  dialeval multiwoz -i predictions/ --data town
  dialeval multiwoz -i damd.json --failures
  dialeval multiwoz explain pmul0320 -i damd.json
""",
)
@_INPUT
@click.option("-b", "--bleu", is_flag=True, help="BLEU against every reference set.")
@click.option("-s", "--success", is_flag=True, help="Inform and Success.")
@click.option("-r", "--richness", is_flag=True, help="Lexical richness.")
@click.option("-d", "--dst", is_flag=True, help="State tracking; needs a state in every turn.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the original's output here."
)
@_DATA
@_SPLIT
@_FALLBACK
@click.option("--strict", is_flag=True, help="Dialogues and turns that are missing count as failed.")
@click.option("--dst-unify-booking", is_flag=True, help="State tracking: bookday and day are one slot.")
@_RATIO
@click.option("--failures", is_flag=True, help="Print the failed dialogues by cause instead of scores.")
@click.option(
    "--dialogues", type=click.Path(dir_okay=False, path_type=Path), help="Write one line per dialogue here (JSONL)."
)
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), help="Save the run in this folder.")
@click.option(
    "-f", "--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True, help="Print as."
)
@click.option("-t", "t", type=float, help="Factor of the confidence t*std/sqrt(n).  [default: 1.97]")
@click.option("--confidence", type=float, metavar="LEVEL", help="Level of the interval instead of -t, such as 0.95.")
@click.option(
    "--fail-under", "gates", multiple=True, callback=pairs, metavar="KEY=VALUE", help="Exit 1 if a mean is lower."
)
@interval_options
@all_faults
def multiwoz(inputs: tuple[str, ...], **options: Any) -> int:
    """Evaluate task dialogues: Inform, Success, BLEU, richness, state tracking.

    Without -b, -s, -r and -d it is BLEU, Inform and Success, and richness. -o writes exactly the output that the
    original documents (for several inputs, by system). Where the original replaces or ignores something without a
    word, a warning says so.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return 0
    if not inputs:
        raise click.UsageError("name the predictions: -i PREDICTIONS.json")
    evaluator = _evaluator(**_settings(options))
    if options["failures"]:
        return _print_failures(evaluator, inputs, options["format_"])
    return _scores(evaluator, inputs, options)


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    asked = [options[name] for name in ("bleu", "success", "richness", "dst")]
    bleu, success, richness, dst = asked if any(asked) else (True, True, True, False)
    return {
        "bleu": bleu,
        "success": success,
        "richness": richness,
        "dst": dst,
        "unify_booking": options["dst_unify_booking"],
        **{name: options[name] for name in ("data", "split", "fallback", "strict", "ratio")},
    }


def _evaluator(**settings: Any) -> Evaluator:
    from dialeval.multiwoz import Evaluator

    return Evaluator(**settings)


def _source(inputs: tuple[str, ...]) -> Any:
    from dialeval.cli.score import systems

    return systems(inputs)


def _scores(evaluator: Evaluator, inputs: tuple[str, ...], options: Mapping[str, Any]) -> int:
    from dialeval.cli.score import _limits, failed, progress_bar, show

    limits = _limits(options["gates"])
    with progress_bar() as progress:
        predictions = evaluator.read(_source(inputs))
        run = evaluator.run(predictions, t=options["t"], confidence=options["confidence"], progress=progress)
    run = options["resampled"](run)
    if options["output"] is not None:
        _write_original(run, evaluator, options["output"])
    if options["dialogues"] is not None:
        _write_dialogues(run, evaluator, options["dialogues"])
    if options["save"] is not None:
        _save(run, evaluator, predictions, options["save"])
    show(run, options["format_"])
    return failed(run, limits)


def _save(run: Run, evaluator: Evaluator, predictions: Any, folder: Path) -> None:
    from dialeval.cli.saving import save

    save(evaluator.with_transcripts(run, predictions) if evaluator.choices.success else run, folder)


def _write_original(run: Run, evaluator: Evaluator, path: Path) -> None:
    from dialeval.core.files import write_bytes
    from dialeval.engine.task_dialogues import original_output

    outputs = {system: original_output(result, evaluator.choices) for system, result in run.items()}
    write_bytes(path, _json(next(iter(outputs.values())) if len(outputs) == 1 else outputs))
    click.echo(f"written to {path}", err=True)


def _write_dialogues(run: Run, evaluator: Evaluator, path: Path) -> None:
    import orjson

    from dialeval.core.files import write_bytes
    from dialeval.multiwoz import dialogue_rows

    write_bytes(path, b"".join(orjson.dumps(row) + b"\n" for row in dialogue_rows(run, evaluator.task)))
    click.echo(f"written to {path}", err=True)


def _print_failures(evaluator: Evaluator, inputs: tuple[str, ...], format_: str) -> int:
    from dialeval.reports.failures import failures_csv, failures_json, failures_table

    if format_ not in ("table", "json", "csv"):
        raise click.UsageError("--failures is printed as table, json or csv")
    shown = {"table": failures_table, "json": failures_json, "csv": failures_csv}[format_]
    click.echo(shown(evaluator.failures(_source(inputs))), nl=False)
    return 0


@multiwoz.command(
    epilog="""\b
Example:
  dialeval multiwoz explain pmul0320 -i damd.json
"""
)
@click.argument("dialogue")
@_INPUT
@_DATA
@_SPLIT
@_FALLBACK
@_RATIO
@all_faults
def explain(dialogue: str, inputs: tuple[str, ...], **settings: Any) -> int:
    """Explain, turn by turn, why DIALOGUE lost Inform or Success.

    For each turn: the response, active domains, the state, what was offered and told; and in the end the cause of
    everything that was lost.
    """
    if not inputs:
        raise click.UsageError("name the predictions: -i PREDICTIONS.json")
    found = _evaluator(**settings).explain(_source(inputs), dialogue)
    for system, explanations in found.items():
        if len(found) > 1:
            click.echo(f"{system}\n")
        for explanation in explanations:
            click.echo(str(explanation))
        if not explanations:
            click.echo(f"{system} does not give {dialogue}", err=True)
    return 0 if any(found.values()) else 2


@multiwoz.command(
    epilog="""\b
Example:
  dialeval multiwoz domains -i predictions.json -o with-domains.json
"""
)
@click.option("-i", "--input", "source", required=True, type=click.Path(), help="Predictions.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Where to write.")
@click.option("--force", is_flag=True, help="Overwrite the output without asking.")
@all_faults
def domains(source: str, output: Path, force: bool) -> None:
    """Add active domains to predictions, out of the domains in slot names ([hotel_name]: hotel)."""
    from dialeval.core.files import write_bytes
    from dialeval.data.task.predictions import read_document
    from dialeval.multiwoz import add_slot_domains

    document = read_document(source)
    if output.exists() and not force:
        if not sys.stdin.isatty():
            raise click.UsageError(f"{output} exists; pass --force to overwrite it")
        click.confirm(f"{output} exists. Overwrite it?", abort=True)
    write_bytes(output, _json(add_slot_domains(document)))
    click.echo(f"written to {output}", err=True)


def _json(document: Any) -> bytes:
    import orjson

    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
