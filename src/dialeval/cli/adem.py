"""`dialeval adem`: train, use and attack a learned judge of responses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dialeval.cli.score import FORMATS, pairs, progress_bar, show, systems

if TYPE_CHECKING:
    from dialeval.metrics.learned.attack import Attack

F = TypeVar("F", bound=Callable[..., Any])

_JUDGE = click.option(
    "--judge", type=click.Path(file_okay=False), help="Folder of a judge.  [default: the shipped one]"
)
_ENCODER = click.option(
    "--encoder", help="Where the judge's encoder lies: a folder, minilm, or a name in the hub cache."
)
_DEVICE = click.option(
    "--device",
    type=click.Choice(["cpu", "torch", "cuda"]),
    default="cpu",
    show_default=True,
    help="Encode by NumPy, by PyTorch, or by PyTorch on a GPU in bfloat16.",
)
_FIELDS = click.option(
    "--field", "fields", multiple=True, callback=pairs, metavar="OURS=THEIRS", help="Name of a field in rows."
)
_REFERENCES = click.option("-r", "--references", type=click.Path(), help="One reference per response.")
_CONTEXTS = click.option("-c", "--contexts", type=click.Path(), help="What each response answers.")


@click.group(
    epilog="""\b
Examples:
  dialeval adem score rows.jsonl
  dialeval adem train --ratings ratings.jsonl more.csv -o judge/
  dialeval adem attack --judge judge/
"""
)
def adem() -> None:
    """A learned judge of responses: what people would say of them, from 1 to 5."""


@adem.command(
    epilog="""\b
Examples:
  dialeval adem score rows.jsonl
  dialeval adem score system.txt -r references.txt -c contexts.txt --judge judge/ -f json
"""
)
@click.argument("responses", nargs=-1, required=True, type=click.Path())
@_REFERENCES
@_CONTEXTS
@_JUDGE
@_ENCODER
@_DEVICE
@_FIELDS
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="Save the run in this folder.")
@click.option(
    "-f", "--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True, help="Print as."
)
def score(
    responses: tuple[str, ...],
    judge: str | None,
    encoder: str | None,
    device: str,
    output: Path | None,
    format_: str,
    **inputs: Any,
) -> None:
    """Score responses by context and reference; the same as `dialeval score -m adem`, with a choice of device."""
    from dialeval.engine.evaluate import evaluate
    from dialeval.metrics.learned.judge import LazyJudge

    lazy = LazyJudge(judge, encoder, device) if judge or encoder or device != "cpu" else None
    with progress_bar() as progress:
        run = evaluate(systems(responses), metrics="adem", judge=lazy, progress=progress, **inputs)
    if output is not None:
        run.save(output)
        click.echo(f"saved in {output}", err=True)
    show(run, format_)


@adem.command(
    epilog="""\b
Examples:
  dialeval adem train --ratings ratings.jsonl more.csv -o judge/
  dialeval adem train --ratings ratings.jsonl --test other.jsonl --licence "ratings=CC BY 4.0" -o judge/
"""
)
@click.option(
    "--ratings", multiple=True, required=True, type=click.Path(), help="Rated rows to learn from; several may follow."
)
@click.argument("more", nargs=-1, type=click.Path())
@click.option(
    "--test", "tests", multiple=True, type=click.Path(), help="Rated rows to validate on only; repeat for several."
)
@click.option("--encoder", default="minilm", show_default=True, help="Folder, minilm, or a name in the hub cache.")
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for the judge."
)
@click.option(
    "--kind", type=click.Choice(["adem", "identity", "paper"]), default="adem", show_default=True, help="Recipe."
)
@click.option("--strength", type=float, help="How near M and N stay to the identity.  [default: 30]")
@click.option("--response-strength", type=float, help="How small the linear term stays.  [default: 100]")
@click.option("--rank", type=int, help="Directions that M and N add to the identity.  [default: 8]")
@click.option("--turns", type=int, default=3, show_default=True, help="Turns of the context that count, the last ones.")
@click.option("--tokens", type=int, help="Word pieces of a text that count.  [default: 128, or what the encoder takes]")
@click.option("--quality", default="overall", show_default=True, help="Which of the scores to learn.")
@click.option(
    "--licence", "licences", multiple=True, callback=pairs, metavar="SET=TEXT", help="Licence of a set, for the card."
)
@click.option("--validate/--no-validate", default=True, help="Leave sets out to see what the judge is worth.")
@_DEVICE
@_FIELDS
def train(
    ratings: tuple[str, ...], more: tuple[str, ...], tests: tuple[str, ...], output: Path, **options: Any
) -> None:
    """Fit a judge to rated rows, validate it on sets that it has not seen, and write it with its model card.

    Rated rows are .jsonl, .json, .csv, .tsv or .parquet with `response`, `scores` (or `overall`, `score`, `rating`),
    and `context`, `reference` or both. The table that is printed stands in the card as well.
    """
    from dialeval.analysis.judges import make_judge
    from dialeval.core.files import check_writable
    from dialeval.reports.judge_card import NOT_VALIDATED, JudgeCard, weaknesses

    check_writable(output)
    with progress_bar() as progress:
        steps = _steps(progress, "training")
        made = make_judge([*ratings, *more], tests, progress=steps, command=_command(), **options)
    card = JudgeCard(made)
    card.save(output)
    _print(card.tables())
    if made.validation is not None and not made.validation.sets:
        click.echo(f"warning: {NOT_VALIDATED}", err=True)
    for line in weaknesses(made.attacks):
        click.echo(f"weakness: {line}", err=True)
    click.echo(f"saved in {output}", err=True)


@adem.command(
    epilog="""\b
