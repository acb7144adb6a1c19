"""Commands of human evaluation: `sample`, `rate` (page, serve, export, merge), `estimate`, `rank` and `agreement`."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click

from dialeval.cli import options
from dialeval.cli import output as out

LEVELS = ("turn", "dialogue", "system")
"""As in `analysis.matching`, which is not imported to print help."""
_FILE_WIDTH = 120
"""Characters in a line of a table that is written to a file."""


def _split(_context: click.Context, _parameter: click.Parameter, names: str | None) -> list[str] | None:
    """Split comma-separated names."""
    return None if names is None else [name.strip() for name in names.split(",")]


_form = click.option("--form", type=options.FILE, help="Rating form, a TOML file.  [default: overall, from 1 to 5]")
_quality = click.option("--quality", default="overall", help="Quality (score name) to use.")
_raters = options.choice(
    "--raters", ["fixed", "random"], "Intervals for these raters only, or also for others (from 5 raters on)."
)
_cluster = click.option(
    "--cluster", metavar="FIELD", help="The field whose values intervals are over, such as user.  [default: dialogues]"
)
_sample = click.option("--sample", type=click.Path(), help="The folder of the sample that the ratings are of.")
_confidence = click.option("--confidence", type=float, default=0.95, metavar="LEVEL", help="Confidence level.")


def _is_run(path: str) -> bool:
    from dialeval.core.rowtable import RUN_FILE

    return Path(path).is_dir() or Path(path).name == RUN_FILE


@options.command(
    "dialeval sample results/ -n 200 -o to-rate/                  the same contexts for all systems",
    "dialeval sample results/ -n 200 --stratify turn -o to-rate/",
    "dialeval sample results/ --plan --width 0.2                  sample size for this width",
)
@click.argument("run", type=click.Path(exists=True))
@click.option("-n", "number", type=click.IntRange(min=1), help="Responses to rate, of all systems together.")
@click.option("-o", "--output", type=options.FOLDER, help="Write sample.json and rows.jsonl into this folder.")
@click.option("--systems", metavar="NAMES", callback=_split, help="Only these.  [default: all but floors, ceilings]")
@click.option("--stratify", metavar="NAMES", callback=_split, help="Strata: turn, or a field of the run.")
@click.option("--dialogues", is_flag=True, help="Sample whole dialogues.")
@options.choice("--level", ["turn", "dialogue"], "What is rated: single responses, or whole conversations.")
@click.option("--seed", type=options.SEED, default=12345, help="Random seed.")
@click.option("--plan", is_flag=True, help="Print the sample size for --width; sample nothing.")
@click.option("--width", type=click.FloatRange(0, 1e9, min_open=True), help="Width of the whole confidence interval.")
@click.option("--std", type=float, default=1.0, help="With --plan: the standard deviation of ratings.")
@click.option("--correlation", type=float, default=0.5, help="With --plan: the correlation of judge and ratings.")
@_confidence
def sample(
    run: str,
    number: int | None,
    output: Path | None,
    systems: list[str] | None,
    stratify: list[str] | None,
    plan: bool,
    width: float | None,
    std: float,
    correlation: float,
    confidence: float,
    **settings: Any,
) -> None:
    """Sample responses of a saved RUN for human rating, with known probabilities; or plan the sample size (--plan).

    The rows to rate are in rows.jsonl, with ids that do not reveal the system; sample.json describes the design. Both
    are needed again by `dialeval estimate --sample`.
    """
    from dialeval.core.result import files_of, load
    from dialeval.human.estimate import plan_answers, plan_ratings
    from dialeval.human.sample import sample as draw_sample
    from dialeval.human.sample import select_tables
    from dialeval.human.sample_files import check_sample_folder
    from dialeval.reports.documents import lay_out

    if plan:
        if number is not None or output is not None:
            raise click.UsageError("--plan samples nothing; leave -n and -o out")
        if width is None:
            raise click.UsageError("--plan needs --width")
        saved = load(run)
        rows = {name: len(table) for name, table in select_tables(saved, systems).items()}
        judges = plan_answers(saved, rows)
        out.print_content(lay_out(plan_ratings(rows, width, confidence, std, correlation, judges)))
        return
    if number is None or output is None:
        raise click.UsageError("name how many responses to rate (-n) and a folder for them (-o)")
    check_sample_folder(output, files_of(run))
    drawn = draw_sample(load(run), number, systems=systems, stratify=stratify or (), **settings)
    drawn.save(output)
    design = drawn.design
    for name, stratum in design.strata.items():
        if len(design.strata) > 1:
            out.print_err(f"{name}: {stratum.drawn_responses} of {stratum.responses} responses")
    out.print_err(f"{len(drawn.responses)} responses to rate ({design.unit}, seed {design.seed}) are in {output}")


@options.group(
    "dialeval rate page to-rate/ --save rate.html",
    "dialeval rate serve to-rate/ --raters ann,bob,cy --per-row 2 --db ratings.sqlite",
    "dialeval rate merge ann.jsonl bob.jsonl --sample to-rate/ --save ratings.jsonl",
)
def rate() -> None:
    """Collect human ratings of the rows of a sample (`dialeval sample`)."""


@rate.command("dialeval rate page to-rate/ --form form.toml --save rate.html")
@click.argument("sample", type=click.Path(exists=True, file_okay=False))
@click.option("--save", "output", type=options.FILE, required=True, help="Write the page to this file.")
@_form
def page(sample: str, output: Path, form: Path | None) -> None:
    """Write one HTML file for rating the rows of the folder SAMPLE, without a network.

    Send it to every rater. It does not reveal the systems; order and sides differ between raters. Ratings are kept in
    the browser until the rater downloads them as a file and sends it back.
    """
    from dialeval.human.form import read_form
    from dialeval.human.page import collect_things, make_rating_page
    from dialeval.human.sample_files import read_sample

    out.check_places(None, sample, form, files=(output,))
    drawn = read_sample(sample)
    questions = read_form(form, drawn)
    out.write_output(output, make_rating_page(drawn, questions).encode())
    number = len(collect_things(drawn, questions))
    out.print_err(f"{number} to rate; merge the returned files with `dialeval rate merge`")


@rate.command(
    "dialeval rate merge ann.jsonl bob.jsonl --sample to-rate/ --save ratings.jsonl",
    "dialeval rate merge ratings.sqlite --sample to-rate/ --adjudicate disputed.html",
    "dialeval rate merge *.jsonl --sample to-rate/ --adjudicated eve.jsonl --save ratings.jsonl",
)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--save", "output", type=options.FILE, help="Write the ratings, or pairs for `rank`, here (JSONL).")
@_sample
@click.option("--quality", default="overall", help="For pairs: the question whose answers --save writes.")
@click.option("--adjudicate", type=options.FILE, help="Write a page to adjudicate the rows that raters disagree on.")
@click.option("--adjudicated", multiple=True, type=click.Path(), help="Ratings from that page, in place of others.")
@click.option("--most", type=click.IntRange(min=1), default=20, help="Disputed rows.")
@_form
@click.option("--any-scores", is_flag=True, help="Ratings by another tool: accept any qualities and any numbers.")
@options.format_(("table", "json", "md"))
def merge(
    files: tuple[str, ...],
    output: Path | None,
    sample: str | None,
    quality: str,
    adjudicate: Path | None,
    adjudicated: tuple[str, ...],
    most: int,
    form: Path | None,
    any_scores: bool,
    format_: str,
) -> None:
    """Merge the ratings of several raters: FILES they sent back, or the database of `dialeval rate serve`.

    Prints inter-annotator and intra-rater agreement, and the rows on which raters differ most. With
    --sample the written ratings have their texts and systems, and `agreement`, `adem train` and `rank` read them alone.
    Scores that do not fit the form are refused, and so are rows and pairs that are not in the sample. A rater's first
    answer to a row counts; if several files have one, the last file counts.
    """
    import orjson

    from dialeval.human.form import make_score_check, read_form
    from dialeval.human.merge import make_rated_rows, merge_ratings
    from dialeval.human.page import make_rating_page
    from dialeval.human.sample_files import read_sample

    if any_scores and form is not None:
        raise click.UsageError("--any-scores and --form exclude each other; give one of them")
    if adjudicate is not None and sample is None:
        raise click.UsageError("--adjudicate shows rows; name the folder of the sample (--sample)")
    out.check_places(None, files, adjudicated, sample, form, files=(output, adjudicate))
    drawn = None if sample is None else read_sample(sample)
    questions = read_form(form, drawn)
    check = None if any_scores else make_score_check(None if form is None else questions, drawn)
    merged = merge_ratings(files, drawn, adjudicated, most, check, questions)
    rows = make_rated_rows(merged, drawn, quality)
    out.print_result(format_, merged)
    out.print_warnings(merged.warnings)
    if output is not None:
        out.write_output(output, b"".join(orjson.dumps(row) + b"\n" for row in rows))
    if adjudicate is not None and drawn is not None:
        disputed = [row.id for row in merged.disputed]
        if not disputed:
            out.print_err("raters agree on every row; there is nothing to adjudicate")
            return
        out.write_output(adjudicate, make_rating_page(drawn, questions, disputed).encode())


@rate.command(
    "dialeval rate serve to-rate/ --raters ann,bob,cy --per-row 2",
    "dialeval rate serve to-rate/                      continues where it stopped, with the same links",
    "dialeval rate merge to-rate/ratings.sqlite --sample to-rate/ --save ratings.jsonl",
)
@click.argument("sample", type=click.Path(exists=True, file_okay=False))
@click.option("--db", "database", type=options.FILE, help="The file of ratings.  [default: ratings.sqlite in SAMPLE]")
@click.option("--raters", metavar="NAMES", default="", show_default=False, help="Who rates, or who rates in addition.")
@click.option("--per-row", type=click.IntRange(min=1), help="Raters that each row gets.  [default: all]")
@click.option("--host", default="127.0.0.1", help="The address of this machine that raters reach it by.")
@click.option("--port", type=click.IntRange(0, 65535), help="0: any free port.  [default: the last one]")
@_form
def serve(
    sample: str, database: Path | None, raters: str, per_row: int | None, host: str, port: int | None, form: Path | None
) -> None:
    """Serve the page to a team, with a link of their own for each rater, until Ctrl-C.

    A rating is on the disk before it is acknowledged; until then the page keeps it in the browser and sends it again.
    Links stay the same when the server is started again. The page of the lead exports the ratings at any time.
    """
    from dialeval.human.form import read_form
    from dialeval.human.page import collect_things, digest_form
    from dialeval.human.sample_files import ROWS_FILE, SAMPLE_FILE, read_sample
    from dialeval.human.server import RatingServer, is_loopback
    from dialeval.human.store import LONGEST_NAME, SUFFIXES, RatingStore

    names = list(dict.fromkeys(name.strip() for name in raters.split(",") if name.strip()))
    if any(len(name) > LONGEST_NAME for name in names):
        raise click.UsageError(f"names of raters have at most {LONGEST_NAME} characters")
    database = database or Path(sample) / "ratings.sqlite"
    if database.suffix not in SUFFIXES:
        raise click.UsageError(f"--db is a file that ends in {', '.join(SUFFIXES)}, so that `rate merge` knows it")
    out.check_places(None, Path(sample) / SAMPLE_FILE, Path(sample) / ROWS_FILE, form, files=(database,))
    local = is_loopback(host)
    drawn = read_sample(sample)
    questions = read_form(form, drawn)
    digest, things = digest_form(drawn, questions), collect_things(drawn, questions)
    with closing(RatingStore(database, digest)) as store:
        store.add_raters(names)
        if not store.read_raters():
            raise click.UsageError("name who rates: --raters ann,bob")
        gold = {question.id for question in questions.gold}
        store.assign([thing["id"] for thing in things], per_row, drawn.design.seed, gold)
        port = store.port if port is None else port
        with RatingServer(store, questions, digest, things, host, port) as server:
            store.port = server.port
            if not local:
                out.print_warnings(["whoever reaches this address and has a link can rate; nothing is encrypted"])
            with suppress(KeyboardInterrupt):  # from the first link on, which is when somebody may press it
                for name, link in server.make_links().items():
                    out.print_out(f"{name:<16} {link}")
                out.print_err(f"progress, agreement and export: {server.make_lead_link()}")
                out.print_err("each rater has a link; Ctrl-C ends")
                server.serve_forever()
        for name, (rated, dealt) in store.count_ratings().items():
            out.print_err(f"{name}: {rated} of {dealt} rated")


@options.command(
    "dialeval estimate results/ --human ratings.jsonl --judge judge",
    "dialeval estimate results/ --human ann.jsonl --human bob.jsonl --sample to-rate/ --judge judge,rouge-l",
    "dialeval estimate results/ --human ratings.jsonl --judge judge --assume-random -f md",
)
@click.argument("run", type=click.Path(exists=True))
@click.option("--human", required=True, multiple=True, type=click.Path(exists=True), help="Files of ratings.")
@click.option("--sample", type=click.Path(), help="The folder of the sample.  [default: the one next to the ratings]")
@options.judge_keys("The judge: a metric of the run, or several, comma-separated.")
@_quality
@_raters
@_cluster
@options.choice(
    "--population", ["dialogues", "run"], "Estimate the mean over further such dialogues, or over the rows of this run."
)
@click.option("--baseline", metavar="NAME", help="The system that others are compared with.  [default: the first]")
@_confidence
@click.option("--assume-random", is_flag=True, help="Treat ratings as a random sample, though they are none.")
@options.field_names("rated rows")
@options.output_file
@options.format_()
def estimate(run: str, human: tuple[str, ...], output: Path | None, format_: str, **settings: Any) -> None:
    """Estimate the mean human rating of the systems of a saved RUN, and their differences.

    The judge's mean over all rows is corrected by the ratings of some rows (prediction-powered inference), with the
    probabilities that rows were sampled with, and over whole dialogues. The interval from ratings alone is printed next
    to it. Ratings are lines with an id of rows.jsonl, a rater and scores.
    """
    from dialeval.core.result import files_of
    from dialeval.human.estimate import estimate_ratings as estimated

    out.check_places(None, (files_of(run), *human), files=(output,))
    estimates = estimated(run, list(human), **settings)
    out.print_result(format_, estimates, output, _FILE_WIDTH)
    out.print_warnings(estimates.warnings)


@options.command(
    "dialeval rank pairs.jsonl",
    "dialeval rank ann.csv bob.csv --field a=left --field b=right --field better=winner --length",
    "dialeval rank pairs.jsonl --raters random --position        for other raters, and free of the order",
)
@click.argument("pairs", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--length", is_flag=True, help="Control for the length of the responses.")
@click.option("--position", is_flag=True, help="Control for the position of the responses: a was shown first.")
@_raters
@_cluster
@_confidence
@options.field_names("pairs")
@options.output_file
@options.format_()
def rank(pairs: tuple[str, ...], output: Path | None, format_: str, **settings: Any) -> None:
    """Rank systems by PAIRS of responses of which one was preferred.

    A pair is a row with a, b (the systems) and better (a, b or tie), and where known dialog_id, response_a and
    response_b (.jsonl, .json, .csv, .tsv, .parquet). Strengths are those of Bradley and Terry with ties; intervals are
    Student's over dialogues (jackknife), with --raters random over raters, too.
    """
    from dialeval.human.rank import rank as ranked

    if run := next((name for name in pairs if Path(name).is_dir()), None):
        raise click.UsageError(
            f"{run} is a folder; a run is ranked by `dialeval compare {run}`, or after `judge pairs`"
        )
    out.check_places(None, pairs, files=(output,))
    ranking = ranked(list(pairs), **settings)
    out.print_result(format_, ranking, output, _FILE_WIDTH)
    out.print_warnings(ranking.warnings)


@options.command(
    "dialeval agreement ratings.jsonl --human overall -m nlg-bleu-4,rouge-l,chrf",
    "dialeval agreement results/ --human ratings.jsonl --quality engaging",
    "dialeval agreement ratings.csv --human overall --field response=answer --level system -f latex",
)
@click.argument("subject", type=click.Path(exists=True), metavar="RUN|RATINGS")
@click.option("--human", required=True, help="The ratings of a run's responses, or the quality in the rated rows.")
@click.option("--quality", help="Which of the scores counts, where --human is a file.  [default: overall]")
@options.metrics("all that there are")
@options.tokenizer
@options.resources
@click.option("--judge-dir", "judge", type=click.Path(file_okay=False), help="Folder of a judge.  [default: shipped]")
@click.option("--level", "levels", multiple=True, type=options.Choice(LEVELS), help="One or several.  [default: all]")
@options.bootstrap_resamples
@click.option("--seed", type=options.SEED, default=12345, help="Random seed.")
@click.option("--confidence", type=float, default=0.95, metavar="LEVEL", help="Confidence level.")
@_sample
@click.option("--labels", is_flag=True, help="Treat ratings as labels: kappa, AC1, alpha and confusion matrices.")
@click.option("--figure", type=options.FILE, help="With --labels: draw the bias of judges (.svg, .png or .pdf).")
@options.pairs("--model models", "NAME=MODEL", "With --labels: the model of a system, or of a judge.")
@click.option("--disputed", type=options.FILE, help="Write a page to rate the strongest disagreements again.")
@click.option("--most", type=click.IntRange(min=1), default=20, help="Rows of --disputed.")
@options.field_names("rated rows")
@options.output_file
@options.format_()
@options.threads
def agreement(
    subject: str,
    human: str,
    quality: str | None,
    levels: tuple[str, ...],
    output: Path | None,
    format_: str,
    labels: bool,
    figure: Path | None,
    models: dict[str, str],
    disputed: Path | None,
    most: int,
    **settings: Any,
) -> None:
    """Correlate metrics with human scores, at the level of turns, dialogues and systems.

    Takes a saved run with a file of rated rows, or the rated rows alone, which are then scored. A rated row is an
    object with a response, scores and, where known, references, context, system and dialog_id (.jsonl, .json, .csv,
    .tsv, .parquet). Intervals are over dialogues. The length of the response is always there as the
    control, and the agreement of the annotators as the ceiling. With --labels, or for --disputed, metrics are compared
    with the label that most annotators gave.
    """
    from dialeval.analysis.agreement import measure_agreement as correlate
    from dialeval.core.result import files_of

    saved = _is_run(subject)
    if saved and not os.path.exists(human):  # noqa: PTH110  (pathlib raises for a name that is too long)
        raise click.BadParameter(f"no file {human!r} with ratings of the run's responses", param_hint="--human")
    if not saved and quality is not None:
        raise click.UsageError(f"--quality needs a run; {subject} holds rated rows: --human {quality} names it")
    resources = [settings[name] for name in ("train", "vocabulary", "vectors", "judge")]
    out.check_places(None, files_of(subject) if saved else subject, human, resources, files=(output, figure, disputed))
    if labels or disputed is not None:
        chosen = {name: settings[name] for name in ("metrics", "fields", "sample")}
        chosen |= {"quality": (quality or "overall") if saved else human, "level": settings["confidence"], "most": most}
        chosen["models"] = models or None
        _compare_labels((subject, human if saved else None), chosen, figure, disputed, format_, output)
        return
    if figure is not None or models:
        raise click.UsageError("--figure and --model need --labels")
    settings |= {"quality": (quality or "overall") if saved else human, "levels": levels or None}
    correlations = correlate(subject, human if saved else None, **settings)
    out.print_result(format_, correlations, output, _FILE_WIDTH)
    out.print_skipped(correlations.skipped)
    for key, by_level in correlations.metrics.items():
        for level, correlation in by_level.items():
            if correlation.reason is not None:
                out.print_err(f"no correlation of {key} at {level} level: {correlation.reason}")
    out.print_warnings(correlations.warnings)


def _compare_labels(
    rated: tuple[str, str | None],
    chosen: dict[str, Any],
    figure: Path | None,
    disputed: Path | None,
    format_: str,
    output: Path | None,
) -> None:
    """Print the agreement of metrics with human labels; draw biases and write disputed rows if these are requested."""
    from dialeval.analysis.labels import measure_label_agreement
    from dialeval.human.form import read_form
    from dialeval.human.page import make_rating_page
    from dialeval.human.sample_files import read_sample
    from dialeval.reports.analyses import draw_bias

    if disputed is not None and chosen["sample"] is None:
        raise click.UsageError("--disputed shows rows of a sample, which --sample names")
    agreement = measure_label_agreement(*rated, **chosen)
    out.print_result(format_, agreement, output, _FILE_WIDTH)
    if figure is not None:
        out.print_err(f"figure of the bias: {draw_bias(agreement).save(figure)}")
    if disputed is not None:
        ids = list(dict.fromkeys(dispute.id for dispute in agreement.disputes if dispute.id is not None))
        out.write_output(disputed, make_rating_page(read_sample(chosen["sample"]), read_form(None), ids).encode())
        returned = "give the file that comes back to `dialeval rate merge --adjudicated`"
        out.print_err(f"{len(ids)} rows to rate again; {returned}")
