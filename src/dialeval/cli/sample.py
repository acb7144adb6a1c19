"""`dialeval sample`: which responses of a run people should rate, and how many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dialeval.cli import options
from dialeval.cli.output import say, show

_WIDTH = click.FloatRange(0, 1e9, min_open=True)


@options.examples(
    "dialeval sample results/ -n 200 -o to-rate/                  the same contexts for all systems",
    "dialeval sample results/ -n 200 --by turn,judge:3 -o to-rate/",
    "dialeval sample results/ -n 200 --unsure judge -o to-rate/   more of what the judge is unsure about",
    "dialeval sample results/ --plan --width 0.2                  how many ratings that takes",
    "dialeval sample results/ --plan --width 0.2 --pilot ratings.jsonl --sample to-rate/ --judge judge",
)
@click.command()
@click.argument("run", type=click.Path(exists=True))
@click.option("-n", "number", type=click.IntRange(min=1), help="Responses to rate, of all systems together.")
@click.option("-o", "--output", type=options.FOLDER, help="Write sample.json and rows.jsonl into this folder.")
@click.option("--systems", metavar="NAMES", help="Only these systems, by commas.  [default: all but floors, ceilings]")
@click.option(
    "--by", metavar="NAMES", help="Strata, by commas: system, turn, a field of the rows, a metric (KEY or KEY:3)."
)
@click.option("--unsure", metavar="KEY", help="Draw in proportion to how unsure this metric is.")
@click.option("--dialogues", is_flag=True, help="Draw whole dialogues.")
@click.option("--apart", is_flag=True, help="Draw from each system by itself, not the same contexts for all.")
@click.option("--seed", type=options.SEED, default=12345, help="Of the draw.")
@click.option("--plan", is_flag=True, help="Draw nothing; say how many ratings --width takes.")
@click.option("--width", type=_WIDTH, help="Of the interval, from its lower to its upper end.")
@click.option("--pilot", type=click.Path(), help="Ratings that there are already, of the rows in --sample.")
@click.option("--sample", type=click.Path(), help="The folder that the rows of --pilot were drawn into.")
@click.option("--judge", metavar="KEYS", default="", help="The judge of the estimate, with --pilot.")
@click.option("--quality", default="overall", help="Which of the scores counts, with --pilot.")
@click.option("--spread", type=float, help="Without --pilot: the standard deviation of ratings.  [default: 1]")
@click.option("--agreement", type=float, help="Without --pilot: the judge's correlation with people.  [default: 0.5]")
@click.option("--confidence", "level", type=float, default=0.95, metavar="LEVEL", help="Level of the interval.")
def sample(
    run: str, number: int | None, output: Path | None, systems: str | None, by: str | None, plan: bool, **more: Any
) -> None:
    """Draw responses of a saved RUN for people to rate, with known probabilities; or plan how many (--plan).

    The rows to rate lie in rows.jsonl, with ids that do not tell the system; sample.json says how they were drawn. Both
    are needed again by `dialeval estimate --sample`.
    """
    from dialeval.analysis.sampling import check_sample_folder, draw
    from dialeval.core.result import files_of, load

    settings = {name: more.pop(name) for name in ("unsure", "dialogues", "apart", "seed")}
    chosen = _split(systems)
    if plan:
        if number is not None or output is not None:
            raise click.UsageError("--plan draws nothing; leave -n and -o out")
        _plan(run, chosen, **more)
        return
    if number is None or output is None:
        raise click.UsageError("name how many responses to rate (-n) and a folder for them (-o)")
    check_sample_folder(output, files_of(run))
    drawn = draw(load(run), number, systems=chosen, by=_split(by) or (), **settings)
    drawn.save(output)
    for name, stratum in drawn.design.strata.items():
        if len(drawn.design.strata) > 1:
            say(f"{name}: {stratum.drawn_responses} of {stratum.responses} responses")
    say(f"{len(drawn.rows)} responses to rate ({drawn.design.unit}, seed {drawn.design.seed}) are in {output}")


def _split(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",")]


def _plan(
    run: str,
    systems: list[str] | None,
    width: float | None,
    pilot: str | None,
    spread: float | None,
    agreement: float | None,
    level: float,
    judge: str,
    **estimated: Any,
) -> None:
    """Print how many ratings a width takes."""
    from dialeval.analysis.people import estimate, plan_from_pilot, plan_ratings
    from dialeval.analysis.sampling import tables_of
    from dialeval.core.result import load
    from dialeval.reports.people import plan_table

    if width is None:
        raise click.UsageError("--plan asks for a --width")
    known = load(run)
    rows = {name: len(table) for name, table in tables_of(known, systems).items()}
    assumed = {"spread": spread, "agreement": agreement}
    given = {name: value for name, value in assumed.items() if value is not None}
    if pilot is None:
        show(plan_table(plan_ratings(rows, width, level, **given)))
        return
    if given:
        raise click.UsageError("--spread and --agreement are assumptions; a --pilot has no need of them")
    whole, drawn = (estimate(known, pilot, by=judge, of=of, level=level, **estimated) for of in ("dialogues", "run"))
    show(plan_table(plan_from_pilot(whole, drawn, rows, width)))
