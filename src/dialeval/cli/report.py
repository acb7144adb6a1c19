"""`dialeval report`, `table` and `describe`: saved runs in, an offline HTML file or what a paper says of them out."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli import options
from dialeval.cli import output as out
from dialeval.cli.output import check_places, print_err, quote_command

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
    "dialeval report results --figures pdf --figures-dir figures --width 3.3",
    "dialeval report results --human ratings.jsonl --sample to-rate --judge rouge-l",
)
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@click.option("--save", "output", type=options.FILE, default=Path("report.html"), help="The file to write.")
@click.option("--title", help="Heading of the page.  [default: the systems]")
@click.option("--figures", type=options.Choice(FIGURE_FORMATS), help="Also write figures for papers (extra `report`).")
@click.option("--figures-dir", type=options.FOLDER, help="Folder for --figures.  [default: next to the report]")
@click.option(
    "--width", type=click.FloatRange(2.5, 30), metavar="INCHES", help="Width of --figures.  [default: as in the report]"
)
@options.compared
@options.by
@click.option(
    "--human",
    multiple=True,
    type=click.Path(exists=True),
    help="Human ratings: also show estimates of the mean rating.",
)
@click.option("--sample", type=click.Path(), help="Folder of the sample that --human rates.")
@options.judge_keys("The judge of the estimate, as in `dialeval estimate --judge`.")
@click.option("--quality", default="overall", help="Quality in --human to use.")
@click.option("--pairs", multiple=True, type=click.Path(), help="Pairwise preferences: also show the ranking.")
@click.option("--card", type=options.FILE, help="Also write the verdict as a picture to share, .png or .svg.")
@options.open_page
def report(
    runs: tuple[str, ...],
    output: Path,
    figures: FigureFormat | None,
    figures_dir: Path | None,
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

    import dialeval
    from dialeval.analysis.comparison import MOST_TESTS, load_choices, load_comparison
    from dialeval.core.result import files_of
    from dialeval.human.merge import merge_ratings
    from dialeval.human.report import draw_estimates
    from dialeval.reports.comparisons import judge_run
    from dialeval.reports.drawings import write_figures
    from dialeval.reports.html import combine_runs

    if (figures_dir is not None or width is not None) and figures is None:
        raise click.UsageError("--figures-dir and --width need --figures png, svg or pdf")
    check_places(None, files_of(*runs), human, pairs, sample, files=(output,))
    _refuse_foreign(output)
    loaded = [dialeval.load(run) for run in runs]
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
        folder = figures_dir or output.with_name(f"{output.stem}-figures")
        opinions = draw_estimates(page.get("people"))
        written = write_figures(combine_runs(loaded), folder, figures, width, opinions)
        print_err(f"{len(written)} {'figure' if len(written) == 1 else 'figures'} in {folder}")
    if page["compared"] and len(runs) == 1:
        chosen = load_choices(runs[0])
        stored = load_comparison(runs[0], loaded[0], most_tests=MOST_TESTS, **chosen)
        page["compared"] = stored or (chosen and judge_run(loaded[0], **chosen).comparison) or True
    path = dialeval.report(loaded, output, quote_command(), date=strftime("%Y-%m-%d"), by=by or None, **page).resolve()
    out.print_content(f"{path}\n")
    if opened:
        click.launch(path.as_uri())


@options.command(
    "dialeval score chats.jsonl -o results",
    "dialeval export results --to every-eval-ever",
    "dialeval export results --to langfuse-scores -o scores/",
)
@click.argument("run", type=click.Path())
@click.option("--to", "form", type=options.Choice(EXPORTS), required=True, help="The format.")
@click.option("-o", "--output", type=options.FOLDER, default=Path("export"), help="The folder to write to.")
@click.option("--force", is_flag=True, help="Replace files of an earlier export.")
def export(run: str, form: str, output: Path, force: bool) -> None:
    """Write the scores of a saved RUN, with their intervals, in the format of another program.

    Prints the paths of the files.
    """
    import dialeval
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
@click.option("-m", "--metrics", metavar="KEYS", help="Only these, comma-separated.  [default: all but parts]")
@options.format_(("latex", "md"))
@options.percent
@click.option("--transpose", is_flag=True, help="Swap rows and columns.")
@click.option("--appendix", type=options.FILE, help="Also write commands and signatures to this LaTeX file.")
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
    import dialeval
    from dialeval.core.result import files_of
    from dialeval.metrics.registry import split_names
    from dialeval.reports import papers

    out.check_places(None, files_of(*runs), files=(output, appendix))
    loaded = [dialeval.load(run) for run in runs]
    names = [Path(run).resolve().name for run in runs]
    unique = [name if names.count(name) == 1 else f"{name} ({at})" for at, name in enumerate(names, 1)]
    subject = loaded[0] if len(loaded) == 1 else dict(zip(unique, loaded, strict=True))
    chosen = None if metrics is None else split_names(metrics)
    form: papers.Form = "md" if format_ == "md" else "latex"
    if transpose and len(loaded) > 1:
        raise click.UsageError("--transpose is for one run")
    shown = papers.write_table(subject, form, metrics=chosen, percent=percent, transpose=transpose, **out.get_style())
    out.print_content(shown, output)
    if appendix is not None:
        out.write_output(appendix, papers.write_appendix(loaded).encode())


@options.command("dialeval describe results/", "dialeval describe results/ --human ratings.jsonl --bib references.bib")
@click.argument("run", type=click.Path())
@click.option("--human", multiple=True, type=click.Path(exists=True), help="Human ratings that the paper reports.")
@click.option("--sample", type=click.Path(), help="Folder of the sample that --human rates.")
@click.option("--quality", default="overall", help="Quality in --human to use.")
@click.option("--bib", type=options.FILE, help="Write the references to this file instead of below the paragraph.")
@options.output_file
def describe(
    run: str, human: tuple[str, ...], sample: str | None, quality: str, bib: Path | None, output: Path | None
) -> None:
    """Write a paragraph for the methods section of a paper about a saved RUN, in LaTeX, and its references in BibTeX.

    Everything in it is taken from the run: metrics with their papers, intervals, tests and corrections, the number of
    dialogues and what failed, models of judges, and with --human raters and their agreement.
    """
    import dialeval
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
