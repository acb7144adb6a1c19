"""`dialeval judge`: train, use and attack a judge that reads context and response together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dialeval.cli import options
from dialeval.cli.judging import score_by
from dialeval.cli.output import command_line, json_bytes, print_tables, say, show

_INPUTS_AND_JUDGE = options.together(options.judged_rows, options.row_fields)


@options.examples(
    "dialeval judge score rows.jsonl",
    "dialeval judge train --dialogues chats.jsonl --ratings ratings.jsonl -o judge/ --device cuda",
    "dialeval judge attack --judge judge/",
)
@click.group()
def judge() -> None:
    """A judge that reads context and response together: what people would say of a response, from 1 to 5."""


@options.examples(
    "dialeval judge score rows.jsonl",
    "dialeval judge score system.txt -c contexts.txt -r references.txt --judge judge/ -f json",
)
@judge.command()
@options.responses()
@_INPUTS_AND_JUDGE
@options.output_folder
@options.format_(options.RUN_FORMATS)
def score(
    judge: str | None, encoder: str | None, output: Path | None, format_: str, force: bool, **inputs: Any
) -> None:
    """Score responses by context and, where given, references; the same as `dialeval score -m judge`."""
    from dialeval.metrics.learned.dialogue_judge import DialogueJudge

    given = DialogueJudge(judge, encoder) if judge or encoder else None
    score_by("judge", given, output, format_, force, inputs)


@options.examples(
    "dialeval judge train --dialogues chats.jsonl --ratings ratings.jsonl -o judge/ --device cuda",
    "dialeval judge train --dialogues chats.jsonl --ratings a.jsonl --steps 200 --batch-size 32 -o judge/",
)
@judge.command()
@click.option(
    "--dialogues", multiple=True, required=True, type=click.Path(), help="JSONL of dialogues; repeat for several."
)
@click.option("--ratings", multiple=True, required=True, type=click.Path(), help="Rated rows; repeat for several.")
@click.option("--test", "tests", multiple=True, type=click.Path(), help="Rated rows to validate on only.")
@click.option("--breakdown", metavar="SET", help="The rated set whose annotators said O, T or X, as 1, 0.5 and 0.")
@click.option("-o", "--output", required=True, type=options.FOLDER, help="Folder for the judge.")
@options.base_encoder
@options.choice("--device", ["cpu", "cuda"], "Train on.")
@click.option("--steps", type=click.IntRange(min=1), default=7200, help="Steps on dialogues.")
@click.option("--batch-size", type=click.IntRange(min=1), default=512, help="Pairs of context and response of a step.")
@click.option("--learning-rate", type=float, default=2e-4, help="Highest learning rate on dialogues.")
@click.option("--rating-steps", type=click.IntRange(min=1), default=310, help="Steps on ratings.")
@click.option("--rank", type=click.IntRange(min=1), default=64, help="Columns of the factors that are saved.")
@options.pairs("--licence", "licences", "SET=TEXT", "Licence of a set or corpus, for the card.")
@options.validate
@click.option("--seed", type=options.SEED, default=0, help="Seed of everything drawn.")
def train(output: Path, **settings: Any) -> None:
    """Train a judge on plain dialogues and on ratings, and write it with its model card. Needs PyTorch.

    Dialogues are JSONL files with `{"turns": [...]}` or `{"messages": [...]}` a line, and where known `replies`, other
    replies to the last turn. Dialogues that share turns with a rated context are left out. What is saved on the way
    lies in the folder `training` of the output; the same command goes on from there.
    """
    from dialeval.analysis.dialogue_judges import make_dialogue_judge
    from dialeval.core.targets import check_writable
    from dialeval.reports.dialogue_judge_card import card_tables, save_card

    check_writable(output)
    command = command_line(short_paths=True)  # cards travel
    made = make_dialogue_judge(output=output, log=say, command=command, **settings)
    save_card(output)
    print_tables(card_tables(made))
    say(f"saved in {output}")


@options.examples("dialeval judge attack", "dialeval judge attack rows.jsonl --judge judge/ -f json")
@judge.command()
@click.argument("responses", nargs=-1, type=click.Path())
@_INPUTS_AND_JUDGE
@options.format_(("table", "json"))
def attack(responses: tuple[str, ...], judge: str | None, encoder: str | None, format_: str, **inputs: Any) -> None:
    """Try to fool a judge: words in reverse, a dull answer, a random one, an echo; and the reference itself.

    Without RESPONSES the shipped sample is used.
    """
    from dataclasses import asdict

    from dialeval.analysis.judges import attack_files
    from dialeval.metrics.learned.dialogue_judge import DialogueJudge
    from dialeval.reports.judge_card import attack_rows

    attacks = attack_files(responses or None, **inputs, opened=DialogueJudge(judge, encoder))
    if format_ == "json":
        show(json_bytes({"attacks": [asdict(each) for each in attacks]}).decode())
        return
    print_tables([("Attacks", attack_rows(attacks))])
