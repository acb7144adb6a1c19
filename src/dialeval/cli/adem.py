"""`dialeval adem`: train, use and attack a learned judge of responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dialeval.cli import options
from dialeval.cli.judging import score_by
from dialeval.cli.output import (
    command_line,
    json_bytes,
    print_tables,
    print_warnings,
    say,
    show,
)
from dialeval.cli.progress import metered

_DEVICE = options.choice(
    "--device", ["cpu", "torch", "cuda"], "Encode by NumPy, by PyTorch, or by PyTorch on a GPU in bfloat16."
)
_INPUTS_AND_JUDGE = options.together(
    options.judged_rows,
    _DEVICE,
    options.row_fields,
)


@options.examples(
    "dialeval adem score rows.jsonl",
    "dialeval adem train --ratings ratings.jsonl more.csv -o judge/",
    "dialeval adem attack --judge judge/",
)
@click.group()
def adem() -> None:
    """A learned judge of responses: what people would say of them, from 1 to 5."""


@options.examples(
    "dialeval adem score rows.jsonl",
    "dialeval adem score system.txt -r references.txt -c contexts.txt --judge judge/ -f json",
)
@adem.command()
@options.responses()
@_INPUTS_AND_JUDGE
@options.output_folder
@options.format_(options.RUN_FORMATS)
def score(
    judge: str | None, encoder: str | None, device: str, output: Path | None, format_: str, force: bool, **inputs: Any
) -> None:
    """Score responses by context and reference; the same as `dialeval score -m adem`, with a choice of device."""
    from dialeval.metrics.learned.judge import LazyJudge

    lazy = LazyJudge(judge, encoder, device) if judge or encoder or device != "cpu" else None
    score_by("adem", lazy, output, format_, force, inputs)


@options.examples(
    "dialeval adem train --ratings ratings.jsonl more.csv -o judge/",
    'dialeval adem train --ratings ratings.jsonl --test other.jsonl --licence "ratings=CC BY 4.0" -o judge/',
)
@adem.command()
@click.option(
    "--ratings", multiple=True, required=True, type=click.Path(), help="Rated rows to learn from; several may follow."
)
@click.argument("more", nargs=-1, type=click.Path())
@click.option(
    "--test", "tests", multiple=True, type=click.Path(), help="Rated rows to validate on only; repeat for several."
)
@options.base_encoder
@click.option("-o", "--output", required=True, type=options.FOLDER, help="Folder for the judge.")
@options.choice("--kind", ["adem", "identity", "paper"], "Recipe.")
@click.option("--strength", type=float, help="How near M and N stay to the identity.  [default: 30]")
@click.option("--response-strength", type=float, help="How small the linear term stays.  [default: 100]")
@click.option("--rank", type=int, help="Directions that M and N add to the identity.  [default: 8]")
@click.option("--turns", type=int, default=3, help="Turns of the context that count, the last ones.")
@click.option("--tokens", type=int, help="Word pieces of a text that count.  [default: 128, or what the encoder takes]")
@click.option("--quality", default="overall", help="Which of the scores to learn.")
@options.pairs("--licence", "licences", "SET=TEXT", "Licence of a set, for the card.")
@options.validate
@_DEVICE
@options.row_fields
def train(
    ratings: tuple[str, ...], more: tuple[str, ...], tests: tuple[str, ...], output: Path, **settings: Any
) -> None:
    """Fit a judge to rated rows, validate it on sets that it has not seen, and write it with its model card.

    Rated rows are .jsonl, .json, .csv, .tsv or .parquet with `response`, `scores` (or `overall`, `score`, `rating`),
    and `context`, `reference` or both. The table that is printed stands in the card as well.
    """
    from dialeval.analysis.judges import make_judge
    from dialeval.metrics.learned.weights import check_folder
    from dialeval.reports.judge_card import NOT_VALIDATED, JudgeCard, weaknesses

    check_folder(output, ratings, more, tests)
    command = command_line(short_paths=True)  # cards travel
    with metered() as meter:
        made = make_judge([*ratings, *more], tests, progress=meter.steps, command=command, **settings)
    card = JudgeCard(made)
    card.save(output)
    print_tables(card.tables())
    if made.validation is not None and not made.validation.sets:
        print_warnings([NOT_VALIDATED])
    for line in weaknesses(made.attacks):
        say(f"weakness: {line}")
    say(f"saved in {output}")


@options.examples("dialeval adem attack", "dialeval adem attack rows.jsonl --judge judge/ -f json")
@adem.command()
@click.argument("responses", nargs=-1, type=click.Path())
@_INPUTS_AND_JUDGE
@options.format_(("table", "json"))
def attack(responses: tuple[str, ...], format_: str, **inputs: Any) -> None:
    """Try to fool a judge: words in reverse, a dull answer, a random one, an echo; and the reference itself.

    Without RESPONSES the shipped sample is used.
    """
    from dataclasses import asdict

    from dialeval.analysis.judges import attack_files
    from dialeval.reports import judge_card

    attacks = attack_files(responses or None, **inputs)
    if format_ == "json":
        show(json_bytes({"attacks": [asdict(each) for each in attacks]}).decode())
        return
    print_tables([("Attacks", judge_card.attack_rows(attacks))])
    for line in judge_card.weaknesses(attacks):
        say(line)


@options.examples(
    "dialeval adem finetune dialogues.jsonl -o encoder/ --device cuda",
    "dialeval adem train --ratings ratings.jsonl --encoder encoder/ -o judge/",
)
@adem.command()
@click.argument("dialogues", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", required=True, type=options.FOLDER, help="Folder for the encoder.")
@options.base_encoder
@options.choice("--device", ["cpu", "cuda"], "Train on.")
@click.option("--epochs", type=click.IntRange(min=1), default=3, help="Passes over the dialogues.")
@click.option("--batch-size", type=click.IntRange(min=2), default=512, help="Pairs of a step.")
@click.option("--learning-rate", type=float, default=2e-5, help="Highest learning rate.")
@click.option("--share", type=float, default=0.6, help="How far the weights move, 0 to 1.")
@click.option("--shuffled/--no-shuffled", default=True, help="Shuffled replies as negatives.")
@click.option("--same-dialogue/--no-same-dialogue", default=False, help="Other turns as negatives.")
@click.option("--seed", type=options.SEED, default=0, help="Seed of everything drawn.")
def finetune(dialogues: tuple[str, ...], output: Path, **settings: Any) -> None:
    """Train a sentence encoder further on plain dialogues, so that the order of words counts. Needs PyTorch.

    DIALOGUES are JSONL files with a dialogue a line: `{"turns": [...]}` or `{"messages": [...]}`. The folder that is
    written serves as --encoder of `dialeval adem train`.
    """
    from dialeval.adem import finetune as run
    from dialeval.core.targets import check_writable

    check_writable(output)
    with metered() as meter:
        losses = run(dialogues, output, progress=meter.steps, **settings)
    for epoch, loss in enumerate(losses, 1):
        say(f"epoch {epoch}: loss {loss:.4f}")
    say(f"saved in {output}")
