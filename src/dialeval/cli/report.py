"""`dialeval report`: saved runs in, one offline HTML file out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli import options
from dialeval.cli import output as printed
from dialeval.cli.output import check_places, command_line, say

if TYPE_CHECKING:
    from dialeval.reports.drawings import PlotFormat

PLOT_FORMATS = ("svg", "png", "pdf")
"""As in `reports.plots`, which is not imported to print help."""


@options.examples(
    "dialeval score damd.txt ubar.txt -r references.txt -o results",
    "dialeval report results --save report.html",
    "dialeval report results --plots pdf --plots-dir figures",
    "dialeval report results --human ratings.jsonl --sample to-rate --judge rouge-l",
)
@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@click.option("--save", "output", type=options.FILE, default=Path("report.html"), help="The file to write.")
@click.option("--title", help="Heading of the page.  [default: the systems]")
@click.option(
    "--plots", type=click.Choice(PLOT_FORMATS), help="Also write a plot per metric, for papers (extra `report`)."
)
@click.option("--plots-dir", type=options.FOLDER, help="Folder for --plots.  [default: next to the report]")
@options.compared
@options.by
@click.option("--human", multiple=True, type=click.Path(), help="Ratings: also show what people say of the run.")
@click.option("--sample", type=click.Path(), help="The folder that the rows of --human were drawn into.")
@click.option("--judge", metavar="KEYS", default="", help="The judge of the estimate, as in `dialeval estimate --by`.")
@click.option("--quality", default="overall", help="Which of the scores of --human counts.")
@click.option("--pairs", multiple=True, type=click.Path(), help="Compared responses: also show the ranking.")
@options.open_page
def report(
    runs: tuple[str, ...],
    output: Path,
    plots: PlotFormat | None,
    plots_dir: Path | None,
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

    from dialeval.analysis.agreement import agreement
    from dialeval.analysis.comparison import load_comparison
    from dialeval.core.result import files_of, load
    from dialeval.human.estimate import estimate
    from dialeval.human.rank import rank
    from dialeval.reports.comparisons import MOST_TESTS
    from dialeval.reports.drawings import write_plots
    from dialeval.reports.html import report as write_report
    from dialeval.reports.html import together

    if plots_dir is not None and plots is None:
        raise click.UsageError("--plots-dir is for --plots: say png, svg or pdf")
    check_places(None, files_of(*runs), human, pairs, sample, files=(output,))
    _refuse_foreign(output)
    loaded = [load(run) for run in runs]
    if pairs:
        page["ranking"] = rank(list(pairs))
    if human and len(runs) > 1:
        raise click.UsageError("--human is about one run; give one")
    if human:
        page["people"] = estimate(loaded[0], list(human), judge=judge, sample=sample, quality=quality)
        page["agreement"] = agreement(loaded[0], list(human), quality=quality, sample=sample)
    elif sample is not None or judge:
        raise click.UsageError("--sample and --judge are those of --human; name the ratings")
    if plots is not None:
        folder = plots_dir or output.with_name(f"{output.stem}-plots")
        written = write_plots(together(loaded), folder, plots)
        say(f"{len(written)} {'plot' if len(written) == 1 else 'plots'} in {folder}")
    if page["compared"] and len(runs) == 1:
        page["compared"] = load_comparison(runs[0], loaded[0], most_tests=MOST_TESTS) or True
    path = write_report(loaded, output, command_line(), date=strftime("%Y-%m-%d"), by=by or None, **page).resolve()
    printed.show(f"{path}\n")
    if opened:
        click.launch(path.as_uri())


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
