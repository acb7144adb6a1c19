"""`dialeval table` and `dialeval describe`: what a paper says of saved runs."""

from __future__ import annotations

from pathlib import Path

import click

from dialeval.cli import options
from dialeval.cli import output as out


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
    from dialeval.reports.methods import describe_methods

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