Examples:
  dialeval adem attack
  dialeval adem attack rows.jsonl --judge judge/ -f json
"""
)
@click.argument("responses", nargs=-1, type=click.Path())
@_REFERENCES
@_CONTEXTS
@_JUDGE
@_ENCODER
@_DEVICE
@_FIELDS
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Print as.",
)
def attack(
    responses: tuple[str, ...],
    references: str | None,
    contexts: str | None,
    judge: str | None,
    encoder: str | None,
    device: str,
    fields: Mapping[str, str],
    format_: str,
) -> None:
    """Try to fool a judge: words in reverse, a dull answer, a random one, an echo; and the reference itself.

    Without RESPONSES the shipped sample is used.
    """
    from dialeval.analysis.judges import attack_files

    found = attack_files(responses or None, references, contexts, judge, encoder, device, fields)
    _show_attacks(found, format_)


@adem.command(
    epilog="""\b
Example:
  dialeval adem finetune dialogues.jsonl -o encoder/ --device cuda
  dialeval adem train --ratings ratings.jsonl --encoder encoder/ -o judge/
"""
)
@click.argument("dialogues", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for the encoder."
)
@click.option("--encoder", default="minilm", show_default=True, help="Folder, minilm, or a name in the hub cache.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="Train on.")
@click.option("--epochs", type=click.IntRange(min=1), default=3, show_default=True, help="Passes over the dialogues.")
@click.option("--batch-size", type=click.IntRange(min=2), default=512, show_default=True, help="Pairs of a step.")
@click.option("--learning-rate", type=float, default=2e-5, show_default=True, help="Highest learning rate.")
@click.option("--share", type=float, default=0.6, show_default=True, help="How far the weights move, 0 to 1.")
@click.option("--shuffled/--no-shuffled", default=True, show_default=True, help="Shuffled replies as negatives.")
@click.option("--same-dialogue/--no-same-dialogue", default=False, show_default=True, help="Other turns as negatives.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything drawn.")
def finetune(dialogues: tuple[str, ...], output: Path, encoder: str, device: str, **settings: Any) -> None:
    """Train a sentence encoder further on plain dialogues, so that the order of words counts. Needs PyTorch.

    DIALOGUES are JSONL files with a dialogue a line: `{"turns": [...]}` or `{"messages": [...]}`. The folder that is
    written serves as --encoder of `dialeval adem train`.
    """
    from dialeval.adem import finetune as run
    from dialeval.core.files import check_writable

    check_writable(output)
    with progress_bar() as progress:
        losses = run(
            dialogues, output, encoder=encoder, device=device, progress=_steps(progress, "training"), **settings
        )
    for epoch, loss in enumerate(losses, 1):
        click.echo(f"epoch {epoch}: loss {loss:.4f}", err=True)
    click.echo(f"saved in {output}", err=True)


def _steps(progress: Callable[[str, int, int], None] | None, name: str) -> Callable[[int, int | None], None] | None:
    """The bar as a function of what is done in all; the bar itself counts what is done more."""
    if progress is None:
        return None
    before = 0

    def step(done: int, total: int | None) -> None:
        nonlocal before
        progress(name, total or 1, done - before)
        before = done

    return step


def _show_attacks(found: Sequence[Attack], format_: str) -> None:
    from dataclasses import asdict

    from dialeval.reports.judge_card import attack_rows as shown
    from dialeval.reports.judge_card import weaknesses

    if format_ == "json":
        import orjson

        click.echo(orjson.dumps({"attacks": [asdict(each) for each in found]}, option=orjson.OPT_INDENT_2).decode())
        return
    _print([("Attacks", shown(found))])
    for line in weaknesses(found):
        click.echo(line, err=True)


def _print(tables: Sequence[tuple[str, list[list[str]]]]) -> None:
    from rich.console import Console
    from rich.table import Table

    for title, (head, *rows) in tables:
        table = Table(title=title, title_justify="left")
        for number, name in enumerate(head):
            table.add_column(name, justify="left" if number == 0 else "right")
        for row in rows:
            table.add_row(*row)
        Console().print(table)


def _command() -> str:
    """The command as it was called, for the card; paths by their last part, since cards travel."""
    words = [Path(word).name if "/" in word and Path(word).exists() else word for word in sys.argv[1:]]
    return " ".join(["dialeval", *(f'"{word}"' if " " in word else word for word in words)])
