"""`dialeval report`, `table` and `describe`: saved runs in, an offline HTML file or what a paper says of them out."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dialeval
from dialeval.cli import options
from dialeval.cli import output as out

if TYPE_CHECKING:
    from dialeval.reports.charts import FigureFormat

EXPORTS = ("every-eval-ever", "inspect", "langfuse-scores", "mlflow", "wandb", "csv", "label-studio")
"""As in `reports.exports`, which is not imported to print help."""
FIGURE_FORMATS = ("svg", "png", "pdf")
"""As in `reports.charts`, which is not imported to print help."""


@options.command(
    "dialeval score damd.txt ubar.txt -r references.txt -o results",
    "dialeval report results --save report.html",
    "dialeval report results --by turn",
    "dialeval report results --figures pdf --width 3.3",
    "dialeval report results --human ratings.jsonl --sample to-rate --judge rouge-l",
)
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@options.option("--save output", "The file to write.", options.FILE, default=Path("report.html"))
@options.option("--title", "Heading of the page.  [default: the systems]")
@options.option("--figures", "Also write figures for papers (extra `report`).", options.Choice(FIGURE_FORMATS))
@options.option(
    "--width", "Width of --figures.  [default: as in the report]", click.FloatRange(2.5, 30), metavar="INCHES"
)
@options.compared
@options.by
@options.option(
    "--human", "Human ratings: also show estimates of the mean rating.", click.Path(exists=True), multiple=True
)
@options.option("--sample", "Folder of the sample that --human rates.", click.Path())
@options.judge_keys("The judge of the estimate, as in `dialeval estimate --judge`.")
@options.option("--quality", "Quality in --human to use.", default="overall")
@options.option("--pairs", "Pairwise preferences: also show the ranking.", click.Path(), multiple=True)
@options.option("--card", "Also write the verdict as a picture to share, .png or .svg.", options.FILE)
@options.open_page
def report(
    runs: tuple[str, ...],
    output: Path,
    figures: FigureFormat | None,
    width: float | None,
    opened: bool,
    by: list[str],
    human: tuple[str, ...],
    sample: str | None,
    judge: str,
    quality: str,
    pairs: tuple[str, ...],
    **page: Any,
) -> None:
    """Show saved RUNS (folders that `dialeval score -o` wrote) in one HTML file that needs no network.

    The first system is the baseline that the others are compared with. Prints the path of the file.
    """
    from time import strftime

    from dialeval.analysis.comparison import MOST_TESTS, load_choices, load_comparison
    from dialeval.analysis.pairing import load_runs
    from dialeval.core.result import files_of
    from dialeval.human.merge import merge_ratings
    from dialeval.human.report import draw_estimates
    from dialeval.reports.comparisons import judge_run
    from dialeval.reports.drawings import write_figures
    from dialeval.reports.html import combine_runs

    if width is not None and figures is None:
        raise click.UsageError("--width needs --figures png, svg or pdf")
    out.check_places(None, files_of(*runs), human, pairs, sample, files=(output,))
    _refuse_foreign(output)
    named = load_runs(runs)
    loaded = list(named.values())
    if pairs:
        page["ranking"] = dialeval.rank(list(pairs))
    if human and len(runs) > 1:
        raise click.UsageError("--human needs exactly one run")
    if human:
        page["people"] = dialeval.estimate_ratings(loaded[0], list(human), judge=judge, sample=sample, quality=quality)
        page["agreement"] = dialeval.measure_agreement(loaded[0], list(human), quality=quality, sample=sample)
        with suppress(dialeval.DialevalError):  # ratings without raters, such as those of other programs
            page["merged"] = merge_ratings(human)
    elif sample is not None or judge:
        raise click.UsageError("--sample and --judge need --human RATINGS")
    if figures is not None:
        folder = output.with_name(f"{output.stem}-figures")
        opinions = draw_estimates(page.get("people"))
        written = write_figures(combine_runs(loaded), folder, figures, width, opinions)
        out.print_err(f"{len(written)} {'figure' if len(written) == 1 else 'figures'} in {folder}")
    if page["compared"] and len(runs) == 1:
        chosen = load_choices(runs[0])
        stored = load_comparison(runs[0], loaded[0], most_tests=MOST_TESTS, **chosen)
        page["compared"] = stored or (chosen and judge_run(loaded[0], **chosen).comparison) or True
    path = dialeval.report(
        loaded, output, out.quote_command(), date=strftime("%Y-%m-%d"), by=by or None, **page
    ).resolve()
    out.print_content(f"{path}\n")
    if opened:
        click.launch(path.as_uri())


@options.command(
    "dialeval score chats.jsonl -o results",
    "dialeval export results --to every-eval-ever",
    "dialeval export results --to langfuse-scores -o scores/",
)
@click.argument("run", type=click.Path())
@options.option("--to form", "The format.", options.Choice(EXPORTS), required=True)
@options.option("-o --output", "The folder to write to.", options.FOLDER, default=Path("export"))
@options.option("--force", "Replace files of an earlier export.", is_flag=True)
def export(run: str, form: str, output: Path, force: bool) -> None:
    """Write the scores of a saved RUN, with their intervals, in the format of another program.

    Prints the paths of the files.
    """
    from dialeval.core.files import check_files, write_bytes
    from dialeval.core.result import files_of
    from dialeval.reports.exports import export_run

    files = export_run(dialeval.load(run), form)
    check_files(output, files, lambda _folder: files if force else (), files_of(run))
    output.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_bytes(output / name, content)
        out.print_content(f"{output / name}\n")


def _refuse_foreign(output: Path) -> None:
    """Refuse to overwrite a file that is no page of dialeval (DataError)."""
    from dialeval.core.errors import DataError, Problem
    from dialeval.core.files import is_device
    from dialeval.reports.html import MARK

    if is_device(output) or not output.is_file():
        return
    with output.open("rb") as file:
        start = file.read(1 << 16)
    if start and MARK.encode() not in start:
        what, remedy = "would be overwritten, but dialeval did not write it", "name another file, or move it away"
        raise DataError(Problem(str(output), None, what, remedy))


@options.command(
    "dialeval table results/ -m sacrebleu,rouge-l --width column",
    "dialeval table multiwoz/ sgd/ --percent --rename names.toml --save results.tex --appendix repro.tex",
    "dialeval table results/ -f md --transpose",
)
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@options.option("-m --metrics", "Only these, comma-separated.  [default: all but parts]", metavar="KEYS")
@options.format_(("latex", "md"))
@options.percent
@options.option("--transpose", "Swap rows and columns.", is_flag=True)
@options.option("--appendix", "Also write commands and signatures to this LaTeX file.", options.FILE)
@options.output_file
def table(
    runs: tuple[str, ...],
    metrics: str | None,
    format_: str,
    percent: bool,
    transpose: bool,
    appendix: Path | None,
    output: Path | None,
) -> None:
    """Write one table of saved RUNS for a paper: systems by metrics, each data set with columns of its own.

    Values have the digits that their uncertainty supports. Within a data set the best value is bold, and those that
    are not significantly worse. A table that does not fit the text or the column continues in panels below.
    """
    from dialeval.analysis.pairing import load_runs
    from dialeval.core.result import files_of
    from dialeval.metrics.registry import split_names
    from dialeval.reports import papers

    out.check_places(None, files_of(*runs), files=(output, appendix))
    named = load_runs(runs)
    subject = named if len(named) > 1 else next(iter(named.values()))
    chosen = None if metrics is None else split_names(metrics)
    form: papers.Form = "md" if format_ == "md" else "latex"
    if transpose and len(named) > 1:
        raise click.UsageError("--transpose is for one run")
    shown = papers.write_table(subject, form, metrics=chosen, percent=percent, transpose=transpose, **out.get_style())
    out.print_content(shown, output)
    if appendix is not None:
        out.write_output(appendix, papers.write_appendix(list(named.values())).encode())


@options.command("dialeval describe results/", "dialeval describe results/ --human ratings.jsonl --bib references.bib")
@click.argument("run", type=click.Path())
@options.option("--human", "Human ratings that the paper reports.", click.Path(exists=True), multiple=True)
@options.option("--sample", "Folder of the sample that --human rates.", click.Path())
@options.option("--quality", "Quality in --human to use.", default="overall")
@options.option("--bib", "Write the references to this file instead of below the paragraph.", options.FILE)
@options.output_file
def describe(
    run: str, human: tuple[str, ...], sample: str | None, quality: str, bib: Path | None, output: Path | None
) -> None:
    """Write a paragraph for the methods section of a paper about a saved RUN, in LaTeX, and its references in BibTeX.

    Everything in it is taken from the run: metrics with their papers, intervals, tests and corrections, the number of
    dialogues and what failed, models of judges, and with --human raters and their agreement.
    """
    from dialeval.analysis.comparison import MOST_TESTS, load_choices, load_comparison
    from dialeval.core.result import files_of
    from dialeval.reports.comparisons import judge_run
    from dialeval.reports.papers import describe_methods

    out.check_places(None, files_of(run), human, files=(output, bib))
    loaded = dialeval.load(run)
    chosen = load_choices(run)
    stored = load_comparison(run, loaded, most_tests=MOST_TESTS, **chosen)
    comparison = stored or judge_run(loaded, **chosen).comparison
    agreement = None
    if human:
        agreement = dialeval.measure_agreement(loaded, list(human), quality=quality, sample=sample)
    paragraph, references = describe_methods(loaded, comparison, agreement)
    out.print_content(paragraph if bib else f"{paragraph}\n{references}", output)
    if bib is not None:
        out.write_output(bib, references.encode())
